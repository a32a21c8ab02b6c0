# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Each group of faults on a model that is small enough to compute by hand."""

import functools
import json
import pathlib
import types
import unittest
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask

from bkm_cell.faults import CannotPlant, Planted
from bkm_cell.faults.masks import causal_in_documents
from bkm_cell.faults.registry import registered
from bkm_cell.witnesses.mask import attended

_LENGTHS = [3, 5]
_HEADS, _KV_HEADS, _SIZE = 4, 2, 8


class Inner(torch.nn.Module):
    """Attention [batch, tokens, heads, size] with the mask that it is given."""

    def forward(self, q, k, v, *, attention_masks):
        self.mask = attention_masks
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        relation = attended(attention_masks)
        output = F.scaled_dot_product_attention(q, k, v, relation, enable_gqa=True)
        return output.transpose(1, 2)


def varlen_attn(q, k, v, bounds, *, window_size):
    """Says which window it was asked for, as [tokens, heads, size]."""
    return q.flatten(0, 1) * 0 + window_size[1]


VarlenMetadata = namedtuple("VarlenMetadata", "cu_seq_q cu_seq_k max_q max_k")


def _packed() -> VarlenMetadata:
    bounds = torch.tensor([0, 3, 8], dtype=torch.int32)
    return VarlenMetadata(bounds, bounds, 5, 5)


def _held_as_compiled(kernel):
    """As torch.compile does: a function of its own that names what it runs."""

    @functools.wraps(kernel)
    def run(*arguments, **named):
        return kernel(*arguments, **named)

    return run


class PackedInner(torch.nn.Module):
    """Calls the kernel by the name in its module, or compiled, as torchtitan 0.2.2 holds it."""

    _compiled_varlen_attn = _held_as_compiled(varlen_attn)

    def __init__(self, is_compiled):
        super().__init__()
        self.is_compiled = is_compiled

    def forward(self, q, k, v, *, attention_masks):
        kernel = PackedInner._compiled_varlen_attn if self.is_compiled else varlen_attn
        return kernel(q, k, v, attention_masks.cu_seq_q, window_size=(-1, 0))


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Module()
        self.attention.inner_attention = Inner()


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    def forward(self, q, k, v, mask, positions):
        return [
            layer.attention.inner_attention(q, k, v, attention_masks=mask) for layer in self.layers
        ]


def _adapter(model: torch.nn.Module) -> types.SimpleNamespace:
    config = {
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "num_hidden_layers": 2,
        "hidden_size": 16,
        "head_dim": _SIZE,
        "rope_theta": 1e6,
    }
    probe = types.SimpleNamespace(hf_config=config, optimizer={"clip_norm": 1.0}, asked={})
    return types.SimpleNamespace(modules=lambda: [model], probe=probe, attention="flex")


class FaultsTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        length = sum(_LENGTHS)
        self.q = torch.randn(1, length, _HEADS, _SIZE)
        self.k = torch.randn(1, length, _KV_HEADS, _SIZE)
        self.v = torch.randn(1, length, _KV_HEADS, _SIZE)
        self.positions = torch.cat([torch.arange(n) for n in _LENGTHS])[None]
        self.relation = causal_in_documents(_LENGTHS)
        self.mask = create_block_mask(
            lambda b, h, q, k: self.relation[q, k], 1, None, length, length, device="cpu"
        )
        self.right = F.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (self.q, self.k, self.v)), self.relation, enable_gqa=True
        ).transpose(1, 2)

    def _run(self, fault: str) -> tuple[Model, list[torch.Tensor]]:
        model = Model()
        planted = Planted(_adapter(model), "torchtitan", [fault])
        planted.after_construct()
        outputs = model(self.q, self.k, self.v, self.mask, positions=self.positions)
        planted.confirm()
        return model, outputs

    def _attended(self, fault: str) -> list[torch.Tensor]:
        model, _ = self._run(fault)
        return [attended(layer.attention.inner_attention.mask) for layer in model.layers]

    def test_catalogue_and_code_name_the_same_faults(self) -> None:
        folder = pathlib.Path(__file__).absolute().parents[4] / "selftest"
        files = [folder / name for name in ("catalogue.json", "harmless.json")]
        catalogue = {f["id"] for file in files for f in json.loads(file.read_text())["faults"]}
        self.assertEqual(catalogue, {fault.name for fault in registered()})

    def test_unknown_fault_is_refused(self) -> None:
        with self.assertRaisesRegex(CannotPlant, "no-such-fault"):
            Planted(_adapter(Model()), "torchtitan", ["no-such-fault"])

    def test_fault_without_a_place_is_refused(self) -> None:
        with self.assertRaisesRegex(CannotPlant, "q_norm"):
            self._run("qk-norm-skipped")
        with self.assertRaisesRegex(CannotPlant, "no sliding window"):
            self._run("window-dropped")

    def test_fault_that_never_acted_is_told(self) -> None:
        planted = Planted(_adapter(Model()), "torchtitan", ["heads-transposed"])
        planted.after_construct()
        with self.assertRaisesRegex(CannotPlant, "never acted"):
            planted.confirm()

    def test_masks_say_their_relation_in_the_form_in_which_they_came(self) -> None:
        at = torch.arange(8)
        ids = torch.repeat_interleave(torch.arange(2), torch.tensor(_LENGTHS))
        same = ids[:, None] == ids[None, :]
        before = at[:, None] >= at[None, :]
        for fault, expected in {
            "mask-non-causal": same,
            "mask-all-to-all": torch.ones(8, 8, dtype=torch.bool),
            "mask-documents-lost": before,
            "mask-future-by-one": same & (at[:, None] + 1 >= at[None, :]),
        }.items():
            for seen in self._attended(fault):
                self.assertTrue(torch.equal(seen, expected), fault)

    def test_boundary_faults_move_one_token(self) -> None:
        (shifted, _) = self._attended("mask-ids-shifted")
        self.assertTrue(torch.equal(shifted, causal_in_documents([4, 4])))
        (leak, _) = self._attended("mask-boundary-leak")
        self.assertEqual((leak != self.relation).nonzero().tolist(), [[3, 2]])
        (alone, _) = self._attended("mask-without-self")
        self.assertEqual(alone.diagonal().nonzero().flatten().tolist(), [0, 3])

    def test_mask_of_half_the_layers(self) -> None:
        lower, upper = self._attended("mask-missing-on-half")
        self.assertTrue(torch.equal(lower, self.relation))
        self.assertTrue(torch.equal(upper, torch.ones(8, 8, dtype=torch.bool).tril()))

    def test_packed_metadata_takes_segments_and_refuses_what_they_cannot_say(self) -> None:
        self.mask = _packed()
        (seen, _) = self._attended("mask-documents-lost")
        self.assertTrue(torch.equal(seen, torch.ones(8, 8, dtype=torch.bool).tril()))
        model, _ = self._run("varlen-max-too-small")
        seen = model.layers[1].attention.inner_attention.mask
        self.assertEqual((seen.max_q, seen.max_k), (2, 2))
        self.assertIs(seen.cu_seq_q, self.mask.cu_seq_q)
        with self.assertRaisesRegex(CannotPlant, "cumulative lengths"):
            self._run("mask-without-self")

    def test_a_window_reaches_the_packed_kernel_by_its_name_and_compiled(self) -> None:
        self.mask = _packed()
        for is_compiled in (False, True):
            model = Model()
            for layer in model.layers:
                layer.attention.inner_attention = PackedInner(is_compiled)
            for fault, right in (("mask-non-causal", -1), ("mask-future-by-one", 1)):
                planted = Planted(_adapter(model), "torchtitan", [fault])
                planted.after_construct()
                outputs = model(self.q, self.k, self.v, self.mask, positions=self.positions)
                planted.confirm()
                for layer, output in zip(model.layers, outputs, strict=True):
                    self.assertTrue((output == right).all(), (fault, is_compiled))
                    del layer.attention.inner_attention.forward
            self.assertIs(PackedInner._compiled_varlen_attn.__wrapped__, varlen_attn)

    def test_a_window_that_no_kernel_was_told_never_acted(self) -> None:
        self.mask = _packed()
        model = Model()
        for layer in model.layers:
            inner = PackedInner(True)
            inner.forward = types.MethodType(lambda self, q, k, v, attention_masks: q, inner)
            layer.attention.inner_attention = inner
        planted = Planted(_adapter(model), "torchtitan", ["mask-non-causal"])
        planted.after_construct()
        model(self.q, self.k, self.v, self.mask, positions=self.positions)
        with self.assertRaisesRegex(CannotPlant, "never acted"):
            planted.confirm()

    def test_table_faults_leave_the_function_right(self) -> None:
        model, outputs = self._run("flex-full-block-not-full")
        torch.testing.assert_close(outputs[0], self.right)
        mask = model.layers[0].attention.inner_attention.mask
        self.assertEqual(int(mask.kv_num_blocks.sum()), 0)
        self.assertEqual(int(mask.full_kv_num_blocks.sum()), 1)
        with self.assertRaisesRegex(CannotPlant, "has no maximum"):
            self._run("varlen-max-too-small")

    def test_stale_table_is_of_the_previous_batch(self) -> None:
        model = Model()
        planted = Planted(_adapter(model), "torchtitan", ["flex-block-table-stale"])
        planted.after_construct()
        length = sum(_LENGTHS)
        for lengths in ([4, 4], _LENGTHS):
            positions = torch.cat([torch.arange(n) for n in lengths])[None]
            relation = causal_in_documents(lengths)
            mask = create_block_mask(
                lambda b, h, q, k, relation=relation: relation[q, k],
                1, None, length, length, device="cpu", BLOCK_SIZE=4,
            )  # fmt: skip
            model(self.q, self.k, self.v, mask, positions=positions)
        seen = model.layers[0].attention.inner_attention.mask
        self.assertTrue(torch.equal(attended(seen), causal_in_documents(_LENGTHS)))
        self.assertEqual(mask.kv_num_blocks.flatten().tolist(), [1, 2])
        self.assertEqual(seen.kv_num_blocks.flatten().tolist(), [1, 1])

    def test_query_heads_read_interleaved_key_heads(self) -> None:
        _, outputs = self._run("kv-heads-interleaved")
        wrong = torch.tensor([h % _KV_HEADS for h in range(_HEADS)])
        q, k, v = (t.transpose(1, 2) for t in (self.q, self.k[:, :, wrong], self.v[:, :, wrong]))
        expected = F.scaled_dot_product_attention(q, k, v, self.relation).transpose(1, 2)
        torch.testing.assert_close(outputs[0], expected)

    def test_transposed_features_keep_shape_and_content(self) -> None:
        _, outputs = self._run("heads-transposed")
        by_features = self.right[0, 5].t().reshape(-1)  # size outside, heads inside
        torch.testing.assert_close(outputs[0][0, 5].reshape(-1), by_features)

    def test_turning_query_and_key_alike_changes_nothing_and_one_of_them_does(self) -> None:
        _, outputs = self._run("rope-all-shifted")
        torch.testing.assert_close(outputs[0], self.right)
        for fault in ("rope-query-shifted", "rope-twice", "rope-wrong-base"):
            _, outputs = self._run(fault)
            self.assertGreater((outputs[0] - self.right).abs().max().item(), 1e-3, fault)

    def test_fallback_computes_the_same_values(self) -> None:
        _, outputs = self._run("kernel-falls-back")
        torch.testing.assert_close(outputs[1], self.right)


if __name__ == "__main__":
    unittest.main()
