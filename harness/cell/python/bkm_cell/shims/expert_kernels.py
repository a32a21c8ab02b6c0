# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Replaces the Triton kernel that sorts tokens by expert by the torch version in torchtitan."""

from __future__ import annotations

from types import ModuleType

import torch

from bkm_cell.shims import acts
from bkm_cell.shims.after_import import after_import

NAME = "expert-kernels"

_HOMES = ("torchtitan.models.moe.kernels", "torchtitan.models.common.moe.kernels")


def _use_cpu(module: ModuleType) -> None:
    in_torch = getattr(module, "fill_indices_cpu", None)
    if in_torch is None or not hasattr(module, "fill_indices_wrapper"):
        return

    def fill_indices(
        tokens_per_expert_group: torch.Tensor,
        start_index_values: torch.Tensor,
        write_offsets: torch.Tensor,
        experts_per_rank: int,
        num_ranks: int,
        max_len: int,
        *_: int,  # the kernel's block sizes
    ) -> torch.Tensor:
        acts.acted(NAME)
        return in_torch(
            tokens_per_expert_group,
            start_index_values,
            write_offsets,
            experts_per_rank,
            num_ranks,
            max_len,
        )

    module.fill_indices_wrapper = fill_indices


def apply() -> None:
    for home in _HOMES:
        after_import(home, _use_cpu)
