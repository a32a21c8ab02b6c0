# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A torchtitan model by its sizes, and what its configuration and weights are called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from bkm_cell.adapters.base import accepted
from bkm_cell.witnesses.named_tensors import Tensors

_NEEDED = {"attn_backend": "flex", "moe_comm_backend": "standard"}


def flavor_of(flavors: Mapping[str, Any], hf: Mapping[str, Any], package: str) -> str:
    """The flavor with the HF model's sizes, and with experts where that has them.

    Flavors with another vocabulary or more layers will do: `fit` makes those of the model's.
    """
    layers, vocabulary = hf["num_hidden_layers"], hf["vocab_size"]
    experts = any(key in hf for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    made = {name: config for name, flavor in flavors.items() if (config := _made(flavor))}
    fitting = [
        name
        for name, config in made.items()
        if getattr(config, "dim", None) == hf["hidden_size"]
        and (_layers(config) or 0) >= layers
        and _has_experts(config) == experts
    ]
    if not fitting:
        raise LookupError(
            f"no flavor of {package} has the probe's sizes: {hf['hidden_size']} wide, {layers} "
            f"layers or more, {'with' if experts else 'without'} experts"
        )

    def distance(name: str) -> tuple[int, bool, int]:
        other = getattr(made[name], "vocab_size", None) != vocabulary
        return (_layers(made[name]) or 0) - layers, other, len(name)

    return min(fitting, key=distance)


def fit(config: Any, hf: Mapping[str, Any]) -> None:
    """Cuts the configuration of a flavor to the HF model's layers and vocabulary."""
    layers = hf["num_hidden_layers"]
    if len(getattr(config, "layers", ())) > layers:
        config.layers = config.layers[:layers]
    elif getattr(config, "n_layers", layers) > layers:
        config.n_layers = layers
    if getattr(config, "vocab_size", hf["vocab_size"]) != hf["vocab_size"]:
        config.vocab_size = hf["vocab_size"]


def _made(flavor: Any) -> Any:
    """A configuration, or what its factory makes; None where that needs what is not here."""
    if not callable(flavor):
        return flavor
    parameters = inspect.signature(flavor).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty]
    try:
        return flavor(**accepted(_NEEDED, required))
    except Exception:  # another flavor's hardware may be missing; it is not the one that is asked
        return None


def _layers(config: Any) -> int | None:
    layers = getattr(config, "layers", None)
    return len(layers) if layers is not None else getattr(config, "n_layers", None)


def _has_experts(config: Any) -> bool:
    layers = getattr(config, "layers", None) or [getattr(config, "layer", None)]
    if layers[0] is None:  # flat model arguments
        return bool(getattr(config, "moe_enabled", hasattr(config, "moe_args")))
    return any(
        getattr(layer, "moe", None) is not None and getattr(layer, "moe_enabled", True)
        for layer in layers
    )


def mask_packed_documents(config: Any) -> None:
    """Asks the library's own masks for documents, in the eras that have a choice."""
    layers = getattr(config, "layers", None) or [getattr(config, "layer", None)]
    for owner in (config, *(getattr(layer, "attention", None) for layer in layers)):
        for name in ("attn_mask_type", "mask_type"):
            if hasattr(owner, name):
                setattr(owner, name, "block_causal")


class ExpertNames:
    """Experts of gpt_oss, which torchtitan keeps under the names and in the orientation of HF's
    quantised files, as HF writes them unquantised: [experts, in, out].
    """

    _QUANTISED = "_blocks"

    def __init__(self, adapter: Any) -> None:
        known = getattr(adapter, "from_hf_map", {})
        self._theirs = [name for name in known if name.endswith(f"proj{self._QUANTISED}")]

    def of_library(self, weights: Tensors) -> Tensors:
        renamed: Tensors = {}
        for name, value in weights.items():
            if self._is_theirs(name + self._QUANTISED):
                renamed[name + self._QUANTISED] = value.transpose(-1, -2).contiguous()
            else:
                renamed[name] = value
        return renamed

    def of_hf(self, weights: Tensors) -> Tensors:
        renamed: Tensors = {}
        for name, value in weights.items():
            if self._is_theirs(name):
                renamed[name.removesuffix(self._QUANTISED)] = value.transpose(-1, -2)
            else:
                renamed[name] = value
        return renamed

    def _is_theirs(self, name: str) -> bool:
        return any(name.endswith(known.split("{}")[-1]) for known in self._theirs)
