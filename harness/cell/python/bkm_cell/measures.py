# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a request may ask to be measured after the cell's own steps, which it cannot disturb.

`{"warm_up": W, "steps": S}`: the time of S further training steps without witnesses, after W that
do not count, each with the device idle before and after; the device's memory; and the kernels that
each layer's attention runs in one more step. These steps train on: nothing else reads the model
after them.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter
from bkm_cell.probe import Probe
from bkm_cell.report import Report
from bkm_cell.witnesses import layer_kernels


def device_settings(device: torch.device) -> dict[str, Any]:
    """What decides how a device computes, as torch and the subjects left it."""
    backends = torch.backends
    facts: dict[str, Any] = {
        "type": device.type,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "threads": torch.get_num_threads(),
    }
    if device.type != "cuda":
        return facts
    matmul = backends.cuda.matmul
    return facts | {
        "name": torch.cuda.get_device_name(device),
        "allow_tf32": matmul.allow_tf32,
        "cudnn_allow_tf32": backends.cudnn.allow_tf32,
        "cudnn_benchmark": backends.cudnn.benchmark,
        "cudnn_deterministic": backends.cudnn.deterministic,
        "bf16_reduced_precision_reduction": matmul.allow_bf16_reduced_precision_reduction,
        "sdpa": {
            "flash": backends.cuda.flash_sdp_enabled(),
            "efficient": backends.cuda.mem_efficient_sdp_enabled(),
            "math": backends.cuda.math_sdp_enabled(),
            "cudnn": backends.cuda.cudnn_sdp_enabled(),
        },
    }


def step_seconds(
    step: Callable[[], Any], warm_up: int, steps: int, wait: Callable[[], None]
) -> list[float]:
    """The time of each of `steps` calls, after `warm_up` that do not count. `wait` returns when the
    device has nothing left to do."""
    seconds = []
    for number in range(warm_up + steps):
        wait()
        start = time.perf_counter()
        step()
        wait()
        if number >= warm_up:
            seconds.append(time.perf_counter() - start)
    return seconds


def _memory(device: torch.device) -> dict[str, int]:
    if device.type != "cuda":
        return {"peak_resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}
    return {
        "peak_allocated_mib": torch.cuda.max_memory_allocated(device) >> 20,
        "peak_reserved_mib": torch.cuda.max_memory_reserved(device) >> 20,
    }


def report_measures(
    asked: dict[str, Any], probe: Probe, adapter: Adapter, report: Report, folder: str
) -> None:
    """Never raises: the cell has done what it was for, and the reason of a failure is reported."""
    device = probe.device
    is_cuda = device.type == "cuda"
    batch = probe.batches[0]

    def step() -> None:
        adapter.train_step(batch)

    report.set(measures={"device": device_settings(device), "tokens": len(batch.input_ids)})
    try:
        # Of the cell so far, with what its witnesses took.
        report.set(measures={"memory_with_witnesses": _memory(device)})
        if is_cuda:
            torch.cuda.reset_peak_memory_stats(device)
        wait = torch.cuda.synchronize if is_cuda else lambda: None
        seconds = step_seconds(step, int(asked["warm_up"]), int(asked["steps"]), wait)
        report.set(measures={"step_seconds": seconds, "median_s": statistics.median(seconds)})
        report.set(measures={"memory": _memory(device)})
        seen = layer_kernels.seen_in(adapter.modules(), step, folder)
        report.set(measures={"kernels": seen})
    except Exception as error:
        report.set(measures={"error": f"{type(error).__name__}: {error}"[:1000]})
