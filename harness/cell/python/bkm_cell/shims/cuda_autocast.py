# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Autocast on a CPU promotes as on CUDA.

CUDA's autocast runs a list of ops (rms_norm, softmax, pow, sum, ...) in fp32 that CPU's leaves in
bf16. Where the results feed an op that takes bf16 only, CUDA fails and an unaligned CPU would not.
The lists are read from the header of the torch that runs, so that each torch is aligned with its
own CUDA.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

NAME = "cuda-autocast-lists"

_LISTS = {"AT_FORALL_FP32": "promote", "AT_FORALL_FP32_SET_OPT_DTYPE": "set-dtype"}
_LIBRARIES: list[torch.library.Library] = []  # the registrations live as long as these


def _listed(macro: str) -> list[str]:
    """Op names, as "name" or "name.overload", that torch's header lists in a macro."""
    header = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "autocast_mode.h")
    with open(header) as file:
        text = file.read().replace("\\\n", " ")
    found = re.search(rf"^#define {macro}\(_\)(.*)$", text, re.MULTILINE)
    if found is None:
        raise RuntimeError(
            f"{header} does not define {macro}: how CUDA's autocast promotes cannot be read from it"
        )
    return [
        ".".join(part.strip() for part in entry.split(","))
        for entry in re.findall(r"_\(([^)]*)\)", found[1])
    ]


def _is_eligible(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == "cpu"
        and value.is_floating_point()
        and value.dtype != torch.float64
    )


def _to_fp32(value: Any) -> Any:
    return value.float() if _is_eligible(value) else value


def _promoting(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*arguments: Any, **named: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        ):
            return op(*tree_map(_to_fp32, arguments), **tree_map(_to_fp32, named))

    return kernel


def _setting_dtype(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*arguments: Any, **named: Any) -> Any:
        given = (
            dict(zip((argument.name for argument in op._schema.arguments), arguments, strict=False))
            | named
        )
        if given.get("dtype") is None and arguments and _is_eligible(arguments[0]):
            given["dtype"] = torch.float32
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        ):
            positional = [
                given.pop(a.name)
                for a in op._schema.arguments
                if not a.kwarg_only and a.name in given
            ]
            return op(*positional, **given)

    return kernel


def apply() -> None:
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    _LIBRARIES.append(library)
    for macro, policy in _LISTS.items():
        for name in _listed(macro):
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op is None or torch._C._dispatch_has_kernel_for_dispatch_key(
                op.name(), "AutocastCPU"
            ):
                continue
            library.impl(op, _promoting(op) if policy == "promote" else _setting_dtype(op))
