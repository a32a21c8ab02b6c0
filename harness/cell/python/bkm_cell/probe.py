# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The probe folder of harness/protocol/README.md: model, batches, sampled places, reach test."""

from __future__ import annotations

import copy
import json
import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from bkm_cell.ranks.layout import Layout
from bkm_cell.tensor_file import load_file, shapes


@dataclass(frozen=True)
class Batch:
    """One packed batch: flat tensors with all documents, one after the other."""

    input_ids: torch.Tensor  # int64[T]
    loss_mask: torch.Tensor  # int64[T]
    lengths: list[int]  # tokens per document
    # Of the whole batch, if this is a rank's share of it.
    documents_of_all: int | None = None
    tokens_that_count: int | None = None
    # The token that each document's last position predicts, though it is no input; empty: none.
    after: tuple[int, ...] = ()

    @cached_property
    def positions(self) -> torch.Tensor:
        """int64[T]; positions restart at 0 in each document."""
        return torch.cat([torch.arange(length) for length in self.lengths])

    def documents(self, flat: torch.Tensor) -> torch.Tensor:
        """The jagged tensor that verl's data loader makes: one row per document."""
        return torch.nested.as_nested_tensor(list(flat.split(self.lengths)), layout=torch.jagged)

    def micro_batches(self, count: int) -> list[Batch]:
        """`count` batches of consecutive documents; none has more documents than an earlier one."""
        size = -(-len(self.lengths) // count)
        groups = [self.lengths[at : at + size] for at in range(0, len(self.lengths), size)]
        tokens = [sum(group) for group in groups]
        parts = zip(self.input_ids.split(tokens), self.loss_mask.split(tokens), groups)
        return [
            replace(self, input_ids=ids, loss_mask=mask, lengths=group) for ids, mask, group in parts
        ]

    def take(self, documents: list[int]) -> Batch:
        """The batch of these documents."""
        ids, masks = (x.split(self.lengths) for x in (self.input_ids, self.loss_mask))
        return replace(
            self,
            input_ids=torch.cat([ids[d] for d in documents]),
            loss_mask=torch.cat([masks[d] for d in documents]),
            lengths=[self.lengths[d] for d in documents],
            after=tuple(self.after[d] for d in documents) if self.after else (),
        )

    def with_token(self, position: int, token: int) -> Batch:
        changed = self.input_ids.clone()
        changed[position] = token
        return replace(self, input_ids=changed)


@dataclass(frozen=True)
class Rollout:
    """Of each token of the documents that a trainer keeps, float32[T]: the log-prob with which it was
    drawn, or a critic's value before it; and its advantage, or the return."""

    old: torch.Tensor
    credit: torch.Tensor


@dataclass(frozen=True)
class Reach:
    """A change of one token: only the log-probs of its own document may move."""

    step: int
    position: int
    token: int


def _batch(flat: dict[str, torch.Tensor], key: str) -> Batch:
    return Batch(
        flat[f"{key}input_ids"],
        flat[f"{key}loss_mask"],
        flat[f"{key}document_lengths"].tolist(),
        after=tuple(flat.get(f"{key}after", torch.empty(0)).tolist()),
    )


class Probe:
    def __init__(self, folder: str, asked: dict[str, Any]) -> None:
        self.asked = asked
        self._folder = folder
        self.model_dir = os.path.join(folder, "model")
        with open(os.path.join(folder, "probe.json")) as file:
            written = json.load(file)
        self.eos_token_id = int(written["eos_token_id"])
        reach = written["reach"]
        self.reach = Reach(int(reach["step"]), int(reach["position"]), int(reach["token"]))
        self.reaches = [
            Reach(self.reach.step, int(more["position"]), int(more["token"]))
            for more in written.get("reaches", [])
        ]
        with open(os.path.join(self.model_dir, "config.json")) as file:
            self.hf_config = json.load(file)
        self.places = load_file(
            os.path.join(folder, "places.safetensors")
        )  # HF name -> flat indices
        flat = load_file(os.path.join(folder, "batch.safetensors"))
        self.batches = [_batch(flat, f"step{step}/") for step in range(self.steps)]
        # All documents that a trainer keeps of its dataset, in the order of the file.
        self.kept = _batch(flat, "kept/") if "kept/input_ids" in flat else self.batches[0]
        if self.objective == "ppo":
            self.rollout = Rollout(flat["kept/old"], flat["kept/credit"])

    @cached_property
    def after(self) -> dict[tuple[int, ...], int]:
        """What the last token of a document predicts, by the document's tokens: Batch.after."""
        documents = self.kept.input_ids.split(self.kept.lengths)
        return {tuple(document.tolist()): after for document, after in zip(documents, self.kept.after)}

    @property
    def drive(self) -> str:
        """Who makes the batches and steps: "engine" (bkm's own loop) or "trainer"."""
        return self.asked.get("drive", "engine")

    @property
    def steps(self) -> int:
        return int(self.asked["steps"])

    @property
    def conversations(self) -> str:
        """The dataset of a trainer, as JSON lines."""
        return os.path.join(self._folder, "conversations.jsonl")

    @cached_property
    def weight_files(self) -> list[str]:
        """All files with weights: one, or the shards that the index names."""
        index = os.path.join(self.model_dir, "model.safetensors.index.json")
        names = {"model.safetensors"}
        if os.path.exists(index):
            with open(index) as file:
                names = set(json.load(file)["weight_map"].values())
        return [os.path.join(self.model_dir, name) for name in sorted(names)]

    @cached_property
    def buffer_names(self) -> set[str]:
        """The names of buffers in the files: they have no places."""
        names = {n for n in self.shapes if not n.endswith(("_blocks", "_scales"))}
        return names - self.places.keys()

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors with weights, by name."""
        return {name: shape for path in self.weight_files for name, shape in shapes(path).items()}

    @property
    def parameters(self) -> int:
        """How many numbers the files with weights hold. A byte of MXFP4 blocks holds two."""
        return sum(
            math.prod(shape) * (2 if name.endswith("_blocks") else 1)
            for name, shape in self.shapes.items()
        )

    @property
    def is_quantised(self) -> bool:
        """Whether the model folder says that some weights are quantised."""
        return "quantization_config" in self.hf_config

    @property
    def attention(self) -> str:
        return self.asked["attention"]

    @property
    def precision(self) -> str:
        return self.asked["precision"]

    def in_precision(self, precision: str) -> Probe:
        other = copy.copy(self)
        other.asked = {**self.asked, "precision": precision}
        return other

    @property
    def device(self) -> torch.device:
        return torch.device(self.asked.get("device", "cpu"))

    @property
    def optimizer(self) -> dict[str, Any]:
        return self.asked["optimizer"]

    @property
    def warmup_steps(self) -> int:
        return int(self.optimizer.get("warmup_steps", 0))

    def rate_factor(self, step: int) -> float:
        """The learning rate at a step (counted from 0), as a fraction of the full rate, without a
        decay."""
        if step >= self.warmup_steps:
            return 1.0
        return (step + (self.optimizer["schedule"] == "one-based")) / self.warmup_steps

    @property
    def decay(self) -> str:
        """How the learning rate decays after the warm-up; empty: it stays constant."""
        return self.optimizer.get("decay", "")

    @property
    def total_steps(self) -> int:
        """Of the training that the schedule is made for; the cell may train fewer steps."""
        return int(self.optimizer.get("total_steps", len(self.batches)))

    @property
    def min_lr_factor(self) -> float:
        """What a decay leaves of the full rate."""
        return float(self.optimizer.get("min_lr_factor", 0.0))

    @property
    def temperature(self) -> float:
        """Logits are divided by it."""
        return float(self.asked.get("temperature", 1.0))

    @property
    def entropy(self) -> bool:
        """Whether the forward that trains nothing also gives the entropy of each token."""
        return bool(self.asked.get("entropy"))

    @property
    def is_padded(self) -> bool:
        """Whether each document has a row of its own."""
        return self.input_form.startswith("padded")

    @property
    def input_form(self) -> str:
        """How the model is told where documents are."""
        return self.asked.get("input", "packed")

    @property
    def micro_batches(self) -> int:
        return int(self.asked.get("micro_batches", 1))

    @property
    def is_dealt(self) -> bool:
        """Whether a trainer deals documents to steps; else each step has all."""
        return "global_batch_size" in self.asked

    @property
    def global_batch_size(self) -> int:
        """Documents that a trainer takes for a step."""
        return int(self.asked.get("global_batch_size", 0)) or len(self.kept.lengths)

    @property
    def max_length(self) -> int:
        """The most tokens that a trainer keeps of a document."""
        return int(self.asked.get("max_length", 0)) or max(self.kept.lengths)

    @property
    def truncation(self) -> str:
        """What it does with a longer one; empty: there is none."""
        return self.asked.get("truncation", "")

    @property
    def leftover_checkpoint(self) -> bool:
        return bool(self.asked.get("leftover_checkpoint"))

    @property
    def export_weights(self) -> bool:
        return bool(self.asked.get("export_weights"))

    @property
    def resume_checkpoint(self) -> bool:
        return bool(self.asked.get("resume_checkpoint"))

    @property
    def keeps_first_step(self) -> bool:
        """Whether a trainer has to save its first step."""
        return self.export_weights or self.resume_checkpoint

    @property
    def head(self) -> str:
        return self.asked.get("head", "lm")

    @property
    def objective(self) -> str:
        """What a step minimises: "sft" or, on the roll-out, "ppo"."""
        return self.asked.get("objective", "sft")

    @property
    def ppo(self) -> dict[str, float]:
        """What an update on a roll-out clips."""
        return self.asked["ppo"]

    @property
    def config_numbers(self) -> dict[str, Any]:
        """Numbers of the HF config that the matrix asks for."""
        return self.asked.get("config") or {}

    @cached_property
    def layout(self) -> Layout:
        return Layout.parse(self.asked.get("layout", ""))

    @cached_property
    def pad_token_id(self) -> int:
        """The tokenizer's, as a data loader pads with it."""
        with open(os.path.join(self.model_dir, "tokenizer_config.json")) as file:
            padding = json.load(file)["pad_token"]
        with open(os.path.join(self.model_dir, "tokenizer.json")) as file:
            added = json.load(file)["added_tokens"]
        return next(int(token["id"]) for token in added if token["content"] == padding)

    @property
    def engine_options(self) -> dict[str, Any]:
        return self.asked.get("engine_options") or {}
