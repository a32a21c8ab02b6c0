# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records what was loaded: norm and sum of each tensor, to compare with the file."""

from __future__ import annotations

import math
from collections.abc import Collection
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


def loaded(tensors: NamedTensors | WithoutPadding, buffers: Collection[str] = ()) -> dict[str, Any]:
    """`load`: per parameter with an HF name. `held`: of all parameters that the model holds, as one.
    `load_buffers`: per buffer that the file has (`buffers`), if it has any."""
    sizes = _sizes(tensors.parameters("loaded", buffers))
    facts = {
        "load": {name: size for name, size in sizes.items() if name not in buffers},
        "held": _together(_sizes(tensors.held())),
    }
    if buffers:
        facts["load_buffers"] = {n: sizes[n] for n in sorted(buffers) if n in sizes}
    return facts
