# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Compares observations of the same training steps: two runs, two devices, two attentions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bkm_gpu import tensors as files
from bkm_gpu.problem import Problem


@dataclass
class Seen:
    """What one run of a cell saw."""

    name: str
    observation: Mapping[str, Any]
    tensors: Mapping[str, bytes]  # by the path in the cell's folder

    @property
    def ending(self) -> str:
        return str(self.observation["ending"]["kind"])

    def step(self, number: int) -> files.Tensors:
        path = str(self.observation["steps"][number].get("tensors"))
        if path not in self.tensors:
            raise Problem(f"{self.name}: {path} is missing in the results; copy the folder again")
        return files.parse(self.tensors[path], f"{self.name}: {path}")

    def relations(self) -> list[Any]:
        """Who attends to whom: of the evidence forward and of each step."""
        steps = [step.get("attended") for step in self.observation.get("steps", [])]
        return [(self.observation.get("mask") or {}).get("attended"), *steps]


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def compare(first: Seen, second: Seen) -> dict[str, Any]:
    """How far `first` is from `second`. Steps that one of them lacks are not compared."""
    steps = min(len(one.observation.get("steps", [])) for one in (first, second))
    found: dict[str, Any] = {
        "endings": [first.ending, second.ending],
        "steps": steps,
        "same_attention": first.relations() == second.relations() if steps else None,
    }
    if steps == 0:
        return found
    log_probs = loss = 0.0
    gradient = (0.0, "")
    equal = True
    for number in range(steps):
        one, other = first.step(number), second.step(number)
        # Relations are facts, compared above; the rest is what was computed.
        values = [{k: v for k, v in t.items() if "relation/" not in k} for t in (one, other)]
        equal = equal and values[0] == values[1]
        log_probs = max(
            log_probs, files.largest_difference(one.get("log_probs", ()), other.get("log_probs", ()))
        )
        gradient = max(gradient, files.worst_gradient(one, other))
        losses = [o.observation["steps"][number].get("loss") for o in (first, second)]
        known = all(isinstance(value, (int, float)) for value in losses)
        loss = max(loss, abs(losses[0] - losses[1]) if known else math.inf)
    return found | {
        "bit_equal": equal,
        "log_probs": _number(log_probs),
        "loss": _number(loss),
        "gradient": _number(gradient[0]),
        "gradient_of": gradient[1],
    }

