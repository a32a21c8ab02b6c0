# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's FSDP engine over a HF model: a language model, or a critic (head `value`).

It asks for FSDP2, unless the engine option `strategy` names FSDP1 or leaves it to verl ("default").
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import hf_tensors
from bkm_cell.adapters.verl import VerlAdapter
from bkm_cell.probe import Probe
from bkm_cell.ranks.layout import Layout
from bkm_cell.witnesses.named_tensors import NamedTensors

FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}


def schedule_of(probe: Probe) -> dict[str, Any]:
    """Of the learning rate, under the names of verl's configuration; without the warm-up."""
    if not probe.decay:
        return {"lr_scheduler_type": "constant"}
    return {"lr_scheduler_type": probe.decay, "min_lr_ratio": probe.min_lr_factor}


def degrees_of(layout: Layout) -> dict[str, int]:
    """The layout, under the names of verl's configuration. -1 shards over all ranks."""
    degrees = {}
    if layout.ulysses > 1:
        degrees["ulysses_sequence_parallel_size"] = layout.ulysses
    if layout.dp_replicate > 1:
        degrees["fsdp_size"] = layout.shards * layout.ulysses
    return degrees


class Adapter(VerlAdapter):
    engine_module = "verl.workers.engine.fsdp.transformer_impl"

    def __init__(self, probe: Probe, attention: str) -> None:
        super().__init__(probe, attention)
        is_critic = probe.head == "value"
        self.engine_class = "FSDPEngineWithValueHead" if is_critic else "FSDPEngineWithLMHead"
        self.output = "values" if is_critic else "log_probs"

    def import_modules(self) -> None:
        super().import_modules()
        if self.probe.layout.ranks > 1:
            _import_configurations()

    def loss_function(self) -> Callable[..., Any]:
        return _value_loss if self.probe.head == "value" else super().loss_function()

    def configs(self) -> tuple[Any, Any, Any]:
        config = self.verl_config
        options = {} if "strategy" in self.left_to_engine else {"strategy": "fsdp2"}
        if self.probe.precision == "fp32":
            options["mixed_precision"] = FP32
        override = {"attn_implementation": self.attention}
        return (
            self.model_config(override_config=override),
            self.engine_config(config.FSDPEngineConfig, **options, **degrees_of(self.probe.layout)),
            self.optimizer_config(config.FSDPOptimizerConfig, schedule_of(self.probe)),
        )

    def sharding(self) -> str:
        strategy = self.probe.engine_options.get("strategy", "fsdp2")
        return {"fsdp": "fsdp1", "fsdp2": "fsdp2"}.get(strategy, "")

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, self.modules())

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation


def _import_configurations() -> None:
    """Before the ranks are forked, so once for all of them.

    The engine asks whether the model is one of a list, which imports the configuration of each. If
    this fails here, it is left to the engine.
    """
    with contextlib.suppress(Exception):
        auto = importlib.import_module("transformers.models.auto.modeling_auto")
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING.keys()


def _value_loss(model_output: Any, data: Any, dp_group: Any = None) -> tuple[torch.Tensor, Any]:
    """Half the mean square of (value - 1) over the tokens that count.

    verl's own value_loss needs the returns and old values of a roll-out, which a probe lacks.
    """
    values, mask = model_output["values"].values(), data["loss_mask"].values()
    tokens = data["batch_num_tokens"]
    return 0.5 * ((values - 1.0).square() * mask).sum() / tokens * data["dp_size"], {}
