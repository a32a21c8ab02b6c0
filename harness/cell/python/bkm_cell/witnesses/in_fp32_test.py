# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The forward in fp32 is one, or is not reported; and the stand-in takes fp32 nowhere else."""

import contextlib
import unittest
from types import SimpleNamespace

import torch

from bkm_cell.shims import flash_attn_cpu
from bkm_cell.witnesses import flash_calls
from bkm_cell.witnesses.in_fp32 import NotInFp32, in_fp32

flash_calls.install()
flash_attn_cpu.apply()
import flash_attn  # noqa: E402  (the stand-in, which is on the path now)


class Engine:
    """Attends by the stand-in; `between`: what it does with the result."""

    def __init__(self, between=lambda result: result, is_calling=True):
        self.between = between
        self.is_calling = is_calling

    def fresh(self, probe):
        self.precision = probe.precision
        return self

    def evaluating(self):
        return contextlib.nullcontext()

    def evaluate(self):
        x = torch.randn(1, 4, 2, 8)
        return self.between(flash_attn.flash_attn_func(x, x, x) if self.is_calling else x)


PROBE = SimpleNamespace(in_precision=lambda precision: SimpleNamespace(precision=precision))


def repeated(engine):
    return in_fp32(engine, PROBE, lambda other: other.evaluate())


class InFp32Test(unittest.TestCase):
    def test_a_fresh_engine_computes_in_fp32(self):
        engine = Engine()
        self.assertEqual(repeated(engine).dtype, torch.float32)
        self.assertEqual(engine.precision, "fp32")
        self.assertEqual(list(flash_calls.taken()), [], "its calls are none of the cell's")

    def test_the_stand_in_refuses_fp32_again(self):
        repeated(Engine())
        with self.assertRaisesRegex(RuntimeError, "only support fp16 and bf16"):
            Engine().evaluate()
        list(flash_calls.taken())

    def test_what_computes_in_bf16_in_between_is_no_forward_in_fp32(self):
        engine = Engine(lambda result: (result.bfloat16() + 1).float())
        with self.assertRaisesRegex(NotInFp32, "also computes in bfloat16"):
            repeated(engine)

    def test_what_does_not_call_the_stand_in_shows_nothing(self):
        with self.assertRaisesRegex(NotInFp32, "calls no flash_attn"):
            repeated(Engine(is_calling=False))

    def test_an_engine_that_raises_leaves_nothing_behind(self):
        def fail(_):
            raise ValueError("no")

        with self.assertRaisesRegex(ValueError, "no"):
            repeated(Engine(fail))
        self.assertEqual(list(flash_calls.taken()), [])


if __name__ == "__main__":
    unittest.main()
