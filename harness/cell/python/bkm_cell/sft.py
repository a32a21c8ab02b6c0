# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The ladder: takes an adapter through the stages, with the witnesses around it."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter
from bkm_cell.faults import Planted
from bkm_cell.hand_over import HandOver, probe_tensors
from bkm_cell.probe import Batch, Probe, Reach
from bkm_cell.ranks.collectives import Collectives
from bkm_cell.ranks.gather import Rank, local_elements
from bkm_cell.ranks.share import Share
from bkm_cell.report import Report
from bkm_cell.tensor_file import dtype_name, save_file
from bkm_cell.witnesses import backend, mask
from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.built import model_numbers, sharding_facts
from bkm_cell.witnesses.errors import Owners, describe
from bkm_cell.witnesses.expert_balance import ExpertBalance
from bkm_cell.witnesses.gpu_reads import GpuReads
from bkm_cell.witnesses.in_fp32 import in_fp32, is_due
from bkm_cell.witnesses.kernels import AttentionKernels, LossGraphs
from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.numbers import StepNumbers
from bkm_cell.witnesses.put_back import put_back
from bkm_cell.witnesses.step_masks import StepMasks
from bkm_cell.witnesses.weights_read import first_weights_read

# Where torchtitan's Trainer looks for checkpoints if it is given no folder.
_LEFTOVER = os.path.join("outputs", "checkpoint")


