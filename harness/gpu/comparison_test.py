# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""How far two runs are apart, and what the table says of it."""

import array
import json
import math
import struct
import unittest

from bkm_gpu import table, tensors
from bkm_gpu.comparison import Seen, compare
from bkm_gpu.problem import Problem

CODES = {"f": "F32", "d": "F64", "B": "U8"}


def stored(**named):
    header, data = {}, b""
    for name, (code, values) in named.items():
        blob = array.array(code, values).tobytes()
        place = [len(data), len(data) + len(blob)]
        header[name] = {"dtype": CODES[code], "shape": [len(values)], "data_offsets": place}
        data += blob
    text = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    return struct.pack("<Q", len(text)) + text + data


def seen(log_probs=(1.0, 2.0), gradient=(3.0, 4.0), loss=1.0, relation="r", steps=1, ending="completed"):
    facts = {"loss": loss, "tensors": "tensors/step0.safetensors", "attended": [{"layer": 0, "relation": relation}]}
    blob = stored(**{"log_probs": ("f", log_probs), "grad/w": ("f", gradient), "relation/r": ("B", [1])})
    observation = {"ending": {"kind": ending}, "steps": [facts] * steps}
    return Seen("a cell", observation, {"tensors/step0.safetensors": blob})


class ComparisonTest(unittest.TestCase):
    def test_equal_runs_are_bit_equal(self):
        found = compare(seen(), seen())
        self.assertTrue(found["bit_equal"])
        self.assertTrue(found["same_attention"])
        self.assertEqual((0.0, 0.0, 0.0), (found["log_probs"], found["loss"], found["gradient"]))

    def test_differences_are_the_largest(self):
        found = compare(seen(log_probs=(1.5, 2.25), gradient=(3.0, 9.0), loss=1.25), seen())
        self.assertFalse(found["bit_equal"])
        self.assertEqual(0.5, found["log_probs"])
        self.assertEqual(0.25, found["loss"])
        self.assertEqual((1.0, "w"), (found["gradient"], found["gradient_of"]))

    def test_nan_is_not_finite_and_never_equal_to_a_number(self):
        found = compare(seen(log_probs=(math.nan, 2.0)), seen())
        self.assertFalse(found["bit_equal"])
        self.assertIsNone(found["log_probs"])
        self.assertIn("not finite", table._apart(found))

    def test_another_length_is_not_finite(self):
        self.assertIsNone(compare(seen(log_probs=(1.0,)), seen())["log_probs"])

    def test_other_pairs_are_another_attention(self):
        self.assertFalse(compare(seen(relation="s"), seen())["same_attention"])

    def test_a_cell_without_steps_compares_nothing(self):
        found = compare(seen(steps=0, ending="raised"), seen())
        self.assertEqual(["raised", "completed"], found["endings"])
        self.assertIsNone(found["same_attention"])
        self.assertEqual("nothing to compare", table._apart(found))

    def test_a_missing_tensor_file_is_one_sentence(self):
        broken = seen()
        broken.tensors = {}
        with self.assertRaisesRegex(Problem, "a cell: tensors/step0.safetensors is missing"):
            compare(broken, seen())

    def test_a_damaged_tensor_file_is_one_sentence(self):
        for data in (b"", b"\xff" * 20, struct.pack("<Q", 2) + b"[]"):
            with self.assertRaisesRegex(Problem, "not a tensor file"):
                tensors.parse(data, "x")


class TableTest(unittest.TestCase):
    def whole(self, **changed):
        apart = compare(seen(log_probs=(1.5, 2.0)), seen())
        entry = {"phase": "forward", "kernels": {"flash_fwd": 1}}
        cell = {
            "library": "torchtitan 0.2.2",
            "model": "qwen3",
            "attention": "flex",
            "precision": "bf16",
            "ending": "completed",
            "exception": "",
            "verdict": {"verdict": "wrong", "stage": "mask", "reason": "reach"},
            "verdict_on_cpu": {"verdict": "ok"},
            "same_again": [compare(seen(), seen())],
            "against_cpu": apart,
            "measures": {
                "median_s": 0.002,
                "step_seconds": [0.001, 0.002, 0.004],
                "tokens": 280,
                "memory": {"peak_allocated_mib": 77},
                "kernels": {"layers": [{"layer": n, **entry} for n in (0, 1)]},
            },
        }
        return {
            "device": "cuda",
            "device_name": "nvidia-x",
            "date": "2026-01-01",
            "machine": {"devices": [{"name": "NVIDIA X"}], "torch": "2", "python": "3.12", "kernel": "6"},
            "sandbox": "none",
            "pack_sha256": "0" * 64,
            "cells": [cell],
            "not_run": ["a slow cell"],
            "attentions": [],
            "attention_probes": {"probes": [{"probe": "p", "as_documented": False, "seen": "a|b"}]},
        } | changed

    def test_a_row_says_verdict_differences_times_and_kernels(self):
        text = table.markdown(self.whole())
        self.assertIn("| wrong at mask, reach | ok | every bit equal | log-probs 5.00e-01", text)
        self.assertIn("| 2.00 | 1.00 to 4.00 | 280 | 77 |", text)
        self.assertIn("| forward | 0 1 | `flash_fwd` x1 |", text)
        self.assertIn("| p | **no** | a\\|b |", text)
        self.assertIn("a slow cell", text)
        self.assertNotIn("results of a CPU", text)

    def test_results_of_a_cpu_are_called_so(self):
        facts = self.whole()["machine"] | {"devices": [], "machine": "x86_64"}
        self.assertIn("say nothing about a GPU", table.markdown(self.whole(device="cpu", machine=facts)))

    def test_probes_that_gave_no_answer_are_named(self):
        text = table.markdown(self.whole(attention_probes={"error": "no such kernel"}))
        self.assertIn("gave no answer: no such kernel", text)


if __name__ == "__main__":
    unittest.main()
