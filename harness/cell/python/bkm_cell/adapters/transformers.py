# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The control `transformers`: the HF model, given packed input as verl's FSDP engine gives it, or
another form of it that transformers' own data collators make.

With the option call="model-card" it is called as its own documentation says: nothing is said about a
cache, so that config.json decides.
"""

from __future__ import annotations

import glob
import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import torch

from bkm_cell.adapters.base import hf_tensors, transformers_module
from bkm_cell.adapters.control import ControlAdapter
from bkm_cell.ranks.sharding import meshes, shard
from bkm_cell.probe import Batch, Probe
from bkm_cell.tensor_file import load_file
from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors, gathered


def decay_of(probe: Probe) -> tuple[str, dict[str, Any]]:
    """The library's name of the probe's decay, and its arguments. For a linear one that ends above zero
    it has a polynomial."""
    if probe.decay == "linear":
        least = probe.min_lr_factor * probe.optimizer["learning_rate"]
        return "polynomial", {"lr_end": least, "power": 1.0}
    return "cosine_with_min_lr", {"min_lr_rate": probe.min_lr_factor}


class Adapter(ControlAdapter):
    known_options = {"call": ("model-card",)}

    def import_modules(self) -> None:
        self._auto_class = importlib.import_module("transformers").AutoModelForCausalLM
        importlib.import_module(transformers_module(self.probe.hf_config["model_type"]))

    def construct(self) -> None:
        layout = self.probe.layout
        mesh = meshes(self.probe) if layout.ranks > 1 else None
        plan: dict[str, Any] = {}
        if layout.tp > 1:  # the library's own plan
            if importlib.util.find_spec("accelerate") is None:
                raise LookupError(
                    "transformers' tensor parallelism needs accelerate, which this runtime lacks: "
                    "ask for --runtime cpu-accelerate"
                )
            plan = {"tp_plan": "auto", "device_mesh": mesh["tp"]}
        self.model = self._auto_class.from_pretrained(
            self.probe.model_dir,
            attn_implementation=self.attention,
            torch_dtype=torch.float32,
            **plan,
        )
        self.model.to(self.probe.device).train()
        if layout.data_ranks > 1:
            shard(self.probe, mesh, [*self.model.model.layers, self.model])
        self.make_optimizer()

    def make_schedule(self) -> torch.optim.lr_scheduler.LRScheduler:
        """A decay is the library's own."""
        probe = self.probe
        if not probe.decay:
            return super().make_schedule()
        get_scheduler = importlib.import_module("transformers.optimization").get_scheduler
        name, named = decay_of(probe)
        return get_scheduler(
            name,
            self.optimizer,
            num_warmup_steps=probe.warmup_steps,
            num_training_steps=probe.total_steps,
            scheduler_specific_kwargs=named,
        )

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, [self.model], self._whole())

    def _whole(self) -> Callable[[Tensors], Tensors] | None:
        """From version 5 on, tensor-parallel ranks hold plain parts; save_pretrained gathers so. FSDP2
        cuts these parts once more."""
        if self.probe.layout.tp == 1:
            return None
        parallel = importlib.import_module("transformers.integrations.tensor_parallel")
        gather = getattr(parallel, "gather_state_dict_for_save", None)
        if gather is None:  # they are DTensors
            return None
        model = self.model
        return lambda state: gather(
            {name: gathered(value) for name, value in state.items()},
            model._tp_plan,
            model._device_mesh,
            self.probe.layout.tp,
        )

    def gradients(self) -> list[torch.Tensor]:
        whole = self._whole()
        if whole is None:
            return super().gradients()
        named = {n: p.grad for n, p in self.model.named_parameters() if p.grad is not None}
        return list(whole(named).values())

    def facts(self) -> dict[str, Any]:
        return {
            "engine_class": type(self.model).__name__,
            "asked_by": "from_pretrained(attn_implementation=)",
        }

    def exported(self) -> Iterator[tuple[str, torch.Tensor]]:
        """On the first rank only; the others take part in gathering."""
        folder = os.path.abspath("saved_by_transformers")
        named: dict[str, Any] = {}
        if self.probe.layout.data_ranks > 1:  # parts of FSDP2 or DDP, which the library does not join
            named["state_dict"] = {n: gathered(v) for n, v in self.model.state_dict().items()}
        is_first = os.environ["RANK"] == "0"
        self.model.save_pretrained(folder, is_main_process=is_first, **named)
        if not is_first:
            return
        for file in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
            yield from load_file(file).items()
        shutil.rmtree(folder)

    def configured(self) -> str | None:
        return self.model.config._attn_implementation

    def logits(self, batch: Batch) -> torch.Tensor:
        device = self.probe.device
        given, is_token = _given(batch, self.probe.input_form, self.probe.pad_token_id)
        if self.probe.engine_options.get("call") != "model-card":  # as verl calls it
            given = {"attention_mask": None, "use_cache": False} | given
        given = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in given.items()
        }
        return self.model(**given).logits[is_token.to(device)]


_MULTIPLE = 64  # of tokens, to which collators pad a row


def _given(batch: Batch, form: str, padding: int) -> tuple[dict[str, Any], torch.Tensor]:
    """What the model is called with, and bool[rows, tokens of a row]: which places hold the tokens
    of the batch, in its order. `form`: harness/model/input_form.h."""
    first, *words = form.split("+")
    return (_packed if first == "packed" else _padded)(batch, words, padding)


def _packed(
    batch: Batch, words: list[str], padding: int
) -> tuple[dict[str, Any], torch.Tensor]:
    rows = batch.micro_batches(2) if "rows" in words else [batch]
    width = max(len(row.input_ids) for row in rows)
    if "tail" in words:
        width += -width % _MULTIPLE or _MULTIPLE
    is_token = torch.arange(width) < torch.tensor([len(row.input_ids) for row in rows])[:, None]
    ids, positions = torch.full(is_token.shape, padding), torch.zeros_like(is_token).long()
    ids[is_token], positions[is_token] = batch.input_ids, batch.positions
    given: dict[str, Any] = {"input_ids": ids, "position_ids": positions}
    if "lengths" in words:
        lengths = [n for row in rows for n in (*row.lengths, width - len(row.input_ids)) if n]
        borders = torch.tensor([0, *lengths]).cumsum(0, dtype=torch.int32)
        for part in ("q", "k"):
            given |= {f"cu_seq_lens_{part}": borders, f"max_length_{part}": max(lengths)}
    if "mask" in words:
        given["attention_mask"] = is_token.long()
    return given, is_token


def _padded(
    batch: Batch, words: list[str], padding: int
) -> tuple[dict[str, Any], torch.Tensor]:
    """A row for each document, as a tokenizer's pad() makes them."""
    longest = max(batch.lengths)
    lengths = torch.tensor(batch.lengths)[:, None]
    at = torch.arange(longest)
    is_token = at >= longest - lengths if "left" in words else at < lengths
    ids = torch.full(is_token.shape, padding)
    ids[is_token] = batch.input_ids
    given = {"input_ids": ids, "attention_mask": is_token.long()}
    if "positions" in words:
        given["position_ids"] = (is_token.cumsum(1) - 1).clamp(min=0)
    return given, is_token
