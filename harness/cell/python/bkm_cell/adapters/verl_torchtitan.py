# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's TorchTitanEngine, from its first commit (with JobConfig) on."""

from __future__ import annotations

from typing import Any

from bkm_cell.adapters.base import import_if_there, torchtitan_package
from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of
from bkm_cell.adapters.verl import VerlAdapter
from bkm_cell.witnesses.named_tensors import NamedTensors


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
                config.TorchtitanEngineConfig, attn_type=self.attention, **self._degrees()
            ),
            self.optimizer_config(config.TorchtitanOptimizerConfig, self._schedule()),
        )

    def _schedule(self) -> dict[str, Any]:
        """torchtitan always decays. Without a decay in the probe it decays to the full rate."""
        if not self.probe.decay:
            return {"min_lr_factor": 1.0}
        return {"decay_type": self.probe.decay, "min_lr_factor": self.probe.min_lr_factor}

    def _degrees(self) -> dict[str, int]:
        """The layout, under the names of verl's configuration. One rank is its default."""
        layout = self.probe.layout
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

    def tensors(self) -> NamedTensors:
        to_hf = self.engine.checkpointer.sd_adapter.to_hf
        return NamedTensors(self.modules(), to_hf, self.probe.places.keys())

    def configured(self) -> str | None:
        trainer = self.engine.trainer
        config = getattr(trainer, "model_config", None) or getattr(trainer, "model_args", None)
        return configuration_of(config).attention()
