# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Inside what would be compiled, a selective checkpoint recomputes everything.

A compiler decides by itself what is recomputed: compiled code knows no dispatch mode. Run eagerly, the
mode of a selective checkpoint would hide autocast from the operations below it, which then fail
over their types. Elsewhere, the mode is the subject's own and stays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch.utils.checkpoint as checkpoint

from bkm_cell.shims import acts, compiled_regions

NAME = "selective-checkpoint"


def apply() -> None:
    make: Callable[..., Any] | None = getattr(
        checkpoint, "create_selective_checkpoint_contexts", None
    )
    if make is None:  # an older torch has no selective checkpoints
        return

    @functools.wraps(make)
    def contexts(*arguments: Any, **named: Any) -> Any:
        if not _is_inside_a_region():
            return make(*arguments, **named)
        acts.acted(NAME)
        return nullcontext(), nullcontext()

    checkpoint.create_selective_checkpoint_contexts = contexts


def _is_inside_a_region() -> bool:
    frame = inspect.currentframe()
    while frame is not None:
        if compiled_regions.is_one(frame):
            return True
        frame = frame.f_back
    return False
