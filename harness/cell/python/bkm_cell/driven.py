# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The ladder of a cell whose engine's own trainer runs: the same witnesses, entered by what the
trainer does.

Nothing is called on the trainer. The first training forward of a model is where it was found: its
weights, backend and mask are witnessed there, before that forward goes on. A step is from a training
forward to the end of the optimizer's step that follows.
"""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from bkm_cell.adapters.trainer import ReportedStep, TrainerAdapter
from bkm_cell.fresh_process import FreshProcess
from bkm_cell.hand_over import probe_tensors, report_export
from bkm_cell.probe import Batch, Probe, Reach
from bkm_cell.report import Report
from bkm_cell.sft import Ladder
from bkm_cell.tensor_file import load_file
from bkm_cell.unwatched import parameters_digest
from bkm_cell.witnesses.attended import Attended, AttendedOfParts
from bkm_cell.witnesses.built import model_numbers, sharding_facts
from bkm_cell.witnesses.given_batch import (
    GivenCall,
    OrderOfTrainer,
    by_name,
    documents_in,
    given_batch,
    order_of,
    together,
)
from bkm_cell.witnesses.gpu_reads import GpuReads
from bkm_cell.witnesses.kernels import AttentionKernels, LossGraphs
from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.loss_labels import Labels, labels_of, on_gradient
from bkm_cell.witnesses.named_tensors import Tensors
from bkm_cell.witnesses.numbers import StepNumbers
from bkm_cell.witnesses.outermost import outermost_calls
from bkm_cell.witnesses.put_back import put_back
from bkm_cell.witnesses.step_masks import StepMasks
from bkm_cell.witnesses.weights_read import first_weights_read


_STAGES = ("construct", "load", "backend", "mask", "forward", "backward", "step")


@dataclass
class _Forward:
    """One micro-batch, and its logits with their gradients: whole, or in chunks along the row."""

    call: GivenCall
    is_in_chunks: bool = False
    logits: list[torch.Tensor] = field(default_factory=list)
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)  # by chunk

    def watch(self, logits: torch.Tensor) -> None:
        chunk = len(self.logits)
        self.logits.append(logits.detach().clone())  # a trainer may change them in place

        def backward(gradient: torch.Tensor) -> None:
            self.gradients[chunk] = gradient.detach()

        on_gradient(logits, backward)

    def labels(self) -> tuple[Labels, int]:
        """Of the documents' places, and how many other places are trained."""
        gradients = [
            self.gradients.get(chunk, torch.zeros_like(logits))
            for chunk, logits in enumerate(self.logits)
        ]
        places = self.call.given.places.to(self.logits[0].device)
        gradient, logits = (
            x.reshape(-1, x.shape[-1]) for x in (torch.cat(gradients, 1), torch.cat(self.logits, 1))
        )
        is_trained = gradient.abs().amax(-1) > 0
        outside = int(is_trained.sum() - is_trained[places].sum())
        return labels_of(gradient[places], logits[places]), outside


@dataclass
class _Step:
    attended: AttendedOfParts
    graphs: LossGraphs | None  # None: nobody watches
    start: float
    seconds: float = 0.0
    forwards: list[_Forward] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)  # of each forward, once the step is over
    outside: int = 0  # places that are trained and belong to no document
    log_probs: list[torch.Tensor] = field(default_factory=list)  # likewise
    order: OrderOfTrainer | None = None  # once the step is over; None: it has other documents
    balance: dict[str, Any] = field(default_factory=dict)
    is_over: bool = False

    def batch(self) -> Batch:
        return together([each.call.given.batch for each in self.forwards])


