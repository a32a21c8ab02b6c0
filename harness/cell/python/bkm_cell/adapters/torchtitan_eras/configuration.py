# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Where a model configuration keeps its layers and its attention: a class for each shape."""

from __future__ import annotations

import abc
from typing import Any


class Configuration(abc.ABC):
    """One model configuration, in the shape of its era."""

    def __init__(self, config: Any) -> None:
        self._config = config

    @property
    def layers(self) -> int:
        return getattr(self._config, "n_layers", None) or 0

    def keep_layers(self, layers: int) -> None:
        """Cuts the configuration to its first layers."""
        if self.layers > layers:
            self._config.n_layers = layers

    @abc.abstractmethod
    def has_experts(self) -> bool: ...

    @abc.abstractmethod
    def attention(self) -> str | None:
        """The attention that the configuration names; None if it names none."""

    @abc.abstractmethod
    def mask_packed_documents(self) -> None:
        """Asks the library to mask packed documents, if the configuration has a choice of masks."""


class FlatArguments(Configuration):
    """Until 2026-02: flat model arguments."""

    def has_experts(self) -> bool:
        return bool(getattr(self._config, "moe_enabled", hasattr(self._config, "moe_args")))

    def attention(self) -> str | None:
        if hasattr(self._config, "attn_type"):
            return self._config.attn_type
        if hasattr(self._config, "use_flex_attn"):
            return "flex" if self._config.use_flex_attn else "sdpa"
        return None

    def mask_packed_documents(self) -> None:
        if hasattr(self._config, "attn_mask_type"):
            self._config.attn_mask_type = "block_causal"


class LayerTemplate(Configuration):
    """2026-02 to 2026-04: `layer` is the template of all `n_layers` layers."""

    def _layer_configs(self) -> list[Any]:
        return [self._config.layer]

    def has_experts(self) -> bool:
        return any(
            getattr(layer, "moe", None) is not None and getattr(layer, "moe_enabled", True)
            for layer in self._layer_configs()
        )

    def attention(self) -> str | None:
        attention = getattr(self._layer_configs()[0], "attention", None)
        if hasattr(attention, "attn_backend"):
            return attention.attn_backend
        inner = getattr(attention, "inner_attention", None)
        return type(inner).__qualname__ if inner is not None else None

    def mask_packed_documents(self) -> None:
        for layer in self._layer_configs():
            attention = getattr(layer, "attention", None)
            for name in ("attn_mask_type", "mask_type"):
                if hasattr(attention, name):
                    setattr(attention, name, "block_causal")


class LayerList(LayerTemplate):
    """From 2026-04: `layers` has a configuration for each layer."""

    def _layer_configs(self) -> list[Any]:
        return self._config.layers

    @property
    def layers(self) -> int:
        return len(self._config.layers)

    def keep_layers(self, layers: int) -> None:
        if self.layers > layers:
            self._config.layers = self._config.layers[:layers]


def configuration_of(config: Any) -> Configuration:
    if getattr(config, "layers", None):
        return LayerList(config)
    if getattr(config, "layer", None) is not None:
        return LayerTemplate(config)
    return FlatArguments(config)
