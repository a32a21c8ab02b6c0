# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""flex_attention on a CPU: without the device check, its eager path runs forward and backward."""

from __future__ import annotations

import inspect

import torch

from bkm_cell.older_torch import flex
from bkm_cell.shims import acts

NAME = "flex-cpu"


def apply() -> None:
    flex._validate_device = lambda *arguments, **named: acts.acted(NAME)
    if hasattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"):
        flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    if torch.version.cuda is not None:
        _default_to_cpu()


def _default_to_cpu() -> None:
    """Makes block masks on the CPU: a CUDA build without a GPU makes them on "cuda" by default."""
    for function in (flex.create_block_mask, flex.create_mask):
        parameters = inspect.signature(function).parameters
        defaults = [
            p.default
            for p in parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty
        ]
        names = [
            p.name
            for p in parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty
        ]
        if "device" in names:
            defaults[names.index("device")] = "cpu"
            function.__defaults__ = tuple(defaults)