def _reaches_in(batch: Batch, probe: Probe) -> list[Reach]:
    """Tests of reach in a batch that the trainer chose: in its second document the middle, in its third
    one the first token, one in the middle and the last before the end, and at a window's edge."""
    begins = [0, *itertools.accumulate(batch.lengths)]
    second, third = (min(document, len(batch.lengths) - 1) for document in (1, 2))
    middle = [begins[d] + (batch.lengths[d] - 1) // 2 for d in (second, third)]
    last = begins[third] + max(batch.lengths[third] - 2, 0)
    positions = [middle[0], begins[third], middle[1], last]
    longest = max(range(len(batch.lengths)), key=batch.lengths.__getitem__)
    window = probe.hf_config.get("sliding_window") or 0
    if 0 < window < batch.lengths[longest]:
        edge = begins[longest + 1] - window
        positions += [edge - 1, edge]
    tokens = [probe.reach.token, *(reach.token for reach in probe.reaches)]
    return [
        Reach(0, position, next(t for t in tokens if t != int(batch.input_ids[position])))
        for position in dict.fromkeys(positions)
    ]


class DrivenLadder(Ladder):
    """What a trainer does beyond the probe's steps is not watched.

    The forwards that train nothing repeat the calls of the first step's micro-batches, before the last
    of these goes on: until then no weight has moved.
    """

    _adapter: TrainerAdapter
    _trained_before = 0  # steps

    def begin(self) -> None:
        super().begin()
        self._adapter.write_inputs()

    def climb(self) -> None:
        self._report.stage("construct")
        if self._collectives is not None:
            self._collectives.install()
        restart = self._ready_to_restart() if self._probe.resume_checkpoint else None
        self._planted.before_construct()
        self._drive()
        self._planted.confirm()
        self._remove_checkpoint(len(self._probe.batches))
        if self._probe.export_weights:
            self._report.stage("export")
            self._read_export()
        if restart is not None:
            self._report.stage("resume")
            files = sum(len(files) for _, _, files in os.walk(self._adapter.checkpoint(1)))
            self._report.set(checkpoint_files=files)
            restart.run(self._report)

    def _ready_to_restart(self) -> FreshProcess:
        """A process that goes on from the checkpoint of the first step, as a user's who starts the
        trainer again."""

        def act(report: Report) -> None:
            self._adapter.restarts = True
            given = (self._request, self._probe, self._adapter, report, self._owners)
            RestartedLadder(*given, self._rank).climb()

        return FreshProcess(act, self._owners, self._request["dir"])

    def _read_export(self) -> None:
        """The folder of the first step, with the batch of the second; nothing if it did not come to it."""
        folder, order = self._adapter.hf_folder(1), next((s.order for s in self._steps[1:]), None)
        weights: Tensors = {}
        for file in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
            weights |= load_file(file)
        if order is not None:
            path = os.path.join(self._tensors_dir, "export.safetensors")
            batch = order.batch(self._probe.kept)
            report_export(self._probe, self._report, path, weights, lambda: folder, batch)

    def _remove_checkpoint(self, step: int) -> None:
        """Of a later step than the first: no more than two fit into what a cell may write."""
        if self._probe.keeps_first_step and step > 1:
            shutil.rmtree(self._adapter.checkpoint(step), ignore_errors=True)

    def _drive(self) -> None:
        self._steps: list[_Step] = []
        self._numbers: StepNumbers | None = None
        self._is_own = False  # whether a witness calls the model
        self._recomputes = False  # whether a backward computes parts of the model again

        def began(reader: str) -> None:
            self._report.stage("load")
            self._report.set(adapter={"weights_read_by": reader})

        with ExitStack() as self._whole, ExitStack() as self._of_step, ExitStack() as self._of_forward:
            self._whole.enter_context(first_weights_read(began))
            seen = (self._entered, self._left, self._part_left, self._part_entered)
            self._whole.enter_context(outermost_calls(*seen))
            self._adapter.run()
        self._tell_last_step()

    def _has_trained(self) -> bool:
        """All of the probe's steps, or its last one is at work."""
        return self._trained_before + len(self._steps) == len(self._probe.batches)

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
        named = by_name(module, arguments, named)
        kept = self._probe.kept
        call = GivenCall(named, given_batch(named, kept.input_ids.split(kept.lengths)))
        if self._numbers is None:
            self._found(module)
        is_new = not self._steps or self._steps[-1].is_over
        if is_new and self._has_trained():
            return
        if is_new and self._probe.micro_batches == 1 and not self._steps:
            self._witness_first_step([call])
        if is_new:
            self._begin_step()
        self._of_forward.close()
        step = self._steps[-1]
        step.forwards.append(_Forward(call))
        if len(self._steps) == 1 and 1 < self._probe.micro_batches == len(step.forwards):
            self._witness_in_step([each.call for each in step.forwards])
        self._watch_forward(step, call)
        self._stage("forward")
        self._enter("forward")

    def _watch_forward(self, step: _Step, call: GivenCall) -> None:
        attended = self._attended(call.given.batch)
        step.attended.begin(attended)
        masks = StepMasks(self._adapter.modules(), attended, self._own_calls)
        self._of_forward.enter_context(masks.watching())

    def _left(self, module: torch.nn.Module, result: Any) -> None:
        if not self._is_training(module) or not self._steps or self._steps[-1].is_over:
            return
        logits, forward = self._adapter.logits(result), self._steps[-1].forwards[-1]
        forward.is_in_chunks = logits is None
        if logits is not None:
            forward.watch(logits)

    def _part_entered(self, _: torch.nn.Module) -> None:
        self._recomputes = self._recomputes or torch._C._current_graph_task_id() != -1

    def _part_left(self, part: torch.nn.Module, result: Any) -> None:
        """A loss that makes logits itself calls the head, chunk by chunk."""
        if self._is_own or not self._steps or self._steps[-1].is_over:
            return
        forward = self._steps[-1].forwards[-1]
        if forward.is_in_chunks and isinstance(result, torch.Tensor) and result.requires_grad:
            logits = self._adapter.logits(result)
            if logits is not None:
                forward.watch(logits)

    def _found(self, module: torch.nn.Module) -> None:
        report, adapter, probe = self._report, self._adapter, self._probe
        adapter.found(module)
        self._planted.after_construct()
        if report.stage_name != "load":  # no reader ran: the load witness shows the weights
            report.stage("load")
        asked = {"attention": adapter.attention, "precision": probe.precision}
        shards = sharding_facts(adapter.sharding(), adapter.modules())
        report.set(adapter={**adapter.facts(), "asked": asked, **shards})
        if self._rank is not None:
            data_rank, data_ranks = adapter.data_rank(self._rank.number)
            report.set(data_rank=data_rank, data_ranks=data_ranks)
        self._enter("witness")
        self._now("load")
        with report.timed("load-witness"):
            tensors = probe_tensors(adapter, probe, self._rank)
            report.set(
                model=model_numbers(adapter.modules()), **loaded(tensors, probe.buffer_names)
            )
        self._reads = GpuReads(adapter.modules(), probe.steps)
        self._attentions = AttentionKernels(adapter.modules(), len(probe.batches))
        self._balance = self._expert_balance()
        self._record_steps(StepNumbers(probe, tensors, self._tensors_dir, report))

    def _record_steps(self, numbers: StepNumbers) -> None:
        self._numbers = numbers
        self._whole.enter_context(numbers)
        self._whole.callback(register_optimizer_step_post_hook(self._stepped).remove)

    @contextmanager
    def _own(self) -> Iterator[None]:
        """In this context witnesses call the model."""
        self._is_own = True
        try:
            with put_back(self._adapter.modules()):
                yield
        finally:
            self._is_own = False

    def _witness_first_step(self, calls: list[GivenCall]) -> None:
        """Other documents than the probe's cannot be compared with anything: nothing is witnessed."""
        self._enter("witness")
        order = self._order_of(together([call.given.batch for call in calls]))
        if order is not None:
            self._share, self._order, self._witnessed = order, order, calls
            with self._own():
                self._witness_attention()

    def _witness_in_step(self, calls: list[GivenCall]) -> None:
        """The same while the step's own reads go on."""
        reads = self._reads
        with reads.paused():
            self._witness_first_step(calls)
        self._reads = reads

    def _order_of(self, batch: Batch) -> OrderOfTrainer | None:
        """None if a rank has other documents than those of the data file, or not all are there that have
        to be. All ranks get the same answer."""
        kept, rank = self._probe.kept, self._rank
        own = documents_in(kept, batch)
        of_ranks: list[Any] = [own]
        if rank is not None:
            of_ranks = [None] * self._probe.layout.ranks
            torch.distributed.all_gather_object(of_ranks, own)
        if any(documents is None for documents in of_ranks):
            return None
        of_all = sorted(document for documents in of_ranks for document in documents)
        if not self._probe.is_dealt and of_all != list(range(len(kept.lengths))):
            return None
        return order_of(kept, of_ranks, 0 if rank is None else rank.number)

    def _tested(self) -> tuple[Batch, Reach, list[Reach]]:
        if not self._probe.is_dealt:
            return super()._tested()
        batch = self._order.batch(self._probe.kept)
        first, *more = _reaches_in(batch, self._probe)
        return batch, first, more

    def _attended_in_witness(self, batch: Batch) -> Attended:
        return AttendedOfParts()

    def _evaluate(self, batch: Batch, attended: Attended | None = None) -> torch.Tensor:
        """Forward by forward, as the trainer cut its batch."""
        sizes = [len(call.given.batch.input_ids) for call in self._witnessed]
        parts = []
        for call, tokens in zip(self._witnessed, self._share.of(batch).input_ids.split(sizes)):
            if isinstance(attended, AttendedOfParts):
                attended.begin(self._attended(call.given.batch))
            parts.append(self._adapter.repeat(call, tokens))
        if isinstance(attended, AttendedOfParts):
            attended.end()
        return self._share.whole(batch, torch.cat(parts))

    def _begin_step(self) -> None:
        self._tell_last_step()
        number = len(self._steps)
        self._now(f"step {number + 1}")
        self._remove_checkpoint(self._trained_before + number)
        if number == 0:
            self._of_step.enter_context(self._stages_of_a_step())
        self._steps.append(_Step(AttendedOfParts(), self._watch_step(number), time.monotonic()))

    def _watch_step(self, number: int) -> LossGraphs | None:
        self._of_step.enter_context(self._balance.watching())
        return self._of_step.enter_context(self._kernels(self._attentions, number))

    def _stage(self, name: str) -> None:
        """Stages are entered once: a step of several micro-batches goes forward and backward again."""
        if _STAGES.index(name) > _STAGES.index(self._report.stage_name):
            super()._stage(name)

    @contextmanager
    def _stages_of_a_step(self) -> Iterator[None]:
        backward = torch.autograd.backward

        def watched(*arguments: Any, **named: Any) -> None:
            self._stage("backward")
            backward(*arguments, **named)

        def stepping(*_: Any) -> None:
            self._stage("step")

        hook = register_optimizer_step_pre_hook(stepping)
        torch.autograd.backward = watched
        try:
            yield
        finally:
            torch.autograd.backward = backward
            hook.remove()

    def _stepped(self, optimizer: Optimizer, *_: Any) -> None:
        """An optimizer may also be stepped while its states are loaded, before any backward."""
        step = self._steps[-1] if self._steps else None
        assert self._numbers is not None
        if step is None or step.is_over or not any(each.gradients for each in step.forwards):
            return
        if not self._numbers.is_between_steps:  # of a container of optimizers
            return
        step.is_over = True
        step.seconds = time.monotonic() - step.start
        if self._has_trained():
            self._report_trained(parameters_digest(optimizer))
        self._of_forward.close()
        self._of_step.close()
        self._enter("witness")
        step.order = self._order_of(step.batch())
        if step.graphs is not None:
            step.attended.end()
            step.balance = self._balance.facts()
        if len(self._steps) == 1:
            self._report_by_itself(step)
        for each in step.forwards:
            given, logits = each.call.given, torch.cat(each.logits, 1)
            labels, outside = each.labels()
            step.labels.append(labels)
            step.outside += outside
            step.log_probs.append(self._adapter.log_probs(logits, given, given.batch.input_ids))
            each.logits, each.gradients = [], {}

    def _report_by_itself(self, step: _Step) -> None:
        """What the trainer does to save memory without being asked: it runs as it is."""
        chunks = max(len(each.logits) for each in step.forwards)
        found = [f"the loss computes logits in {chunks} chunks"] if chunks > 1 else []
        if self._recomputes:
            found.append("the backward computes activations again")
        self._report.set(adapter={"by_itself": found})

    def _tell_last_step(self) -> None:
        """Once the trainer has reported it, which it does after the optimizer's step."""
        if not self._steps or not self._steps[-1].is_over:
            return
        number, step = len(self._steps) - 1, self._steps[-1]
        assert self._numbers is not None
        reported = [] if self._rank is not None and self._rank.number > 0 else self._adapter.reported()
        said = reported[number] if number < len(reported) else ReportedStep()
        facts = {
            "loss": said.loss,
            "grad_norm": said.grad_norm,
            **({} if said.loss_decimals is None else {"loss_decimals": said.loss_decimals}),
            "forwards": len(step.forwards),
            **(step.graphs.facts() if step.graphs is not None else {}),
            **step.balance,
        }
        batch = step.batch()
        stored = {
            "batch/input_ids": batch.input_ids,
            "batch/document_lengths": torch.tensor(batch.lengths),
            "batch/labels": torch.cat([each.labels for each in step.labels]),
            "batch/weights": torch.cat([each.weights for each in step.labels]),
            "batch/outside": torch.tensor([step.outside]),
            "batch/residual": torch.tensor([max(each.residual for each in step.labels)]),
        }
        log_probs = None
        if (order := step.order) is not None:
            facts["documents"] = list(order.documents)
            whole = order.batch(self._probe.kept)
            log_probs = order.whole(whole, torch.cat(step.log_probs))
            if step.graphs is not None:
                order.whole_relations(whole, step.attended)
                facts |= step.attended.facts()
                stored |= step.attended.stored()
            stored |= order.beside(whole)
        if self._collectives is not None:
            self._report.set(collectives=self._collectives.facts())
        seconds = step.seconds - step.attended.seconds
        self._numbers.finish(self._trained_before + number, facts, log_probs, seconds, stored)

    def _report_trained(self, digest: str) -> None:
        self._report.set(adapter={"trained": digest})


class RestartedLadder(DrivenLadder):
    """Of a trainer that goes on from the checkpoint of the first step: its numbers, and no more."""

    _trained_before = 1

    def climb(self) -> None:
        self._collectives = None  # the rank's own are installed already
        if port := os.environ.get("BKM_RESTART_PORT"):
            os.environ["MASTER_PORT"] = port  # the other one is still in use
        self._planted.before_construct()
        self._planted.before_restart()
        self._drive()
        self._planted.confirm(restarted=True)

    def _found(self, module: torch.nn.Module) -> None:
        self._adapter.found(module)
        self._planted.after_construct()
        tensors = probe_tensors(self._adapter, self._probe, self._rank)
        self._record_steps(
            StepNumbers(self._probe, tensors, self._tensors_dir, self._report, resumed=True)
        )

    def _witness_first_step(self, calls: list[GivenCall]) -> None:
        pass

    def _witness_in_step(self, calls: list[GivenCall]) -> None:
        pass

    def _watch_forward(self, step: _Step, call: GivenCall) -> None:
        pass

    def _watch_step(self, number: int) -> LossGraphs | None:
        return None

    def _stage(self, name: str) -> None:
        pass

    def _report_trained(self, digest: str) -> None:
        pass

    def _report_by_itself(self, step: _Step) -> None:
        pass
