# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's SFT trainer with its FSDP engine."""

from __future__ import annotations

from typing import Any

from bkm_cell.adapters.base import hf_tensors
from bkm_cell.adapters.verl_fsdp import FP32, degrees_of, schedule_of
from bkm_cell.adapters.verl_trainer import VerlTrainer, in_section, of_hydra
from bkm_cell.witnesses.named_tensors import NamedTensors


class Adapter(VerlTrainer):
    def of_engine(self) -> dict[str, Any]:
        options = {
            "+model.override_config.attn_implementation": self.attention,
            "+optim.override_optimizer_config.eps": self.probe.optimizer["epsilon"],
            **in_section("optim", schedule_of(self.probe)),
            "engine.strategy": "fsdp2",
            **in_section("engine", degrees_of(self.probe.layout)),
        }
        if self.probe.precision == "fp32":
            options["+engine.mixed_precision"] = of_hydra(FP32)
        return options

    def sharding(self) -> str:
        return "fsdp2"

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, self.modules())

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation
