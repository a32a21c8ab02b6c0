# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records with which arguments flash_attn's functions are called, the real ones or the stand-in's.

What a call needs of the kernel is its caller's to say; the judge compares it with what the batch and
the model need.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from bkm_cell.shims.after_import import after_import

FUNCTIONS = ("flash_attn_func", "flash_attn_varlen_func")
_BORDERS = ("cu_seqlens_q", "cu_seqlens_k")
# What is longer is neither recorded nor counted: then the judge knows that it was not read.
_MOST_BORDERS = 10_000  # of one call
_MOST_CALLS = 10_000  # that nobody has taken

_COUNT = [0]
_CALLS: list[dict[str, Any]] = []


def install() -> None:
    """Before anybody has a copy of the functions."""
    after_import("flash_attn.flash_attn_interface", _watch)


def count() -> int:
    """How many calls were recorded."""
    return _COUNT[0]


def taken() -> Iterator[dict[str, Any]]:
    """Takes the arguments of the calls since the last time, as in `kernel_calls` of
    harness/protocol/README.md."""
    while _CALLS:
        yield _CALLS.pop(0)


def _watch(module: ModuleType) -> None:
    for name in FUNCTIONS:
        setattr(module, name, _watched(getattr(module, name)))


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        if len(_CALLS) < _MOST_CALLS and _is_short(bound.arguments):
            _CALLS.append(_facts(bound.arguments))
            _COUNT[0] += 1
        return function(*arguments, **named)

    return call


def _is_short(given: dict[str, Any]) -> bool:
    borders = [given.get(name) for name in _BORDERS]
    return all(b.numel() <= _MOST_BORDERS for b in borders if isinstance(b, torch.Tensor))


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    query, key, scale = given["q"], given["k"], given["softmax_scale"]
    facts: dict[str, Any] = {
        "dtype": str(query.dtype).removeprefix("torch."),
        "q": list(query.shape),
        "k": list(key.shape),
        "causal": bool(given["causal"]),
        "window": [int(width) for width in given["window_size"]],
        "softcap": float(given["softcap"]),
        "scale": float(query.shape[-1] ** -0.5 if scale is None else scale),
        "dropout": float(given["dropout_p"]),
    }
    for name in _BORDERS:
        borders = given.get(name)
        if isinstance(borders, torch.Tensor):
            facts[name] = borders.detach().flatten().tolist()
    for name in ("max_seqlen_q", "max_seqlen_k"):
        if given.get(name) is not None:
            facts[name] = int(given[name])
    return facts
