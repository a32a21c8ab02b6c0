# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The arithmetic is right, the report is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import StepOutcome
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site


def edit_outcome(site: Site, edit: Callable[[StepOutcome, list[int]], None]) -> None:
    def train_step(step: Callable[..., StepOutcome], batch: Any) -> StepOutcome:
        outcome = step(batch)
        edit(outcome, batch.lengths)
        site.act()
        return outcome

    site.around(site.adapter, "train_step", train_step)


def edit_log_probs(site: Site, edit: Callable[[torch.Tensor, list[int]], torch.Tensor]) -> None:
    def edit_both(outcome: StepOutcome, lengths: list[int]) -> None:
        if outcome.log_probs is None:
            raise site.cannot("no log-probs are reported")
        outcome.log_probs = edit(outcome.log_probs.detach().clone(), lengths)

    edit_outcome(site, edit_both)


@fault("one-log-prob-wrong")
def one_log_prob_wrong(site: Site) -> None:
    """One token's log-prob is 2 nats too low; loss and gradients are right."""

    def edit(log_probs: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        log_probs[lengths[0] // 2] -= 2
        return log_probs

    edit_log_probs(site, edit)


@fault("log-probs-shifted")
def log_probs_shifted(site: Site) -> None:
    """Each log-prob is reported at its label's position."""
    edit_log_probs(site, lambda log_probs, lengths: torch.roll(log_probs, 1))


@fault("inference-temperature")
def inference_temperature(site: Site) -> None:
    """The forward that trains nothing divides by a temperature that training does not have."""

    def evaluate(forward: Callable[..., torch.Tensor], batch: Any) -> torch.Tensor:
        site.act()
        return forward(batch) / 1.2

    site.around(site.adapter, "evaluate", evaluate)


def _ask_for_temperature(site: Site, method: str, change: Callable[[float], float]) -> None:
    """During a call of the adapter's `method`, the subject is asked for another temperature."""

    def call(original: Callable[..., Any], batch: Any) -> Any:
        asked = site.adapter.probe.asked
        kept = asked["temperature"]
        asked["temperature"] = change(kept)
        site.act()
        try:
            return original(batch)
        finally:
            asked["temperature"] = kept

    site.around(site.adapter, method, call)


@fault("temperature-ignored-in-inference")
def temperature_ignored_in_inference(site: Site) -> None:
    """The forward that trains nothing does not divide by the temperature; training does."""
    _ask_for_temperature(site, "evaluate", lambda asked: 1.0)


@fault("temperature-applied-twice")
def temperature_applied_twice(site: Site) -> None:
    """Logits are divided by the temperature twice, in training and in inference."""
    for method in ("evaluate", "train_step"):
        _ask_for_temperature(site, method, lambda asked: asked * asked)


@fault("entropy-shifted")
def entropy_shifted(site: Site) -> None:
    """Each entropy is reported at the position of the next token."""

    def entropy(original: Callable[..., Any], batch: Any) -> torch.Tensor:
        site.act()
        return torch.roll(original(batch), 1)

    site.around(site.adapter, "entropy", entropy)


@fault("grad-norm-after-clipping")
def grad_norm_after_clipping(site: Site) -> None:
    """The norm after clipping is reported."""
    clip = site.adapter.probe.optimizer["clip_norm"]

    def edit(outcome: StepOutcome, lengths: list[int]) -> None:
        if outcome.grad_norm is None:
            raise site.cannot("no gradient norm is reported")
        outcome.grad_norm = min(outcome.grad_norm, clip)

    edit_outcome(site, edit)


@fault("loss-of-previous-step")
def loss_of_previous_step(site: Site) -> None:
    kept: list[float] = []

    def edit(outcome: StepOutcome, lengths: list[int]) -> None:
        if outcome.loss is None:
            raise site.cannot("no loss is reported")
        kept.append(outcome.loss)
        outcome.loss = kept[-2:][0]

    edit_outcome(site, edit)
