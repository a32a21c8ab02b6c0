# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Finds where a model calls its attention: in separate modules, or HF's callables in a layer."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from bkm_cell.witnesses.plain_name import plain_name

Modules = list[tuple[str, torch.nn.Module]]


def entrances(modules: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """Where tokens enter: the model's parts, and their embeddings, before which it may pad."""
    return modules + [
        module
        for top in modules
        for module in top.modules()
        if "embedding" in type(module).__name__.lower() and module not in modules
    ]


def attention_layers(modules: list[torch.nn.Module]) -> Modules:
    """(name, module) of each layer's inner attention, or of its attention if there is no inner."""
    return inner_attentions(modules) or _hf_attentions(modules)


def inner_attentions(modules: list[torch.nn.Module]) -> Modules:
    """(name, module) of each layer's inner attention; empty for models that call HF's callables."""
    named = _named(modules)
    for is_one in (_is_inner, _is_bare_attention):
        found = {name: _innermost(module) for name, module in named if is_one(name, module)}
        if found:
            return list(found.items())
    return []


def _hf_attentions(modules: list[torch.nn.Module]) -> Modules:
    named = _named(modules)
    for is_one in (_looks_callable_up, _is_self_attn):
        found = {name: module for name, module in named if is_one(name, module)}
        if found:
            return list(found.items())
    return []


def _named(modules: list[torch.nn.Module]) -> Modules:
    return [(plain_name(name), m) for top in modules for name, m in top.named_modules() if name]


def _is_inner(name: str, _: torch.nn.Module) -> bool:
    return name.split(".")[-1] == "inner_attention"


def _is_called_attention(module: torch.nn.Module) -> bool:
    return "attention" in type(module).__name__.lower()


def _is_bare_attention(_: str, module: torch.nn.Module) -> bool:
    """An attention without weights or parts, under any name."""
    return (
        _is_called_attention(module)
        and not any(True for _ in module.children())
        and not any(True for _ in module.parameters())
    )


def _innermost(module: torch.nn.Module) -> torch.nn.Module:
    """The attention inside modules that only stand around it."""
    while True:
        children = list(module.children())
        if len(children) != 1 or any(True for _ in module.parameters(recurse=False)):
            return module
        if _is_called_attention(module) and not _is_called_attention(children[0]):
            return module
        module = children[0]


def _homes(module: torch.nn.Module) -> list[Any]:
    """The Python modules in which HF's attention looks its callable up."""
    homes = [sys.modules.get(kind.__module__) for kind in type(module).__mro__]
    return [home for home in homes if hasattr(home, "ALL_ATTENTION_FUNCTIONS")]


def _looks_callable_up(_: str, module: torch.nn.Module) -> bool:
    is_layers = _is_called_attention(module) and hasattr(module, "layer_idx")
    return is_layers and bool(_homes(module))


def _is_self_attn(name: str, _: torch.nn.Module) -> bool:
    return name.split(".")[-1] == "self_attn"


def numbered(found: Modules) -> list[tuple[int, torch.nn.Module]]:
    """The modules with the numbers of their layers."""
    index = _telling_number([name for name, _ in found])
    return [(layer_index(name, index), module) for name, module in found]


def _telling_number(names: list[str]) -> int:
    """Which number of a name tells the layer: the one with the most values."""
    numbers = [_numbers(name) for name in names]
    count = min(map(len, numbers), default=0)
    values = [len({own[at] for own in numbers}) for at in range(count)]
    return values.index(max(values)) if values else 0


def _numbers(name: str) -> list[int]:
    return [int(part) for part in name.split(".") if part.isdecimal()]


def layer_index(name: str, index: int = 0) -> int:
    """The layer number in a module's name; -1 if there is none."""
    found = _numbers(name)
    return found[index] if index < len(found) else -1


@contextmanager
def hf_attention(
    modules: list[torch.nn.Module], watch: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """In this context HF's models call `watch(callable)`.

    They look the callable up at each call, or use their own eager one.
    """
    found = [] if inner_attentions(modules) else _hf_attentions(modules)
    homes = {home.__name__: home for _, module in found for home in _homes(module)}
    patched: list[tuple[Any, str, Any]] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(watch(function))

    for home in homes.values():
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
