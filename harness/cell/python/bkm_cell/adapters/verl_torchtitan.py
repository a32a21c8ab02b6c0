# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's TorchTitanEngine, from its first commit (with JobConfig) on."""

from __future__ import annotations

from typing import Any

from bkm_cell.adapters.base import import_if_there, torchtitan_package
from bkm_cell.adapters.torchtitan_eras.schedule import schedule_of
from bkm_cell.adapters.torchtitan_eras.trainer_object import configured_in, tensors_of
from bkm_cell.adapters.verl import VerlAdapter
from bkm_cell.ranks.layout import Layout
from bkm_cell.witnesses.named_tensors import NamedTensors


def degrees_of(layout: Layout) -> dict[str, int]:
    """The layout, under the names of verl's configuration. One rank is its default."""
    degrees = {
        "data_parallel_size": layout.data_ranks,
        "data_parallel_replicate_size": layout.dp_replicate,
        "data_parallel_shard_size": layout.shards,
        "tensor_parallel_size": layout.tp,
        "context_parallel_size": layout.cp,
        "pipeline_parallel_size": layout.pp,
        "expert_parallel_size": layout.ep,
    }
    return {name: degree for name, degree in degrees.items() if degree > 1}


class Adapter(VerlAdapter):
    engine_module = "verl.workers.engine.torchtitan.transformer_impl"
    engine_class = "TorchTitanEngineWithLMHead"

    def import_modules(self) -> None:
        super().import_modules()
        # The engine imports the model's package by a computed name.
        import_if_there(torchtitan_package(self.probe.hf_config["model_type"]))

    def configs(self) -> tuple[Any, Any, Any]:
        config = self.verl_config
        return (
            self.model_config(),
            self.engine_config(
                config.TorchtitanEngineConfig, attn_type=self.attention, **degrees_of(self.probe.layout)
            ),
            self.optimizer_config(config.TorchtitanOptimizerConfig, schedule_of(self.probe)),
        )

    def tensors(self) -> NamedTensors:
        return tensors_of(self.engine.trainer, self.modules(), self.probe)

    def configured(self) -> str | None:
        return configured_in(self.engine.trainer)
