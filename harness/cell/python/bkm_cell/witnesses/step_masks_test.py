# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Relations of a training step are read with and without activation checkpointing."""

import unittest

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.backend import AttentionCalls
from bkm_cell.witnesses.step_masks import StepMasks

T = 6


class Attention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Model(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"project": nn.Linear(8, 8), "inner_attention": Attention()})
            for _ in range(2)
        )
        self.reentrant = reentrant

    def forward(self, x):
        for layer in self.layers:

            def run(x, layer=layer):
                q = layer["project"](x)[:, None]
                return layer["inner_attention"](q, q, q)[:, 0]

            x = run(x) if self.reentrant is None else checkpoint(run, x, use_reentrant=self.reentrant)
        return x


class PaddingModel(Model):
    """Pads its row in front, and cuts the output."""

    def __init__(self):
        super().__init__(None)
        self.embedding = nn.Embedding(20, 8)

    def forward(self, ids):
        padded = torch.cat([ids[:, :1].expand(-1, 3), ids], 1)
        return super().forward(self.embedding(padded))[:, 3:]


class AttentionWithSinks(nn.Module):
    """One more softmax logit per head, as gpt_oss has. Reads it from itself."""

    def __init__(self):
        super().__init__()
        self.sinks = nn.Parameter(torch.zeros(1))

    def forward(self, q, k, v):
        scores = (q @ k.transpose(-1, -2)).masked_fill(
            torch.ones(T, T).tril().logical_not(), float("-inf")
        )
        sinks = self.sinks[:, None, None].expand(len(q), 1, T, 1)
        return torch.cat([scores, sinks], -1).softmax(-1)[..., :-1] @ v


class ShardedModel(Model):
    """Takes the sinks back after the forward, as FSDP does."""

    def __init__(self):
        super().__init__(None)
        for layer in self.layers:
            layer["inner_attention"] = AttentionWithSinks()

    def forward(self, x):
        output = super().forward(x)
        for layer in self.layers:
            layer["inner_attention"].sinks = nn.Parameter(torch.empty(0))
        return output


class CoveringAttention(AttentionWithSinks):
    """Covers its sinks by an attribute while it runs, and removes that."""

    def forward(self, q, k, v):
        self.__dict__["sinks"] = 2 * self.sinks
        try:
            return super().forward(q, k, v)
        finally:
            del self.__dict__["sinks"]


class PartModel(nn.Module):
    """A rank that is given the second half of the row. A hook before its attention gathers the keys of
    the first half, which nobody marks here."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.inner_attention = AttentionOfPart()
        self.inner_attention.register_forward_pre_hook(self.gather)

    @staticmethod
    def gather(_, arguments):
        q, k, v = arguments
        return q, torch.cat([k, k], -2), torch.cat([torch.zeros_like(v), v], -2)

    def forward(self, ids):
        q = self.embedding(ids)[:, None]
        return self.inner_attention(q, q, q)[:, 0]


class AttentionOfPart(nn.Module):
    def forward(self, q, k, v):
        whole = k.shape[-2]
        mask = torch.ones(whole, whole).tril().bool()[whole - q.shape[-2] :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class StepMasksTest(unittest.TestCase):
    def test_hooks_that_gather_keys_run_again_and_each_call_is_read_once(self):
        ids = torch.arange(10, 10 + 2 * T)[None]
        half = torch.ones(T, T).tril().bool()
        expected = torch.zeros(2 * T, 2 * T, dtype=torch.bool)
        expected[T:, T:] = half
        for witness in (StepMasks, AttentionCalls):
            model, attended = PartModel(), Attended([2 * T], input_ids=ids[0], parts=2)
            watched = witness([model], attended)
            with watched.watching():
                model(ids[:, T:]).sum().backward()
            self.assertIsNone(attended.error)
            self.assertEqual([entry["layer"] for entry in attended.layers], [-1])
            (relation,) = attended.relations.values()
            self.assertTrue(torch.equal(relation.bool(), expected))
            if witness is AttentionCalls:
                self.assertEqual(len(watched.masks.facts(0)), 1)

    def test_an_attention_may_cover_its_own_parameters(self):
        model, attended = Model(None), Attended([T])
        for layer in model.layers:
            layer["inner_attention"] = CoveringAttention()
        with StepMasks([model], attended).watching():
            model(torch.randn(1, T, 8, requires_grad=True)).sum().backward()
        self.assertIsNone(attended.error)
        self.assertEqual(len(attended.layers), 2)
        self.assertNotIn("sinks", model.layers[0]["inner_attention"].__dict__)

    def test_a_modules_own_parameters_are_those_of_its_forward(self):
        model, attended = ShardedModel(), Attended([T])
        with StepMasks([model], attended).watching():
            model(torch.randn(1, T, 8, requires_grad=True)).sum().backward()
        self.assertIsNone(attended.error)
        (relation,) = attended.relations.values()
        self.assertTrue(torch.equal(relation.bool(), torch.ones(T, T).tril().bool()))
        self.assertEqual(model.layers[0]["inner_attention"].sinks.numel(), 0)

    def test_a_model_may_pad_the_row_itself(self):
        ids = torch.arange(10, 10 + T)
        model, attended = PaddingModel(), Attended([T], input_ids=ids)
        with StepMasks([model], attended).watching():
            model(ids[None]).sum().backward()
        self.assertIsNone(attended.error)
        (relation,) = attended.relations.values()
        self.assertTrue(torch.equal(relation.bool(), torch.ones(T, T).tril().bool()))

    def test_each_layer_is_read_once(self):
        for reentrant in (None, False, True):
            model, attended = Model(reentrant), Attended([T])
            with StepMasks([model], attended).watching():
                with torch.no_grad():
                    model(torch.randn(1, T, 8))
                model(torch.randn(1, T, 8, requires_grad=True)).sum().backward()
            self.assertIsNone(attended.error)
            layers = sorted({entry["layer"] for entry in attended.layers})
            self.assertEqual(layers, [0, 1], reentrant)
            (relation,) = attended.relations.values()
            self.assertTrue(torch.equal(relation.bool(), torch.ones(T, T).tril().bool()))


if __name__ == "__main__":
    unittest.main()
