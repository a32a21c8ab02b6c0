# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a control needs among several ranks: meshes, FSDP2 and gradients of sharded parameters."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

from bkm_cell.adapters.verl import start_process_group
from bkm_cell.probe import Probe
from bkm_cell.ranks.layout import Layout

DATA = ("dp_replicate", "dp_shard")


def meshes(probe: Probe) -> DeviceMesh:
    """Axes dp_replicate, dp_shard and tp; ranks in the order of Layout.data_rank."""
    start_process_group(probe.device)
    layout: Layout = probe.layout
    degrees = (layout.dp_replicate, layout.shards, layout.tp)
    return init_device_mesh(probe.device.type, degrees, mesh_dim_names=(*DATA, "tp"))


def shard(probe: Probe, mesh: DeviceMesh, parts: Iterable[torch.nn.Module]) -> None:
    """FSDP2 over the data-parallel ranks; `parts` from the innermost to the model itself.

    In bf16 with FSDP2's mixed precision, as verl's engine and torchtitan do.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy()
    if probe.precision == "bf16":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    layout = probe.layout
    data = mesh[DATA] if layout.dp_replicate > 1 else mesh["dp_shard"]
    for part in parts:
        fully_shard(part, mesh=data, mp_policy=policy)


def are_mixed(parameters: list[torch.nn.Parameter]) -> bool:
    """Some are DTensors and some are not: torch's optimizers cannot treat them together."""
    return len({isinstance(parameter, DTensor) for parameter in parameters}) > 1


def clip_gradients(parameters: list[torch.nn.Parameter], most: float) -> float:
    """torch.nn.utils.clip_grad_norm_ over DTensors and plain tensors together; the norm before it."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = []
    for kind in (True, False):
        group = [g for g in gradients if isinstance(g, DTensor) is kind]
        if group:
            norm = torch.nn.utils.get_total_norm(group)
            norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
    total = torch.linalg.vector_norm(torch.stack(norms))
    for gradient in gradients:
        gradient.mul_(torch.clamp(most / (total + 1e-6), max=1.0))
    return total.item()
