# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The interface of an era, and the API that eras are recognised by."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Mapping
from functools import cached_property
from types import ModuleType
from typing import Any

import torch

from bkm_cell.adapters.torchtitan_eras.flavors import flavor_of


class Api:
    """The parts of a torchtitan model package that eras are recognised by.

    They are read lazily: a package has only those of its own era.
    """

    def __init__(self, package: ModuleType, hf_config: Mapping[str, Any]) -> None:
        self.package = package
        self._hf_config = hf_config

    @property
    def has_train_spec(self) -> bool:
        return hasattr(self.package, "get_train_spec")

    @cached_property
    def train_spec(self) -> Any:
        return self.package.get_train_spec()

    @property
    def has_registry(self) -> bool:
        return not self.has_train_spec and hasattr(self.package, "model_registry")

    @property
    def registry(self) -> Any:
        return self.package.model_registry

    @cached_property
    def registry_parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.registry).parameters

    @cached_property
    def flavors(self) -> Mapping[str, Any]:
        """Model configurations, or their factories, by flavor."""
        if self.has_train_spec:
            return self.train_spec.model_args
        for name, value in vars(self.package).items():
            if name.endswith("_configs") and isinstance(value, Mapping):
                return value
        raise LookupError(f"{self.package.__name__} has a model_registry and no *_configs")

    @cached_property
    def flavor(self) -> str:
        """The flavor that has the probe's sizes."""
        return flavor_of(self.flavors, self._hf_config, self.package.__name__)

    @cached_property
    def registered(self) -> Any:
        """The registry's spec of the flavor, without asking for an attention."""
        return self.registry(self.flavor)


class Era(abc.ABC):
    """Builds a model with a chosen attention through the API of one era."""

    asked_by = ""  # how the attention was asked for; set by spec_and_config()
    not_asked = ""  # why the library cannot be asked for an attention

    def __init__(self, api: Api, attention: str) -> None:
        self._api = api
        self._attention = attention

    @classmethod
    @abc.abstractmethod
    def fits(cls, api: Api) -> bool:
        """Whether the API has this era's shape."""

    @abc.abstractmethod
    def spec_and_config(self) -> tuple[Any, Any]:
        """The library's spec, and a model configuration that names the attention."""

    @abc.abstractmethod
    def build(self, spec: Any, config: Any) -> torch.nn.Module: ...

    @abc.abstractmethod
    def initialise(self, model: torch.nn.Module, device: torch.device) -> None:
        """Gives parameters and buffers the library's own initial values."""
