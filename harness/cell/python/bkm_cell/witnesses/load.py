# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What was loaded: norm and sum of each parameter, and of all that the model holds, to be compared
with the file.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from bkm_cell.witnesses.named_tensors import Tensors


def norm(tensor: torch.Tensor) -> float:
    return torch.linalg.vector_norm(tensor, dtype=torch.float64).item()


def loaded(parameters: Tensors) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "norm": norm(value),
            "sum": value.sum(dtype=torch.float64).item(),
            "numel": value.numel(),
        }
        for name, value in parameters.items()
    }


def total(parameters: Tensors) -> dict[str, Any]:
    """The same of all parameters as if they were one."""
    each = loaded(parameters).values()
    return {
        "norm": math.hypot(*(one["norm"] for one in each)),
        "sum": math.fsum(one["sum"] for one in each),
        "numel": sum(one["numel"] for one in each),
    }
