# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Masks that allow the same pairs have the same digest in any library; reach is bitwise."""

import unittest
from typing import NamedTuple

import torch
from torch.nn.attention.flex_attention import create_block_mask

from bkm_cell.witnesses.mask import MaskCalls, describe, held_masks, reach

LENGTHS = [3, 5, 2]
PAIRS = sum(n * (n + 1) // 2 for n in LENGTHS)


class Segments(NamedTuple):
    cu_seq_q: torch.Tensor
    cu_seq_k: torch.Tensor
    max_q: int
    max_k: int


def dense():
    document = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    return (document[:, None] == document[None, :]).tril()


class MaskTest(unittest.TestCase):
    def test_block_mask_segments_boolean_and_additive_masks_agree(self):
        matrix = dense()
        block = create_block_mask(lambda b, h, q, kv: matrix[q, kv], 1, None, 10, 10, device="cpu")
        bounds = torch.tensor([0, 3, 8, 10], dtype=torch.int32)
        additive = torch.zeros(1, 1, 10, 10).masked_fill(~matrix, torch.finfo(torch.float32).min)
        seen = [
            describe(mask)
            for mask in (block, Segments(bounds, bounds, 5, 5), matrix[None, None], additive)
        ]
        self.assertEqual([facts["pairs"] for facts in seen], [PAIRS] * 4)
        self.assertEqual(len({facts["digest"] for facts in seen}), 1)
        self.assertEqual(
            [facts["type"] for facts in seen], ["BlockMask", "Segments", "Tensor", "Tensor"]
        )

    def test_a_leak_changes_the_digest(self):
        leaking = torch.ones(10, 10, dtype=torch.bool).tril()
        self.assertNotEqual(
            describe(leaking[None, None])["digest"], describe(dense()[None, None])["digest"]
        )

    def test_no_mask_says_nothing_of_pairs(self):
        self.assertEqual(describe(None).keys(), {"type", "digest"})

    def test_owner_is_who_handed_the_mask_over_or_keeps_it(self):
        bounds = torch.tensor([0, 3, 8, 10], dtype=torch.int32)
        handed = Segments(bounds, bounds, 5, 5)
        calls = MaskCalls()
        calls.handed((torch.zeros(1, 10),), {"attention_masks": {"window": handed}})
        calls.saw("0", handed)
        calls.saw("1", Segments(bounds.clone(), bounds.clone(), 5, 5))  # rebuilt on the way
        calls.saw("2", dense()[None, None])
        calls.saw("3", None)
        calls.saw("4", None)
        calls.found_held("pkg.FlexAttention", dense()[None, None])
        owners = [facts.get("owner") for facts in calls.facts(0)]
        self.assertEqual(owners, ["caller", "caller", "model", None, "pkg.FlexAttention"])

    def test_masks_that_a_class_keeps_are_found_with_the_class(self):
        matrix = dense()
        block = create_block_mask(lambda b, h, q, kv: matrix[q, kv], 1, None, 10, 10, device="cpu")

        class Keeper(torch.nn.Module):
            masks = {("block_causal", None): block}

        (found,) = held_masks(Keeper())
        self.assertEqual(found[0].split(".")[-1], "Keeper")
        self.assertIs(found[1], block)
        self.assertEqual(held_masks(torch.nn.Linear(1, 1)), [])

    def test_reach_lists_every_bit_that_moved(self):
        before = torch.tensor([1.0, 2.0, float("nan"), -0.5])
        after = before.clone()
        after[1] = torch.nextafter(after[1], torch.tensor(9.0))
        facts = reach(1, before, after)
        self.assertEqual(facts["moved"], [1])
        self.assertEqual(facts["largest"], [after[1].double().item() - 2.0])


if __name__ == "__main__":
    unittest.main()
