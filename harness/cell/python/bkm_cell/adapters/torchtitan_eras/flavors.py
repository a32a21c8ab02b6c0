# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The flavor of a torchtitan model that has the probe's sizes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from bkm_cell.adapters.base import accepted
from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of

_NEEDED = {"attn_backend": "flex", "moe_comm_backend": "standard"}


def flavor_of(flavors: Mapping[str, Any], hf: Mapping[str, Any], package: str) -> str:
    """The flavor with the HF model's sizes, and with experts if the HF model has them.

    The vocabulary may differ and there may be more layers: `fit` adapts both.
    """
    layers, vocabulary = hf["num_hidden_layers"], hf["vocab_size"]
    experts = any(key in hf for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    made = {name: config for name, flavor in flavors.items() if (config := _made(flavor))}
    fitting = [
        name
        for name, config in made.items()
        if getattr(config, "dim", None) == hf["hidden_size"]
        and configuration_of(config).layers >= layers
        and configuration_of(config).has_experts() == experts
    ]
    if not fitting:
        raise LookupError(
            f"no flavor of {package} has the probe's sizes: {hf['hidden_size']} wide, {layers} "
            f"layers or more, {'with' if experts else 'without'} experts"
        )

    def distance(name: str) -> tuple[int, bool, int]:
        other = getattr(made[name], "vocab_size", None) != vocabulary
        return configuration_of(made[name]).layers - layers, other, len(name)

    return min(fitting, key=distance)


def fit(config: Any, hf: Mapping[str, Any]) -> None:
    """Cuts the configuration of a flavor to the HF model's layers and vocabulary."""
    configuration_of(config).keep_layers(hf["num_hidden_layers"])
    if getattr(config, "vocab_size", hf["vocab_size"]) != hf["vocab_size"]:
        config.vocab_size = hf["vocab_size"]


def _made(flavor: Any) -> Any:
    """A configuration, made by its factory if it is one; None if the factory fails."""
    if not callable(flavor):
        return flavor
    parameters = inspect.signature(flavor).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty]
    try:
        return flavor(**accepted(_NEEDED, required))
    except Exception:  # a flavor that nobody asked for may need other hardware
        return None
