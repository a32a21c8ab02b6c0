# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records the attention that was built, the callables that ran, the ops and who attends to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from bkm_cell.witnesses.attended import Attended, Called, watch_calls
from bkm_cell.witnesses.layers import (
    attention_layers,
    entrances,
    hf_attention,
    inner_attentions,
    numbered,
)
from bkm_cell.witnesses.mask import MaskCalls, held_masks
from bkm_cell.witnesses.ops import dispatched, flex_calls

_MASK_ARGUMENTS = ("attention_masks", "attention_mask", "block_mask")


def built(modules: list[torch.nn.Module]) -> list[dict[str, str]]:
    return [
        {"layer": name, "class": type(module).__name__, "module": type(module).__module__}
        for name, module in attention_layers(modules)
    ]


def _mask_of(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The mask argument under any of its names; older torchtitan passes it after q, k and v."""
    for name in _MASK_ARGUMENTS:
        if name in named:
            return named[name]
    extra = [a for a in arguments[3:] if not isinstance(a, (int, float, torch.Tensor))]
    return extra[0] if extra else None


class AttentionCalls:
    """Watches one forward: each layer's inputs, the callables that run, the ops dispatched.

    It calls each layer's attention again, to read which query attends to which key (`attended`).
    """

    def __init__(self, modules: list[torch.nn.Module], attended: Attended) -> None:
        self._modules = modules
        self.masks = MaskCalls()
        self.attended = attended
        self.called: list[dict[str, Any]] = []
        self.ops: set[str] = set()
        self.autocast: str | None = None  # the dtype of the active autocast
        self.input_dtype: str | None = None  # of the first inner attention's query
        self._is_repeating = False  # a call, to read it; it may run the hooks again

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            inner = inner_attentions(self._modules)
            for (name, module), (layer, _) in zip(inner, numbered(inner), strict=True):
                before, after = self._inner(name, layer)
                hook = module.register_forward_pre_hook(before, with_kwargs=True)
                stack.callback(hook.remove)
                watch_calls(stack, module, after)
            for module in self._modules:
                hook = module.register_forward_pre_hook(self._top, prepend=True, with_kwargs=True)
                stack.callback(hook.remove)
            for module in entrances(self._modules):
                hook = module.register_forward_pre_hook(self._entered, with_kwargs=True)
                stack.callback(hook.remove)
            stack.enter_context(hf_attention(self._modules, self._watched))
            stack.enter_context(dispatched(self.ops))
            self._flex_masks = stack.enter_context(flex_calls())
            yield

    def _inner(self, name: str, layer: int) -> tuple[Callable[..., None], Called]:
        def before(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            if self._is_repeating:
                return
            if self.input_dtype is None and arguments:
                self.input_dtype = str(arguments[0].dtype).removeprefix("torch.")
            self.masks.saw(name, _mask_of(arguments, named))

        def after(
            module: torch.nn.Module,
            repeat: Callable[..., Any],
            arguments: tuple[Any, ...],
            named: dict[str, Any],
        ) -> None:
            if self._is_repeating:
                return
            if _mask_of(arguments, named) is None:
                self.masks.found_held(*self._held(module))
            self._is_repeating = True
            self.attended.read(layer, repeat, arguments, named)
            self._is_repeating = False

        return before, after

    def _held(self, module: torch.nn.Module) -> tuple[str | None, Any]:
        """The mask that the last flex call used, if the module or its class holds it."""
        used = self._flex_masks[-1] if self._flex_masks else None
        for holder, mask in held_masks(module):
            if mask.mask_mod is used:
                return holder, mask
        return None, None

    def _top(self, _: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.masks.handed(arguments, named)
        self._see_autocast()

    def _entered(self, _: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.attended.entered(arguments, named)
        self._see_autocast()  # accelerate puts it around the model's forward alone

    def _see_autocast(self) -> None:
        device = next(self._modules[0].parameters()).device.type
        if torch.is_autocast_enabled(device):
            self.autocast = str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(
            module: Any,
            query: torch.Tensor,
            key: Any,
            value: Any,
            mask: Any = None,
            *rest: Any,
            **named: Any,
        ) -> Any:
            layer = getattr(module, "layer_idx", len(self.called))
            self.called.append(
                {"layer": layer, "callable": f"{function.__module__}.{function.__qualname__}"}
            )
            if self.input_dtype is None:
                self.input_dtype = str(query.dtype).removeprefix("torch.")
            self.masks.saw(layer, mask)
            result = function(module, query, key, value, mask, *rest, **named)
            self.attended.read(
                layer, partial(function, module), (query, key, value, mask, *rest), named
            )
            return result

        return call