class Ladder:
    def __init__(
        self,
        request: dict[str, Any],
        probe: Probe,
        adapter: Adapter,
        report: Report,
        owners: Owners,
        rank: Rank | None = None,
    ) -> None:
        """`rank`: if it is one of several."""
        self._request = request
        self._probe = probe
        self._adapter = adapter
        self._report = report
        self._owners = owners
        library = (request.get("packages") or {}).get("library") or ""
        self._planted = Planted(adapter, library, request.get("plant") or [])
        self._tensors_dir = os.path.join(request["dir"], "tensors")
        self._share = Share()
        self._collectives = None if rank is None else Collectives(rank.tell)
        self._rank = rank
        if rank is not None:
            self._tensors_dir = os.path.join(self._tensors_dir, f"rank{rank.number}")

    def begin(self) -> None:
        """Imports the subjects: once, before there are ranks."""
        self._report.stage("import")
        self._adapter.import_modules()

    def climb(self) -> None:
        self._construct_and_load()
        self._hand_over = HandOver(
            self._probe, self._adapter, self._report, self._tensors_dir, self._share, self._rank
        )
        self._witness_attention()
        self._train()
        self._hand_over.after_training()
        self._planted.confirm()
        self._repeat_in_fp32()
        if asked := self._request.get("measures"):
            # Not before: what it needs of torch, other cells do not need.
            measures = importlib.import_module("bkm_cell.measures")
            measures.report_measures(
                asked, self._probe, self._adapter, self._report, self._tensors_dir
            )

    def _construct_and_load(self) -> None:
        report, adapter = self._report, self._adapter
        report.stage("construct")
        self._planted.before_construct()

        if self._collectives is not None:
            self._collectives.install()
        if self._probe.leftover_checkpoint:
            os.makedirs(_LEFTOVER)

        def began(reader: str) -> None:
            report.stage("load")
            report.set(adapter={"weights_read_by": reader})

        with first_weights_read(began):
            adapter.construct()
        self._enter("witness")
        self._planted.after_construct()
        if report.stage_name != "load":  # no reader ran: the load witness shows the weights
            report.stage("load")
        self._take_share()
        asked = {"attention": adapter.attention, "precision": self._probe.precision}
        shards = sharding_facts(adapter.sharding(), adapter.modules())
        report.set(adapter={**adapter.facts(), "asked": asked, **shards})
        with report.timed("load-witness"):
            self._now("load")
            tensors = probe_tensors(adapter, self._probe, self._rank)
            report.set(model=model_numbers(adapter.modules()), **loaded(tensors, self._probe.buffer_names))
            if tensors.rows is not None:
                report.set(adapter={"padded_vocabulary": tensors.rows})

    def _witness_attention(self) -> None:
        """Witnesses backend and mask in two forwards that train nothing.

        An exception here is noted, not raised: the same exception will stop the training step, in
        that step's own stage.
        """
        report, adapter, probe = self._report, self._adapter, self._probe
        self._stage("backend")
        modules = adapter.modules()
        report.set(backend={"layers": backend.built(modules)})
        with suppress(AttributeError):  # in some eras the engine keeps it elsewhere
            report.set(backend={"configured": adapter.configured()})
        self._stage("mask")
        whole, reach, reaches = self._tested()
        batch = self._share.of(whole)
        self._reads = GpuReads(modules, probe.steps)
        calls = backend.AttentionCalls(modules, self._attended_in_witness(batch))
        with report.timed("evidence"):
            try:
                self._enter("mask")
                with put_back(modules), adapter.evaluating():
                    with calls.watching(), self._reads.watching(None):
                        before = self._evaluate(whole, calls.attended)
                    self._report_forward_only(whole, before)
                    report.set(mask={"reach": self._reach(whole, before, reach)})
                    more = []
                    for another in reaches:
                        more.append(self._reach(whole, before, another))
                        report.set(mask={"reaches": more})
            except Exception as error:
                report.set(mask={"evidence_error": describe(error, self._owners)})
            self._enter("witness")
            report.set(mask={"calls": calls.masks.facts(reach.step)})
        self._report_part(batch, calls.attended)
        self._share.whole_relations(whole, calls.attended)
        self._report_attended(calls.attended)
        report.set(backend={"called": calls.called, "ops": sorted(calls.ops)})
        self._report_precision(calls)

    def _tested(self) -> tuple[Batch, Reach, list[Reach]]:
        """The batch of the forwards that train nothing, and what is changed in it."""
        probe = self._probe
        return probe.batches[probe.reach.step], probe.reach, probe.reaches

    def _stage(self, name: str) -> None:
        self._report.stage(name)

    def _enter(self, stage: str) -> None:
        """Says what the collectives of a rank are for from now on."""
        if self._collectives is not None:
            self._collectives.stage = stage

    def _take_share(self) -> None:
        """As the engine says which documents are this rank's."""
        if self._rank is None:
            return
        data_rank, data_ranks = self._adapter.data_rank(self._rank.number)
        self._share = Share(data_rank, data_ranks, is_one_of_several=True)
        shares = [self._share.documents(batch) for batch in self._probe.batches]
        documents = [{"first": share.start, "count": len(share)} for share in shares]
        self._report.set(data_rank=data_rank, data_ranks=data_ranks, documents=documents)

    def _now(self, when: str) -> None:
        """For differences between ranks."""
        if self._rank is not None:
            self._rank.gather.when = when

    def _attended_in_witness(self, batch: Batch) -> Attended:
        """What reads who attends to whom in the forward that trains nothing."""
        return self._attended(batch)

    def _evaluate(self, batch: Batch, attended: Attended | None = None) -> torch.Tensor:
        """Log-probs of the whole batch; 0 at other ranks' documents. `attended`: what reads the
        forward."""
        return self._share.whole(batch, self._adapter.evaluate(self._share.of(batch)))

    def _reach(self, batch: Batch, before: torch.Tensor, reach: Reach) -> dict[str, Any]:
        after = self._evaluate(batch.with_token(reach.position, reach.token))
        return mask.reach(reach.position, before.float().cpu(), after.float().cpu())

    def _report_forward_only(self, batch: Batch, log_probs: torch.Tensor) -> None:
        os.makedirs(self._tensors_dir, exist_ok=True)
        path = os.path.join(self._tensors_dir, "forward_only.safetensors")
        tensors = {"log_probs": log_probs.detach().float().cpu().contiguous()}
        tensors |= self._share.beside(batch)
        facts = {"log_probs_dtype": dtype_name(log_probs)}
        if self._probe.entropy:
            entropy = self._share.whole(batch, self._adapter.entropy(self._share.of(batch)))
            if entropy is not None:
                tensors["entropy"] = entropy.detach().float().cpu().contiguous()
                facts["entropy_dtype"] = dtype_name(entropy)
        save_file(tensors, path)
        self._report.set(forward_only={"tensors": self._report.written(path), **facts})

    def _repeat_in_fp32(self) -> None:
        """Last, so that it disturbs nothing. An exception here says nothing about the cell."""
        probe, report = self._probe, self._report
        if not is_due(probe):
            return
        whole = probe.batches[probe.reach.step]
        self._enter("witness")

        def evaluate(adapter: Adapter) -> torch.Tensor:
            return self._share.whole(whole, adapter.evaluate(self._share.of(whole)))

        with report.timed("in-fp32"):
            try:
                log_probs = in_fp32(self._adapter, probe, evaluate)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                report.set(forward_in_fp32_error=why[:500])
                return
        path = os.path.join(self._tensors_dir, "forward_in_fp32.safetensors")
        tensors = {"log_probs": log_probs.detach().float().cpu().contiguous()}
        save_file(tensors | self._share.beside(whole), path)
        facts = {"tensors": report.written(path), "log_probs_dtype": dtype_name(log_probs)}
        report.set(forward_in_fp32=facts)

    def _attended(self, batch: Batch) -> Attended:
        """Of this rank's share of a batch."""
        probe = self._probe
        parts = probe.layout.sequence_ranks
        return Attended(batch.lengths, probe.is_padded, batch.input_ids, parts)

    def _report_part(self, batch: Batch, attended: Attended) -> None:
        """What a rank has of the model and of its documents' tokens, to see whether its layout acts."""
        if self._rank is None:
            return
        held = sum(local_elements(p) for m in self._adapter.modules() for p in m.parameters())
        part: dict[str, Any] = {"parameters": held, "of_parameters": self._probe.parameters}
        if attended.tokens_given is not None:
            part |= {"tokens": attended.tokens_given, "of_tokens": len(batch.input_ids)}
        self._report.set(part=part)

    def _report_attended(self, attended: Attended) -> None:
        if attended.relations:
            os.makedirs(self._tensors_dir, exist_ok=True)
            save_file(attended.relations, os.path.join(self._tensors_dir, "attended.safetensors"))
        self._report.set(mask=attended.facts(), seconds={"attended": attended.seconds})

    def _report_precision(self, calls: backend.AttentionCalls) -> None:
        ran = calls.autocast or calls.input_dtype
        facts = {"autocast": calls.autocast, "attention_input_dtype": calls.input_dtype}
        if ran is not None:
            facts["precision_ran"] = {"bfloat16": "bf16", "float32": "fp32"}.get(ran, ran)
        self._report.set(adapter=facts)

    def _train(self) -> None:
        adapter, probe = self._adapter, self._probe
        attended_s = 0.0
        kernels = AttentionKernels(adapter.modules(), len(probe.batches))
        balance = self._expert_balance()
        tensors = probe_tensors(adapter, probe, self._rank)
        with StepNumbers(probe, tensors, self._tensors_dir, self._report) as numbers:
            for step, whole in enumerate(probe.batches):
                self._now(f"step {step + 1}")
                batch = self._share.of(whole)
                start = time.monotonic()
                attended = self._attended(batch)
                masks = StepMasks(adapter.modules(), attended, self._own_calls).watching()
                with ExitStack() as stack:
                    if step == 0:  # outside: an exception leaves the stages last
                        stack.enter_context(self._stages_of_a_step())
                    forwards = stack.enter_context(self._forwards())
                    graphs = stack.enter_context(self._kernels(kernels, step))
                    stack.enter_context(balance.watching())
                    if probe.micro_batches == 1:
                        stack.enter_context(masks)
                    self._enter("forward")
                    outcome = adapter.train_step(batch)
                    self._enter("witness")
                seconds = time.monotonic() - start - attended.seconds
                attended_s += attended.seconds
                self._report.set(seconds={"attended-in-steps": attended_s})
                facts = {
                    "loss": outcome.loss,
                    "grad_norm": outcome.grad_norm,
                    "forwards": forwards[0],
                    **graphs.facts(),
                    **balance.facts(),
                    **outcome.facts,
                }
                self._share.whole_relations(whole, attended)
                facts |= attended.facts()
                numbers.finish(
                    step,
                    facts,
                    self._share.whole(whole, outcome.log_probs),
                    seconds,
                    attended.stored() | self._share.beside(whole),
                )
                if self._collectives is not None:
                    self._report.set(collectives=self._collectives.facts())
                self._enter("export")
                self._hand_over.after_step(step)

    def _expert_balance(self) -> ExpertBalance:
        """Of no layer where bkm makes the optimizer, or where ranks share more than the batch."""
        layout = self._probe.layout
        is_watched = self._adapter.makes_optimizer and layout.ranks == layout.data_ranks
        return ExpertBalance(self._adapter.modules() if is_watched else [], layout.ranks)

    @contextmanager
    def _kernels(self, kernels: AttentionKernels, step: int) -> Iterator[LossGraphs]:
        """Records a step's attention kernels; yields the graphs that it goes backward through."""
        graphs = LossGraphs(kernels.is_compiled_call)
        backward = torch.autograd.backward
        inside: list[bool] = []  # a backward that recomputes is nested in another one

        def watched(*arguments: Any, **named: Any) -> None:
            graphs.add((arguments, named))
            is_outer = not inside
            inside.append(True)
            self._enter("backward")
            try:
                backward(*arguments, **named)
            finally:
                inside.pop()
                if is_outer:
                    self._enter("step")

        torch.autograd.backward = watched
        try:
            with kernels.watching(step), self._reads.watching(step):
                yield graphs
        finally:
            torch.autograd.backward = backward
            self._report.set(backend={"kernels": kernels.facts(), **self._reads.facts()})

    @contextmanager
    def _own_calls(self) -> Iterator[None]:
        """In this context the witnesses repeat calls of attentions, with their collectives."""
        before = "" if self._collectives is None else self._collectives.stage
        with self._reads.paused():
            self._enter("witness")
            try:
                yield
            finally:
                self._enter(before)

    @contextmanager
    def _forwards(self) -> Iterator[list[int]]:
        """Counts how often the model is entered to train: once for each micro-batch."""
        count = [0]

        def enter(*_: Any) -> None:
            count[0] += torch.is_grad_enabled()
            self._enter("forward")

        hook = self._adapter.modules()[0].register_forward_pre_hook(enter)
        try:
            yield count
        finally:
            hook.remove()

    @contextmanager
    def _stages_of_a_step(self) -> Iterator[None]:
        """Begins `forward` when the model is entered, `backward` with autograd, `step` after it."""
        report = self._report
        backward = torch.autograd.backward
        parts_left = self._probe.micro_batches

        def enter(*_: Any) -> None:
            if report.stage_name == "mask":
                report.stage("forward")

        def watched(*arguments: Any, **named: Any) -> None:
            nonlocal parts_left
            if report.stage_name == "forward":
                report.stage("backward")
            backward(*arguments, **named)
            parts_left -= 1
            if report.stage_name == "backward" and parts_left == 0:
                report.stage("step")

        with ExitStack() as stack:
            for module in self._adapter.modules():
                stack.callback(module.register_forward_pre_hook(enter, prepend=True).remove)
            torch.autograd.backward = watched
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield
