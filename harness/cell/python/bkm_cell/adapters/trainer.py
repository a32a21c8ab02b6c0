# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The interface between the driven ladder (bkm_cell.driven) and an engine's own trainer."""

from __future__ import annotations

import abc
import difflib
import runpy
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter, StepOutcome, log_probs_of
from bkm_cell.probe import Batch
from bkm_cell.witnesses.given_batch import GivenBatch, GivenCall, UnreadableBatch


@dataclass(frozen=True)
class ReportedStep:
    """What the trainer itself reported of a step."""

    loss: float | None = None
    grad_norm: float | None = None
    loss_decimals: int | None = None  # to which the reported loss is rounded; None: it is not


IGNORED = -100  # torch's label of what is not trained


class UnknownOption(LookupError):
    """The probe asks for an option that the trainer does not have, or that another field asks for."""


def checked_option(
    name: str, known: Iterable[str], asked: Iterable[str], changing: tuple[str, ...] = ()
) -> None:
    """Raises UnknownOption if the trainer's option is none of the `known`, one of those that the
    probe's other fields ask for, or begins with a name whose settings change what has to come out:
    a cell with it would be judged by what comes out without it."""
    if name in asked:
        raise UnknownOption(f"option {name}: the cell sets it for another field of its probe")
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        did_you_mean = f": did you mean {near[0]}?" if near else ""
        raise UnknownOption(f"the trainer has no option {name}{did_you_mean}")
    if name.startswith(changing):
        raise UnknownOption(
            f"option {name} changes what the trainer has to compute, which no cell can be asked for so"
        )


# (tokens, counts) of one document -> the same, changed. int64[T] each; 1 where a token counts.
EditDocument = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class TrainerAdapter(Adapter):
    """Starts a trainer from its entry point. The trainer makes the model, the batches and the steps."""

    entry: str  # what a user starts
    _arguments: list[str] | dict[str, Any]  # with what
    _root: torch.nn.Module | None = None
    restarts = False  # whether run() goes on from checkpoint(), as a user asks the trainer to

    def write_inputs(self) -> None:
        """The files that it reads beside the model's: once, before there are ranks or a restart."""

    @abc.abstractmethod
    def run(self) -> None:
        """Starts the entry point, and returns when it has trained."""

    @abc.abstractmethod
    def checkpoint(self, step: int) -> str:
        """The folder in which the trainer saves a step (counted from 1), if the probe asks for a restart
        from the first one, or for an export of it."""

    def hf_folder(self, step: int) -> str:
        """The Hugging Face folder that it writes of a step, if the probe asks for an export."""
        raise NotImplementedError("this trainer writes none")

    # What faults change, before run().

    @abc.abstractmethod
    def edit_documents(self, edit: EditDocument) -> None:
        """Changes each document where the trainer takes it from."""

    @abc.abstractmethod
    def scale_loss(self, factor: Callable[[int, int], float]) -> None:
        """Multiplies the trainer's loss by factor(tokens that count, all tokens) of a micro-batch."""

    @abc.abstractmethod
    def reported(self) -> list[ReportedStep]:
        """Of each step that the trainer has reported so far."""

    def facts(self) -> dict[str, Any]:
        return {"entry": self.entry, "arguments": self._arguments}

    def run_module(self, left: str) -> None:
        """Starts the entry as `python -m` does. `left`: a folder with checkpoints that the trainer saves
        after the last step whatever it is told; only a restart reads them."""
        sys.modules.pop(self.entry, None)  # it runs as __main__, and runpy warns of another one
        try:
            runpy.run_module(self.entry, run_name="__main__", alter_sys=True)
        finally:
            if self.restarts or not self.probe.keeps_first_step:
                shutil.rmtree(left, ignore_errors=True)

    def construct(self) -> None:
        raise NotImplementedError("a trainer constructs its model itself")

    def found(self, root: torch.nn.Module) -> None:
        """The model, at its first training forward."""
        self._root = root

    def modules(self) -> list[torch.nn.Module]:
        assert self._root is not None, "the trainer has not called its model yet"
        return [self._root]

    def logits(self, result: Any) -> torch.Tensor | None:
        """Of what the model returns; None if it holds none, because the loss computes them."""
        logits = getattr(result, "logits", result)
        fewest = int(self.probe.hf_config["vocab_size"]) if self.probe.head == "lm" else 1
        return logits if logits.shape[-1] >= fewest else None

    def logits_by_hand(self, result: Any) -> torch.Tensor:
        """Of what the model returns without them."""
        raise UnreadableBatch("the model returns no logits")

    def evaluate(self, batch: Batch) -> torch.Tensor:
        raise NotImplementedError("a trainer's forward is repeated by its own call")

    def repeat(self, call: GivenCall, tokens: torch.Tensor) -> torch.Tensor:
        """Log-probs of the model again, with the very keywords that the trainer sent, but for tokens."""
        with torch.no_grad():
            result = self.modules()[0](**call.with_tokens(tokens))
            logits = self.logits(result)
            if logits is None:
                logits = self.logits_by_hand(result)
        return self.log_probs(logits, call.given, tokens)

    def log_probs(self, logits: torch.Tensor, given: GivenBatch, tokens: torch.Tensor) -> torch.Tensor:
        """[T] of the next token; 0 at each document's last one, unless the probe says what it predicts.
        What follows it in the trainer's order is no matter of the document. Of a critic its values."""
        flat = logits.reshape(-1, logits.shape[-1])[given.places.to(logits.device)]
        if self.probe.head == "value":
            return flat[:, 0]
        labels = torch.roll(tokens, -1)
        ends = torch.tensor(given.batch.lengths).cumsum(0) - 1
        documents = given.batch.input_ids.split(given.batch.lengths)
        after = torch.tensor([self.probe.after.get(tuple(d.tolist()), -1) for d in documents])
        labels[ends] = after.clamp(min=0)
        vocabulary = self.probe.hf_config["vocab_size"]
        named = {"temperature": self.probe.temperature, "labels": labels.to(flat.device)}
        seen = log_probs_of(flat, tokens, vocabulary, **named)
        seen[ends[after < 0]] = 0
        return seen

    def train_step(self, batch: Batch) -> StepOutcome:
        raise NotImplementedError("the trainer makes its steps itself")
