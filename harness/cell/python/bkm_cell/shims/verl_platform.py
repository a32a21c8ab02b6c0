# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Adds the CPU platform object that verl lacks: from 0.9.0 on verl asks one for its device."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

import torch

from bkm_cell.shims import acts
from bkm_cell.shims.after_import import after_import
from bkm_cell.shims.cpu_device import CpuDevice

NAME = "verl-cpu-platform"


_ANSWERS = {
    "device_name": "cpu",
    "vendor_name": "cpu",
    "is_available": True,
    "current_device": "cpu",  # as verl before 0.9.0 answered on a CPU
    "device_count": 1,
    "communication_backend_name": "gloo",
    "visible_devices_envvar": "CUDA_VISIBLE_DEVICES",
    "get_device_capability": (None, None),
    "device_module": torch.cpu,
    "ray_resource_name": "CPU",
    "ray_noset_envvars": [],
    "is_ipc_supported": False,
}
# What a CPU has nothing to do for. CPU seeds are set by torch itself.
_NOTHING_TO_DO = {
    "set_device",
    "synchronize",
    "manual_seed",
    "manual_seed_all",
    "set_allocator_settings",
    "empty_cache",
    "profiler_start",
    "profiler_stop",
    "cudart",
}


def answer(**answers: Any) -> None:
    """From now on verl's platform answers so."""
    _ANSWERS.update(answers)


def _member(base: type, name: str) -> Any:
    if name == "nvtx_range":
        return lambda self, *a, **k: contextlib.nullcontext()

    def answer(*_: Any, **__: Any) -> Any:
        acts.acted(NAME)
        if name in _NOTHING_TO_DO:
            return None
        if name not in _ANSWERS:
            raise NotImplementedError(f"verl asks its platform for {name}, which {NAME} does not know")
        return _ANSWERS[name]

    return property(answer) if isinstance(base.__dict__.get(name), property) else answer


def _set_platform(platform: ModuleType) -> None:
    base = platform.PlatformBase
    members = {name: _member(base, name) for name in base.__abstractmethods__}
    platform.set_platform(type("CpuPlatform", (base,), members)())


def _keep_random_state(checkpoints: ModuleType) -> None:
    """Checkpoints keep the random state of the device's module, which torch.cpu lacks.

    Elsewhere verl asks whether the module is torch.cpu, and torch takes one with a random state for
    an accelerator: only checkpoints see another one.
    """
    if hasattr(checkpoints, "get_torch_device"):
        checkpoints.get_torch_device = lambda: CpuDevice("torch.cpu")


def apply() -> None:
    after_import("verl.utils.checkpoint.checkpoint_manager", _keep_random_state)
    after_import("verl.plugin.platform", _set_platform)
