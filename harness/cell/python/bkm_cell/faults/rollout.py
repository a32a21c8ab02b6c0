# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""An update on a roll-out takes other parts of it, or another loss, than it was asked to.

Planted where the trainer takes the padding away, and in the loss of its workers, before it is started.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from bkm_cell.faults.registry import Phase, fault
from bkm_cell.faults.site import Site

_NEVER = 1e9  # no ratio or distance is as large
_CLIPS = ("clip_ratio", "clip_ratio_low", "clip_ratio_high", "clip_ratio_c", "cliprange_value")


def _edit_rollout(site: Site, edit: Any) -> None:
    if not hasattr(site.adapter, "edit_rollout"):
        raise site.cannot("nothing is updated on a roll-out here")

    def edited(data: Any) -> None:
        site.act()
        edit(data)

    site.adapter.edit_rollout(edited)


def _roll(site: Site, names: tuple[str, str]) -> None:
    """Each token gets what is the one's before it."""

    def edit(data: Any) -> None:
        name = next(name for name in names if name in data.keys())
        data[name] = torch.roll(data[name], 1, dims=1)

    _edit_rollout(site, edit)


def _around_loss(site: Site, wrap: Any) -> None:
    if not hasattr(site.adapter, "around_loss"):
        raise site.cannot("nothing is updated on a roll-out here")

    def acting(*arguments: Any, **named: Any) -> Any:
        site.act()
        return wrap(*arguments, **named)

    site.adapter.around_loss(acting)


@fault("rollout-mask-lost", Phase.BEFORE_CONSTRUCT)
def mask_lost(site: Site) -> None:
    """Every token of an answer counts."""

    def edit(data: Any) -> None:
        answers = data["response_mask"].shape[1]
        data["response_mask"] = data["attention_mask"][:, -answers:].clone()

    _edit_rollout(site, edit)


@fault("rollout-advantages-shifted", Phase.BEFORE_CONSTRUCT)
def advantages_shifted(site: Site) -> None:
    """Each token has the advantage, or the return, of the one before it."""
    _roll(site, ("advantages", "returns"))


@fault("rollout-old-log-probs-shifted", Phase.BEFORE_CONSTRUCT)
def old_log_probs_shifted(site: Site) -> None:
    """Each token has the old log-prob, or the old value, of the one before it."""
    _roll(site, ("old_log_probs", "values"))


@fault("rollout-never-clipped", Phase.BEFORE_CONSTRUCT)
def never_clipped(site: Site) -> None:
    """What the configuration clips to does not reach the loss."""

    def unclipped(loss: Any, config: Any, *arguments: Any, **named: Any) -> Any:
        config = copy.copy(config)
        for name in _CLIPS:
            if hasattr(config, name):
                object.__setattr__(config, name, _NEVER)  # frozen
        return loss(config, *arguments, **named)

    _around_loss(site, unclipped)


@fault("rollout-mean-of-micro-batches", Phase.BEFORE_CONSTRUCT)
def mean_of_micro_batches(site: Site) -> None:
    """Each micro-batch is divided by its own number of tokens that count, and by that of micro-batches."""
    parts = site.adapter.probe.micro_batches

    def divided(loss: Any, *arguments: Any, data: Any, **named: Any) -> Any:
        mask = data["response_mask"]
        counted = (mask.values() if mask.is_nested else mask).sum()
        result, metrics = loss(*arguments, data=data, **named)
        return result * data["batch_num_tokens"] / (counted * parts), metrics

    _around_loss(site, divided)
