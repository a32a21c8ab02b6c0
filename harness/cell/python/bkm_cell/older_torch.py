# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Names that torch moved, from where the torch of this cell has them (from 2.4 on), and what is made of
them.

A cell fails where its subjects do, not because our own code asks for a newer torch than they need.
"""

from __future__ import annotations

from typing import Any

import torch

try:
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
except ImportError:  # before 2.5
    from torch.distributed._tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

try:
    from torch.distributed.fsdp import FSDPModule
except ImportError:  # before 2.6
    from torch.distributed._composable.fsdp import FSDPModule

flex: Any  # the module of flex attention; None before 2.5
try:
    import torch.nn.attention.flex_attention as flex
except ImportError:
    flex = None


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor that is spread over ranks."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class _NoBlockMask:
    """The class of block masks where there are none."""


BlockMask: type[Any] = _NoBlockMask if flex is None else flex.BlockMask

__all__ = [
    "BlockMask",
    "DTensor",
    "FSDPModule",
    "Partial",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "flex",
    "local_part",
]
