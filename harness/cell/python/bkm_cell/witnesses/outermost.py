# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Sees the calls of a model from outside, whoever makes them: those of a module with parameters that
happen inside no other module's call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

Entered = Callable[[torch.nn.Module, tuple[Any, ...], dict[str, Any]], None]
Left = Callable[[torch.nn.Module, Any], None]


@contextmanager
def outermost_calls(
    entered: Entered,
    left: Left,
    part_left: Left,
    part_entered: Callable[[torch.nn.Module], None] = lambda _: None,
) -> Iterator[None]:
    """Calls `entered(module, arguments, keywords)` before, and `left(module, result)` after.

    Parts of a module that was outermost are not, but `part_entered(part)` and `part_left(part, result)`
    are called where one is called by itself: a loss calls the head, and a checkpoint calls layers in the
    backward, which it often leaves by an exception. What DDP wraps is the model: DDP returns copies,
    through which no gradient of the logits comes. Torch's own process-wide hooks are not given keywords.
    """
    inner = torch.nn.Module._call_impl
    parts: set[int] = set()
    running: list[torch.nn.Module] = []

    def call(module: torch.nn.Module, *arguments: Any, **named: Any) -> Any:
        is_wrapper = isinstance(module, DistributedDataParallel)
        if running or is_wrapper or next(module.parameters(), None) is None:
            return inner(module, *arguments, **named)
        running.append(module)
        try:
            if id(module) in parts:
                part_entered(module)
                result = inner(module, *arguments, **named)
                part_left(module, result)
                return result
            parts.update(id(part) for part in module.modules() if part is not module)
            entered(module, arguments, named)
            result = inner(module, *arguments, **named)
            left(module, result)
            return result
        finally:
            running.pop()

    torch.nn.Module._call_impl = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module._call_impl = inner  # type: ignore[method-assign]
