# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Finds the era of a model package."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from bkm_cell.adapters.torchtitan_eras.era import Api, Era
from bkm_cell.adapters.torchtitan_eras.registry import (
    FlavorEra,
    KeywordEra,
    LayerBackendEra,
    OneAttentionEra,
    OverrideEra,
)
from bkm_cell.adapters.torchtitan_eras.train_spec import AttentionTypeEra, FlexFlagEra

# In the order in which they are tried: a later one is told by what the earlier ones lack.
ERAS: tuple[type[Era], ...] = (
    FlexFlagEra,
    AttentionTypeEra,
    KeywordEra,
    OverrideEra,
    LayerBackendEra,
    FlavorEra,
    OneAttentionEra,
)


def era_of(package: ModuleType, hf_config: Mapping[str, Any], attention: str) -> Era:
    """The era whose shape the package has.

    A package from before 2025-09 has none: an AttributeError names what is missing. LookupError
    where no flavor has the probe's sizes.
    """
    api = Api(package, hf_config)
    for era in ERAS:
        if era.fits(api):
            return era(api, attention)
    # In Python's own words: what is missing is a fact about the package.
    message = f"module {package.__name__!r} has no attribute 'model_registry'"
    raise AttributeError(message, name="model_registry", obj=package)
