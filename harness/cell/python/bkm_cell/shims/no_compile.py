# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Makes torch.compile the identity: compiled flex has no CPU backward; runtimes lack a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.shims import acts

NAME = "no-compile"


def _identity(
    model: Callable[..., Any] | None = None, *arguments: Any, **named: Any
) -> Callable[..., Any]:
    acts.acted(NAME)
    return model if model is not None else (lambda function: function)


def apply() -> None:
    torch.compile = _identity
