# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The control `torchtitan`: the library's own model, masks and state-dict adapter, no Trainer.

The Trainer's configuration changed with nearly every era and wants a data loader, a tokenizer and a
loss that verl replaces anyway; the model, its registry and its masks are what a pairing depends on,
so the control calls those.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.attention.flex_attention as flex

from bkm_cell.adapters.base import accepted, torchtitan_package
from bkm_cell.adapters.control import ControlAdapter
from bkm_cell.adapters.torchtitan_model import ExpertNames, fit, flavor_of, mask_packed_documents
from bkm_cell.probe import Batch
from bkm_cell.tensor_file import load_file
from bkm_cell.witnesses.named_tensors import NamedTensors

_PLAIN = "sdpa"  # what flavors have that name no attention
_WAYS = ("flex", "varlen")  # what flavors are called after, in the eras that have one for each
_ATTENTION_MODULES = ("torchtitan.models.common.attention", "torchtitan.models.attention")


class Adapter(ControlAdapter):
    known_options = {"mask": ("none",)}  # hand over no mask

    def import_modules(self) -> None:
        self._package = importlib.import_module(
            torchtitan_package(self.probe.hf_config["model_type"])
        )
        home = next(name for name in _ATTENTION_MODULES if _exists(name))
        self._attention = importlib.import_module(home)

    def construct(self) -> None:
        self._asked_by = ""
        spec, config = self._spec_and_config()
        fit(config, self.probe.hf_config)
        if self._windowed:
            mask_packed_documents(config)
        if hasattr(config, "build"):
            self.model = config.build()
        else:
            self.model = spec.model_cls(config)
        self.model.to(self.probe.device)
        with torch.no_grad():
            getattr(
                self.model, "init_states" if hasattr(self.model, "init_states") else "init_weights"
            )(buffer_device=self.probe.device)
        self._config = config
        self._to_hf = spec.state_dict_adapter(config, self.probe.model_dir)
        path = os.path.join(self.probe.model_dir, "model.safetensors")
        self._names = ExpertNames(self._to_hf)
        weights = self._names.of_library(load_file(path, device=str(self.probe.device)))
        state = self._to_hf.from_hf(weights)
        missing, unexpected = self.model.load_state_dict(state, strict=False)
        self._unmatched = {"missing": list(missing), "unexpected": list(unexpected)}
        self.model.train()
        self.make_optimizer()

    def _spec_and_config(self) -> tuple[Any, Any]:
        """The library's spec and model configuration for the probe's sizes and attention."""
        if hasattr(self._package, "get_train_spec"):  # model arguments in a train spec
            spec = self._package.get_train_spec()
            flavor = self._flavor(spec.model_args)
            config = copy.deepcopy(spec.model_args[flavor])
            self._ask(config)
            return spec, config
        registry = self._package.model_registry
        configs = next(
            value
            for name, value in vars(self._package).items()
            if name.endswith("_configs") and isinstance(value, Mapping)
        )
        parameters = inspect.signature(registry).parameters
        for keyword in ("attn_backend", "attn_backend_override"):
            if keyword in parameters:
                self._asked_by = f"model_registry({keyword}=)"
                spec = registry(self._flavor(configs), **{keyword: self.attention})
                return spec, spec.model
        spec = registry(self._flavor(configs))
        attention = getattr(getattr(spec.model, "layer", None), "attention", None)
        if hasattr(attention, "attn_backend"):
            attention.attn_backend = self.attention
            self._asked_by = "model.layer.attention.attn_backend"
            return spec, spec.model
        flavor, self._asked_by = self._flavor(configs), "nothing: the library has one attention"
        if any(name.startswith(f"{flavor}_{way}") for name in configs for way in _WAYS):
            flavor += "" if self.attention == _PLAIN else f"_{self.attention}"
            self._asked_by = f"flavor {flavor}"
            if flavor not in configs:
                raise LookupError(f"{self._package.__name__} has no flavor {flavor}")
        spec = registry(flavor)
        return spec, spec.model

    def _ask(self, arguments: Any) -> None:
        """Sets the attention in model arguments: by name, or by what was there before."""
        names = {field.name for field in dataclasses.fields(arguments)}
        if "attn_type" in names or "use_flex_attn" not in names:
            arguments.attn_type = self.attention
            self._asked_by = "model_args.attn_type"
            return
        if self.attention not in ("flex", _PLAIN):
            raise LookupError(
                f"{type(arguments).__name__}.use_flex_attn chooses between flex and sdpa: it cannot "
                f"ask for {self.attention}"
            )
        arguments.use_flex_attn = self.attention == "flex"
        arguments.attn_mask_type = "block_causal"  # what packed documents need
        self._asked_by = "model_args.use_flex_attn, attn_mask_type"

    def _flavor(self, flavors: Mapping[str, Any]) -> str:
        return flavor_of(flavors, self.probe.hf_config, self._package.__name__)

    def tensors(self) -> NamedTensors:
        return NamedTensors([self.model], lambda state: self._names.of_hf(self._to_hf.to_hf(state)))

    def facts(self) -> dict[str, Any]:
        return {
            "engine_class": type(self.model).__name__,
            "asked_by": self._asked_by,
            "state_dict": self._unmatched,
        }

    def configured(self) -> str | None:
        return configured_attention(self._config)

    def logits(self, batch: Batch) -> torch.Tensor:
        device = self.probe.device
        tokens, positions = batch.input_ids[None].to(device), batch.positions[None].to(device)
        named = {"positions": positions, "attention_masks": self._masks(tokens, positions)}
        taken = inspect.signature(self.model.forward).parameters
        return self.model(tokens, **accepted(named, taken)).squeeze(0)

    @property
    def _windowed(self) -> bool:
        return bool(self.probe.hf_config.get("sliding_window"))

    def _masks(self, tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        """The packed batch's masks, to be handed over; or None, where the library keeps them itself.

        As verl builds them; but of a model with windows, only the library knows which layer has one.
        """
        if self.probe.engine_options.get("mask") == "none":
            return None
        if hasattr(self._attention, "init_attention_mask"):  # it finds documents by their eos
            self._attention.init_attention_mask(tokens, self.probe.eos_token_id)
            return None
        if self._windowed:
            offered = {
                "input_batch": tokens,
                "tokenizer": SimpleNamespace(eos_id=self.probe.eos_token_id),
                "positions": positions,
            }
            build = self.model.get_attention_masks
            return build(**accepted(offered, inspect.signature(build).parameters))
        return packed_mask(self._attention, self.attention, positions)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def configured_attention(config: Any) -> str | None:
    """What a torchtitan model configuration says of its attention, wherever its era keeps that."""
    if hasattr(config, "attn_type"):
        return config.attn_type
    if hasattr(config, "use_flex_attn"):
        return "flex" if config.use_flex_attn else _PLAIN
    layers = getattr(config, "layers", None)
    layer = layers[0] if layers else getattr(config, "layer", None)
    attention = getattr(layer, "attention", None)
    if hasattr(attention, "attn_backend"):
        return attention.attn_backend
    inner = getattr(attention, "inner_attention", None)
    return type(inner).__qualname__ if inner is not None else None


def packed_mask(attention: Any, backend: str, positions: torch.Tensor) -> Any:
    """A packed batch's mask, as verl builds it: a document starts where positions reset."""
    length = positions.shape[1]
    starts = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1) != 1
    if backend == "varlen":
        starts[:, 0] = True
        bounds = torch.cat(
            [starts[0].nonzero().flatten(), torch.tensor([length], device=positions.device)]
        ).int()
        longest = bounds.diff().max().item()
        return attention.VarlenMetadata(
            cu_seq_q=bounds, cu_seq_k=bounds, max_q=longest, max_k=longest
        )
    document = starts.cumsum(-1)

    def same_document(
        b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, kv: torch.Tensor
    ) -> torch.Tensor:
        return document[b, q] == document[b, kv]

    allowed = flex.and_masks(attention.get_causal_mask_mod(), same_document)
    return attention.create_attention_mask(allowed, positions.shape[0], None, length, length)
