# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads the model's own numbers back from what was built.

A library may look a model up by its name or its sizes and take the rest from there, whatever the
configuration says. In bf16 such a difference can be smaller than the rounding.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.distributed.fsdp import FullyShardedDataParallel

from bkm_cell.older_torch import FSDPModule
from bkm_cell.witnesses.plain_name import plain_name


def sharding(modules: list[torch.nn.Module]) -> str:
    """By what the modules are sharded: "fsdp1", "fsdp2" or "nothing"."""
    kinds = {type(module) for top in modules for module in top.modules()}
    if any(issubclass(kind, FullyShardedDataParallel) for kind in kinds):
        return "fsdp1"
    return "fsdp2" if any(issubclass(kind, FSDPModule) for kind in kinds) else "nothing"


def sharding_facts(asked: str, modules: list[torch.nn.Module]) -> dict[str, str]:
    return {"sharding_asked": asked, "sharding": sharding(modules)} if asked else {}


def _norms(modules: list[torch.nn.Module]) -> list[dict[str, Any]]:
    """Name and epsilon of each norm; torch takes the smallest step of fp32 for None."""
    found: list[dict[str, Any]] = []
    for top in modules:
        for path, module in top.named_modules():
            if not type(module).__name__.lower().endswith("norm"):
                continue
            for name in ("variance_epsilon", "eps"):  # HF's name, torch's name
                if hasattr(module, name):
                    value = getattr(module, name)
                    epsilon = torch.finfo(torch.float32).eps if value is None else float(value)
                    found.append({"name": plain_name(path), "epsilon": epsilon})
                    break
    return found


def _rope_frequencies(modules: list[torch.nn.Module]) -> list[float] | None:
    """By how much each pair turns per position, in radians, from the first table that is found."""
    for top in modules:
        for name, buffer in top.named_buffers():
            last = plain_name(name).split(".")[-1]
            if last == "inv_freq" and buffer.dim() == 1 and len(buffer) > 1:
                return _numbers(buffer)
            if last in ("freqs_cis", "rope_cache", "cache") and buffer.dim() == 2:
                frequencies = _frequencies_of_table(buffer)
                if frequencies is not None:
                    return frequencies
    return None


def _frequencies_of_table(table: torch.Tensor) -> list[float] | None:
    """From the row of position 1: complex numbers, or all cosines twice and then all sines twice."""
    if len(table) < 2:
        return None
    if table.is_complex():
        row = table[1]
    elif table.dtype in (torch.float32, torch.float64) and table.shape[1] % 4 == 0:
        cosines, sines = table.chunk(2, dim=1)
        first, again = cosines[1].chunk(2)
        if sines[0].any() or not cosines[0].all() or not torch.equal(first, again):
            return None
        row = torch.complex(first, sines[1].chunk(2)[0])
    else:
        return None
    return _numbers(row.angle()) if len(row) > 1 else None


def _numbers(values: torch.Tensor) -> list[float]:
    return [float(value) for value in values.detach().double().cpu()]


def _theta(frequencies: list[float]) -> float:
    """The base, from the second pair: theta ** (-1 / pairs). The largest number if it does not turn.

    Scalings for longer texts (llama3, YaRN) leave this fast frequency as it is.
    """
    try:
        return frequencies[1] ** -len(frequencies)
    except (ZeroDivisionError, OverflowError):
        return sys.float_info.max


def model_numbers(modules: list[torch.nn.Module]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if norms := _norms(modules):
        facts["norms"] = norms
    frequencies = _rope_frequencies(modules)
    if frequencies is not None:
        facts["rope_theta"] = _theta(frequencies)
        facts["rope_frequencies"] = frequencies
    return facts
