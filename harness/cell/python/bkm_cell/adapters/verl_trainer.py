# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's SFT trainer, whatever its engine: `python -m verl.trainer.sft_trainer`, in this process."""

from __future__ import annotations

import abc
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from bkm_cell.adapters.base import find_module, import_all, transformers_module
from bkm_cell.adapters.trainer import (
    EditDocument,
    ReportedStep,
    TrainerAdapter,
    checked_option,
)
from bkm_cell.probe import Probe


# What says what is trained, and how.
_CHANGING = ("data", "optim", *(f"model.{name}" for name in ("override", "hf_config", "tokenizer", "custom")))
_WITH_HF_FOLDER = "checkpoint.save_contents=[model,optimizer,extra,hf_model]"
_FOLDER = "trainer"
_DATA = os.path.join(_FOLDER, "train.parquet")


class VerlTrainer(TrainerAdapter):
    entry = "verl.trainer.sft_trainer"

    def choices(self) -> list[str]:
        """Which files of the trainer's configuration are taken instead of its defaults."""
        return []

    @abc.abstractmethod
    def of_engine(self) -> dict[str, Any]:
        """What the probe asks of the engine, as overrides of the trainer's configuration."""

    def import_modules(self) -> None:
        import_all(["pandas", self.entry, transformers_module(self.probe.hf_config["model_type"])])

    def write_inputs(self) -> None:
        os.makedirs(_FOLDER)
        with open(self.probe.conversations) as file:
            rows = [json.loads(line) for line in file]
        importlib.import_module("pandas").DataFrame(rows).to_parquet(_DATA)

    def run(self) -> None:
        folder = os.path.abspath(_FOLDER)
        name = "restart" if self.restarts else "run"
        self._metrics = os.path.join(folder, f"metrics-of-{name}.jsonl")
        os.environ["VERL_FILE_LOGGER_PATH"] = self._metrics
        ranks = f"rank={os.environ['RANK']}&world_size={os.environ['WORLD_SIZE']}"
        os.environ["DIST_INIT_METHOD"] = f"file://{folder}/rendezvous-of-{name}?{ranks}"
        os.environ["HYDRA_FULL_ERROR"] = "1"  # else hydra prints an exception and exits
        own = [*self._asked(), *self._of_the_cell(folder)]
        self._arguments = [*self.choices(), *own, *self._of_options(own)]
        sys.argv = [self.entry, *self._arguments]
        self.run_module(os.path.join(folder, "checkpoints"))

    def _asked(self) -> list[str]:
        """What the probe asks, in the trainer's own configuration."""
        probe = self.probe
        options = {
            "model.path": probe.model_dir,
            "data.train_batch_size": probe.global_batch_size,
            "data.max_length": probe.max_length,
            **({"data.truncation": probe.truncation} if probe.truncation else {}),
            **self._cut(probe.kept.lengths),
            "trainer.total_training_steps": len(probe.batches),
            **in_section("optim", of_optimizer(probe)),
            **self.of_engine(),
        }
        return [f"{name}={value}" for name, value in options.items()]

    def _of_options(self, own: list[str]) -> list[str]:
        known = lambda: composed("sft_trainer_engine", self.choices())
        return overrides_of(self.probe.engine_options, known, own, _CHANGING)

    def _cut(self, lengths: list[int]) -> dict[str, Any]:
        """verl cuts a batch by documents if they divide evenly, otherwise by tokens, balanced."""
        parts, tokens = self.probe.micro_batches, sum(lengths)
        documents = self.probe.global_batch_size // self.probe.layout.data_ranks
        if parts == 1:
            return {"data.max_token_len_per_gpu": max(8192, tokens)}  # verl's default, or one row
        if documents % parts == 0:
            return {
                "data.use_dynamic_bsz": False,
                "data.micro_batch_size_per_gpu": documents // parts,
            }
        return {"data.max_token_len_per_gpu": max(*lengths, -(-tokens // parts))}

    def _of_the_cell(self, folder: str) -> list[str]:
        """What no user of a CPU could leave as it is: where files lie, loggers, the device."""
        return [
            f"data.train_files={os.path.abspath(_DATA)}",
            "data.num_workers=0",
            "trainer.logger=[file]",
            f"trainer.device={self.probe.device.type}",
            "trainer.total_epochs=100",
            f"trainer.default_local_dir={folder}/checkpoints",
            *(["trainer.save_freq=1"] if self.probe.keeps_first_step else []),
            *([_WITH_HF_FOLDER] if self.probe.export_weights else []),
            *self._of_a_restart(),
            f"hydra.run.dir={folder}/hydra",
            "hydra.output_subdir=null",
        ]

    def _of_a_restart(self) -> list[str]:
        if not self.restarts:
            return []
        return [
            "trainer.resume_mode=resume_path",
            f"trainer.resume_from_path={self.checkpoint(1)}",
        ]

    def checkpoint(self, step: int) -> str:
        return os.path.abspath(os.path.join(_FOLDER, "checkpoints", f"global_step_{step}"))

    def hf_folder(self, step: int) -> str:
        return os.path.join(self.checkpoint(step), "huggingface")

    def edit_documents(self, edit: EditDocument) -> None:
        home = importlib.import_module("verl.utils.dataset.multiturn_sft_dataset")
        inner = home.MultiTurnSFTDataset.__getitem__

        def edited(dataset: Any, index: int) -> dict[str, Any]:
            item = dict(inner(dataset, index))
            ids, mask = edit(item["input_ids"], item["loss_mask"])
            return item | {
                "input_ids": ids,
                "loss_mask": mask,
                "position_ids": torch.arange(len(ids)),
            }

        home.MultiTurnSFTDataset.__getitem__ = edited

    def scale_loss(self, factor: Callable[[int, int], float]) -> None:
        home = find_module("verl.workers.utils.losses", "sft_loss")
        inner = home.sft_loss

        def scaled(*arguments: Any, data: Any, **named: Any) -> Any:
            mask = data["loss_mask"].values()
            result, metrics = inner(*arguments, data=data, **named)
            return result * factor(int(mask.sum()), mask.numel()), metrics

        home.sft_loss = scaled

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


def of_optimizer(probe: Probe) -> dict[str, Any]:
    """Its settings, under the names that all of verl's engines have for them."""
    asked = probe.optimizer
    return {
        "lr": asked["learning_rate"],
        "betas": f"[{asked['beta1']},{asked['beta2']}]",
        "weight_decay": asked["weight_decay"],
        "clip_grad": asked["clip_norm"],
        "lr_warmup_steps": probe.warmup_steps or -1,  # -1: verl's own default, none
    }


def in_section(section: str, options: dict[str, Any]) -> dict[str, Any]:
    return {f"{section}.{name}": value for name, value in options.items()}


def composed(name: str, overrides: list[str]) -> Any:
    """One of the configurations that verl ships."""
    hydra = importlib.import_module("hydra")
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        return hydra.compose(name, overrides=overrides)


def overrides_of(
    options: dict[str, Any], configuration: Callable[[], Any], own: list[str], changing: tuple[str, ...]
) -> list[str]:
    """A probe's options as overrides of a configuration, which is given as it is without any. `own`:
    what the cell overrides itself."""
    if options:
        to_container = importlib.import_module("omegaconf").OmegaConf.to_container
        asked = {override.partition("=")[0].lstrip("+") for override in own}
        known = set(_leaves(to_container(configuration(), resolve=False)))
        for name in options:
            setting = name.lstrip("+")  # hydra's sign of one that the configuration lacks
            added = {setting} if setting != name else set()
            checked_option(setting, known | added, asked, changing)
    return [f"{name}={of_hydra(value)}" for name, value in options.items()]


def _leaves(configuration: dict[str, Any], at: str = "") -> Iterator[str]:
    """The names of all settings; a section is one if it holds none."""
    for name, value in configuration.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{at}{name}.")
        else:
            yield f"{at}{name}"


def of_hydra(value: Any) -> str:
    """A value in the grammar of hydra's overrides."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{of_hydra(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(of_hydra, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return json.dumps(value)
