# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""transformers' Trainer, in a script as its documentation shows: a model, a tokenizer, rows that
apply_chat_template made, a data collator, TrainingArguments."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import hf_tensors, transformers_module
from bkm_cell.adapters.trainer import (
    IGNORED,
    EditDocument,
    ReportedStep,
    TrainerAdapter,
    checked_option,
)
from bkm_cell.adapters.transformers import decay_of
from bkm_cell.ranks.process_group import start_process_group
from bkm_cell.witnesses.named_tensors import NamedTensors

_OF_A_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
_FOLDER = "trainer"
_CHANGING = ("optim", "lr_", "warmup_", "num_train_epochs", "label_smoothing", "neftune", "fp16", "bf16")
_LOGGED_DECIMALS = 4  # of the loss, before transformers 5


class Adapter(TrainerAdapter):
    entry = "transformers.Trainer"

    def import_modules(self) -> None:
        if self.probe.layout.ranks == 1:  # else accelerate wraps the model for several ranks
            for variable in _OF_A_LAUNCHER:
                os.environ.pop(variable, None)
        self._library = importlib.import_module("transformers")
        importlib.import_module("transformers.trainer")
        importlib.import_module(transformers_module(self.probe.hf_config["model_type"]))

    def run(self) -> None:
        library, probe = self._library, self.probe
        if probe.layout.ranks > 1:
            start_process_group(probe.device, "rendezvous-of-restart" if self.restarts else "rendezvous")
        tokenizer = library.AutoTokenizer.from_pretrained(probe.model_dir)
        with open(probe.conversations) as file:
            rows = [self._row(tokenizer, json.loads(line)["messages"]) for line in file]
        model = library.AutoModelForCausalLM.from_pretrained(
            probe.model_dir, attn_implementation=self.attention, torch_dtype=torch.float32
        )
        self._arguments = self._asked()
        known = {field.name for field in dataclasses.fields(library.TrainingArguments)}
        for name in probe.engine_options:
            checked_option(name, known, self._arguments, _CHANGING)
        self._arguments |= probe.engine_options
        self._trainer = library.Trainer(
            model=model,
            args=library.TrainingArguments(**self._arguments),
            train_dataset=rows,
            processing_class=tokenizer,
            data_collator=self._collator(tokenizer),
        )
        self._trainer.train(resume_from_checkpoint=self.checkpoint(1) if self.restarts else None)

    def checkpoint(self, step: int) -> str:
        return os.path.abspath(os.path.join(_FOLDER, f"checkpoint-{step}"))

    def hf_folder(self, step: int) -> str:
        return self.checkpoint(step)

    def _row(self, tokenizer: Any, messages: list[dict[str, str]]) -> dict[str, list[int]]:
        encoded = tokenizer.apply_chat_template(
            messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        ids, trained = encoded["input_ids"], encoded["assistant_masks"]
        labels = [token if is_trained else IGNORED for token, is_trained in zip(ids, trained)]
        return {"input_ids": ids, "labels": labels}

    def _collator(self, tokenizer: Any) -> Any:
        if self.probe.is_padded:
            return self._library.DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=IGNORED)
        return self._library.DataCollatorWithFlattening(return_tensors="pt")

    def _asked(self) -> dict[str, Any]:
        """What the probe asks, and what no cell could leave as it is: where files lie, loggers, the
        device."""
        probe = self.probe
        asked = probe.optimizer
        parts = probe.micro_batches * probe.layout.data_ranks
        return {
            "per_device_train_batch_size": -(-probe.global_batch_size // parts),
            "gradient_accumulation_steps": probe.micro_batches,
            "max_steps": len(probe.batches),
            "learning_rate": asked["learning_rate"],
            "adam_beta1": asked["beta1"],
            "adam_beta2": asked["beta2"],
            "adam_epsilon": asked["epsilon"],
            "weight_decay": asked["weight_decay"],
            "max_grad_norm": asked["clip_norm"],
            **self._schedule(),
            "bf16": probe.precision == "bf16",
            "output_dir": _FOLDER,
            "use_cpu": probe.device.type == "cpu",
            "logging_steps": 1,
            **({"save_steps": 1} if probe.keeps_first_step else {"save_strategy": "no"}),
            "report_to": [],
            "disable_tqdm": True,
        }

    def _schedule(self) -> dict[str, Any]:
        probe = self.probe
        schedule: dict[str, Any] = {"warmup_steps": probe.warmup_steps}
        if probe.decay:
            name, schedule["lr_scheduler_kwargs"] = decay_of(probe)
        else:
            name = "constant_with_warmup" if probe.warmup_steps else "constant"
        return schedule | {"lr_scheduler_type": name}

    def edit_documents(self, edit: EditDocument) -> None:
        for name in ("DataCollatorWithFlattening", "DataCollatorForSeq2Seq"):
            kind = getattr(self._library, name)
            kind.__call__ = _with_edited_rows(kind.__call__, edit)

    def scale_loss(self, factor: Callable[[int, int], float]) -> None:
        home = importlib.import_module("transformers.loss.loss_utils")
        inner = home.fixed_cross_entropy

        def scaled(source: torch.Tensor, target: torch.Tensor, *rest: Any, **named: Any) -> Any:
            counted = int((target != IGNORED).sum())
            return inner(source, target, *rest, **named) * factor(counted, target.numel())

        home.fixed_cross_entropy = scaled

    def reported(self) -> list[ReportedStep]:
        loaded = 1 if self.restarts else 0  # steps that a checkpoint's history has
        history = self._trainer.state.log_history
        logged = [row for row in history if "loss" in row and row["step"] > loaded]
        return [
            ReportedStep(
                row["loss"],
                row.get("grad_norm"),
                _LOGGED_DECIMALS if row["loss"] == round(row["loss"], _LOGGED_DECIMALS) else None,
            )
            for row in logged
        ]

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, self.modules())

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation


def _with_edited_rows(collate: Callable[..., Any], edit: EditDocument) -> Callable[..., Any]:
    def collated(collator: Any, features: list[dict[str, Any]], *rest: Any, **named: Any) -> Any:
        rows = []
        for row in features:
            ids, labels = torch.tensor(row["input_ids"]), torch.tensor(row["labels"])
            ids, trained = edit(ids, (labels != IGNORED).long())
            labels = torch.where(trained.bool(), ids, IGNORED)
            rows.append({"input_ids": ids.tolist(), "labels": labels.tolist()})
        return collate(collator, rows, *rest, **named)

    return collated
