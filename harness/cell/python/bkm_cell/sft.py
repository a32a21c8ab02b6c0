# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The ladder: takes an adapter through the stages, with the witnesses around it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter
from bkm_cell.faults import Planted
from bkm_cell.probe import Probe
from bkm_cell.report import Report
from bkm_cell.witnesses import backend, mask
from bkm_cell.witnesses.errors import Owners, describe
from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.numbers import StepNumbers
from bkm_cell.witnesses.weights_read import first_weights_read


class Ladder:
    def __init__(
        self,
        request: dict[str, Any],
        probe: Probe,
        adapter: Adapter,
        report: Report,
        owners: Owners,
    ) -> None:
        self._request = request
        self._probe = probe
        self._adapter = adapter
        self._report = report
        self._owners = owners
        library = (request.get("packages") or {}).get("library") or ""
        self._planted = Planted(adapter, library, request.get("plant") or [])

    def climb(self) -> None:
        self._import()
        self._construct_and_load()
        self._witness_attention()
        self._train()
        self._planted.confirm()

    def _import(self) -> None:
        self._report.stage("import")
        self._adapter.import_modules()

    def _construct_and_load(self) -> None:
        report, adapter = self._report, self._adapter
        report.stage("construct")
        self._planted.before_construct()

        def began(reader: str) -> None:
            report.stage("load")
            report.set(adapter={"weights_read_by": reader})

        with first_weights_read(began):
            adapter.construct()
        self._planted.after_construct()
        if report.stage_name != "load":  # nothing was read; what was loaded will show it
            report.stage("load")
        asked = {"attention": adapter.attention, "precision": self._probe.precision}
        report.set(adapter={**adapter.facts(), "asked": asked})
        with report.timed("load-witness"):
            report.set(load=loaded(adapter.tensors().parameters()))

    def _witness_attention(self) -> None:
        """Backend and mask, by two forwards that train nothing.

        Where one of them raises, the same will stop the training step, and in its own stage; so it
        is noted, not raised.
        """
        report, adapter, probe = self._report, self._adapter, self._probe
        report.stage("backend")
        modules = adapter.modules()
        report.set(backend={"layers": backend.built(modules)})
        with suppress(AttributeError):  # an era that keeps it elsewhere
            report.set(backend={"configured": adapter.configured()})
        report.stage("mask")
        calls = backend.AttentionCalls(modules)
        reach = probe.reach
        batch = probe.batches[reach.step]
        with report.timed("evidence"):
            try:
                with adapter.evaluating():
                    with calls.watching():
                        before = adapter.evaluate(batch)
                    after = adapter.evaluate(batch.with_token(reach.position, reach.token))
                moved = mask.reach(reach.position, before.float().cpu(), after.float().cpu())
                report.set(mask={"reach": moved})
            except Exception as error:
                report.set(mask={"evidence_error": describe(error, self._owners)})
            report.set(mask={"calls": calls.masks.facts(reach.step)})
        report.set(backend={"called": calls.called, "ops": sorted(calls.ops)})
        self._report_precision(calls)

    def _report_precision(self, calls: backend.AttentionCalls) -> None:
        ran = calls.autocast or calls.input_dtype
        facts = {"autocast": calls.autocast, "attention_input_dtype": calls.input_dtype}
        if ran is not None:
            facts["precision_ran"] = {"bfloat16": "bf16", "float32": "fp32"}.get(ran, ran)
        self._report.set(adapter=facts)

    def _train(self) -> None:
        adapter, probe = self._adapter, self._probe
        folder = os.path.join(self._request["dir"], "tensors")
        with StepNumbers(probe, adapter.tensors(), folder, self._report) as numbers:
            for step, batch in enumerate(probe.batches):
                start = time.monotonic()
                with self._stages_of_a_step() if step == 0 else ExitStack():
                    outcome = adapter.train_step(batch)
                seconds = time.monotonic() - start
                facts = {"loss": outcome.loss, "grad_norm": outcome.grad_norm, **outcome.facts}
                numbers.finish(step, facts, outcome.log_probs, seconds)

    @contextmanager
    def _stages_of_a_step(self) -> Iterator[None]:
        """`forward` begins when the model is entered, `backward` with autograd, `step` after it."""
        report = self._report
        backward = torch.autograd.backward

        def enter(*_: Any) -> None:
            if report.stage_name == "mask":
                report.stage("forward")

        def watched(*arguments: Any, **named: Any) -> None:
            is_first = report.stage_name == "forward"
            if is_first:
                report.stage("backward")
            backward(*arguments, **named)
            if is_first:
                report.stage("step")

        with ExitStack() as stack:
            for module in self._adapter.modules():
                stack.callback(module.register_forward_pre_hook(enter, prepend=True).remove)
            torch.autograd.backward = watched
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield
