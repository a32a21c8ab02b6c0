# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Intercepts the inner attention call of each layer, in torchtitan and HF."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch

from bkm_cell.faults.site import Site
from bkm_cell.witnesses.backend import attention_layers

_MASK_ARGUMENTS = ("attention_masks", "attention_mask", "block_mask")


@dataclass
class AttentionCall:
    """One call. `run` repeats it with other tensors or another mask."""

    layer: int
    module: torch.nn.Module
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: Any
    named: dict[str, Any]  # the call's other arguments
    heads_axis: int  # of query, key and value
    output_heads_axis: int
    _run: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Any], torch.Tensor]

    @property
    def sequence_axis(self) -> int:
        return 3 - self.heads_axis if self.query.dim() == 4 else 1 - self.heads_axis

    def run(self, **changed: Any) -> torch.Tensor:
        tensors = (
            _laid_out_as(own, changed.get(name, own))
            for name, own in (("query", self.query), ("key", self.key), ("value", self.value))
        )
        return self._run(*tensors, changed["mask"] if "mask" in changed else self.mask)


def _laid_out_as(like: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` with the strides of `like`: a GPU's kernel gives its output those of the query, and
    a model may count on them."""
    if tensor.shape != like.shape or tensor.stride() == like.stride():
        return tensor
    return torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)


Wrap = Callable[[AttentionCall], torch.Tensor]


def around_attention(site: Site, wrap: Wrap, layers: Collection[int] | None = None) -> None:
    """Replaces each layer's inner attention by `wrap` of it.

    The replacement is below every witness: witnesses take it for the subject's own code.
    """
    found = attention_layers(site.adapter.modules())
    inner = [(name, m) for name, m in found if name.endswith("inner_attention")]
    if inner:
        for name, module in inner:
            layer = int(re.findall(r"layers\.(\d+)", name)[0])
            if layers is None or layer in layers:
                _around_module(site, layer, module, wrap)
    elif found:
        for home in {type(module).__module__ for _, module in found}:
            _around_callables(site, sys.modules[home], wrap, layers)
    else:
        raise site.cannot("no layer has an inner attention")


def past_attention(site: Site, wrap: Wrap, layers: Collection[int]) -> None:
    """Replaces the call that each of these layers makes, not what it would call: the inner attention
    stays built, and a witness on it sees only what `wrap` itself calls."""
    found = [
        (name, module)
        for name, module in attention_layers(site.adapter.modules())
        if name.endswith("inner_attention")
    ]
    if not found:
        raise site.cannot("no layer has an inner attention of its own")
    parents = {id(child): parent for top in site.adapter.modules() for parent in top.modules() for child in parent.children()}
    for name, module in found:
        layer = int(re.findall(r"layers\.(\d+)", name)[0])
        if layer in layers:
            # Python looks here before torch looks among the modules.
            parents[id(module)].__dict__["inner_attention"] = _call_around(
                site, layer, module, module, wrap
            )


def _heads_axis(site: Site, tensor: torch.Tensor) -> int:
    heads = site.hf_config["num_attention_heads"]
    for axis in range(tensor.dim() - 1):
        if tensor.shape[axis] == heads:
            return axis
    raise site.cannot(f"no axis of {tuple(tensor.shape)} has {heads} heads")


def _around_module(site: Site, layer: int, module: torch.nn.Module, wrap: Wrap) -> None:
    module.forward = _call_around(site, layer, module, module.forward, wrap)


def _call_around(
    site: Site, layer: int, module: torch.nn.Module, forward: Callable[..., Any], wrap: Wrap
) -> Callable[..., Any]:
    def call(query: Any, key: Any, value: Any, *rest: Any, **named: Any) -> Any:
        place = next((name for name in _MASK_ARGUMENTS if name in named), None)
        at = next((i for i, a in enumerate(rest) if not isinstance(a, (int, float))), None)
        mask = named[place] if place else rest[at] if at is not None else None

        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
            if place:
                return forward(q, k, v, *rest, **{**named, place: mask})
            positional = list(rest)
            if at is not None:
                positional[at] = mask
            return forward(q, k, v, *positional, **named)

        axis = _heads_axis(site, query)
        return wrap(AttentionCall(layer, module, query, key, value, mask, named, axis, axis, run))

    return call


def _around_callables(site: Site, home: Any, wrap: Wrap, layers: Collection[int] | None) -> None:
    """HF looks its callable up at each call: in the registry, or the model's own eager one."""

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(module: Any, query: Any, key: Any, value: Any, mask: Any = None, *rest, **named):
            if layers is not None and module.layer_idx not in layers:
                return function(module, query, key, value, mask, *rest, **named)

            def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
                return function(module, q, k, v, mask, *rest, **named)[0]

            layer = int(module.layer_idx)
            made = AttentionCall(layer, module, query, key, value, mask, named, 1, 2, run)
            return wrap(made), None

        return call

    home.eager_attention_forward = around(home.eager_attention_forward)
    kind = type(home.ALL_ATTENTION_FUNCTIONS)
    look_up = kind.__getitem__
    kind.__getitem__ = lambda registry, name: around(look_up(registry, name))
