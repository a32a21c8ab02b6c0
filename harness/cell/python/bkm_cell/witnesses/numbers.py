# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records the numbers of each optimizer step, by torch's hooks around every optimizer's step()."""

from __future__ import annotations

import math
import os
import time
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from bkm_cell.probe import Probe
from bkm_cell.report import Report
from bkm_cell.tensor_file import dtype_name, save_file
from bkm_cell.witnesses.load import norm
from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors
from bkm_cell.witnesses.vocabulary import WithoutPadding

_KINDS = ("grad", "before", "after")
_SETTINGS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "fused")


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.item()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def sampled(value: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The elements at the places. A tensor of another size has no elements at some of them: fewer
    samples than places tell the judge."""
    flat = value.flatten()
    return flat[places[places < len(flat)].to(flat.device)].float().cpu()


def norm_error(gradients: list[torch.Tensor]) -> float | None:
    """By how much the total norm is off (relative) that torch computes in the gradients' own type.

    On a CPU, torch's fp32 sum over the ten million elements of one tensor of experts loses a
    thousandth. None if there is no norm, or no finite one.
    """
    exact = math.hypot(*(norm(gradient) for gradient in gradients))
    if not 0 < exact < math.inf:
        return None
    norms = [torch.linalg.vector_norm(gradient).float() for gradient in gradients]
    return abs(torch.linalg.vector_norm(torch.stack(norms)).item() / exact - 1)


class StepNumbers:
    """Samples gradients and parameters at the probe's places, before and after the optimizer step.

    A container of optimizers is itself an Optimizer whose step() calls theirs. The samples are
    taken around the outermost step; the settings are those of the innermost.

    `resumed`: of the steps of an engine that loaded a checkpoint.
    """

    def __init__(
        self,
        probe: Probe,
        tensors: NamedTensors | WithoutPadding,
        folder: str,
        report: Report,
        resumed: bool = False,
    ) -> None:
        self._list, self._file = ("resumed", "resumed_step") if resumed else ("steps", "step")
        self._places = probe.places
        self._tensors = tensors
        self._folder = folder
        self._report = report
        self._depth = 0
        self._innermost = 0
        self._samples: Tensors = {}
        self._norms: dict[str, dict[str, float]] = {}  # by tensor and kind
        self._groups: list[dict[str, Any]] = []
        self._classes: list[str] = []
        self._norm_error: float | None = None
        self._hooks: list[Any] = []
        self.seconds = 0.0  # spent on sampling in the current step
        os.makedirs(folder, exist_ok=True)

    def __enter__(self) -> StepNumbers:
        self._hooks = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]
        return self

    def __exit__(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def is_between_steps(self) -> bool:
        return self._depth == 0

    def _sample(self, kind: str, tensors: Tensors) -> None:
        for name, value in tensors.items():
            if name in self._places:
                self._samples[f"{kind}/{name}"] = sampled(value, self._places[name])
                self._norms.setdefault(name, {})[kind] = norm(value)

    def _before(self, optimizer: Optimizer, *_: Any) -> None:
        self._depth += 1
        self._innermost = self._depth
        if self._depth > 1:
            return
        start = time.monotonic()
        with torch.no_grad():
            self._sample("grad", self._tensors.gradients())
            self._sample("before", self._tensors.parameters("before"))
            self._norm_error = norm_error(self._tensors.own_gradients())
        self.seconds += time.monotonic() - start

    def _after(self, optimizer: Optimizer, *_: Any) -> None:
        if self._depth == self._innermost:
            self._classes.append(type(optimizer).__name__)
            for group in optimizer.param_groups:
                self._groups.append({key: _plain(group[key]) for key in _SETTINGS if key in group})
        self._depth -= 1
        if self._depth > 0:
            return
        start = time.monotonic()
        with torch.no_grad():
            self._sample("after", self._tensors.parameters("after"))
        self.seconds += time.monotonic() - start

    def finish(
        self,
        step: int,
        outcome: dict[str, Any],
        log_probs: torch.Tensor | None,
        seconds: float,
        beside: Tensors | None = None,
    ) -> None:
        """Writes the step's tensors and reports its facts; the engine returned `outcome`.

        `beside`: further tensors of the step, by name.
        """
        tensors = {name: value.contiguous() for name, value in self._samples.items()}
        for name, norms in self._norms.items():
            if norms.keys() == set(_KINDS):
                values = [norms[kind] for kind in _KINDS]
                tensors[f"norms/{name}"] = torch.tensor(values, dtype=torch.float64)
        tensors |= beside or {}
        if log_probs is not None:
            tensors["log_probs"] = log_probs.detach().float().cpu().contiguous()
        path = os.path.join(self._folder, f"{self._file}{step}.safetensors")
        save_file(tensors, path)
        facts = dict(
            outcome,
            step=step,
            seconds=seconds - self.seconds,
            tensors=self._report.written(path),
        )
        if log_probs is not None:
            facts["log_probs_dtype"] = dtype_name(log_probs)
        if self._norm_error is not None:
            facts["norm_error"] = self._norm_error
        if self._groups:  # empty if the optimizer's step was never called
            facts["learning_rate"] = self._groups[0].get("lr")
            facts["optimizer"] = {
                "class": "+".join(dict.fromkeys(self._classes)),
                "param_groups": self._groups,
            }
        self._report.append(**{self._list: facts})
        self._samples, self._norms, self._groups, self._classes = {}, {}, [], []
        self._norm_error, self.seconds = None, 0.0
