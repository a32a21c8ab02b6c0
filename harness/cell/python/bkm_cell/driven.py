# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The ladder of a cell whose engine's own trainer runs: the same witnesses, entered by what the
trainer does.

Nothing is called on the trainer. The first training forward of a model is where it was found: its
weights, backend and mask are witnessed there, before that forward goes on. A step is from a training
forward to the end of the optimizer's step that follows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from bkm_cell.adapters.trainer import ReportedStep, TrainerAdapter
from bkm_cell.hand_over import probe_tensors
from bkm_cell.probe import Batch
from bkm_cell.sft import Ladder
from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.built import model_numbers
from bkm_cell.witnesses.given_batch import GivenBatch, given_batch, order_of
from bkm_cell.witnesses.gpu_reads import GpuReads
from bkm_cell.witnesses.kernels import AttentionKernels, LossGraphs
from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.loss_labels import Labels, labels_of
from bkm_cell.witnesses.numbers import StepNumbers
from bkm_cell.witnesses.outermost import outermost_calls
from bkm_cell.witnesses.step_masks import StepMasks
from bkm_cell.witnesses.weights_read import first_weights_read


@dataclass
class _Step:
    """`given`, `labels` and `log_probs` are those of each micro-batch."""

    attended: Attended
    graphs: LossGraphs
    start: float
    seconds: float = 0.0
    given: list[GivenBatch] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)
    log_probs: list[torch.Tensor] = field(default_factory=list)
    is_over: bool = False

    def batch(self) -> Batch:
        parts = [each.batch for each in self.given]
        return Batch(
            torch.cat([part.input_ids for part in parts]),
            torch.cat([part.loss_mask for part in parts]),
            [length for part in parts for length in part.lengths],
        )


class DrivenLadder(Ladder):
    """What a trainer does beyond the probe's steps is not watched. Who attends to whom in a training
    step is read where the step has one micro-batch."""

    _adapter: TrainerAdapter

    def climb(self) -> None:
        self._report.stage("construct")
        self._planted.before_construct()
        self._steps: list[_Step] = []
        self._numbers: StepNumbers | None = None
        self._is_own = False  # whether a witness calls the model

        def began(reader: str) -> None:
            self._report.stage("load")
            self._report.set(adapter={"weights_read_by": reader})

        with ExitStack() as self._whole, ExitStack() as self._of_step:
            self._whole.enter_context(first_weights_read(began))
            self._whole.enter_context(outermost_calls(self._entered, self._left))
            self._adapter.run()
        self._tell_last_step()
        self._planted.confirm()

    def _is_training(self, module: torch.nn.Module) -> bool:
        """Whether a call is the trainer's own, of the model that it trains."""
        if self._is_own or not torch.is_grad_enabled():
            return False
        return self._numbers is None or module is self._adapter.modules()[0]

    def _entered(
        self, module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        if not self._is_training(module):
            return
        given = given_batch(named)
        if self._numbers is None:
            self._found(module, named, given)
        if not self._steps or self._steps[-1].is_over:
            if len(self._steps) == len(self._probe.batches):
                return
            self._begin_step(given)
        self._steps[-1].given.append(given)
        self._enter("forward")

    def _left(self, module: torch.nn.Module, result: Any) -> None:
        if not self._is_training(module) or not self._steps or self._steps[-1].is_over:
            return
        step = self._steps[-1]
        given, logits = step.given[-1], getattr(result, "logits", result)
        seen = logits.detach().clone()  # a trainer may change them in place
        with torch.no_grad():
            log_probs = self._adapter.log_probs(seen, given, given.batch.input_ids)
        step.log_probs.append(log_probs)

        def backward(gradient: torch.Tensor | None) -> None:
            if gradient is not None:
                places = given.places.to(gradient.device)
                flat = [x.reshape(-1, x.shape[-1])[places] for x in (gradient, seen)]
                step.labels.append(labels_of(*flat))

        logits.register_hook(backward)

    def _found(
        self, module: torch.nn.Module, named: dict[str, Any], given: GivenBatch
    ) -> None:
        report, adapter, probe = self._report, self._adapter, self._probe
        adapter.found(module, named, given)
        self._planted.after_construct()
        if report.stage_name != "load":  # no reader ran: the load witness shows the weights
            report.stage("load")
        asked = {"attention": adapter.attention, "precision": probe.precision}
        report.set(adapter={**adapter.facts(), "asked": asked})
        with report.timed("load-witness"):
            tensors = probe_tensors(adapter, probe, self._rank)
            report.set(
                model=model_numbers(adapter.modules()), **loaded(tensors, probe.buffer_names)
            )
        order = order_of(probe.batches[0], given.batch)
        if order is not None:
            self._share = order
            with self._own():
                self._witness_attention()
        else:  # nothing of them can be compared with the probe's
            self._reads = GpuReads(adapter.modules(), probe.steps)
        self._attentions = AttentionKernels(adapter.modules(), len(probe.batches))
        self._numbers = StepNumbers(probe, tensors, self._tensors_dir, report)
        self._whole.enter_context(self._numbers)
        self._whole.callback(register_optimizer_step_post_hook(self._stepped).remove)

    @contextmanager
    def _own(self) -> Iterator[None]:
        """In this context witnesses call the model: the trainer's random numbers stay as they are."""
        state = torch.get_rng_state()
        self._is_own = True
        try:
            yield
        finally:
            self._is_own = False
            torch.set_rng_state(state)

    def _begin_step(self, given: GivenBatch) -> None:
        self._tell_last_step()
        number = len(self._steps)
        self._now(f"step {number + 1}")
        attended = self._attended(given.batch)
        if number == 0:
            if self._report.stage_name != "mask":
                self._report.stage("mask")
            self._of_step.enter_context(self._stages_of_a_step())
            self._report.stage("forward")
        graphs = self._of_step.enter_context(self._kernels(self._attentions, number))
        masks = StepMasks(self._adapter.modules(), attended, self._own_calls)
        self._of_step.enter_context(masks.watching())
        self._steps.append(_Step(attended, graphs, time.monotonic()))

    def _stepped(self, *_: Any) -> None:
        """An optimizer may also be stepped while its states are loaded, before any backward."""
        step = self._steps[-1] if self._steps else None
        assert self._numbers is not None
        if step is None or step.is_over or not step.labels:
            return
        if not self._numbers.is_between_steps:  # of a container of optimizers
            return
        step.is_over = True
        step.seconds = time.monotonic() - step.start
        self._of_step.close()

    def _tell_last_step(self) -> None:
        """Once the trainer has reported it, which it does after the optimizer's step."""
        if not self._steps or not self._steps[-1].is_over:
            return
        number, step = len(self._steps) - 1, self._steps[-1]
        assert self._numbers is not None
        reported = self._adapter.reported()
        said = reported[number] if number < len(reported) else ReportedStep()
        facts = {
            "loss": said.loss,
            "grad_norm": said.grad_norm,
            "forwards": len(step.given),
            "label_residual": max(each.residual for each in step.labels),
            **step.graphs.facts(),
        }
        batch = step.batch()
        stored = {
            "batch/input_ids": batch.input_ids,
            "batch/document_lengths": torch.tensor(batch.lengths),
            "batch/labels": torch.cat([each.labels for each in step.labels]),
            "batch/weights": torch.cat([each.weights for each in step.labels]),
        }
        log_probs = None
        whole = self._probe.batches[number]
        if (order := order_of(whole, batch)) is not None:
            log_probs = order.whole(whole, torch.cat(step.log_probs))
            if len(step.given) == 1:
                order.whole_relations(whole, step.attended)
                facts |= step.attended.facts()
                stored |= step.attended.stored()
        seconds = step.seconds - step.attended.seconds
        self._numbers.finish(number, facts, log_probs, seconds, stored)
