# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The interface between the driven ladder (bkm_cell.driven) and an engine's own trainer."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter, StepOutcome, log_probs_of
from bkm_cell.probe import Batch
from bkm_cell.witnesses.given_batch import GivenBatch


@dataclass(frozen=True)
class ReportedStep:
    """What the trainer itself reported of a step."""

    loss: float | None = None
    grad_norm: float | None = None


class TrainerAdapter(Adapter):
    """Starts a trainer from its entry point. The trainer makes the model, the batches and the steps."""

    _root: torch.nn.Module | None = None
    _named: dict[str, Any]
    _given: GivenBatch

    @abc.abstractmethod
    def run(self) -> None:
        """Starts the entry point, and returns when it has trained."""

    @abc.abstractmethod
    def dataset(self) -> type:
        """The class from which the trainer takes its documents: faults change its items."""

    @abc.abstractmethod
    def loss(self) -> tuple[ModuleType, str]:
        """Where the trainer has its loss function from: faults change it."""

    @abc.abstractmethod
    def reported(self) -> list[ReportedStep]:
        """Of each step that the trainer has reported so far."""

    def construct(self) -> None:
        raise NotImplementedError("a trainer constructs its model itself")

    def found(self, root: torch.nn.Module, named: dict[str, Any], given: GivenBatch) -> None:
        """The model, and the keywords of its first training forward with the batch in them."""
        self._root, self._named, self._given = root, dict(named), given

    def modules(self) -> list[torch.nn.Module]:
        assert self._root is not None, "the trainer has not called its model yet"
        return [self._root]

    def evaluate(self, batch: Batch) -> torch.Tensor:
        """The model again, with the very keywords that the trainer sent."""
        with torch.no_grad():
            result = self.modules()[0](**self._given.with_tokens(self._named, batch.input_ids))
        return self.log_probs(result, self._given, batch.input_ids)

    def log_probs(self, result: Any, given: GivenBatch, tokens: torch.Tensor) -> torch.Tensor:
        """[T] of the next token; 0 at each document's last one, which has none. What follows it in
        the trainer's order is no matter of the document."""
        logits = getattr(result, "logits", result)
        flat = logits.reshape(-1, logits.shape[-1])[given.places.to(logits.device)]
        vocabulary = self.probe.hf_config["vocab_size"]
        seen = log_probs_of(flat, tokens.to(flat.device), vocabulary, self.probe.temperature)
        seen[torch.tensor(given.batch.lengths).cumsum(0) - 1] = 0
        return seen

    def train_step(self, batch: Batch) -> StepOutcome:
        raise NotImplementedError("the trainer makes its steps itself")
