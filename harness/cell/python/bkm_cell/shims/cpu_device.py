# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Without an accelerator torchtitan assumes "cuda", and calls functions that torch.cpu lacks."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from bkm_cell.shims import acts
from bkm_cell.shims.after_import import after_import

NAME = "cpu-device"

_ZEROS = (
    "max_memory_allocated",
    "memory_allocated",
    "max_memory_reserved",
    "memory_reserved",
)
_NOTHING = (
    "set_device",
    "reset_peak_memory_stats",
    "empty_cache",
    "synchronize",
    "manual_seed",
    "manual_seed_all",
)
_STATISTICS = ("active_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries", "num_ooms")
_MEMORY = 1 << 34  # bytes; only ever logged


class CpuDevice(ModuleType):
    """torch.cpu, plus the functions of an accelerator's module."""

    @staticmethod
    def current_device() -> int:
        """A number, as of any accelerator: torch.cpu's own is a name."""
        return 0

    def __getattr__(self, name: str) -> Any:
        if hasattr(torch.cpu, name):
            return getattr(torch.cpu, name)
        acts.acted(NAME)
        if name in _ZEROS:
            return lambda *a, **k: 0
        if name in _NOTHING:
            return lambda *a, **k: None
        if name == "memory_stats":
            return lambda *a, **k: dict.fromkeys(_STATISTICS, 0)
        if name == "get_device_properties":
            return lambda *a, **k: SimpleNamespace(total_memory=_MEMORY, name="cpu")
        if name == "get_device_name":
            return lambda *a, **k: "cpu"
        if name in ("get_rng_state", "set_rng_state"):
            return lambda *a, **k: getattr(torch, name)(
                *(x for x in a if isinstance(x, torch.Tensor))
            )
        raise AttributeError(f"module 'torch.cpu' has no attribute '{name}'", name=name, obj=self)


def _use_cpu(module: ModuleType) -> None:
    module.device_type, module.device_module = "cpu", CpuDevice("torch.cpu")


def apply() -> None:
    after_import("torchtitan.tools.utils", _use_cpu)
