# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What ranks report becomes one observation, and what should be alike and is not is named."""

import json
import os
import tempfile
import unittest

import torch

from bkm_cell.ranks.merge import Merge, merge_facts
from bkm_cell.report import Report
from bkm_cell.tensor_file import load_file, save_file


class MergeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.seen = {}
        self.merge = Merge(2, self.folder, Report(self.take, self.folder))
        for rank in (0, 1):
            os.makedirs(os.path.join(self.folder, "tensors", f"rank{rank}"))

    def take(self, event):
        event = json.loads(event)
        merge_facts(self.seen, event.get("set", {}))
        for key, value in event.get("append", {}).items():
            self.seen.setdefault(key, []).append(value)

    def write(self, rank, file, **tensors):
        save_file(
            {name.replace("__", "/"): value for name, value in tensors.items()},
            os.path.join(self.folder, "tensors", f"rank{rank}", file),
        )

    def step(self, rank, log_probs, owned, after, **facts):
        self.write(
            rank,
            "step0.safetensors",
            log_probs=torch.tensor(log_probs),
            owned=torch.tensor(owned, dtype=torch.uint8),
            after__w=torch.tensor(after),
        )
        self.merge.set(rank, {"data_rank": rank, "data_ranks": 2})
        facts = {"step": 0, "tensors": "tensors/step0.safetensors", "grad_norm": 2.0, **facts}
        self.merge.append(rank, {"steps": facts})

    def merged(self):
        return load_file(os.path.join(self.folder, "tensors", "step0.safetensors"))

    def test_a_file_that_nobody_merges_is_our_own_error(self):
        self.merge.set(0, {"export": {"tensors": "tensors/export.safetensors"}})
        self.assertEqual(self.seen["export"]["tensors"], "tensors/export.safetensors")
        with self.assertRaisesRegex(RuntimeError, "merges it nowhere"):
            self.merge.set(0, {"export": {"tensors": "tensors/rank0/export.safetensors"}})

    def test_what_a_trainer_dealt_to_ranks_is_one_batch(self):
        def of(rank, tokens, labels, documents, outside, residual):
            self.write(
                rank,
                "step0.safetensors",
                batch__input_ids=torch.tensor(tokens),
                batch__labels=torch.tensor(labels),
                batch__document_lengths=torch.tensor([len(tokens)]),
                batch__weights=torch.ones(len(tokens)),
                batch__outside=torch.tensor([outside]),
                batch__residual=torch.tensor([residual]),
            )
            self.merge.set(rank, {"data_rank": rank, "data_ranks": 2})
            facts = {"step": 0, "tensors": "tensors/step0.safetensors", **documents}
            self.merge.append(rank, {"steps": facts})

        of(0, [5, 6], [6, -1], {"documents": [3]}, 0, 0.25)
        of(1, [7], [-1], {"documents": [1]}, 2, 0.5)
        (step,) = self.seen["steps"]
        merged = self.merged()
        self.assertEqual(step["documents"], [3, 1])
        self.assertEqual([own["documents"] for own in step["of_ranks"]], [[3], [1]])
        self.assertEqual(merged["batch/input_ids"].tolist(), [5, 6, 7])
        self.assertEqual(merged["batch/document_lengths"].tolist(), [2, 1])
        self.assertEqual(merged["batch/outside"].tolist(), [2])
        self.assertEqual(merged["batch/residual"].tolist(), [0.5])

    def test_a_step_whose_documents_one_rank_does_not_know_has_none(self):
        for rank, documents in ((0, {"documents": [3]}), (1, {})):
            self.write(
                rank,
                "step0.safetensors",
                batch__input_ids=torch.tensor([5]),
                batch__outside=torch.tensor([0]),
                batch__residual=torch.tensor([0.0]),
            )
            facts = {"step": 0, "tensors": "tensors/step0.safetensors", **documents}
            self.merge.append(rank, {"steps": facts})
        self.assertNotIn("documents", self.seen["steps"][0])

    def test_a_step_is_told_when_all_ranks_have_finished_it(self):
        self.step(0, [1.0, 2.0, 0.0], [1, 1, 0], [5.0], loss=1.0)
        self.assertNotIn("steps", self.seen)
        self.step(1, [0.0, 0.0, 3.0], [0, 0, 1], [5.0], loss=3.0)
        (step,) = self.seen["steps"]
        self.assertEqual(step["loss"], 2.0)  # the mean over data-parallel ranks
        self.assertEqual(self.merged()["log_probs"].tolist(), [1.0, 2.0, 3.0])
        self.assertEqual(self.merge.differences(), [])

    def test_a_norm_of_zero_is_a_norm(self):
        self.step(0, [1.0], [1], [5.0])
        self.step(1, [0.0], [0], [5.0], grad_norm=0.0)
        (difference,) = self.merge.differences()
        self.assertEqual((difference["name"], difference["largest"]), ("grad_norm", 2.0))

    def test_what_a_rank_found_to_differ_is_kept(self):
        found = {"when": "step 1", "name": "after/w", "rank": 1, "largest": 0.5}
        for _ in range(30):
            self.merge.append(1, {"rank_differences": found})
        self.assertEqual(self.merge.differences(), [found] * 20)
        self.assertEqual(self.seen, {})

    def test_ranks_that_share_documents_must_agree(self):
        self.step(0, [1.0, 2.0], [1, 1], [5.0])
        self.step(1, [1.0, 2.5], [1, 1], [5.0])
        (difference,) = self.merge.differences()
        self.assertEqual(difference["name"], "log_probs")

    def test_another_norm_on_another_rank_is_told(self):
        self.step(0, [1.0], [1], [5.0])
        self.step(1, [0.0], [0], [5.0], grad_norm=2.5)
        self.assertEqual(self.seen["steps"][0]["grad_norms"], [2.0, 2.5])

    def test_ranks_that_report_no_norm_differ_in_nothing(self):
        self.step(0, [1.0], [1], [5.0])
        self.step(1, [0.0], [0], [5.0], grad_norm=None)
        self.assertEqual(self.seen["steps"][0]["grad_norm"], 2.0)
        self.assertEqual(self.merge.differences(), [])

    def test_another_norm_is_a_difference(self):
        self.step(0, [1.0], [1], [5.0])
        self.step(1, [0.0], [0], [5.0], grad_norm=2.5)
        (difference,) = self.merge.differences()
        self.assertEqual((difference["name"], difference["largest"]), ("grad_norm", 0.5))

    def test_a_token_is_seen_if_any_rank_sees_it(self):
        for rank, relation in enumerate(([[1, 0], [0, 0]], [[0, 0], [1, 1]])):
            self.write(rank, "attended.safetensors", a=torch.tensor(relation, dtype=torch.uint8))
            self.merge.set(rank, {"mask": {"attended": [{"layer": 0, "relation": "a"}]}})
        (layer,) = self.seen["mask"]["attended"]
        merged = load_file(os.path.join(self.folder, "tensors", "attended.safetensors"))
        self.assertEqual(merged[layer["relation"]].tolist(), [[1, 0], [1, 1]])

    def test_a_rank_that_read_no_mask_says_so(self):
        self.merge.set(1, {"mask": {"attended_error": "layer 0: why"}})
        self.assertEqual(self.seen["mask"]["attended_error"], "rank 1: layer 0: why")

    def test_a_position_moved_if_it_moved_on_any_rank(self):
        self.merge.set(0, {"mask": {"reach": {"position": 3, "moved": [4], "largest": [0.5]}}})
        self.assertNotIn("mask", {k: v for k, v in self.seen.items() if v.get("reach")})
        self.merge.set(1, {"mask": {"reach": {"position": 3, "moved": [4, 6], "largest": [1, 2]}}})
        self.assertEqual(
            self.seen["mask"]["reach"], {"position": 3, "moved": [4, 6], "largest": [1, 2]}
        )


if __name__ == "__main__":
    unittest.main()
