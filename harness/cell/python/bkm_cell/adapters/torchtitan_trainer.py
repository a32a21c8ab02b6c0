# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""torchtitan's Trainer: `python -m torchtitan.train`, in this process.

A user's configuration is a function of a module of theirs (`--module`, `--config`): `configuration`
below. It is the library's debug configuration of the model with the probe's sizes and files.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import (
    accepted,
    find_module,
    import_all,
    import_if_there,
    torchtitan_package,
)
from bkm_cell.adapters.torchtitan_eras.asked_numbers import ask_for_numbers
from bkm_cell.adapters.torchtitan_eras.choose import era_of
from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of
from bkm_cell.adapters.torchtitan_eras.flavors import fit
from bkm_cell.adapters.torchtitan_eras.parallel import degrees_of
from bkm_cell.adapters.torchtitan_eras.schedule import schedule_of
from bkm_cell.adapters.torchtitan_eras.trainer_object import configured_in, tensors_of, trainer_of
from bkm_cell.adapters.trainer import (
    IGNORED,
    EditDocument,
    ReportedStep,
    TrainerAdapter,
    checked_option,
)
from bkm_cell.probe import Probe
from bkm_cell.ranks.layout import Layout
from bkm_cell.witnesses.named_tensors import NamedTensors

_DATA = "torchtitan.hf_datasets.text_datasets"
_FOLDER = "trainer"


class Adapter(TrainerAdapter):
    entry = "torchtitan.train"

    def import_modules(self) -> None:
        # Before the import: some versions read it then, as the default of an argument.
        self._arguments = ["--module", __name__, "--config", configuration.__name__]
        sys.argv = [self.entry, *self._arguments]
        package = torchtitan_package(self.probe.hf_config["model_type"])
        import_all([self.entry])
        import_if_there(f"{package}.config_registry")
        if not hasattr(importlib.import_module(_DATA), "ChatDataLoader"):
            raise LookupError(
                "this torchtitan has no ChatDataLoader: its trainer reads plain text, which no cell "
                "gives to it yet"
            )

    def run(self) -> None:
        _asked.clear()
        _asked.append((self.probe, self.attention, self.restarts))
        folder = os.path.abspath(_FOLDER)
        os.makedirs(folder, exist_ok=True)
        os.environ["HF_DATASETS_CACHE"] = os.path.join(folder, "datasets")
        self._watch_reports()
        self.run_module(os.path.join(folder, "checkpoint"))

    def checkpoint(self, step: int) -> str:
        return os.path.abspath(os.path.join(_FOLDER, "checkpoint", f"step-{step}"))

    def _watch_reports(self) -> None:
        """torchtitan logs five digits, and whole numbers to TensorBoard: what it gives to that."""
        self._reports: dict[int, dict[str, float]] = {}
        writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter
        write = writer.add_scalar

        def add_scalar(own: Any, tag: str, value: Any, step: int, *more: Any, **named: Any) -> Any:
            self._reports.setdefault(int(step), {})[tag.rpartition("/")[2]] = float(value)
            return write(own, tag, value, step, *more, **named)

        writer.add_scalar = add_scalar

    def reported(self) -> list[ReportedStep]:
        rows = [self._reports[step] for step in sorted(self._reports)]
        return [
            ReportedStep(row.get("global_avg_loss"), row.get("grad_norm"))
            for row in rows
            if "global_avg_loss" in row
        ]

    def edit_documents(self, edit: EditDocument) -> None:
        kind = importlib.import_module(_DATA).ChatDataset
        inner = kind._tokenize_sample

        def edited(dataset: Any, sample: Any) -> Any:
            """Of (tokens without the last, tokens without the first and masked)."""
            made = inner(dataset, sample)
            if made is None:
                return None
            tokens, labels = (torch.tensor(part) for part in made)
            is_trained = labels != IGNORED
            last = labels[-1:] if is_trained[-1] else torch.tensor([dataset._eos_id])
            tokens = torch.cat([tokens, last])
            counts = torch.cat([torch.zeros(1), is_trained]).long()
            tokens, counts = edit(tokens, counts)
            labels = torch.where(counts[1:].bool(), tokens[1:], IGNORED)
            return tokens[:-1].tolist(), labels.tolist()

        kind._tokenize_sample = edited

    def scale_loss(self, factor: Callable[[int, int], float]) -> None:
        losses = importlib.import_module("torchtitan.components.loss")
        inner = losses.torch.nn.functional.cross_entropy

        def scaled(pred: torch.Tensor, labels: torch.Tensor, *rest: Any, **named: Any) -> Any:
            counted = int((labels != IGNORED).sum())
            return inner(pred, labels, *rest, **named) * factor(counted, labels.numel())

        losses.torch.nn.functional.cross_entropy = scaled

    def found(self, root: torch.nn.Module) -> None:
        super().found(root)
        self._trainer = trainer_of(root)

    def logits_by_hand(self, result: Any) -> torch.Tensor:
        """By the head that the loss calls chunk by chunk."""
        return self._trainer.loss_fn.lm_head(result)

    def tensors(self) -> NamedTensors:
        return tensors_of(self._trainer, self.modules(), self.probe)

    def configured(self) -> str | None:
        return configured_in(self._trainer)


