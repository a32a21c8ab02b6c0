# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What was loaded: norm and sum of each parameter, to be compared with the file."""

from __future__ import annotations

from typing import Any

import torch

from bkm_cell.witnesses.named_tensors import Tensors


def norm(tensor: torch.Tensor) -> float:
    return torch.linalg.vector_norm(tensor, dtype=torch.float64).item()


def loaded(parameters: Tensors) -> dict[str, Any]:
    return {
        name: {
            "norm": norm(value),
            "sum": value.sum(dtype=torch.float64).item(),
            "numel": value.numel(),
        }
        for name, value in parameters.items()
    }
