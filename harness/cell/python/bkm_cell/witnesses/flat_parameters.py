# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""FSDP1 keeps the parameters of a module in one flat tensor. This names its parts.

Whether use_orig_params is set makes no difference: the flat tensor and its gradient are there.
"""

from __future__ import annotations

import torch
from torch.distributed.fsdp import FullyShardedDataParallel

from bkm_cell.witnesses.plain_name import plain_name


def is_flat(module: torch.nn.Module) -> bool:
    return isinstance(module, FullyShardedDataParallel)


def flat_parts(module: torch.nn.Module, gradients: bool) -> dict[str, torch.Tensor]:
    """Parameters or gradients (zeros if there is none), by their names without FSDP1's wrappers.

    A tied parameter has one name. With several ranks a flat tensor is cut regardless of its parts.
    """
    from torch.distributed.fsdp._traversal_utils import _get_fsdp_handles  # private

    names = {id(inner): plain_name(f"{name}.") for name, inner in module.named_modules()}
    parts: dict[str, torch.Tensor] = {}
    for handle in _get_fsdp_handles(module):
        if handle.uses_sharded_strategy:
            raise LookupError("FSDP1 shards its flat parameters: their parts are read on one rank")
        flat = handle.flat_param
        values = flat.detach()
        if gradients:
            values = torch.zeros_like(values) if flat.grad is None else flat.grad.detach()
        prefix = names[id(handle._fully_sharded_module)]
        for name, view in zip(flat._fqns, handle._get_unflat_views(values), strict=True):
            parts[plain_name(f"{prefix}{name}")] = view
    return parts
