# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The library's own parallelism, without its Trainer: parallel dimensions and `parallelize_fn`.

Eras differ in where the settings live (one JobConfig, or a configuration for each concern) and in
what `parallelize_fn` takes; the names of the settings are the same.
"""

from __future__ import annotations

import importlib
import inspect
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

from bkm_cell.adapters.base import accepted
from bkm_cell.adapters.torchtitan_eras.context import ContextParallel
from bkm_cell.older_torch import DTensor, FSDPModule, Replicate, Shard, distribute_tensor
from bkm_cell.probe import Probe
from bkm_cell.ranks.layout import Layout
from bkm_cell.ranks.process_group import start_process_group
from bkm_cell.witnesses.named_tensors import Tensors

_DTYPES = {"bf16": "bfloat16", "fp32": "float32"}


def degrees_of(layout: Layout) -> dict[str, int]:
    """In torchtitan's settings of parallelism."""
    return {
        "data_parallel_replicate_degree": layout.dp_replicate,
        "data_parallel_shard_degree": layout.shards,
        "tensor_parallel_degree": layout.tp,
        "context_parallel_degree": layout.cp,
        "expert_parallel_degree": layout.ep,
    }


class Parallel:
    """Makes a model of one layout, for this rank."""

    def __init__(self, probe: Probe) -> None:
        start_process_group(probe.device)
        self._settings = importlib.import_module("torchtitan.config")
        layout = probe.layout
        degrees = {
            **degrees_of(layout),
            **{k: v for k, v in probe.engine_options.items() if k != "mask"},
        }
        precision = {
            "mixed_precision_param": _DTYPES[probe.precision],
            "mixed_precision_reduce": "float32",
        }
        if hasattr(self._settings, "ParallelismConfig"):
            self._config = self._concerns(degrees, precision)
        else:
            self._config = self._job(degrees, precision)
        self._dims = self._dimensions(layout)
        self._backend = getattr(self._parallelism, "spmd_backend", "default")
        utils = importlib.import_module("torchtitan.distributed.utils")
        if hasattr(utils, "set_spmd_backend"):
            utils.set_spmd_backend(self._backend)

    @property
    def _parallelism(self) -> Any:
        return getattr(self._config, "parallelism", None)

    def _dimensions(self, layout: Layout) -> Any:
        kind = importlib.import_module("torchtitan.distributed").ParallelDims
        if hasattr(kind, "from_config"):
            return kind.from_config(self._parallelism, dist.get_world_size())
        dimensions = {
            "dp_replicate": layout.dp_replicate,
            "dp_shard": layout.shards,
            "cp": layout.cp,
            "tp": layout.tp,
            "pp": 1,
            "ep": layout.ep,
            "etp": 1,
            "world_size": dist.get_world_size(),
            "enable_loss_parallel": False,
            "spmd_backend": getattr(self._parallelism, "spmd_backend", "default"),
        }
        return kind(**accepted(dimensions, inspect.signature(kind).parameters))

    def _concerns(self, degrees: dict[str, Any], precision: dict[str, str]) -> Any:
        settings = self._settings
        return SimpleNamespace(
            parallelism=settings.ParallelismConfig(**degrees),
            training=settings.TrainingConfig(**precision),
            compile=settings.CompileConfig(enable=False),
            debug=getattr(settings, "DebugConfig", SimpleNamespace)(),
        )

    def _job(self, degrees: dict[str, Any], precision: dict[str, str]) -> Any:
        job = self._settings.JobConfig()
        for name, value in degrees.items():
            setattr(job.parallelism, name, value)
        for name, value in precision.items():
            setattr(job.training, name, value)
        job.activation_checkpoint.mode = "none"
        job.compile.enable = False
        return job

    def configure(self, config: Any) -> None:
        """Lets the model's configuration know the layout, as the Trainer does."""
        update = getattr(config, "update_from_config", None)
        if update is None:
            return
        # The length of texts decides whether YaRN acts: the model's own, as with one rank.
        if length := _longest_text(config):
            self._config.training.seq_len = length
        given = {name: self._config for name in ("config", "trainer_config", "job_config")}
        taken = inspect.signature(update).parameters
        named = accepted(given, taken)
        if named:
            update(**named)
        else:
            update(self._config)

    def apply(self, spec: Any, model: torch.nn.Module) -> torch.nn.Module:
        """`model`: without storage, as the library's Trainer passes it."""
        # Builds the meshes; later versions do so by themselves.
        if hasattr(self._dims, "build_mesh"):
            self._dims.build_mesh()
        named = {
            "parallel_dims": self._dims,
            "job_config": self._config,
            "training": getattr(self._config, "training", None),
            "parallelism": getattr(self._config, "parallelism", None),
            "compile_config": getattr(self._config, "compile", None),
            "ac_config": self._no_checkpointing(),
            "model_converters": SimpleNamespace(converters=[]),
            "dump_folder": "outputs",
        }
        taken = inspect.signature(spec.parallelize_fn).parameters
        return spec.parallelize_fn(model, **accepted(named, taken)) or model

    def context(self) -> ContextParallel:
        """Of a model that was made with context parallelism."""
        settings = self._config.parallelism
        balancer = getattr(settings, "context_parallel_load_balancer", "headtail")
        return ContextParallel(self._dims.get_mesh("cp"), balancer)

    def _no_checkpointing(self) -> Any:
        """Later versions take None for no activation checkpointing; earlier ones a mode."""
        kind = getattr(self._settings, "ActivationCheckpointConfig", None)
        return None if kind is None else kind(mode="none")


    @property
    def needs_equal_rows(self) -> bool:
        """DTensors take the rows of all ranks for parts of one tensor, as those of the library's own
        data loader are."""
        return self._backend == "full_dtensor"

    def given(self, tokens: torch.Tensor, positions: torch.Tensor) -> tuple[Any, Any]:
        """Tokens and positions as the library's Trainer hands them to a model with this backend."""
        if self._backend != "full_dtensor":
            return tokens, positions
        module = importlib.import_module("torchtitan.distributed.full_dtensor")
        tokens, _, extra = module.parallelize_inputs(
            self._dims, tokens, tokens, {"positions": positions}
        )
        return tokens, extra["positions"]

    def whole(self, logits: Any, vocabulary: int) -> torch.Tensor:
        """Logits of the whole vocabulary. With spmd_types a rank has a plain tensor of its part, which
        the library's own loss knows."""
        if isinstance(logits, DTensor):
            rows = [
                part if isinstance(part, Shard) and part.dim == 0 else Replicate()
                for part in logits.placements
            ]
            return logits.redistribute(placements=rows).to_local()  # its own rows, whole
        if logits.shape[-1] >= vocabulary:
            return logits
        return _Joined.apply(logits, self._dims.get_mesh("tp").get_group())


