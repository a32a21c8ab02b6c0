# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Applies the shims that a cell's device needs, before any subject is imported."""

from __future__ import annotations

from typing import Any

from bkm_cell.older_torch import flex
from bkm_cell.shims import (
    acts,
    bf16_products,
    cpu_device,
    cuda_autocast,
    expert_kernels,
    flash_attn_cpu,
    flex_cpu,
    fsdp1_cpu,
    gloo_all_to_all,
    gloo_sum,
    integer_histc,
    no_compile,
    selective_checkpoint,
    trainer_cpu,
    varlen_cpu,
    verl_platform,
)
from bkm_cell.witnesses import flash_calls


def apply_shims(request: dict[str, Any]) -> None:
    """Installs the shims (see acts); none on a GPU."""
    if request["probe"].get("device", "cpu") != "cpu":
        return
    shims = [
        cpu_device,
        verl_platform,
        no_compile,
        selective_checkpoint,
        cuda_autocast,
        integer_histc,
        expert_kernels,
        fsdp1_cpu,
    ]
    if request["probe"].get("drive") == "trainer":
        shims.append(trainer_cpu)
    if flex is not None:
        shims.append(flex_cpu)
    if request["probe"].get("ranks", 1) > 1:
        shims += [gloo_all_to_all, gloo_sum]
    if bf16_products.needed():
        shims.append(bf16_products)
    for shim in shims:
        shim.apply()
        acts.install(shim.NAME)
    if flash_attn_cpu.is_asked(request):
        acts.install(
            flash_attn_cpu.NAME,
            flash_calls.count,
            stands_in_for="flash_attn",
            hides=flash_attn_cpu.installed(),
        )
        flash_attn_cpu.apply()
    if path := varlen_cpu.library(request):
        try:
            varlen_cpu.apply(path)
        except OSError:  # built for a newer torch
            if varlen_cpu.is_asked(request):
                raise
        else:
            acts.install(varlen_cpu.NAME, varlen_cpu.calls)
