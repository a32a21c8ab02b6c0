# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Gives a cell that asks for flash_attention_2 a flash_attn that runs on a CPU (stand_ins).

No other cell gets it: its mere presence changes what engines and model files import.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from bkm_cell.shims.after_import import after_import
from bkm_cell.stand_ins import FOLDERS

NAME = "flash-attn-cpu"

def is_asked(request: dict[str, Any]) -> bool:
    probe = request["probe"]
    return probe.get("attention") == "flash_attention_2" and probe.get("kernels") != "real"


def installed() -> str | None:
    """The version of the environment's own flash_attn, if it has one; "": unknown. It is looked for
    and not imported."""
    if importlib.util.find_spec("flash_attn") is None:
        return None
    try:
        return importlib.metadata.version("flash_attn")
    except importlib.metadata.PackageNotFoundError:
        return ""


def apply() -> None:
    """Whoever asks for flash_attn gets the stand-in, also where the environment has its own."""
    sys.path.insert(0, FOLDERS["flash_attn"])
    # It asks whether a GPU is there besides the package.
    after_import("transformers.utils.import_utils", _make_available)
    for name in ("integrations.flash_attention", "modeling_flash_attention_utils"):
        after_import(f"transformers.{name}", _answer_for_cuda)


def _make_available(module: ModuleType) -> None:
    """As if transformers were imported with the package there, on a machine whose GPU it likes."""
    for name, value in vars(module).items():
        if "flash_attn" in name and hasattr(value, "cache_clear"):
            value.cache_clear()
    # A preloaded transformers has looked the distributions up before.
    distributions = vars(module).get("PACKAGE_DISTRIBUTION_MAPPING")
    if distributions is not None:
        distributions["flash_attn"] = ["flash-attn"]
    # Others have copies of the function: all of them change with its code.
    function = module.is_flash_attn_2_available
    function = getattr(function, "__wrapped__", function)
    function.__code__ = _is_available.__code__


def _is_available(*_: Any, **__: Any) -> bool:
    return True


@contextmanager
def taking_fp32() -> Iterator[None]:
    """In this context the stand-in also takes fp32, which the real kernels refuse."""
    types = importlib.import_module("flash_attn.dense_attention").DTYPES
    types.add(torch.float32)
    try:
        yield
    finally:
        types.discard(torch.float32)


class _Torch:
    """torch, where the autocast of CUDA is that of the cell's device.

    transformers before 5.10 asks for CUDA's only, to learn in which type the kernels are called.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def is_autocast_enabled(self, device_type: str = "cuda") -> bool:
        return torch.is_autocast_enabled("cpu" if device_type == "cuda" else device_type)

    def get_autocast_dtype(self, device_type: str) -> torch.dtype:
        return torch.get_autocast_dtype("cpu" if device_type == "cuda" else device_type)

    def get_autocast_gpu_dtype(self) -> torch.dtype:
        return torch.get_autocast_dtype("cpu")


def _answer_for_cuda(module: ModuleType) -> None:
    if vars(module).get("torch") is torch:
        module.torch = _Torch()
