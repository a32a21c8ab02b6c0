# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Gives a cell that asks for flash_attention_2 a flash_attn that runs on a CPU (stand_ins).

No other cell gets it: its mere presence changes what engines and model files import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from bkm_cell.shims.after_import import after_import
from bkm_cell.stand_ins import FOLDERS

NAME = "flash-attn-cpu"

_CALLS = [0]
_DIFFERENCES: list[tuple[bool, str, str]] = []


def is_asked(request: dict[str, Any]) -> bool:
    probe = request["probe"]
    return probe.get("attention") == "flash_attention_2" and probe.get("kernels") != "real"


def apply() -> None:
    sys.path.insert(0, FOLDERS["flash_attn"])
    # It asks whether a GPU is there besides the package.
    after_import("transformers.utils.import_utils", _make_available)
    after_import("flash_attn.flash_attn_interface", _watch)
    for name in ("integrations.flash_attention", "modeling_flash_attention_utils"):
        after_import(f"transformers.{name}", _answer_for_cuda)


def forward_calls() -> int:
    return _CALLS[0]


def differences() -> Iterator[tuple[bool, str, str]]:
    """Takes (in the backward pass, argument, what) of calls whose result is not whole."""
    while _DIFFERENCES:
        yield _DIFFERENCES.pop(0)


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


def _watch(module: ModuleType) -> None:
    for kind in (module.FlashAttnFunc, module.FlashAttnVarlenFunc):
        forward = kind.forward

        def watched(*arguments: Any, forward: Any = forward) -> Any:
            _CALLS[0] += 1
            result = forward(*arguments)
            if isinstance(arguments[4], tuple):  # of packed sequences: their lengths
                _note_unwritten(*arguments[4])
            return result

        kind.forward = staticmethod(watched)


def _note_unwritten(cu_seqlens_q: torch.Tensor, _: Any, max_seqlen_q: Any, __: Any) -> None:
    longest = int(cu_seqlens_q.diff().max())
    if int(max_seqlen_q) < longest:
        what = f"max_seqlen_q is {int(max_seqlen_q)}, and the longest sequence has {longest} tokens"
        _DIFFERENCES.append((False, "max_seqlen_q", what))
