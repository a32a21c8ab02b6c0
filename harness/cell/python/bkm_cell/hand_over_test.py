# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Exporting and saving happen after the first step; what they raise is told after the last."""

import json
import os
import tempfile
import types
import unittest

import torch

from bkm_cell.hand_over import HandOver
from bkm_cell.ranks.share import Share
from bkm_cell.probe import Batch
from bkm_cell.report import Report


class Engine:
    def __init__(self, raises: bool = False) -> None:
        self.raises = raises
        self.done: list[str] = []

    def exported(self):
        self.done.append("exported")
        if self.raises:
            raise RuntimeError("cannot export")
        yield "w", torch.ones(2, dtype=torch.float16)

    def save_checkpoint(self, folder):
        self.done.append(f"saved {os.path.basename(folder)}")
        if self.raises:
            return
        os.makedirs(folder)
        with open(os.path.join(folder, "state"), "w") as file:
            file.write("1")

    def resumed(self, folder):
        self.done.append("resumed")
        raise LookupError(folder)


class HandOverTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.makedirs("tensors")
        self.events = []
        self.report = Report(lambda line: self.events.append(json.loads(line)))

    def hand_over(self, engine, export=False, resume=False, rank=None):
        batch = Batch(torch.zeros(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64), [2])
        probe = types.SimpleNamespace(
            export_weights=export,
            resume_checkpoint=resume,
            batches=[batch, batch],
            places={"w": torch.tensor([1])},
            model_dir=".",
        )
        folder = "tensors" if rank is None else os.path.join("tensors", f"rank{rank.number}")
        os.makedirs(folder, exist_ok=True)
        return HandOver(probe, engine, self.report, folder, Share(), rank)

    def facts(self, key):
        return [event["set"][key] for event in self.events if key in event.get("set", {})]

    def test_nothing_is_done_unless_asked(self):
        engine = Engine()
        hand_over = self.hand_over(engine)
        hand_over.after_step(0)
        hand_over.after_training()
        self.assertEqual((engine.done, self.events), ([], []))

    def test_only_the_first_step_is_handed_over(self):
        engine = Engine()
        hand_over = self.hand_over(engine, export=True, resume=True)
        hand_over.after_step(0)
        hand_over.after_step(1)
        self.assertEqual(engine.done, ["exported", "saved global_step_1"])
        self.assertEqual(self.facts("checkpoint_files"), [1])

    def test_what_is_raised_is_raised_in_its_own_stage_at_the_end(self):
        hand_over = self.hand_over(Engine(raises=True), export=True)
        hand_over.after_step(0)
        self.assertEqual(self.events, [])
        with self.assertRaisesRegex(RuntimeError, "cannot export"):
            hand_over.after_training()
        self.assertEqual(self.events, [{"stage": "export"}])

    def test_a_checkpoint_without_a_file_is_reported(self):
        hand_over = self.hand_over(Engine(raises=True), resume=True)
        hand_over.after_step(0)
        self.assertEqual(self.facts("checkpoint_files"), [0])
        with self.assertRaises(LookupError):
            hand_over.after_training()

    def test_a_type_that_no_hf_folder_has_is_reported_and_not_loaded(self):
        hand_over = self.hand_over(Engine(), export=True)
        hand_over.after_step(0)
        hand_over.after_training()
        weights = self.facts("export")[-1]["weights"]
        self.assertEqual(weights["w"]["dtype"], "float16")
        self.assertEqual(weights["w"]["shape"], [2])
        self.assertFalse(os.path.exists("exported"))

    def test_one_of_several_ranks_exports_where_the_cell_has_its_files(self):
        for number in (1, 0):
            rank = types.SimpleNamespace(number=number)
            hand_over = self.hand_over(Engine(), export=True, rank=rank)
            hand_over.after_step(0)
            hand_over.after_training()
        (export,) = self.facts("export")
        self.assertEqual(export["tensors"], "tensors/export.safetensors")
        self.assertTrue(os.path.isfile(export["tensors"]))

    def test_a_file_that_was_not_written_is_our_own_error(self):
        with self.assertRaisesRegex(RuntimeError, "bkm wrote no export.safetensors"):
            self.report.written(os.path.join("tensors", "export.safetensors"))


if __name__ == "__main__":
    unittest.main()
