# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults of flash_attn's arguments, planted in the callable that transformers' models look up."""

import sys
import types
import unittest

import torch

from bkm_cell.faults import CannotPlant, Planted, flash_arguments

_HEADS, _SIZE = 2, 8
_LENGTHS = [3, 1, 4]


def _flash_attn():
    """A package whose function keeps what it is given."""
    given = []

    def flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale=None,
        causal=False,
        window_size=(-1, -1),
        softcap=0.0,
    ):
        given.append(locals() | {"given": None})
        return q

    def flash_attn_func(q, k, v, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0):
        given.append(locals() | {"given": None})
        return q

    package = types.ModuleType("flash_attn")
    package.flash_attn_varlen_func = flash_attn_varlen_func
    package.flash_attn_func = flash_attn_func
    flash_arguments._open(package)
    return package, given


class LayerAttention(torch.nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, q):
        return sys.modules[__name__].ALL_ATTENTION_FUNCTIONS["flash_attention_2"](
            self, q, q, q, None, scaling=0.5, softcap=2.5
        )[0]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([LayerAttention(layer) for layer in range(2)])

    def forward(self, q, position_ids=None):
        for layer in self.layers:
            layer(q)


class FlashArgumentsTest(unittest.TestCase):
    def _call(self, fault):
        """The arguments of the last layer's call."""
        package, given = _flash_attn()

        def attention(module, q, k, v, mask, scaling=None, softcap=None):
            q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
            borders = torch.tensor([0, *_LENGTHS]).cumsum(0).int()
            named = {"softmax_scale": scaling, "softcap": softcap, "causal": True}
            most = max(_LENGTHS)
            out = package.flash_attn_varlen_func(q, k, v, borders, borders, most, most, **named)
            return out[None], None

        home = sys.modules[__name__]
        registry = type("Registry", (dict,), {"__getitem__": dict.__getitem__})
        home.ALL_ATTENTION_FUNCTIONS = registry(flash_attention_2=attention)
        home.eager_attention_forward = attention
        probe = types.SimpleNamespace(
            hf_config={
                "num_attention_heads": _HEADS,
                "num_hidden_layers": 2,
                "sliding_window": 3,
                "layer_types": ["full_attention", "sliding_attention"],
            }
        )
        model = Model()
        adapter = types.SimpleNamespace(
            probe=probe, attention="flash_attention_2", modules=lambda: [model]
        )
        planted = Planted(adapter, "transformers", [fault])
        planted.after_construct()
        q = torch.zeros(1, _HEADS, sum(_LENGTHS), _SIZE)
        positions = torch.cat([torch.arange(n) for n in _LENGTHS])[None]
        model(q, position_ids=positions)
        planted.confirm()
        return given[-1]

    def test_borders(self):
        self.assertEqual(self._call("flash-border-lost")["cu_seqlens_q"].tolist(), [0, 4, 8])
        late = self._call("mask-ids-shifted")
        self.assertEqual(late["cu_seqlens_k"].tolist(), [0, 4, 5, 8])
        self.assertEqual(late["max_seqlen_q"], 4)
        whole = self._call("mask-documents-lost")
        self.assertEqual(whole["cu_seqlens_q"].tolist(), [0, 8])
        self.assertEqual(whole["max_seqlen_k"], 8)
        own = self._call("flash-borders-of-own-part")
        self.assertEqual(own["cu_seqlens_q"].tolist(), [0, 3, 4, 8])
        self.assertEqual(self._call("flash-borders-of-64-bits")["cu_seqlens_q"].dtype, torch.int64)
        self.assertEqual(self._call("flash-max-too-small")["max_seqlen_q"], 3)

    def test_numbers_of_the_model(self):
        self.assertEqual(self._call("flash-softcap-dropped")["softcap"], 0)
        self.assertIsNone(self._call("flash-scale-dropped")["softmax_scale"])
        self.assertEqual(self._call("window-dropped")["window_size"], (-1, 0))
        self.assertEqual(self._call("window-one-wider")["window_size"], (3, 0))
        open_ended = self._call("mask-non-causal")
        self.assertEqual((open_ended["causal"], open_ended["window_size"]), (False, (-1, -1)))

    def test_what_borders_cannot_express_is_not_planted(self):
        with self.assertRaises(CannotPlant):
            self._call("mask-without-self")

    def test_a_call_outside_of_a_fault_is_unchanged(self):
        package, given = _flash_attn()
        q = torch.zeros(8, _HEADS, _SIZE)
        self.assertIs(package.flash_attn_func(q, q, q, softcap=1.0), q)
        self.assertEqual(given[-1]["softcap"], 1.0)


if __name__ == "__main__":
    unittest.main()
