# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults that tests plant in a real cell, in memory: each must turn a right cell wrong."""

from __future__ import annotations

import importlib
from typing import Any

import torch

OTHER_BACKEND = "other-backend"
DROP_MASK = "drop-mask"
SKIP_LOAD = "skip-load"
KNOWN = (OTHER_BACKEND, DROP_MASK, SKIP_LOAD)

_OTHERS = {
    "flex": "varlen",
    "varlen": "flex",
    "sdpa": "eager",
    "eager": "sdpa",
    "flex_attention": "sdpa",
}


def attention_to_ask(attention: str, library: str, plant: list[str]) -> str:
    if OTHER_BACKEND not in plant:
        return attention
    return (
        "flex"
        if library == "torchtitan" and attention == "sdpa"
        else _OTHERS.get(attention, "sdpa")
    )


def plant_faults(adapter: Any, library: str, plant: list[str]) -> None:
    """Patches the imported subjects; called between `import` and `construct`."""
    unknown = sorted(set(plant) - set(KNOWN))
    if unknown:
        raise ValueError(f"cannot plant {unknown}: known faults are {list(KNOWN)}")
    if DROP_MASK in plant:
        _drop_mask(adapter, library)
    if SKIP_LOAD in plant:
        _skip_load(adapter, library)


def _drop_mask(adapter: Any, library: str) -> None:
    """The mask loses the documents: plain causal attention over the whole packed batch."""
    if library == "transformers":
        masks = importlib.import_module("transformers.masking_utils")
        masks.find_packed_sequence_indices = lambda *arguments, **named: None
        return
    home = importlib.import_module(
        getattr(adapter, "engine_module", "bkm_cell.adapters.torchtitan")
    )
    name = "get_attention_masks" if hasattr(home, "get_attention_masks") else "packed_mask"
    build = getattr(home, name)

    def of_one_document(*arguments: Any, **named: Any) -> Any:
        if "positions" in named:
            named["positions"] = _one_document(named["positions"])
        else:
            arguments = (*arguments[:-1], _one_document(arguments[-1]))
        return build(*arguments, **named)

    setattr(home, name, of_one_document)


def _one_document(positions: torch.Tensor) -> torch.Tensor:
    return torch.arange(positions.shape[-1], device=positions.device).expand_as(positions)


def _skip_load(adapter: Any, library: str) -> None:
    """The model keeps its initial weights."""
    if library == "transformers":
        models = importlib.import_module("transformers.modeling_utils")

        def from_nothing(
            kind: Any, path: str, *arguments: Any, config: Any = None, **named: Any
        ) -> Any:
            if config is None:
                config = importlib.import_module("transformers").AutoConfig.from_pretrained(path)
            if implementation := named.get("attn_implementation"):
                config._attn_implementation = implementation
            return kind(config)

        models.PreTrainedModel.from_pretrained = classmethod(from_nothing)
    elif hasattr(adapter, "engine_module"):
        manager = importlib.import_module("torchtitan.components.checkpoint").CheckpointManager
        manager.load = lambda *arguments, **named: True
    else:
        torch.nn.Module.load_state_dict = lambda *arguments, **named: ([], [])
