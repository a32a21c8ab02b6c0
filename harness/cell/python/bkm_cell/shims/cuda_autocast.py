# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Makes autocast on a CPU promote as on CUDA.

CUDA's autocast runs a list of ops (rms_norm, softmax, pow, sum, ...) in fp32 that the CPU's leaves
in bf16, and another list (scatter_add, index_put, ...) in the widest type of the inputs. If such a
result feeds an op that takes bf16 only, CUDA fails and an unaligned CPU does not. If a library
mixes types in such an op, an unaligned CPU fails and CUDA does not. The lists are read from the
header of the torch that runs, so each torch is aligned with its own CUDA.

CUDA's autocast also accepts fp32 as its type: torchtitan's routers use it to compute in fp32 inside
a bf16 region. The CPU's autocast disables itself instead, and the types of the router's inputs and
weight then differ.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from bkm_cell.shims import acts

NAME = "cuda-autocast-lists"

_LIBRARIES: list[torch.library.Library] = []  # the registrations live as long as these


def listed(macro: str) -> list[str]:
    """The op names ("name" or "name.overload") in a macro of torch's header."""
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
        acts.acted(NAME)
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        ):
            return op(*tree_map(_to_fp32, arguments), **tree_map(_to_fp32, named))

    return kernel


def _setting_dtype(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*arguments: Any, **named: Any) -> Any:
        acts.acted(NAME)
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


def _widening(op: torch._ops.OpOverload) -> Callable[..., Any]:
    def kernel(*arguments: Any, **named: Any) -> Any:
        acts.acted(NAME)
        values = [value for value in tree_leaves((arguments, named)) if _is_eligible(value)]
        widest = torch.get_autocast_dtype("cpu")
        if any(value.dtype == torch.float32 for value in values):
            widest = torch.float32

        def widened(value: Any) -> Any:
            return value.to(widest) if _is_eligible(value) else value

        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        ):
            return op(*tree_map(widened, arguments), **tree_map(widened, named))

    return kernel


_LISTS = {
    "AT_FORALL_FP32": _promoting,
    "AT_FORALL_FP32_SET_OPT_DTYPE": _setting_dtype,
    "AT_FORALL_PROMOTE": _widening,
}


def _take_fp32(kind: type) -> None:
    construct = kind.__init__

    @functools.wraps(construct)
    def init(self: Any, device_type: str, dtype: Any = None, *rest: Any, **named: Any) -> None:
        is_fp32 = device_type == "cpu" and dtype == torch.float32
        construct(self, device_type, torch.bfloat16 if is_fp32 else dtype, *rest, **named)
        if is_fp32:
            self.fast_dtype = dtype

    kind.__init__ = init


def apply() -> None:
    _take_fp32(torch.autocast)
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    _LIBRARIES.append(library)
    for macro, kernel_of in _LISTS.items():
        for name in listed(macro):
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op is None or torch._C._dispatch_has_kernel_for_dispatch_key(
                op.name(), "AutocastCPU"
            ):
                continue
            library.impl(op, kernel_of(op))
