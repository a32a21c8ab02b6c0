# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""flash_attn.bert_padding: rows without their padding, and back. [batch, tokens, ...] <-> [n, ...]"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from bkm_cell.stand_ins.lacks import lacks


def __getattr__(name: str) -> Any:
    # The real module has these names from einops, which it requires and its stand-in cannot bring;
    # callers import them from here, and not all call them.
    if name in ("rearrange", "repeat"):
        try:
            import einops
        except ModuleNotFoundError:
            return lambda *_, **__: lacks(f"{name}: einops, which flash_attn brings, is not there")
        return getattr(einops, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def index_first_axis(input: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    assert input.ndim >= 2
    return input.index_select(0, indices)


def index_put_first_axis(
    values: torch.Tensor, indices: torch.Tensor, first_axis_dim: int
) -> torch.Tensor:
    assert indices.ndim == 1
    assert values.ndim >= 2
    empty = values.new_zeros(first_axis_dim, *values.shape[1:])
    return empty.index_put((indices,), values)


def unpad_input(
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor,
    unused_mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """The tokens that a mask keeps; their places in the flattened rows; int32 cumulative lengths
    of the rows; the longest; how many tokens of each row the attention mask alone keeps."""
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(-1, dtype=torch.int32)
    indices = kept.flatten().nonzero().flatten()
    cu_seqlens = F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    used = attention_mask.sum(-1, dtype=torch.int32)
    tokens = index_first_axis(hidden_states.flatten(0, 1), indices)
    return tokens, indices, cu_seqlens, int(lengths.max()), used


def pad_input(
    hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int
) -> torch.Tensor:
    rows = index_put_first_axis(hidden_states, indices, batch * seqlen)
    return rows.unflatten(0, (batch, seqlen))
