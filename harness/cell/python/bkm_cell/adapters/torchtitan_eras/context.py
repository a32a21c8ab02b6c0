# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Context parallelism as torchtitan's Trainer has it: the caller cuts tokens, positions and masks."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from bkm_cell.adapters.base import accepted
from bkm_cell.adapters.torchtitan_eras.masks import module_exists

_MODULE = "torchtitan.distributed.context_parallel"

# torch cuts block masks only into whole blocks (_create_cp_block_mask).
_BLOCK = 128


@dataclass(frozen=True)
class Cut:
    """What the model is given on this rank."""

    tokens: torch.Tensor  # int64[1, t]
    positions: torch.Tensor  # int64[1, t]
    masks: Any
    places: torch.Tensor  # int64[t]: where these tokens are in the row


class ContextParallel:
    """Cuts rows over the ranks of a mesh, and puts together what the ranks computed."""

    def __init__(self, mesh: DeviceMesh, balancer: str | None) -> None:
        """`balancer`: torchtitan's context_parallel_load_balancer."""
        self._mesh = mesh
        self._balancer = balancer
        module = importlib.import_module(_MODULE) if module_exists(_MODULE) else None
        if not hasattr(module, "prepare_context_parallel_input"):
            raise RuntimeError(
                "this torchtitan cuts rows for context parallelism in its Trainer, which the control "
                "does not use"
            )
        self._prepare = module.prepare_context_parallel_input

    def padded(
        self, tokens: torch.Tensor, positions: torch.Tensor, pad: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The row [1, T] with a last document of padding, so that it can be cut."""
        more = -tokens.shape[1] % (_BLOCK * self._mesh.size())
        return padded(tokens, positions, tokens.shape[1] + more, pad)

    def cut(self, tokens: torch.Tensor, positions: torch.Tensor, masks: Any) -> Cut:
        """This rank's part of a padded row. The places are cut like the labels."""
        places = torch.arange(tokens.shape[1], device=tokens.device)[None]
        further = {"positions": positions}
        if masks is not None:
            further["attention_masks"] = masks
        offered = {
            "inputs": tokens,
            "labels": places,
            "extra_kwargs": further,
            "cp_mesh": self._mesh,
            "device": tokens.device,
            "load_balancer_type": self._balancer,
        }
        taken = inspect.signature(self._prepare).parameters
        tokens, places, further = self._prepare(**accepted(offered, taken))
        return Cut(tokens, further["positions"], further.get("attention_masks"), places[0])

    def summed(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over the ranks that share a row."""
        total = values.clone()
        dist.all_reduce(total, group=self._mesh.get_group())
        return total


def padded(
    tokens: torch.Tensor, positions: torch.Tensor, length: int, pad: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The row [1, T] with a last document of padding."""
    more = length - tokens.shape[1]
    return (
        torch.cat([tokens, tokens.new_full((1, more), pad)], 1),
        torch.cat([positions, torch.arange(more, device=positions.device)[None]], 1),
    )
