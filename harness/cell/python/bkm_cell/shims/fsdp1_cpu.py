# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""FSDP1 with sync_module_states refuses parameters on a CPU, because NCCL cannot send them.

gloo can: only the check is left out.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from bkm_cell.shims import acts
from bkm_cell.shims.after_import import after_import

NAME = "fsdp1-cpu"

_MODULE = "torch.distributed.fsdp._init_utils"
_CHECK = "_check_module_states_for_sync_module_states"


def _without_check(module: ModuleType) -> None:
    if not hasattr(module, _CHECK):
        return

    def check(*_: Any, **__: Any) -> None:
        acts.acted(NAME)

    setattr(module, _CHECK, check)


def apply() -> None:
    after_import(_MODULE, _without_check)
