# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""FSDP1 keeps the parameters of a module in one flat tensor. This names its parts.

Whether use_orig_params is set makes no difference: the flat tensor and its gradient are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.fsdp import FullyShardedDataParallel

from bkm_cell.witnesses.plain_name import plain_name


@dataclass(frozen=True)
class FlatPart:
    """A rank's elements of a tensor: those from `start` on, in row-major order. Perhaps none."""

    values: torch.Tensor  # [n]
    start: int
    shape: tuple[int, ...]  # of the whole tensor


def is_flat(module: torch.nn.Module) -> bool:
    return isinstance(module, FullyShardedDataParallel)


def flat_parts(
    module: torch.nn.Module, gradients: bool
) -> dict[str, torch.Tensor] | dict[str, FlatPart]:
    """Parameters or gradients (zeros if there is none), by their names without FSDP1's wrappers.

    A tied parameter has one name. Where ranks share a flat tensor, each has a FlatPart of every
    parameter.
    """
    from torch.distributed.fsdp._traversal_utils import _get_fsdp_handles  # private

    names = {id(inner): plain_name(f"{name}.") for name, inner in module.named_modules()}
    parts: dict[str, Any] = {}
    for handle in _get_fsdp_handles(module):
        flat = handle.flat_param
        values = flat.detach()
        if gradients:
            gradient = handle.sharded_grad if handle.uses_sharded_strategy else flat.grad
            values = torch.zeros_like(values) if gradient is None else gradient.detach()
        prefix = names[id(handle._fully_sharded_module)]
        for name, part in zip(flat._fqns, _parts_of(handle, values), strict=True):
            parts[plain_name(f"{prefix}{name}")] = part
    return parts


def _parts_of(handle: Any, values: torch.Tensor) -> Iterator[torch.Tensor | FlatPart]:
    """Of a flat tensor's parameters, in order. `values`: the tensor, or this rank's shard of it."""
    if not handle.uses_sharded_strategy:
        yield from handle._get_unflat_views(values)
        return
    flat = handle.flat_param
    if values.numel() * handle.world_size < sum(flat._numels_with_padding):
        raise LookupError(f"a shard of FSDP1 has {values.numel()} elements: too few")
    shapes = iter(flat._shapes)
    first = handle.rank * values.numel()  # all shards are of one size
    begin = 0
    for count, is_padding in zip(flat._numels_with_padding, flat._is_padding_mask, strict=True):
        if not is_padding:
            start = min(max(first - begin, 0), count)
            stop = min(max(first + values.numel() - begin, start), count)
            at = begin + start - first if stop > start else 0
            yield FlatPart(values[at : at + stop - start], start, tuple(next(shapes)))
        begin += count
