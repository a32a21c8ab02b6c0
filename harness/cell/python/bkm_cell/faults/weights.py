# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Weights differ from the file after a load without errors."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch
import torch.nn.functional as F

from bkm_cell.faults.registry import Phase, fault
from bkm_cell.faults.site import Site, local


@fault("skip-load", Phase.BEFORE_CONSTRUCT)
def skip_load(site: Site) -> None:
    """The model keeps its initial weights."""
    if site.library == "transformers":
        models = importlib.import_module("transformers.modeling_utils")

        def from_nothing(
            kind: Any, path: str, *arguments: Any, config: Any = None, **named: Any
        ) -> Any:
            site.act()
            if config is None:
                config = importlib.import_module("transformers").AutoConfig.from_pretrained(path)
            if implementation := named.get("attn_implementation"):
                config._attn_implementation = implementation
            return kind(config)

        models.PreTrainedModel.from_pretrained = classmethod(from_nothing)
    elif hasattr(site.adapter, "engine_module"):
        manager = importlib.import_module("torchtitan.components.checkpoint").CheckpointManager

        def load(*arguments: Any, **named: Any) -> bool:
            site.act()
            return True

        manager.load = load
    else:

        def load_state_dict(*arguments: Any, **named: Any) -> tuple[list[str], list[str]]:
            site.act()
            return [], []

        torch.nn.Module.load_state_dict = load_state_dict


@fault("layer-not-loaded")
def layer_not_loaded(site: Site) -> None:
    """One layer keeps its initial weights."""
    generator = torch.Generator().manual_seed(0)
    for _, parameter in site.parameters(rf"(^|\.)layers\.{site.middle_layer}\."):
        site.act()
        weight = local(parameter)
        if weight.dim() > 1:
            drawn = torch.empty(weight.shape, dtype=weight.dtype)
            weight.copy_(drawn.normal_(0, 0.02, generator=generator))
        else:
            weight.fill_(1)


@fault("gate-up-swapped")
def gate_up_swapped(site: Site) -> None:
    """In one layer, two weights of the same shape are swapped."""
    layer = rf"(^|\.)layers\.{site.middle_layer}\."
    ((_, gate),) = site.parameters(layer + r".*\.(gate_proj|w1)\.weight$")
    ((_, up),) = site.parameters(layer + r".*\.(up_proj|w3)\.weight$")
    first = local(gate).clone()
    local(gate).copy_(local(up))
    local(up).copy_(first)
    site.act()


@fault("qk-permutation-missing", Phase.BEFORE_CONSTRUCT)
def qk_permutation_missing(site: Site) -> None:
    """Rotary pairs keep HF's layout in a model that needs neighbouring pairs."""
    homes = [m for name, m in list(sys.modules.items()) if name.endswith(".state_dict_adapter")]
    kinds = {
        kind
        for home in homes
        for kind in vars(home).values()
        if isinstance(kind, type) and "_reverse_permute" in vars(kind)
    }
    if not kinds:
        raise site.cannot("no state-dict adapter permutes")

    def unchanged(_: Any, adapter: Any, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
        site.act()
        return weight

    for kind in kinds:
        site.around(kind, "_reverse_permute", unchanged)


@fault("tied-embedding-untied")
def tied_embedding_untied(site: Site) -> None:
    """Embedding and head share values but not gradients: the embedding's part is lost."""
    if not site.hf_config.get("tie_word_embeddings"):
        raise site.cannot("embedding and head are two tensors in this model")
    for _, embedding in site.modules("embed_tokens", "tok_embeddings"):

        def forward(tokens: torch.Tensor, embedding: Any = embedding) -> torch.Tensor:
            site.act()
            # The graph begins here: FSDP and checkpointing need an input with a gradient.
            return F.embedding(tokens, embedding.weight.detach()).requires_grad_()

        embedding.forward = forward


@fault("norm-epsilon-off")
def norm_epsilon_off(site: Site) -> None:
    """The norms have another epsilon than the configuration: the default of their class."""
    for top in site.adapter.modules():
        for module in top.modules():
            for name in ("variance_epsilon", "eps"):
                if type(module).__name__.lower().endswith("norm") and hasattr(module, name):
                    setattr(module, name, 3e-6)
                    site.act()


@fault("product-in-bf16")
def product_in_bf16(site: Site) -> None:
    """One layer multiplies in bf16 and returns the type that it was given, as a fused kernel may."""
    mark = f"layers.{site.middle_layer}."
    found = [module for name, module in site.modules("down_proj", "w2") if mark in name + "."]
    if len(found) != 1:
        raise site.cannot(f"{len(found)} modules of the middle layer are called down_proj or w2")
    layer = found[0]

    def forward(x: torch.Tensor) -> torch.Tensor:
        site.act()
        return F.linear(x.bfloat16(), layer.weight.bfloat16()).to(x.dtype)

    layer.forward = forward
