# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A library alone: its model with torch's AdamW and verl's loss. Subclasses build the model."""

from __future__ import annotations

import abc
import contextlib
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter, StepOutcome, entropy_of, log_probs_of, sft_loss
from bkm_cell.older_torch import FSDPModule
from bkm_cell.ranks.sharding import are_mixed, clip_gradients
from bkm_cell.probe import Batch, Probe


class ControlAdapter(Adapter):
    """fp32 parameters. For bf16, autocast goes around model and loss, as in verl, unless FSDP2 casts
    the parameters instead."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    # Whether what distributes the model divides gradients by the number of data-parallel ranks.
    averages_gradients = True
    known_options: dict[str, tuple[Any, ...]] = {}  # the control's own options and their values

    def __init__(self, probe: Probe, attention: str) -> None:
        super().__init__(probe, attention)
        for name, value in probe.engine_options.items():
            if value not in self.known_options.get(name, ()):
                raise ValueError(
                    f"this control has no option {name}={value!r}: it knows {self.known_options}"
                )

    @abc.abstractmethod
    def logits(self, batch: Batch) -> torch.Tensor:
        """[T, vocabulary] of the packed batch. Where other ranks' parts of the row are: anything."""

    def own(self, values: torch.Tensor) -> torch.Tensor:
        """[T] of the tokens of the last `logits`; 0 where other ranks' parts of the row are."""
        return values

    def of_all_parts(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over the ranks that have parts of the same row."""
        return values

    def modules(self) -> list[torch.nn.Module]:
        return [self.model]

    makes_optimizer = False

    def make_optimizer(self) -> None:
        asked = self.probe.optimizer
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=asked["learning_rate"],
            betas=(asked["beta1"], asked["beta2"]),
            eps=asked["epsilon"],
            weight_decay=asked["weight_decay"],
            foreach=False if are_mixed(list(self.model.parameters())) else None,
        )
        self._schedule = self.make_schedule()

    def make_schedule(self) -> torch.optim.lr_scheduler.LRScheduler:
        """Of the learning rate. A control with a decay has the library's own."""
        return torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.probe.rate_factor)

    def gradients(self) -> list[torch.Tensor]:
        """Of which the total norm is taken."""
        return [p.grad for p in self.model.parameters() if p.grad is not None]

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.probe.precision == "fp32" or isinstance(self.model, FSDPModule):
            return contextlib.nullcontext()
        return torch.autocast(self.probe.device.type, torch.bfloat16)

    def _log_probs(self, batch: Batch) -> torch.Tensor:
        logits = self.logits(batch)
        vocabulary = self.probe.hf_config["vocab_size"]
        labels = batch.input_ids.to(logits.device)
        return self.own(log_probs_of(logits, labels, vocabulary, self.probe.temperature))

    def evaluate(self, batch: Batch) -> torch.Tensor:
        with torch.no_grad(), self._autocast():
            return self.of_all_parts(self._log_probs(batch))

    def entropy(self, batch: Batch) -> torch.Tensor:
        vocabulary = self.probe.hf_config["vocab_size"]
        with torch.no_grad(), self._autocast():
            logits = self.logits(batch)
            tokens = len(batch.input_ids)
            entropy = entropy_of(logits, tokens, vocabulary, self.probe.temperature)
            return self.of_all_parts(self.own(entropy))

    def train_step(self, batch: Batch) -> StepOutcome:
        self.optimizer.zero_grad()
        tokens = batch.tokens_that_count or int(batch.loss_mask.sum())
        ranks = self.probe.layout.gradient_ranks if self.averages_gradients else 1
        losses, log_probs = [], []
        for part in batch.micro_batches(self.probe.micro_batches):
            with self._autocast():
                seen = self._log_probs(part)
                loss = sft_loss(seen, part.loss_mask.to(seen.device), tokens) * ranks
            loss.backward()
            # As verl reports it: the mean over data-parallel ranks is the loss of the batch.
            loss = self.of_all_parts(loss.detach())
            losses.append(loss.item() * self.probe.layout.data_ranks / ranks)
            log_probs.append(self.of_all_parts(seen.detach()))
        most = self.probe.optimizer["clip_norm"]
        if self.probe.layout.ranks > 1:
            grad_norm = clip_gradients(list(self.model.parameters()), self.gradients(), most)
        else:
            grad_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), most).item()
        self.optimizer.step()
        self._schedule.step()
        return StepOutcome(
            sum(losses),
            grad_norm,
            torch.cat(log_probs),
            {"next_learning_rate": self._schedule.get_last_lr()[0]},
        )
