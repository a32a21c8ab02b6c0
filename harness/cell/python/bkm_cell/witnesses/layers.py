# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Finds where a model calls its attention: in separate modules, or HF's callables in a layer."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from bkm_cell.witnesses.named_tensors import plain_name

Modules = list[tuple[str, torch.nn.Module]]


def attention_layers(modules: list[torch.nn.Module]) -> Modules:
    """(name, module) of each layer's inner attention, or of its attention if there is no inner."""
    named = [(plain_name(name), m) for top in modules for name, m in top.named_modules() if name]
    for is_one in (_is_inner, _is_bare_attention, _is_hf):
        found = {name: module for name, module in named if is_one(name, module)}
        if found:
            return list(found.items())
    return []


def _is_inner(name: str, _: torch.nn.Module) -> bool:
    return name.split(".")[-1] == "inner_attention"


def _is_bare_attention(_: str, module: torch.nn.Module) -> bool:
    """An attention without weights or parts: torchtitan's before the name `inner_attention`."""
    return (
        "attention" in type(module).__name__.lower()
        and not any(True for _ in module.children())
        and not any(True for _ in module.parameters())
    )


def _is_hf(name: str, _: torch.nn.Module) -> bool:
    return name.split(".")[-1] == "self_attn"


def layer_index(name: str) -> int:
    """The layer number in a module's name; -1 if there is none."""
    found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    return int(found[1]) if found else -1


@contextmanager
def hf_attention(
    modules: list[torch.nn.Module], watch: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """In this context HF's models call `watch(callable)`.

    They look the callable up at each call, or use their own eager one.
    """
    homes = {
        type(m).__module__ for name, m in attention_layers(modules) if name.endswith("self_attn")
    }
    patched: list[tuple[Any, str, Any]] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(watch(function))

    for home in (sys.modules[name] for name in homes):
        eager = getattr(home, "eager_attention_forward", None)
        registry = getattr(home, "ALL_ATTENTION_FUNCTIONS", None)
        if eager is not None:
            patched.append((home, "eager_attention_forward", eager))
            home.eager_attention_forward = watched(eager)
        if registry is not None and hasattr(type(registry), "__getitem__"):
            kind = type(registry)
            look_up = kind.__getitem__
            patched.append((kind, "__getitem__", look_up))
            kind.__getitem__ = lambda self_, key, look_up=look_up: watched(look_up(self_, key))
    try:
        yield
    finally:
        for owner, name, original in reversed(patched):
            setattr(owner, name, original)
