# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Repeats the forward that trains nothing in fp32, where a stand-in ran for a kernel of bf16.

bf16 hides what is smaller than its rounding. The stand-in takes fp32 here, and nowhere else: the real
kernel refuses it, so no user can run this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bkm_cell.adapters.base import Adapter
from bkm_cell.probe import Probe
from bkm_cell.shims import acts, flash_attn_cpu
from bkm_cell.tensor_file import dtype_name
from bkm_cell.witnesses import flash_calls


class NotInFp32(Exception):
    """The engine computes in another type whatever it is asked for."""


def is_due(probe: Probe) -> bool:
    return probe.precision != "fp32" and "flash_attn" in acts.stand_ins()


def in_fp32(
    adapter: Adapter, probe: Probe, evaluate: Callable[[Adapter], torch.Tensor]
) -> torch.Tensor:
    """What `evaluate` returns of a fresh engine like `adapter`, all of it computed in fp32."""
    calls = flash_calls.count()
    try:
        with flash_attn_cpu.taking_fp32():
            other = adapter.fresh(probe.in_precision("fp32"))
            with other.evaluating(), _NarrowTypes() as narrow:
                result = evaluate(other)
        if flash_calls.count() == calls:
            raise NotInFp32("it calls no flash_attn in fp32")
    finally:
        list(flash_calls.taken())  # they are none of the cell's
    if narrow.seen:
        raise NotInFp32(f"it also computes in {' and '.join(sorted(narrow.seen))}")
    return result


class _NarrowTypes(TorchDispatchMode):
    """Collects the floating types below fp32 of what ops return."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, op: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        result = op(*arguments, **(named or {}))
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                if value.element_size() < 4:
                    self.seen.add(dtype_name(value))
        return result