# Of the cell: a configuration function is given nothing.
_asked: list[tuple[Probe, str, bool]] = []


def configuration() -> Any:
    """A user's configuration of torchtitan.train."""
    ((probe, attention, restarts),) = _asked
    asked = probe.optimizer
    package = torchtitan_package(probe.hf_config["model_type"])
    registry = importlib.import_module(f"{package}.config_registry")
    config = getattr(registry, f"{package.rpartition('.')[2]}_debugmodel")()
    config.model_spec = _spec(probe, attention, find_module(package, "model_registry"))
    config.hf_assets_path, config.dump_folder = probe.model_dir, os.path.abspath(_FOLDER)
    config.dataloader = importlib.import_module(_DATA).ChatDataLoader.Config(
        dataset_path="json",
        load_dataset_kwargs={"data_files": probe.conversations, "split": "train"},
        sample_processor=lambda row: row["messages"],
    )
    rows = probe.global_batch_size if probe.is_dealt else 1
    config.training = dataclasses.replace(
        config.training,
        local_batch_size=rows // (probe.micro_batches * probe.layout.data_ranks),
        global_batch_size=rows,
        seq_len=probe.max_length if probe.is_dealt else sum(probe.kept.lengths),
        steps=len(probe.batches),
        max_norm=asked["clip_norm"],
        mixed_precision_param={"bf16": "bfloat16", "fp32": "float32"}[probe.precision],
    )
    config.parallelism = dataclasses.replace(config.parallelism, **degrees_of(probe.layout))
    config.optimizer = _optimizer(type(config.optimizer), asked)
    config.lr_scheduler = dataclasses.replace(
        config.lr_scheduler, warmup_steps=probe.warmup_steps, decay_ratio=None, **schedule_of(probe)
    )
    config.checkpoint = dataclasses.replace(config.checkpoint, enable=True, initial_load_in_hf=True)
    if probe.resume_checkpoint:
        config.checkpoint.interval, config.checkpoint.keep_latest_k = 1, 0
    if restarts:
        config.checkpoint.load_step = 1
    config.metrics = dataclasses.replace(config.metrics, enable_tensorboard=True, log_freq=1)
    config.validator.enable = False
    for name, value in probe.engine_options.items():
        _set(config, name, value)
    return config


# Of a configuration, what other fields of the probe ask for, and the sections that say what is trained.
_SET = {
    *(f"training.{name}" for name in ("local_batch_size", "global_batch_size", "seq_len", "steps")),
    *("training.max_norm", "training.mixed_precision_param", "hf_assets_path", "dump_folder"),
    *(f"checkpoint.{name}" for name in ("enable", "initial_load_in_hf", "interval", "load_step")),
    *(f"parallelism.{name}" for name in degrees_of(Layout())),
    *("metrics.enable_tensorboard", "metrics.log_freq", "validator.enable"),
}
_CHANGING = ("dataloader", "optimizer", "lr_scheduler", "loss", "model_spec", "tokenizer")


def _set(config: Any, name: str, value: Any) -> None:
    """A setting by its name in torchtitan's configuration, as on its command line."""
    *sections, setting = name.split(".")
    at, path = config, ""
    for section in sections:
        checked_option(f"{path}{section}", _fields(at, path), _SET, _CHANGING)
        at, path = getattr(at, section), f"{path}{section}."
    settings = [field for field in _fields(at, path) if not _fields(getattr(at, field[len(path) :]), "")]
    checked_option(name, settings, _SET, _CHANGING)
    setattr(at, setting, value)


def _fields(section: Any, path: str) -> list[str]:
    names = dataclasses.fields(section) if dataclasses.is_dataclass(section) else ()
    return [f"{path}{field.name}" for field in names]


def _spec(probe: Probe, attention: str, package: Any) -> Any:
    spec, config = era_of(package, probe.hf_config, attention).spec_and_config()
    fit(config, probe.hf_config)
    ask_for_numbers(config, probe.config_numbers)
    configuration_of(config).mask_packed_documents()  # as torchtitan's own configurations for SFT do
    return spec


def _optimizer(kind: type, asked: dict[str, Any]) -> Any:
    """Of one group, however the era writes it."""
    settings = {
        "lr": asked["learning_rate"],
        "eps": asked["epsilon"],
        "weight_decay": asked["weight_decay"],
    }
    betas = (asked["beta1"], asked["beta2"])
    known = inspect.signature(kind).parameters
    if "lr" in known:
        flat = {**settings, "beta1": betas[0], "beta2": betas[1]}
        return kind(name="AdamW", **accepted(flat, known))
    group = importlib.import_module(kind.__module__).ParamGroupConfig
    settings["betas"] = betas
    return kind(
        param_groups=[group(pattern=".*", optimizer_name="AdamW", optimizer_kwargs=settings)]
    )
