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

# Tried in this order: a later era also fits what an earlier era would have matched.
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
    """The era that fits the package.

    Raises AttributeError if none fits (packages before 2025-09), with the name of the missing
    function, and LookupError if no flavor has the probe's sizes.
    """
    api = Api(package, hf_config)
    for era in ERAS:
        if era.fits(api):
            return era(api, attention)
    # The message of Python's own failed look-up: verdicts quote it.
    message = f"module {package.__name__!r} has no attribute 'model_registry'"
    raise AttributeError(message, name="model_registry", obj=package)
