# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The control `torchtitan`: the library's own model, masks and state-dict adapter, no Trainer.

A pairing depends on the model, its registry and its masks, so the control calls those. It does not
use the Trainer: its configuration changed in nearly every era, and it needs a data loader, a
tokenizer and a loss that verl replaces anyway.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch

from bkm_cell.adapters.base import accepted, find_module, torchtitan_package
from bkm_cell.adapters.control import ControlAdapter
from bkm_cell.adapters.torchtitan_eras import masks
from bkm_cell.adapters.torchtitan_eras.asked_numbers import ask_for_numbers
from bkm_cell.adapters.torchtitan_eras.choose import era_of
from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of
from bkm_cell.adapters.torchtitan_eras.context import ContextParallel, padded
from bkm_cell.adapters.torchtitan_eras.expert_names import ExpertNames
from bkm_cell.adapters.torchtitan_eras.flavors import fit
from bkm_cell.adapters.torchtitan_eras.parallel import (
    Parallel,
    averages_gradients,
    distributed_as,
)
from bkm_cell.adapters.torchtitan_eras.schedule import library_schedule
from bkm_cell.older_torch import DTensor
from bkm_cell.probe import Batch
from bkm_cell.tensor_file import load_file
from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors


class Adapter(ControlAdapter):
    known_options = {
        "mask": ("none",),  # pass no mask
        "spmd_backend": ("default", "full_dtensor", "spmd_types"),  # with several ranks
        "context_parallel_load_balancer": ("headtail", "ptrr", None),
    }

    _parallel: Parallel | None = None  # with several ranks
    _context: ContextParallel | None = None
    # With context parallelism: where in the row the tokens of the last `logits` are.
    places: torch.Tensor | None = None

    def import_modules(self) -> None:
        package = torchtitan_package(self.probe.hf_config["model_type"])
        self._package = find_module(package, "model_registry", "get_train_spec")
        self._attention_module = masks.import_attention_module()

    def construct(self) -> None:
        era = era_of(self._package, self.probe.hf_config, self.attention)
        spec, self._config = era.spec_and_config()
        self._asked = {"asked_by": era.asked_by}
        if era.not_asked:
            self._asked = {"not_asked": era.not_asked}
        fit(self._config, self.probe.hf_config)
        ask_for_numbers(self._config, self.probe.config_numbers)
        if self._windowed:
            configuration_of(self._config).mask_packed_documents()
        parallel = Parallel(self.probe) if self.probe.layout.ranks > 1 else None
        if parallel is None:
            self.model = era.build(spec, self._config)
            self.model.to(self.probe.device)
        else:
            self._parallel = parallel
            parallel.configure(self._config)
            with torch.device("meta"):
                self.model = era.build(spec, self._config)
            self.model = parallel.apply(spec, self.model)
            self.model.to_empty(device=self.probe.device)
            self.averages_gradients = averages_gradients(self.model)
            if self.probe.layout.cp > 1:
                self._context = parallel.context()
        with torch.no_grad():
            era.initialise(self.model, self.probe.device)
        self._load(spec)
        self._masks = self._choose_masks()
        self.model.train()
        self.make_optimizer()

    def _load(self, spec: Any) -> None:
        self._to_hf = spec.state_dict_adapter(self._config, self.probe.model_dir)
        self._names = ExpertNames(self._to_hf)
        state = self._dequantised() if self.probe.is_quantised else self._plain()
        missing, unexpected = self.model.load_state_dict(state, strict=False)
        self._unmatched = {"missing": list(missing), "unexpected": list(unexpected)}

    def _plain(self) -> Tensors:
        weights: Tensors = {}
        for path in self.probe.weight_files:
            weights.update(load_file(path, device=str(self.probe.device)))
        state = self._to_hf.from_hf(self._names.of_library(weights))
        if self.probe.layout.ranks > 1:
            state = distributed_as(self.model.state_dict(), state)
        return state

    def _dequantised(self) -> Tensors:
        """Read as the library's checkpointer reads them with `initial_load_in_hf_quantized`."""
        state = self._to_hf.to_hf(self.model.state_dict())
        reader = self._to_hf.get_hf_storage_reader(self.probe.model_dir, from_quantized=True)
        checkpoints = importlib.import_module("torch.distributed.checkpoint")
        checkpoints.load(state, storage_reader=reader)
        return self._to_hf.from_hf(state)

    @property
    def _windowed(self) -> bool:
        return bool(self.probe.hf_config.get("sliding_window"))

    def _choose_masks(self) -> masks.Masks:
        if self.probe.engine_options.get("mask") == "none":
            return masks.NoMasks()
        if hasattr(self._attention_module, "init_attention_mask"):
            return masks.LibraryMasks(self._attention_module, self.probe.eos_token_id)
        if self._windowed:
            return masks.ModelMasks(self.model, self.probe.eos_token_id)
        return masks.CallerMasks(self._attention_module, self.attention)

    def make_schedule(self) -> torch.optim.lr_scheduler.LRScheduler:
        """A decay is the library's own."""
        if self.probe.decay:
            return library_schedule(self.optimizer, self.probe)
        return super().make_schedule()

    def tensors(self) -> NamedTensors:
        def to_hf(state: Tensors) -> Tensors:
            return self._names.of_hf(self._to_hf.to_hf(state))

        return NamedTensors([self.model], to_hf, self.probe.places.keys())

    def facts(self) -> dict[str, Any]:
        return {
            "engine_class": type(self.model).__name__,
            **self._asked,
            "state_dict": self._unmatched,
        }

    def configured(self) -> str | None:
        return configuration_of(self._config).attention()

    def logits(self, batch: Batch) -> torch.Tensor:
        device = self.probe.device
        tokens, positions = batch.input_ids[None].to(device), batch.positions[None].to(device)
        if self._context is None:
            if self._parallel is not None and self._parallel.needs_equal_rows:
                longest = max(len(whole.input_ids) for whole in self.probe.batches)
                tokens, positions = padded(tokens, positions, longest, self.probe.eos_token_id)
            seen = self._forward(tokens, positions, self._masks.of(tokens, positions))
            return seen[: len(batch.input_ids)]
        tokens, positions = self._context.padded(tokens, positions, self.probe.eos_token_id)
        cut = self._context.cut(tokens, positions, self._masks.of(tokens, positions))
        seen = self._forward(cut.tokens, cut.positions, cut.masks)
        if isinstance(seen, DTensor):
            seen = seen.full_tensor()
        whole = seen.new_zeros(tokens.shape[1], seen.shape[1]).index_copy(0, cut.places, seen)
        self.places = cut.places
        return whole[: len(batch.input_ids)]

    def _forward(self, tokens: torch.Tensor, positions: torch.Tensor, masks: Any) -> torch.Tensor:
        if self._parallel is not None:
            tokens, positions = self._parallel.given(tokens, positions)
        named = {"positions": positions, "attention_masks": masks}
        taken = inspect.signature(self.model.forward).parameters
        seen = self.model(tokens, **accepted(named, taken))
        if self._parallel is not None and self._context is None:
            seen = self._parallel.whole(seen, self.probe.hf_config["vocab_size"])
        return seen.squeeze(0)

    def own(self, values: torch.Tensor) -> torch.Tensor:
        if self._context is None:
            return values
        is_own = torch.zeros_like(values, dtype=torch.bool)
        is_own[self.places[self.places < len(values)]] = True
        return values.where(is_own, 0)

    def of_all_parts(self, values: torch.Tensor) -> torch.Tensor:
        return values if self._context is None else self._context.summed(values)
