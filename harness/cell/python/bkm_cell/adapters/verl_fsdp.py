# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's FSDP engine over a HF model, with FSDP2: FSDP1's flat parameters hide the tensors."""

from __future__ import annotations

from typing import Any

from bkm_cell.adapters.verl import VerlAdapter
from bkm_cell.witnesses.named_tensors import NamedTensors

_FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}


class Adapter(VerlAdapter):
    engine_module = "verl.workers.engine.fsdp.transformer_impl"
    engine_class = "FSDPEngineWithLMHead"

    def configs(self) -> tuple[Any, Any, Any]:
        config = self.verl_config
        options = {"strategy": "fsdp2"}
        if self.probe.precision == "fp32":
            options["mixed_precision"] = _FP32
        override = {"attn_implementation": self.attention}
        return (
            self.model_config(override_config=override),
            self.engine_config(config.FSDPEngineConfig, **options),
            self.optimizer_config(config.FSDPOptimizerConfig, {"lr_scheduler_type": "constant"}),
        )

    def tensors(self) -> NamedTensors:
        return NamedTensors(self.modules(), None)

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation
