# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Adds torch.histc of integers, which CUDA computes and a CPU refuses.

torchtitan's routers count tokens per expert with it.
"""

from __future__ import annotations

import warnings

import torch

from bkm_cell.shims import acts

NAME = "integer-histc"

_LIBRARIES: list[torch.library.Library] = []  # the registrations live as long as these


def _histc(values: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    acts.acted(NAME)
    # float64 is exact for integers up to 2**53.
    wide = values if values.is_floating_point() else values.double()
    counts = torch.empty(0, dtype=wide.dtype)
    torch.ops.aten.histc.out(wide, bins, min, max, out=counts)
    return counts.to(values.dtype)


def apply() -> None:
    library = torch.library.Library("aten", "IMPL", "CPU")
    _LIBRARIES.append(library)
    with warnings.catch_warnings():  # replacing the CPU's own kernel is intended
        warnings.simplefilter("ignore")
        library.impl("histc", _histc)
