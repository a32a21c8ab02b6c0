# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which attention was built, which callable was really called, and which ops ran."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from bkm_cell.witnesses.mask import MaskCalls
from bkm_cell.witnesses.named_tensors import plain_name
from bkm_cell.witnesses.ops import dispatched

_MASK_ARGUMENTS = ("attention_masks", "attention_mask", "block_mask")


def attention_layers(modules: list[torch.nn.Module]) -> list[tuple[str, torch.nn.Module]]:
    """(name, module) of each layer's inner attention, or of the attention where there is none."""
    named = [(plain_name(name), m) for top in modules for name, m in top.named_modules() if name]
    for ending in ("inner_attention", "self_attn"):
        found = {name: module for name, module in named if name.split(".")[-1] == ending}
        if found:
            return list(found.items())
    return []


def built(modules: list[torch.nn.Module]) -> list[dict[str, str]]:
    return [
        {"layer": name, "class": type(module).__name__, "module": type(module).__module__}
        for name, module in attention_layers(modules)
    ]


def _mask_of(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The mask argument, by any of its names; older torchtitan passes it after q, k and v."""
    for name in _MASK_ARGUMENTS:
        if name in named:
            return named[name]
    extra = [a for a in arguments[3:] if not isinstance(a, (int, float, torch.Tensor))]
    return extra[0] if extra else None


class AttentionCalls:
    """Watches one forward: what reaches each layer, the callables called, the ops dispatched."""

    def __init__(self, modules: list[torch.nn.Module]) -> None:
        self._modules = modules
        self.masks = MaskCalls()
        self.called: list[dict[str, Any]] = []
        self.ops: set[str] = set()
        self.autocast: str | None = None  # the active autocast dtype
        self.input_dtype: str | None = None  # of the first inner attention's query

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, module in attention_layers(self._modules):
                if name.split(".")[-1] == "inner_attention":
                    hook = module.register_forward_pre_hook(
                        self._inner(name), with_kwargs=True, prepend=True
                    )
                    stack.callback(hook.remove)
            for module in self._modules:
                stack.callback(module.register_forward_pre_hook(self._top, prepend=True).remove)
            stack.enter_context(self._hf_callables())
            stack.enter_context(dispatched(self.ops))
            yield

    def _inner(self, name: str) -> Callable[..., None]:
        def hook(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            if self.input_dtype is None and arguments:
                self.input_dtype = str(arguments[0].dtype).removeprefix("torch.")
            self.masks.saw(name, _mask_of(arguments, named))

        return hook

    def _top(self, module: Any, arguments: tuple[Any, ...]) -> None:
        device = next(module.parameters()).device.type
        if torch.is_autocast_enabled(device):
            self.autocast = str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(
            module: Any,
            query: torch.Tensor,
            key: Any,
            value: Any,
            mask: Any = None,
            *rest: Any,
            **named: Any,
        ):
            layer = getattr(module, "layer_idx", len(self.called))
            self.called.append(
                {"layer": layer, "callable": f"{function.__module__}.{function.__qualname__}"}
            )
            if self.input_dtype is None:
                self.input_dtype = str(query.dtype).removeprefix("torch.")
            self.masks.saw(layer, mask)
            return function(module, query, key, value, mask, *rest, **named)

        return call

    @contextmanager
    def _hf_callables(self) -> Iterator[None]:
        """HF's models look their attention up at each call, and fall back to their eager one."""
        homes = {
            type(m).__module__
            for name, m in attention_layers(self._modules)
            if name.endswith("self_attn")
        }
        patched: list[tuple[Any, str, Any]] = []
        for home in (sys.modules[name] for name in homes):
            eager = getattr(home, "eager_attention_forward", None)
            registry = getattr(home, "ALL_ATTENTION_FUNCTIONS", None)
            if eager is not None:
                patched.append((home, "eager_attention_forward", eager))
                home.eager_attention_forward = self._watched(eager)
            if registry is not None and hasattr(type(registry), "__getitem__"):
                kind = type(registry)
                look_up = kind.__getitem__
                patched.append((kind, "__getitem__", look_up))
                kind.__getitem__ = lambda self_, key, look_up=look_up: self._watched(
                    look_up(self_, key)
                )
        try:
            yield
        finally:
            for owner, name, original in reversed(patched):
                setattr(owner, name, original)
