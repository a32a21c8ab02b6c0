# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What torchtitan's Trainer knows of its model, whoever made the Trainer."""

from __future__ import annotations

import gc
from typing import Any

import torch

from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of
from bkm_cell.probe import Probe
from bkm_cell.witnesses.named_tensors import NamedTensors


def trainer_of(model: torch.nn.Module) -> Any:
    """The living Trainer that trains the model. Looked for, because nobody hands it over."""
    for held in gc.get_objects():
        named = getattr(held, "__dict__", None) if _is_plain(held) else None
        if not named or "checkpointer" not in named:
            continue
        parts = named.get("model_parts")
        if isinstance(parts, list) and any(part is model for part in parts):
            return held
    raise LookupError("no Trainer of torchtitan's holds the model that was called")


def _is_plain(held: Any) -> bool:
    """Not of a kind that computes its attributes: asking it would run its code."""
    kind = type(held)
    return "__getattr__" not in kind.__dict__ and kind.__getattribute__ is object.__getattribute__


def tensors_of(trainer: Any, modules: list[torch.nn.Module], probe: Probe) -> NamedTensors:
    to_hf = trainer.checkpointer.sd_adapter.to_hf
    return NamedTensors(modules, to_hf, probe.places.keys())


def configured_in(trainer: Any) -> str | None:
    """The attention that the built model's own configuration names."""
    config = getattr(trainer, "model_config", None) or getattr(trainer, "model_args", None)
    return configuration_of(config).attention()
