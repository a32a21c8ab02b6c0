# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The common part of verl's engines: the packed batch and training step of verl's SFT trainer."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from bkm_cell.adapters.base import (
    Adapter,
    StepOutcome,
    accepted,
    find_module,
    import_all,
    transformers_module,
)
from bkm_cell.probe import Batch
from bkm_cell.ranks.process_group import start_process_group

# Section `data` of verl/trainer/config/sft_trainer_engine.yaml: settings that go with a batch.
_TRAINER_DEFAULTS = {
    "use_dynamic_bsz": True,
    "max_token_len_per_gpu": 8192,
    "micro_batch_size_per_gpu": 4,
}

# Fields of verl's model configuration that its worker hands on.
_COPIED_BY_WORKER = ("use_remove_padding", "use_fused_kernels")

# Engine options that verl reads from variables: option -> variable, and its value for each value of
# the option. Without flash_cross_entropy, log-probs come from torch although flash_attn is there.
_VARIABLES = {
    "flash_cross_entropy": ("VERL_DISABLE_FLASH_ATTN_CE", {False: "1", True: "0"}),
}

# Fields of an optimizer configuration: one of each tuple. An option that is dropped on the way is the
# adapter's fault, and must not look like the engine's.
_NEEDED_OPTIONS = (
    ("lr",),
    ("betas",),
    ("eps", "override_optimizer_config"),
    ("weight_decay",),
    ("clip_grad",),
)

_SHARED_MODULES = (
    "verl.trainer.config",
    "verl.utils.tensordict_utils",
    "verl.utils.dataset.dataset_utils",
    "verl.workers.config",
)


