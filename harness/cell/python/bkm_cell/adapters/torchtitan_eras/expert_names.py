# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What torchtitan's state-dict adapter calls the weights of experts."""

from __future__ import annotations

from typing import Any

from bkm_cell.witnesses.named_tensors import Tensors


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
