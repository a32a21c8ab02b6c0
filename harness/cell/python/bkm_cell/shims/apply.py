# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Applies the shims that a cell's device needs, before any subject is imported."""

from __future__ import annotations

from typing import Any

from bkm_cell.shims import (
    bf16_products,
    cpu_device,
    cuda_autocast,
    expert_kernels,
    flex_cpu,
    integer_histc,
    no_compile,
    varlen_cpu,
    verl_platform,
)


def apply_shims(request: dict[str, Any]) -> list[str]:
    """Names of the shims that are active; none on a GPU."""
    if request["probe"].get("device", "cpu") != "cpu":
        return []
    applied = []
    for shim in (
        cpu_device,
        verl_platform,
        no_compile,
        flex_cpu,
        cuda_autocast,
        integer_histc,
        expert_kernels,
    ):
        shim.apply()
        applied.append(shim.NAME)
    if bf16_products.needed():
        bf16_products.apply()
        applied.append(bf16_products.NAME)
    if path := varlen_cpu.library(request):
        varlen_cpu.apply(path)
        applied.append(varlen_cpu.NAME)
    return applied
