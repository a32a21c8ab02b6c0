# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's SFT trainer with its TorchTitan engine."""

from __future__ import annotations

from typing import Any

import torch

from bkm_cell.adapters.base import import_all, import_if_there, torchtitan_package
from bkm_cell.adapters.torchtitan_eras.schedule import schedule_of
from bkm_cell.adapters.torchtitan_eras.trainer_object import configured_in, tensors_of, trainer_of
from bkm_cell.adapters.verl_torchtitan import Adapter as Engine
from bkm_cell.adapters.verl_torchtitan import degrees_of
from bkm_cell.adapters.verl_trainer import VerlTrainer, in_section
from bkm_cell.witnesses.named_tensors import NamedTensors


class Adapter(VerlTrainer):
    def import_modules(self) -> None:
        super().import_modules()
        import_all([Engine.engine_module])
        import_if_there(torchtitan_package(self.probe.hf_config["model_type"]))

    def choices(self) -> list[str]:
        return ["engine=torchtitan", "optim=torchtitan"]

    def of_engine(self) -> dict[str, Any]:
        return {
            "engine.attn_type": self.attention,
            **in_section("engine", degrees_of(self.probe.layout)),
            "optim.eps": self.probe.optimizer["epsilon"],
            **in_section("optim", schedule_of(self.probe)),
        }

    def found(self, root: torch.nn.Module) -> None:
        super().found(root)
        self._trainer = trainer_of(root)

    def tensors(self) -> NamedTensors:
        return tensors_of(self._trainer, self.modules(), self.probe)

    def configured(self) -> str | None:
        return configured_in(self._trainer)
