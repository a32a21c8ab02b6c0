# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A right table passes in every shape; each way of being wrong is found and named."""

import unittest

import torch
from torch.nn.attention.flex_attention import _create_empty_block_mask, create_block_mask

from bkm_cell.witnesses.block_table import Table, differences

_BLOCK = 16


def _ids(lengths):
    return torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))


def _documents(lengths):
    ids = _ids(lengths)
    return lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k)


def _mask(lengths, **options):
    length = sum(lengths)
    options = {"BLOCK_SIZE": _BLOCK, "device": "cpu"} | options
    return create_block_mask(_documents(lengths), None, None, length, length, **options)


def _found(mask, length, heads=4, batch=1):
    query = torch.zeros(batch, heads, length, 8)
    return differences(Table(mask.as_tuple()), query, query[:, :2])


class BlockTableTest(unittest.TestCase):
    def test_right_tables_pass(self):
        for lengths in ([40], [5, 43], [16, 32], [1, 99], [64, 3, 2]):
            self.assertEqual(_found(_mask(lengths), sum(lengths)), [], lengths)
        self.assertEqual(_found(_mask([50, 20], BLOCK_SIZE=128), 70), [])
        self.assertEqual(_found(_mask([50, 20], BLOCK_SIZE=(16, 32)), 70), [])

    def test_mask_of_each_head_and_row_passes(self):
        widths = torch.tensor([3, 9, 30, 64])
        window = lambda b, h, q, k: (q >= k) & (q - k < widths[h])  # noqa: E731
        mask = create_block_mask(window, None, 4, 64, 64, device="cpu", BLOCK_SIZE=_BLOCK)
        self.assertEqual(_found(mask, 64), [])
        rows = torch.tensor([10, 48])
        padded = lambda b, h, q, k: (q >= k) & (k < rows[b])  # noqa: E731
        mask = create_block_mask(padded, 2, None, 48, 48, device="cpu", BLOCK_SIZE=_BLOCK)
        self.assertEqual(_found(mask, 48, batch=2), [])

    def test_mask_that_nobody_asked_for_passes(self):
        query = torch.zeros(1, 4, 40, 8)
        table = Table(_create_empty_block_mask(query, query).as_tuple())
        self.assertEqual(differences(table, query, query), [])

    def test_table_of_other_documents_leaves_blocks_out(self):
        mask = _mask([16, 48])
        mask.mask_mod = _documents([40, 24])
        (arguments, _) = zip(*_found(mask, 64), strict=True)
        self.assertIn("kv_indices", arguments)
        self.assertIn("q_indices", arguments)
        found = dict(_found(mask, 64))
        self.assertIn("queries 16 to 31 and keys 0 to 15 see each other", found["kv_indices"])

    def test_listed_block_that_nobody_needs_is_harmless(self):
        mask = _mask([64], separate_full_blocks=False)
        mask.mask_mod = _documents([16, 48])
        self.assertEqual(_found(mask, 64), [])

    def test_full_block_that_is_not_full_is_found(self):
        mask = _mask([64])
        mask.mask_mod = _documents([8, 56])
        found = dict(_found(mask, 64))
        self.assertEqual(set(found), {"full_kv_indices", "full_q_indices"})
        self.assertIn("queries 16 to 31 and keys 0 to 15 are marked full", found["full_kv_indices"])

    def test_block_listed_twice_is_found(self):
        mask = _mask([64], separate_full_blocks=False)
        mask.kv_num_blocks[0, 0, 0] = 2
        mask.kv_indices[0, 0, 0, :2] = 0
        ((argument, what),) = _found(mask, 64)
        self.assertEqual(argument, "kv_indices")
        self.assertIn("listed twice (1 such blocks)", what)

    def test_numbers_and_indices_out_of_range_are_found(self):
        mask = _mask([64])
        mask.kv_num_blocks = mask.kv_num_blocks + 9
        self.assertEqual(_found(mask, 64)[0][0], "kv_num_blocks")
        mask = _mask([64])
        mask.kv_indices = mask.kv_indices + 7
        self.assertEqual(_found(mask, 64)[0][0], "kv_indices")
        mask = create_block_mask(
            lambda b, h, q, k: q >= k, None, None, 64, 64, device="cpu", BLOCK_SIZE=_BLOCK
        )
        self.assertEqual(
            _found(mask, 80)[0], ("kv_num_blocks", "it has 4 rows of the 5 needed")
        )

    def test_table_for_the_gradient_alone_may_be_wrong(self):
        parts = list(_mask([64]).as_tuple())
        parts[6] = torch.zeros_like(parts[6])
        query = torch.zeros(1, 1, 64, 8)
        (found,) = differences(Table(tuple(parts)), query, query)
        self.assertEqual(found[0], "q_indices")


if __name__ == "__main__":
    unittest.main()
