# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The masks of a packed batch: a class for each way in which torchtitan takes them."""

from __future__ import annotations

import abc
import importlib
import importlib.util
import inspect
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from bkm_cell.adapters.base import accepted
from bkm_cell.older_torch import flex

_ATTENTION_MODULES = ("torchtitan.models.common.attention", "torchtitan.models.attention")


def import_attention_module() -> ModuleType:
    """The library's module of attention classes and mask functions."""
    return importlib.import_module(next(name for name in _ATTENTION_MODULES if module_exists(name)))


def module_exists(name: str) -> bool:
    """Without importing more than its parents."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Masks(abc.ABC):
    @abc.abstractmethod
    def of(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        """The masks of a batch [1, T] to pass to the model; None if it gets none."""


class NoMasks(Masks):
    """Option `mask="none"`: the caller forgets them."""

    def of(self, tokens: torch.Tensor, positions: torch.Tensor) -> None:
        return None


class LibraryMasks(Masks):
    """Until 2025-10: the library makes and keeps the masks. It finds documents by their eos."""

    def __init__(self, attention_module: ModuleType, eos_token_id: int) -> None:
        self._attention_module = attention_module
        self._eos_token_id = eos_token_id

    def of(self, tokens: torch.Tensor, positions: torch.Tensor) -> None:
        self._attention_module.init_attention_mask(tokens, self._eos_token_id)


class ModelMasks(Masks):
    """For a model with windows: the model builds them, since it knows which layer has a window."""

    def __init__(self, model: Any, eos_token_id: int) -> None:
        self._model = model
        self._tokenizer = SimpleNamespace(eos_id=eos_token_id)

    def of(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        offered = {"input_batch": tokens, "tokenizer": self._tokenizer, "positions": positions}
        build = self._model.get_attention_masks
        return build(**accepted(offered, inspect.signature(build).parameters))


class CallerMasks(Masks):
    """From 2025-10: the caller makes one mask, as verl does."""

    def __init__(self, attention_module: ModuleType, attention: str) -> None:
        self._attention_module = attention_module
        self._attention = attention

    def of(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        return packed_mask(self._attention_module, self._attention, positions)


def packed_mask(attention_module: Any, attention: str, positions: torch.Tensor) -> Any:
    """A packed batch's mask, as verl builds it: a document starts where positions reset."""
    length = positions.shape[1]
    starts = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1) != 1
    if attention == "varlen":
        starts[:, 0] = True
        bounds = torch.cat(
            [starts[0].nonzero().flatten(), torch.tensor([length], device=positions.device)]
        ).int()
        longest = bounds.diff().max().item()
        return attention_module.VarlenMetadata(
            cu_seq_q=bounds, cu_seq_k=bounds, max_q=longest, max_k=longest
        )
    document = starts.cumsum(-1)

    def same_document(
        b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, kv: torch.Tensor
    ) -> torch.Tensor:
        return document[b, q] == document[b, kv]

    allowed = flex.and_masks(attention_module.get_causal_mask_mod(), same_document)
    return attention_module.create_attention_mask(allowed, positions.shape[0], None, length, length)
