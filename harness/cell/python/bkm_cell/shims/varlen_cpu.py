# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Loads the CPU kernels of aten::_flash_attention_forward and _backward (//harness/kernels)."""

from __future__ import annotations

import os
from typing import Any

import torch

NAME = "varlen-cpu"


def library(request: dict[str, Any]) -> str | None:
    return request.get("kernels") or os.environ.get("BKM_VARLEN_KERNELS")


def apply(path: str) -> None:
    torch.ops.load_library(path)
