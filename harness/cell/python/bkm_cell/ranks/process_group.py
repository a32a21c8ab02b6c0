# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The process group that a launcher would set up for a rank."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


def start_process_group(device: torch.device, name: str = "rendezvous") -> None:
    """The process group that a launcher would set up, once. Each rank gets a device of its own. `name`:
    of a file that no other group of the cell has used."""
    if dist.is_initialized():
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "gloo" if device.type == "cpu" else f"cpu:gloo,{device.type}:nccl"
    dist.init_process_group(
        backend,
        init_method=f"file://{os.path.abspath(name)}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    if dist.get_world_size() > 1 and device.type == "cpu":
        _check_average()


def _check_average() -> None:
    """gloo's average was wrong in some release (pytorch issue 162338)."""
    ranks = dist.get_world_size()
    for dtype in (torch.float32, torch.bfloat16):
        values = torch.full((3,), float(dist.get_rank()), dtype=dtype)
        dist.all_reduce(values, op=dist.ReduceOp.AVG)
        if not torch.equal(values, torch.full_like(values, (ranks - 1) / 2)):
            raise RuntimeError(
                f"gloo averages {dtype} wrongly in torch {torch.__version__}: cells of several ranks "
                "cannot be run with it"
            )
