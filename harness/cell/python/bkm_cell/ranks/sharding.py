# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a control needs among several ranks: meshes, FSDP2 and gradients of sharded parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from bkm_cell.older_torch import DTensor
from bkm_cell.probe import Probe
from bkm_cell.ranks.layout import Layout
from bkm_cell.ranks.process_group import start_process_group

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
    """Whether they lie on several meshes: torch's optimizers cannot treat such together."""
    meshes_of = {p.device_mesh if isinstance(p, DTensor) else None for p in parameters}
    return len(meshes_of) > 1


def clip_gradients(
    parameters: list[torch.nn.Parameter], gradients: list[torch.Tensor], most: float
) -> float:
    """torch.nn.utils.clip_grad_norm_ over DTensors and plain tensors together.

    Returns the norm before it, which is that of `gradients`: DTensors, or whole ones.
    """
    groups: dict[Any, list[torch.Tensor]] = {}  # by mesh: experts may have one of their own
    for gradient in gradients:
        mesh = gradient.device_mesh if isinstance(gradient, DTensor) else None
        groups.setdefault(mesh, []).append(gradient)
    norms = []
    for group in groups.values():
        norm = torch.nn.utils.get_total_norm(group)
        norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
    total = torch.linalg.vector_norm(torch.stack(norms))
    for gradient in (p.grad for p in parameters if p.grad is not None):
        gradient.mul_(torch.clamp(most / (total + 1e-6), max=1.0))
    return total.item()