class VerlAdapter(Adapter):
    engine_module: str
    engine_class: str
    output = "log_probs"  # the model output that is judged
    engine: Any

    @abc.abstractmethod
    def configs(self) -> tuple[Any, Any, Any]:
        """Model, engine and optimizer configurations: verl's classes, with verl's defaults."""

    def import_modules(self) -> None:
        for option, (variable, values) in _VARIABLES.items():
            value = self.probe.engine_options.get(option)
            if isinstance(value, bool):
                os.environ[variable] = values[value]
            elif option in self.probe.engine_options:
                raise ValueError(f"engine option {option} is true or false, not {value!r}")
        import_all(_SHARED_MODULES)
        self._losses = find_module("verl.workers.utils.losses", "sft_loss")
        import_all([self.engine_module, transformers_module(self.probe.hf_config["model_type"])])
        self.verl_config = importlib.import_module("verl.workers.config")
        self._tensordicts = importlib.import_module("verl.utils.tensordict_utils")
        self._pad_mode = importlib.import_module(
            "verl.utils.dataset.dataset_utils"
        ).DatasetPadMode.NO_PADDING
        self._loss = self.loss_function()
        self._engine_type = getattr(importlib.import_module(self.engine_module), self.engine_class)

    def loss_function(self) -> Callable[..., Any]:
        return partial(self._losses.sft_loss, config=None)

    def construct(self) -> None:
        start_process_group(self.probe.device)
        # Not through the registry: it refuses the device "cpu", and only makes this call.
        checkpoint = importlib.import_module("verl.trainer.config").CheckpointConfig()
        model, engine, optimizer = self.configs()
        self._complete(model, engine)
        self._asked = {"engine": _plain(engine), "optimizer": _plain(optimizer)}
        self.engine = self._engine_type(
            model_config=model,
            engine_config=engine,
            optimizer_config=optimizer,
            checkpoint_config=checkpoint,
        )
        self.engine.initialize()

    def _complete(self, model: Any, engine: Any) -> None:
        """What verl's worker copies from the model's configuration to the engine's, and then puts
        into each batch (TrainingWorker.__init__, train_batch)."""
        self._of_worker = {}
        for name in _COPIED_BY_WORKER:
            if not hasattr(model, name):
                continue
            value = getattr(model, name)
            self._of_worker[name] = value
            if hasattr(engine, name):
                with contextlib.suppress(AttributeError):  # frozen in versions that do not copy it
                    setattr(engine, name, value)

    def optimizer_config(self, kind: type, extra: dict[str, Any]) -> Any:
        """The probe's optimizer settings, under the names that this configuration has."""
        asked = self.probe.optimizer
        named = {
            "lr": asked["learning_rate"],
            "betas": (asked["beta1"], asked["beta2"]),
            "eps": asked["epsilon"],
            "weight_decay": asked["weight_decay"],
            "clip_grad": asked["clip_norm"],
            "lr_warmup_steps": self.probe.warmup_steps or -1,  # -1: verl's own default, none
            "total_training_steps": self.probe.total_steps,
            "override_optimizer_config": {"eps": asked["epsilon"]},
            **extra,
        }
        fields = set(_fields(kind))
        needed = _NEEDED_OPTIONS
        if self.probe.warmup_steps:
            needed = (*needed, ("lr_warmup_steps",))
        if self.probe.decay:
            needed = (*needed, ("total_training_steps",), *((name,) for name in extra))
        for names in needed:
            if fields.isdisjoint(names):
                raise LookupError(
                    f"{kind.__name__} has no field {' or '.join(names)}: the adapter does not know "
                    "how to ask this version for what the probe asks"
                )
        return kind(**accepted(named, fields))

    def modules(self) -> list[torch.nn.Module]:
        module = self.engine.module
        return list(module) if isinstance(module, (list, torch.nn.ModuleList)) else [module]

    def facts(self) -> dict[str, Any]:
        kind = type(self.engine)
        return {"engine_class": f"{kind.__module__}.{kind.__qualname__}", "configs": self._asked}

    def model_config(self, **named: Any) -> Any:
        """verl's model configuration, with the engine options that are its fields."""
        kind = self.verl_config.HFModelConfig
        options = accepted(self.probe.engine_options, _fields(kind))
        if options.get("use_fused_kernels") and "fused_kernel_options" in _fields(kind):
            options = {"fused_kernel_options": self._shipped("fused_kernel_options"), **options}
        # Absent in versions in which the engine's class alone decides.
        type_ = {"model_type": "language_model" if self.probe.head == "lm" else "value_model"}
        return kind(
            path=self.probe.model_dir,
            use_remove_padding=not self.probe.is_padded,
            **{**accepted(type_, _fields(kind)), **named, **options},
        )

    def _shipped(self, name: str) -> dict[str, Any]:
        """The value of a model option in the configuration that verl ships, which a trainer that is
        started by its command line reads; the dataclass leaves it empty."""
        package = importlib.import_module("verl.trainer.config").__path__[0]
        file = os.path.join(package, "model", "hf_model.yaml")
        shipped = importlib.import_module("omegaconf").OmegaConf.load(file)
        return dict(shipped.get(name) or {})

    def engine_config(self, kind: type, **named: Any) -> Any:
        """The engine's own configuration. It accepts or refuses all other engine options."""
        others = {*_fields(self.verl_config.HFModelConfig), *self.left_to_engine, *_VARIABLES}
        options = self.probe.engine_options.items()
        return kind(**{**named, **{k: v for k, v in options if k not in others}})

    @property
    def left_to_engine(self) -> set[str]:
        """Options that the probe names only so that the adapter does not choose them."""
        return {"strategy"} if self.probe.engine_options.get("strategy") == "default" else set()

    def _data(self, batch: Batch, micro_batches: int, **settings: Any) -> Any:
        tensors = {
            "input_ids": batch.documents(batch.input_ids),
            "position_ids": batch.documents(batch.positions),
            "loss_mask": batch.documents(batch.loss_mask),
        }
        beside = {
            **_TRAINER_DEFAULTS,
            **_cut(batch, micro_batches),
            "use_remove_padding": not self.probe.is_padded,
            **self._of_worker,
            "temperature": self.probe.temperature,
            "global_batch_size": batch.documents_of_all or len(batch.lengths),
            "pad_mode": self._pad_mode,
            "pad_token_id": self.probe.pad_token_id,
            # Without it, later FSDP engines return no log-probs from a training step.
            "return_model_output": True,
            **settings,
        }
        return self._tensordicts.get_tensordict(tensors, beside)

    def data_rank(self, rank: int) -> tuple[int, int]:
        """verl's trainer asks the engine, too."""
        engine = self.engine
        return int(engine.get_data_parallel_rank()), int(engine.get_data_parallel_size())

    def evaluating(self) -> contextlib.AbstractContextManager[Any]:
        return self.engine.eval_mode()

    def evaluate(self, batch: Batch) -> torch.Tensor:
        return self._infer(batch)[self.output].values()

    def entropy(self, batch: Batch) -> torch.Tensor | None:
        seen = self._infer(batch).get("entropy")
        return None if seen is None else seen.values()

    def _infer(self, batch: Batch) -> Any:
        settings = {"calculate_entropy": True} if self.probe.entropy else {}
        data = self._data(batch, 1, **settings)
        return self.engine.infer_batch(data, loss_function=self._loss)["model_output"]

    def train_step(self, batch: Batch) -> StepOutcome:
        data = self._data(batch, self.probe.micro_batches)
        with self.engine.train_mode():  # leaving it zeroes the gradients
            outputs = self.engine.train_batch(data, loss_function=self._loss)
        next_rate = self.engine.lr_scheduler_step()
        output = outputs.get("model_output", {}).get(self.output)
        return StepOutcome(
            loss=float(sum(outputs["loss"])),
            grad_norm=_number(outputs["metrics"].get("grad_norm")),
            log_probs=None if output is None else output.values(),
            facts={"next_learning_rate": _number(next_rate)},
        )

    def exported(self) -> Iterable[tuple[str, torch.Tensor]]:
        """What verl gives to the inference engine."""
        given = self.engine.get_per_tensor_param()
        return given[0] if isinstance(given, tuple) else given  # with LoRA's config in later ones

    def save_checkpoint(self, folder: str) -> None:
        step = int(folder.rpartition("_")[2])
        self.engine.save_checkpoint(local_path=folder, global_step=step)

    def resumed(self, folder: str) -> VerlAdapter:
        fresh = self.fresh(self.probe)
        fresh.engine.load_checkpoint(local_path=folder)
        fresh.engine.to("cpu")
        fresh.engine.to(self.probe.device.type)
        return fresh


def _cut(batch: Batch, micro_batches: int) -> dict[str, Any]:
    """The settings that make verl's trainer cut a batch into so many parts.

    The trainer cuts by documents only if they divide evenly, otherwise by tokens, balanced.
    """
    if micro_batches == 1:
        return {}
    documents, tokens = len(batch.lengths), sum(batch.lengths)
    if documents % micro_batches == 0:
        return {
            "use_dynamic_bsz": False,
            "micro_batch_size_per_gpu": documents // micro_batches,
        }
    return {
        "use_dynamic_bsz": True,
        "max_token_len_per_gpu": max(*batch.lengths, -(-tokens // micro_batches)),
    }


def _number(value: Any) -> float | None:
    if isinstance(value, torch.Tensor):
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        return value.detach().float().item()
    return None if value is None else float(value)


def _fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _plain(config: Any) -> dict[str, Any]:
    """A configuration's simple fields, for the record."""
    simple = (str, int, float, bool, list, tuple, dict, type(None))
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {
        name: value if isinstance(value, simple) else str(value) for name, value in values.items()
    }
