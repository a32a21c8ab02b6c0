# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A roll-out comes as the PPO trainer makes it: padded on both sides."""

import unittest

import torch

from bkm_cell.adapters.verl_fsdp_update import padded_rollout
from bkm_cell.probe import Batch, Rollout

PAD = 9


class PaddedRolloutTest(unittest.TestCase):
    def test_answers_begin_where_documents_first_count(self):
        # A prompt of 3 and an answer of 2; a prompt of 1 and an answer whose middle does not count; one
        # of which nothing counts.
        lengths = [5, 4, 2]
        kept = Batch(
            torch.arange(10, 21), torch.tensor([0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0]), lengths
        )
        flat = torch.arange(11, dtype=torch.float32)
        rows = padded_rollout(kept, Rollout(flat, -flat), PAD)
        expected = {
            "prompts": [[10, 11, 12], [PAD, PAD, 15], [PAD, PAD, 19]],
            "responses": [[13, 14, PAD], [16, 17, 18], [20, PAD, PAD]],
            "input_ids": [
                [10, 11, 12, 13, 14, PAD],
                [PAD, PAD, 15, 16, 17, 18],
                [PAD, PAD, 19, 20, PAD, PAD],
            ],
            "attention_mask": [[1, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0]],
            "position_ids": [[0, 1, 2, 3, 4, 4], [0, 0, 0, 1, 2, 3], [0, 0, 0, 1, 1, 1]],
            "response_mask": [[1, 1, 0], [1, 0, 1], [0, 0, 0]],
            "old": [[3, 4, 0], [6, 7, 8], [10, 0, 0]],
            "credit": [[-3, -4, 0], [-6, -7, -8], [-10, 0, 0]],
        }
        self.assertEqual({name: row.tolist() for name, row in rows.items()}, expected)


if __name__ == "__main__":
    unittest.main()
