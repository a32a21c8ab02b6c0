# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
import unittest

import torch

from bkm_cell.adapters.transformers import _given
from bkm_cell.probe import Batch

_IDS = torch.tensor([11, 12, 13, 21, 31, 32])
_BATCH = Batch(_IDS, torch.ones(6, dtype=torch.int64), [3, 1, 2])
_PAD = 0


class GivenTest(unittest.TestCase):
    def _given(self, form):
        given, is_token = _given(_BATCH, form, _PAD)
        # Whatever the form, these places hold the batch's tokens in its order.
        self.assertEqual(given["input_ids"].shape, is_token.shape)
        self.assertEqual(given["input_ids"][is_token].tolist(), _IDS.tolist())
        return given

    def test_packed_tells_positions_only(self):
        given = self._given("packed")
        self.assertEqual(given.keys(), {"input_ids", "position_ids"})
        self.assertEqual(given["position_ids"].tolist(), [[0, 1, 2, 0, 0, 1]])

    def test_lengths_are_of_32_bits(self):
        given = self._given("packed+lengths")
        for part in ("q", "k"):
            self.assertEqual(given[f"cu_seq_lens_{part}"].tolist(), [0, 3, 4, 6])
            self.assertEqual(given[f"cu_seq_lens_{part}"].dtype, torch.int32)
            self.assertEqual(given[f"max_length_{part}"], 3)
        self.assertIn("position_ids", given)

    def test_a_tail_is_padding_at_position_zero(self):
        given = self._given("packed+tail")
        self.assertEqual(given["input_ids"].shape, (1, 64))
        self.assertEqual(given["input_ids"][0, 6:].unique().tolist(), [_PAD])
        self.assertEqual(given["position_ids"][0, 6:].unique().tolist(), [0])
        whole = Batch(torch.arange(64), torch.ones(64), [64])
        self.assertEqual(_given(whole, "packed+tail", _PAD)[0]["input_ids"].shape, (1, 128))

    def test_padded_rows_tell_a_mask_only(self):
        right, left = self._given("padded"), self._given("padded+left")
        self.assertEqual(right.keys(), {"input_ids", "attention_mask"})
        self.assertEqual(right["attention_mask"].tolist(), [[1, 1, 1], [1, 0, 0], [1, 1, 0]])
        self.assertEqual(left["attention_mask"].tolist(), [[1, 1, 1], [0, 0, 1], [0, 1, 1]])
        self.assertEqual(left["input_ids"].tolist(), [[11, 12, 13], [0, 0, 21], [0, 31, 32]])
        counted = self._given("padded+left+positions")["position_ids"]
        self.assertEqual(counted.tolist(), [[0, 1, 2], [0, 0, 0], [0, 0, 1]])

    def test_two_rows_are_as_long_as_the_longer_one(self):
        given = self._given("packed+rows+lengths+mask")
        self.assertEqual(given["input_ids"].tolist(), [[11, 12, 13, 21], [31, 32, 0, 0]])
        self.assertEqual(given["position_ids"].tolist(), [[0, 1, 2, 0], [0, 1, 0, 0]])
        self.assertEqual(given["cu_seq_lens_q"].tolist(), [0, 3, 4, 6, 8])
        self.assertEqual(given["attention_mask"].tolist(), [[1, 1, 1, 1], [1, 1, 0, 0]])


if __name__ == "__main__":
    unittest.main()
