# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
import inspect
import unittest
from types import ModuleType

import torch

from bkm_cell.witnesses import flash_calls


def _function(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0):
    return "dense"


def _packed_function(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
):
    return "packed"


class FlashCallsTest(unittest.TestCase):
    def setUp(self):
        self.module = ModuleType("flash_attn_interface")
        self.module.flash_attn_func = _function
        self.module.flash_attn_varlen_func = _packed_function
        flash_calls._watch(self.module)
        list(flash_calls.taken())

    def test_watched_functions_keep_their_signatures(self):
        for name, function in (
            ("flash_attn_func", _function),
            ("flash_attn_varlen_func", _packed_function),
        ):
            watched = getattr(self.module, name)
            self.assertEqual(inspect.signature(watched), inspect.signature(function))

    def test_a_packed_call_is_recorded_and_made(self):
        q, k = torch.zeros(9, 4, 16), torch.zeros(9, 2, 16)
        borders = torch.tensor([0, 4, 9], dtype=torch.int32)
        before = flash_calls.count()
        named = {"causal": True, "softcap": 2.5, "softmax_scale": 0.5, "window_size": (3, 0)}
        result = self.module.flash_attn_varlen_func(q, k, k, borders, borders, 5, 5, **named)
        self.assertEqual(result, "packed")
        self.assertEqual(flash_calls.count(), before + 1)
        [facts] = flash_calls.taken()
        self.assertEqual(
            facts,
            {
                "dtype": "float32",
                "q": [9, 4, 16],
                "k": [9, 2, 16],
                "causal": True,
                "window": [3, 0],
                "softcap": 2.5,
                "scale": 0.5,
                "dropout": 0.0,
                "cu_seqlens_q": [0, 4, 9],
                "cu_seqlens_k": [0, 4, 9],
                "max_seqlen_q": 5,
                "max_seqlen_k": 5,
            },
        )
        self.assertEqual(list(flash_calls.taken()), [])

    def test_a_call_without_borders_has_the_kernels_scale(self):
        q = torch.zeros(2, 9, 4, 16)
        self.assertEqual(self.module.flash_attn_func(q, q, q), "dense")
        [facts] = flash_calls.taken()
        self.assertEqual(facts["scale"], 0.25)
        self.assertNotIn("cu_seqlens_q", facts)

    def test_a_call_with_more_borders_than_are_kept_is_not_counted(self):
        borders, before = torch.zeros(10_001, dtype=torch.int32), flash_calls.count()
        q = torch.zeros(1, 4, 16)
        self.module.flash_attn_varlen_func(q, q, q, borders, borders, 1, 1)
        self.assertEqual(flash_calls.count(), before)
        self.assertEqual(list(flash_calls.taken()), [])

    def test_a_call_that_the_function_does_not_take_raises_as_it_does(self):
        with self.assertRaises(TypeError):
            self.module.flash_attn_func(torch.zeros(1))


if __name__ == "__main__":
    unittest.main()
