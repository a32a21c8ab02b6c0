# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""From 2026-02: the spec of `model_registry(flavor)` has a configuration that builds the model."""

from __future__ import annotations

import abc
from typing import Any

import torch

from bkm_cell.adapters.torchtitan_eras.era import Api, Era
from bkm_cell.adapters.torchtitan_eras.train_spec import PLAIN

_WAYS = ("flex", "varlen")  # flavor suffixes, in the era with a flavor for each attention


class RegistryEra(Era):
    @classmethod
    def fits(cls, api: Api) -> bool:
        return api.has_registry and cls._fits(api)

    @classmethod
    @abc.abstractmethod
    def _fits(cls, api: Api) -> bool:
        """Whether a package with a registry has this era's shape."""

    def build(self, spec: Any, config: Any) -> torch.nn.Module:
        return config.build()

    def initialise(self, model: torch.nn.Module, device: torch.device) -> None:
        # init_states came in 2026-04, not at a boundary of these eras.
        name = "init_states" if hasattr(model, "init_states") else "init_weights"
        getattr(model, name)(buffer_device=device)


class KeywordEra(RegistryEra):
    """From 2026-04-17: the registry takes the attention by a keyword."""

    keyword = "attn_backend"

    @classmethod
    def _fits(cls, api: Api) -> bool:
        return cls.keyword in api.registry_parameters

    def spec_and_config(self) -> tuple[Any, Any]:
        self.asked_by = f"model_registry({self.keyword}=)"
        spec = self._api.registry(self._api.flavor, **{self.keyword: self._attention})
        return spec, spec.model


class OverrideEra(KeywordEra):
    """2026-03-27 to 04-03, qwen3 only: the registry takes the attention by another keyword."""

    keyword = "attn_backend_override"


class LayerBackendEra(RegistryEra):
    """2026-02 to 2026-03: the layer template of the configuration names the attention."""

    @classmethod
    def _fits(cls, api: Api) -> bool:
        return hasattr(_attention_of(api.registered), "attn_backend")

    def spec_and_config(self) -> tuple[Any, Any]:
        spec = self._api.registered
        _attention_of(spec).attn_backend = self._attention
        self.asked_by = "model.layer.attention.attn_backend"
        return spec, spec.model


class FlavorEra(RegistryEra):
    """2026-03-31 to 04-17: a flavor for each attention."""

    @classmethod
    def _fits(cls, api: Api) -> bool:
        return any(name.startswith(f"{api.flavor}_{way}") for name in api.flavors for way in _WAYS)

    def spec_and_config(self) -> tuple[Any, Any]:
        flavor = self._api.flavor
        flavor += "" if self._attention == PLAIN else f"_{self._attention}"
        self.asked_by = f"flavor {flavor}"
        if flavor not in self._api.flavors:
            raise LookupError(f"{self._api.package.__name__} has no flavor {flavor}")
        spec = self._api.registry(flavor)
        return spec, spec.model


class OneAttentionEra(RegistryEra):
    """Models without a choice of attention (gpt_oss until 2026-06)."""

    not_asked = "the library has one attention for this model and offers no choice"

    @classmethod
    def _fits(cls, api: Api) -> bool:
        return True

    def spec_and_config(self) -> tuple[Any, Any]:
        spec = self._api.registered
        return spec, spec.model


def _attention_of(spec: Any) -> Any:
    return getattr(getattr(spec.model, "layer", None), "attention", None)