class _Joined(torch.autograd.Function):
    """The parts of all ranks beside each other. Each rank computes the same with the whole, so each
    takes the gradient of its own part."""

    @staticmethod
    def forward(context: Any, part: torch.Tensor, group: Any) -> torch.Tensor:
        context.rank, context.width = dist.get_rank(group), part.shape[-1]
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, part.contiguous(), group=group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        begin = context.rank * context.width
        return gradient[..., begin : begin + context.width].contiguous(), None


def _longest_text(config: Any) -> int | None:
    """That of the model's configuration, wherever its era keeps it."""
    for place in (config, getattr(config, "rope", None)):
        length = getattr(place, "max_seq_len", None)
        if isinstance(length, int):
            return length
    return None


def distributed_as(model: Tensors, whole: Tensors) -> Tensors:
    """Whole tensors, spread over the ranks as those of the same name in the model are."""
    spread = {}
    for name, value in whole.items():
        own = model.get(name)
        if isinstance(own, DTensor):
            value = distribute_tensor(value, own.device_mesh, own.placements)
        spread[name] = value
    return spread


def averages_gradients(model: torch.nn.Module) -> bool:
    """Whether what distributes the model divides gradients by the number of data-parallel ranks, as
    FSDP does unless told otherwise, and DDP always."""
    if not isinstance(model, FSDPModule):
        return any(kind.__name__ == "DDP" for kind in type(model).__mro__)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            group = module._get_fsdp_state()._fsdp_param_group
            if group is not None and group.gradient_divide_factor is not None:
                return group.gradient_divide_factor != 1.0
    return True
