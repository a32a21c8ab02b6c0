# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Each call of a stand-in is read, with its layer and step; what changed is read again."""

import unittest
from unittest import mock

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from bkm_cell.shims import acts, flex_cpu, varlen_cpu
from bkm_cell.witnesses import flash_calls, gpu_reads
from bkm_cell.witnesses.gpu_reads import GpuReads

_TOKENS = 64


def _documents(lengths):
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return lambda b, h, q, k: (ids[q] == ids[k]) & (q >= k)


def _mask(lengths):
    mod = _documents(lengths)
    return create_block_mask(mod, None, None, _TOKENS, _TOKENS, device="cpu", BLOCK_SIZE=16)


class Inner(nn.Module):
    def forward(self, x, mask):
        return flex_attention(x, x, x, block_mask=mask)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Module() for _ in range(3)])
        for layer in self.layers:
            layer.inner_attention = Inner()

    def forward(self, x, masks):
        for layer, mask in zip(self.layers, masks, strict=True):
            x = layer.inner_attention(x, mask)
        return x


class GpuReadsTest(unittest.TestCase):
    def setUp(self):
        flex_cpu.apply()
        acts.install(flex_cpu.NAME)
        self.model = Model()
        self.reads = GpuReads([self.model], steps=2)
        self.x = torch.randn(1, 2, _TOKENS, 8, requires_grad=True)

    def _forward(self, step, masks):
        with self.reads.watching(step):
            self.model(self.x, masks).sum().backward()
        return self.reads.facts()

    def test_right_masks_are_read_in_every_layer_and_step_and_reported_by_none(self):
        self._forward(None, [_mask([16, 48])] * 3)
        self._forward(0, [_mask([16, 48])] * 3)
        facts = self._forward(1, [_mask([40, 24])] * 3)
        self.assertEqual(facts, {"gpu_reads": [3, 3], "gpu_differences": []})

    def test_stale_table_names_its_layer_and_step(self):
        right, stale = _mask([40, 24]), _mask([16, 48])
        stale.mask_mod = right.mask_mod
        self._forward(0, [right] * 3)
        found = self._forward(1, [right, stale, right])["gpu_differences"]
        places = {(f["stand_in"], f["layer"], f["step"]) for f in found}
        self.assertEqual(places, {("flex-cpu", 1, 1)})
        self.assertIn("kv_indices", {f["argument"] for f in found})

    def test_equal_masks_are_compared_once_and_changed_ones_again(self):
        mask = _mask([16, 48])
        with mock.patch.object(gpu_reads, "differences", wraps=gpu_reads.differences) as compared:
            self._forward(0, [mask] * 3)
            self.assertEqual(compared.call_count, 1)
            self._forward(1, [mask] * 3)
            self.assertEqual(compared.call_count, 2)
            with self.reads.watching(1):
                self.model(self.x, [mask] * 3)
                mask.kv_num_blocks.zero_()
                self.model(self.x, [mask] * 3)
            self.assertEqual(compared.call_count, 4)
        self.assertIn("kv_indices", {f["argument"] for f in self.reads.facts()["gpu_differences"]})

    def test_tensor_that_the_mask_function_looks_at_counts_too(self):
        ids = torch.zeros(_TOKENS, dtype=torch.long)
        ids[16:] = 1
        mask = create_block_mask(
            lambda b, h, q, k: ids[q] == ids[k], None, None, _TOKENS, _TOKENS, "cpu", 16
        )
        with self.reads.watching(0):
            self.model(self.x, [mask] * 3)
            ids[:] = 0
            self.model(self.x, [mask] * 3)
        found = self.reads.facts()["gpu_differences"]
        self.assertEqual({f["argument"] for f in found}, {"kv_indices", "q_indices"})

    def test_evidence_forwards_have_no_step_and_packed_kernels_report_their_own(self):
        taken = iter([[(False, "max_q", "it is 3"), (True, "max_k", "it is 4")], []])
        with mock.patch.object(varlen_cpu, "differences", lambda: next(taken, [])):
            facts = self._forward(None, [_mask([16, 48])] * 3)
        self.assertEqual(
            facts["gpu_differences"],
            [
                {"stand_in": "varlen-cpu", "layer": -1, "argument": a, "what": w, "calls": 1}
                for a, w in (("max_q", "it is 3"), ("max_k", "it is 4"))
            ],
        )

    def test_arguments_of_flash_attn_are_grouped_by_step(self):
        call = {"dtype": "bfloat16", "softcap": 2.5}
        unwatched = [{"dtype": "float32"}]
        taken = iter([unwatched, [call, call, {**call, "softcap": 0.0}], []])
        with mock.patch.object(flash_calls, "taken", lambda: next(taken, [])):
            facts = self._forward(1, [_mask([16, 48])] * 3)
        self.assertEqual(
            facts["kernel_calls"],
            [
                {"layers": [-1], "calls": [2], "step": 1, **call},
                {"layers": [-1], "calls": [1], "step": 1, **call, "softcap": 0.0},
            ],
        )

    def test_mask_function_that_cannot_be_read_is_told_and_not_counted(self):
        with mock.patch.object(gpu_reads, "differences", side_effect=ValueError("no")):
            facts = self._forward(0, [_mask([16, 48])] * 3)
        self.assertEqual(facts["gpu_reads"], [0, 0])
        self.assertEqual(facts["gpu_read_error"], "layer 2: ValueError: no")


if __name__ == "__main__":
    unittest.main()
