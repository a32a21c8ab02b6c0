# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Loads the CPU kernels of aten::_flash_attention_forward and _backward (//harness/kernels)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import torch

NAME = "varlen-cpu"

_LONGEST = 1000  # bytes of a difference

_LOADED: list[ctypes.CDLL] = []


def library(request: dict[str, Any]) -> str | None:
    """Of a cell that may call these kernels: asked to, or by a library that falls back to them."""
    if "torchtitan" not in request["adapter"]:
        return None
    return request.get("kernels") or os.environ.get("BKM_VARLEN_KERNELS")


def is_asked(request: dict[str, Any]) -> bool:
    return request["probe"].get("attention") == "varlen"


def apply(path: str) -> None:
    torch.ops.load_library(path)
    loaded = ctypes.CDLL(path)
    for name in ("bkm_varlen_forward_calls", "bkm_varlen_backward_calls"):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.bkm_varlen_take_difference.restype = ctypes.c_bool
    loaded.bkm_varlen_take_difference.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    _LOADED.append(loaded)


def forward_calls() -> int:
    return sum(loaded.bkm_varlen_forward_calls() for loaded in _LOADED)


def calls() -> int:
    return forward_calls() + sum(loaded.bkm_varlen_backward_calls() for loaded in _LOADED)


def differences() -> Iterator[tuple[bool, str, str]]:
    """Takes (in the backward pass, argument, what) of calls that a GPU computes differently."""
    text = ctypes.create_string_buffer(_LONGEST)
    for loaded in _LOADED:
        while loaded.bkm_varlen_take_difference(text, _LONGEST):
            which, argument, what = text.value.decode().split("\t", 2)
            yield which == "backward", argument, what
