# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A block table that a compiled kernel would misread is found; every right one passes."""

import unittest
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from bkm_cell.shims import flex_cpu
from bkm_cell.witnesses.block_tables import BlockTables, WrongTable, check

LENGTHS = [262, 1, 40]


def mask_mod(lengths: list[int]) -> Any:
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k)


def table(lengths: list[int] = LENGTHS, **named: Any) -> BlockMask:
    total = sum(lengths)
    return create_block_mask(mask_mod(lengths), 1, None, total, total, device="cpu", **named)


def changed(mask: BlockMask, **parts: Any) -> tuple[Any, ...]:
    names = [
        "seq_lengths",
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    ]
    given = list(mask.as_tuple())
    for name, value in parts.items():
        given[names.index(name) + 1] = value
    return tuple(given)


class BlockTablesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        flex_cpu.apply()

    def test_right_tables_pass(self):
        for mask in (table(), table([300]), table([128, 128]), table(BLOCK_SIZE=64)):
            check(mask.as_tuple())

    def test_a_whole_block_is_listed_as_full(self):
        self.assertEqual(int(table().full_kv_num_blocks.sum()), 1)

    def test_the_table_of_another_batch_is_found(self):
        other = table([9, 70, 1, 130, 93])
        with self.assertRaisesRegex(WrongTable, "the mask needs it|hides a part"):
            check((*other.as_tuple()[:-1], mask_mod(LENGTHS)))

    def test_a_block_that_is_missing_in_one_direction_is_found(self):
        mask = table()
        for name in ("kv_num_blocks", "q_num_blocks"):
            fewer = getattr(mask, name).clone()
            fewer[0, 0, 1] -= 1
            with self.assertRaisesRegex(WrongTable, "is not listed, and the mask needs it"):
                check(changed(mask, **{name: fewer}))

    def test_a_block_that_is_full_only_in_the_table_is_found(self):
        mask = table()
        parts = {
            "kv_num_blocks": mask.full_kv_num_blocks,
            "kv_indices": mask.full_kv_indices,
            "full_kv_num_blocks": mask.kv_num_blocks,
            "full_kv_indices": mask.kv_indices,
        }
        with self.assertRaisesRegex(WrongTable, "as full, and the mask hides a part of it"):
            check(changed(mask, **parts))

    def test_an_index_beyond_the_end_is_found(self):
        mask = table()
        with self.assertRaisesRegex(WrongTable, "does not exist"):
            check(changed(mask, kv_indices=mask.kv_indices + 3))

    def test_each_call_is_counted_and_a_table_changed_in_place_is_read_again(self):
        tables, mask = BlockTables(), table()
        q = torch.randn(1, 2, sum(LENGTHS), 16)
        with tables.watching("in step 1"):
            flex_attention(q, q, q, block_mask=mask)
            flex_attention(q, q, q, block_mask=mask)
        self.assertEqual(tables.facts(), {"calls": 2})
        with tables.watching("in step 2"):
            flex_attention(q, q, q, block_mask=mask)
            mask.kv_num_blocks[0, 0, 1] -= 1
            flex_attention(q, q, q, block_mask=mask)
        self.assertEqual(tables.facts()["calls"], 4)
        self.assertRegex(tables.facts()["fault"], "^in step 2 keys of each block of queries: ")


if __name__ == "__main__":
    unittest.main()
