# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records what was loaded: norm and sum of each parameter, to compare with the file."""

from __future__ import annotations

import math
from typing import Any

import torch

from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors
from bkm_cell.witnesses.vocabulary import WithoutPadding


def norm(tensor: torch.Tensor) -> float:
    return torch.linalg.vector_norm(tensor, dtype=torch.float64).item()


def _sizes(parameters: Tensors) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "norm": norm(value),
            "sum": value.sum(dtype=torch.float64).item(),
            "numel": value.numel(),
        }
        for name, value in parameters.items()
    }


def _together(sizes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    each = sizes.values()
    return {
        "norm": math.hypot(*(one["norm"] for one in each)),
        "sum": math.fsum(one["sum"] for one in each),
        "numel": sum(one["numel"] for one in each),
    }


def loaded(tensors: NamedTensors | WithoutPadding) -> dict[str, Any]:
    """`load`: per parameter with an HF name. `held`: of all parameters that the model holds, as one."""
    return {
        "load": _sizes(tensors.parameters("loaded")),
        "held": _together(_sizes(tensors.held())),
    }
