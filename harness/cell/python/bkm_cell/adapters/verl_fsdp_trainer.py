# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's SFT trainer with its FSDP engine: `python -m verl.trainer.sft_trainer`, in this process."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import shutil
import sys
from types import ModuleType
from typing import Any

from bkm_cell.adapters.base import find_module, hf_tensors, import_all, transformers_module
from bkm_cell.adapters.trainer import ReportedStep, TrainerAdapter
from bkm_cell.adapters.verl_fsdp import FP32
from bkm_cell.witnesses.named_tensors import NamedTensors

ENTRY = "verl.trainer.sft_trainer"


class Adapter(TrainerAdapter):
    def import_modules(self) -> None:
        import_all(["pandas", ENTRY, transformers_module(self.probe.hf_config["model_type"])])

    def run(self) -> None:
        folder = os.path.abspath("trainer")
        os.makedirs(folder)
        self._metrics = os.path.join(folder, "metrics.jsonl")
        os.environ["VERL_FILE_LOGGER_PATH"] = self._metrics
        os.environ["DIST_INIT_METHOD"] = f"file://{folder}/rendezvous?rank=0&world_size=1"
        os.environ["HYDRA_FULL_ERROR"] = "1"  # else hydra prints an exception and exits
        data = os.path.join(folder, "train.parquet")
        with open(self.probe.conversations) as file:
            rows = [json.loads(line) for line in file]
        importlib.import_module("pandas").DataFrame(rows).to_parquet(data)
        self._arguments = [*self._asked(), *self._of_the_cell(folder, data)]
        sys.argv = [ENTRY, *self._arguments]
        sys.modules.pop(ENTRY, None)  # it runs as __main__, and warns of another one
        try:
            runpy.run_module(ENTRY, run_name="__main__", alter_sys=True)
        finally:  # it saves a checkpoint after the last step, whatever save_freq says
            shutil.rmtree(os.path.join(folder, "checkpoints"), ignore_errors=True)

    def _asked(self) -> list[str]:
        """What the probe asks, in the trainer's own configuration."""
        probe = self.probe
        asked = probe.optimizer
        lengths = probe.batches[0].lengths
        options = {
            "model.path": probe.model_dir,
            "+model.override_config.attn_implementation": self.attention,
            "data.train_batch_size": len(lengths),
            "data.max_length": max(lengths),
            "data.max_token_len_per_gpu": max(8192, sum(lengths)),  # verl's default, or one row
            "trainer.total_training_steps": len(probe.batches),
            "optim.lr": asked["learning_rate"],
            "optim.betas": f"[{asked['beta1']},{asked['beta2']}]",
            "+optim.override_optimizer_config.eps": asked["epsilon"],
            "optim.weight_decay": asked["weight_decay"],
            "optim.clip_grad": asked["clip_norm"],
            "optim.lr_scheduler_type": "constant",
            "engine.strategy": "fsdp2",
        }
        if probe.precision == "fp32":
            types = ",".join(f"{name}:{dtype}" for name, dtype in FP32.items())
            options["+engine.mixed_precision"] = f"{{{types}}}"
        return [f"{name}={value}" for name, value in options.items()]

    def _of_the_cell(self, folder: str, data: str) -> list[str]:
        """What no user of a CPU could leave as it is: where files lie, loggers, the device."""
        return [
            f"data.train_files={data}",
            "data.num_workers=0",
            "trainer.logger=[file]",
            f"trainer.device={self.probe.device.type}",
            "trainer.total_epochs=100",
            f"trainer.default_local_dir={folder}/checkpoints",
            f"hydra.run.dir={folder}/hydra",
            "hydra.output_subdir=null",
        ]

    def dataset(self) -> type:
        home = importlib.import_module("verl.utils.dataset.multiturn_sft_dataset")
        return home.MultiTurnSFTDataset

    def loss(self) -> tuple[ModuleType, str]:
        return find_module("verl.workers.utils.losses", "sft_loss"), "sft_loss"

    def reported(self) -> list[ReportedStep]:
        if not os.path.exists(self._metrics):
            return []
        with open(self._metrics) as file:
            logged = [json.loads(line)["data"] for line in file]
        return [
            ReportedStep(row["train/loss"], row["train/grad_norm"])
            for row in logged
            if "train/loss" in row
        ]

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, self.modules())

    def facts(self) -> dict[str, Any]:
        return {"entry": ENTRY, "arguments": self._arguments}

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation
