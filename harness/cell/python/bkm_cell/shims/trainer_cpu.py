# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What engines' own trainers ask of a device, beyond what their engines ask.

The process group: verl asks for "cpu:gloo,cpu:gloo" where its device is a CPU, and for nccl before
0.9; torch refuses both. Engines: verl registers them for CUDA. From 0.9 on VERL_ENGINE_DEVICE says
which to take; before, they are registered for the CPU, too.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any

import torch.distributed as dist

from bkm_cell.shims import acts, verl_platform
from bkm_cell.shims.after_import import after_import
from bkm_cell.shims.cpu_device import CpuDevice

NAME = "trainer-on-cpu"


def _register_for_cpu(engines: ModuleType) -> None:
    registry = getattr(engines, "EngineRegistry", None)
    for backends in getattr(registry, "_engines", {}).values():
        for devices in backends.values():
            if "cpu" not in devices and "cuda" in devices:
                acts.acted(NAME)
                devices["cpu"] = devices["cuda"]


class _Device(str):
    """"cpu" for tensor.to(device), and 0 in f"{name}:{device}"."""

    def __format__(self, _: str) -> str:
        return "0"


class _DeviceModule(CpuDevice):
    """torch.cpu itself stays as it is: with a random state, torch takes it for an accelerator."""

    @staticmethod
    def current_device() -> str:
        return _Device("cpu")

    @staticmethod
    def mem_get_info(*_: Any) -> tuple[int, int]:
        return 1 << 33, 1 << 34  # free, all; only ever logged


def _answer_module(device: ModuleType) -> None:
    """verl before 0.9 answers torch.cpu."""
    if not hasattr(device, "get_platform"):
        module = _DeviceModule("torch.cpu")
        device.get_torch_device = lambda: module


def apply() -> None:
    verl_platform.answer(device_module=_DeviceModule("torch.cpu"), current_device=_Device("cpu"))
    after_import("verl.utils.device", _answer_module)
    os.environ.setdefault("VERL_ENGINE_DEVICE", "cuda")
    start = dist.init_process_group

    @functools.wraps(start)
    def init_process_group(backend: str | None = None, *arguments: Any, **named: Any) -> Any:
        if backend is not None and ("nccl" in backend or backend.count("cpu:") > 1):
            acts.acted(NAME)
            backend = "cpu:gloo"
        return start(backend, *arguments, **named)

    dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group
    after_import("verl.workers.engine", _register_for_cpu)
