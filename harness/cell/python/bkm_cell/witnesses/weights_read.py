# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Detects a subject's first read of weights: the boundary between `construct` and `load`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from typing import Any

import torch
import torch.distributed.checkpoint as checkpoint

from bkm_cell import tensor_file


def _readers() -> list[tuple[Any, str]]:
    """All functions that read weights. A runtime may lack some of the packages."""
    readers: list[tuple[Any, str]] = [
        (tensor_file, "load_file"),
        (checkpoint, "load"),
        (checkpoint, "load_state_dict"),
        (torch, "load"),
    ]
    for module, name in (("safetensors", "safe_open"), ("safetensors.torch", "load_file")):
        with suppress(ImportError):
            readers.append((import_module(module), name))
    return readers


@contextmanager
def first_weights_read(began: Callable[[str], None]):
    """Calls `began(reader)` at the first read in the block; does not change the reads."""
    pending = [began]
    patched: list[tuple[Any, str, Any]] = []

    def watched(name: str, reader: Any) -> Any:
        @wraps(reader, updated=())
        def read(*args: Any, **kwargs: Any) -> Any:
            if pending:
                pending.pop()(name)
            return reader(*args, **kwargs)

        return read

    for owner, name in _readers():
        reader = getattr(owner, name)
        stand_in = watched(f"{owner.__name__}.{name}", reader)
        # Modules that are imported already hold the reader under their own name.
        for module in [owner, *list(sys.modules.values())]:
            if getattr(module, "__dict__", {}).get(name) is reader:
                patched.append((module, name, reader))
                setattr(module, name, stand_in)
    try:
        yield
    finally:
        pending.clear()
        for module, name, reader in patched:
            setattr(module, name, reader)
