# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Makes torch.compile the identity: compiled flex has no CPU backward; runtimes lack a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.shims import acts, compiled_regions

NAME = "no-compile"


def _remembered(model: Callable[..., Any]) -> Callable[..., Any]:
    compiled_regions.remember(model)
    return model


def _identity(
    model: Callable[..., Any] | None = None, *arguments: Any, **named: Any
) -> Callable[..., Any]:
    acts.acted(NAME)
    return _remembered if model is None else _remembered(model)


def apply() -> None:
    torch.compile = _identity
