# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""gloo has no PREMUL_SUM: FSDP2 then sums and divides, as on devices that can only sum.

FSDP2 asks for PREMUL_SUM where gradients are divided by another number than the size of their group
(torchtitan divides by 1, and lets its loss do the rest). torch has the other way in the same
function, for devices that can only sum: FSDPModule.set_force_sum_reduction_for_comms.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from bkm_cell.shims import acts
from bkm_cell.shims.after_import import after_import

NAME = "gloo-sum"

_MODULE = "torch.distributed.fsdp._fully_shard._fsdp_collectives"
_FUNCTION = "_get_gradient_divide_factors"


def _sum_only(module: ModuleType) -> None:
    original = getattr(module, _FUNCTION, None)
    signature = None if original is None else inspect.signature(original)
    needed = {"factor", "force_sum_reduction_for_comms"}
    if signature is None or not needed <= signature.parameters.keys():
        # Not silently: a factor of the number of ranks would be lost or added.
        raise RuntimeError(
            f"the shim {NAME} does not know this torch's way to divide gradients: {_MODULE} has no "
            f"{_FUNCTION}({', '.join(sorted(needed))})"
        )

    def factors(*arguments: Any, **named: Any) -> Any:
        given = signature.bind(*arguments, **named)
        if given.arguments.get("factor") is not None:
            acts.acted(NAME)
            given.arguments["force_sum_reduction_for_comms"] = True
        return original(*given.args, **given.kwargs)

    setattr(module, _FUNCTION, factors)


def apply() -> None:
    after_import(_MODULE, _sum_only)
