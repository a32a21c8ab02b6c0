# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""2025-09 to 2026-02: `get_train_spec()` holds flat model arguments by flavor."""

from __future__ import annotations

import abc
import copy
import dataclasses
from typing import Any

import torch

from bkm_cell.adapters.torchtitan_eras.era import Api, Era

PLAIN = "sdpa"


class TrainSpecEra(Era):
    def spec_and_config(self) -> tuple[Any, Any]:
        spec = self._api.train_spec
        arguments = copy.deepcopy(spec.model_args[self._api.flavor])  # shared by the whole package
        self._ask(arguments)
        return spec, arguments

    @abc.abstractmethod
    def _ask(self, arguments: Any) -> None:
        """Sets the attention in the model arguments."""

    def build(self, spec: Any, config: Any) -> torch.nn.Module:
        return spec.model_cls(config)

    def initialise(self, model: torch.nn.Module, device: torch.device) -> None:
        model.init_weights(buffer_device=device)


class FlexFlagEra(TrainSpecEra):
    """Until 2025-11: a flag chooses between flex and sdpa."""

    @classmethod
    def fits(cls, api: Api) -> bool:
        if not api.has_train_spec:
            return False
        names = {field.name for field in dataclasses.fields(api.flavors[api.flavor])}
        return "use_flex_attn" in names and "attn_type" not in names

    def _ask(self, arguments: Any) -> None:
        if self._attention not in ("flex", PLAIN):
            raise LookupError(
                f"{type(arguments).__name__}.use_flex_attn chooses between flex and sdpa: it cannot "
                f"ask for {self._attention}"
            )
        arguments.use_flex_attn = self._attention == "flex"
        arguments.attn_mask_type = "block_causal"  # what packed documents need
        self.asked_by = "model_args.use_flex_attn, attn_mask_type"


class AttentionTypeEra(TrainSpecEra):
    """From 2025-11: the arguments name the attention."""

    @classmethod
    def fits(cls, api: Api) -> bool:
        return api.has_train_spec

    def _ask(self, arguments: Any) -> None:
        arguments.attn_type = self._attention
        self.asked_by = "model_args.attn_type"
