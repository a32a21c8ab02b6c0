# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Products of bf16 matrices in fp32, rounded once, on a CPU without instructions for bf16.

torch gives such products to oneDNN only if the processor has AVX-512; otherwise it sums them
element by element, many times slower than this. The result is the same: sums in fp32, like
oneDNN's and cuBLAS's.
"""

from __future__ import annotations

import warnings

import torch

from bkm_cell.shims import acts

NAME = "bf16-products-in-fp32"

_LIBRARIES: list[torch.library.Library] = []  # the registrations live as long as these
_ATEN = torch.ops.aten


def needed() -> bool:
    """Whether torch multiplies bf16 without oneDNN here."""
    return not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _wide(*operands: torch.Tensor) -> list[torch.Tensor]:
    """bf16 as fp32, any other type unchanged."""
    acts.acted(NAME)
    *_, a, b = operands
    if a.dtype != b.dtype:  # in the CPU kernel's own words
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}"
        )
    if all(operand.dtype == torch.bfloat16 for operand in operands):
        return [operand.float() for operand in operands]
    return list(operands)


# The replaced ops cannot be called here. The ops that also add use the same kernels.
def _mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    wide_a, wide_b = _wide(a, b)
    product = wide_a.new_empty(a.shape[0], b.shape[-1])
    return _ATEN.addmm.out(product, wide_a, wide_b, beta=0, out=product).to(a.dtype)


def _bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    wide_a, wide_b = _wide(a, b)
    product = wide_a.new_empty(a.shape[0], a.shape[-2], b.shape[-1])
    return _ATEN.baddbmm.out(product, wide_a, wide_b, beta=0, out=product).to(a.dtype)


def _into(out: torch.Tensor, product: torch.Tensor) -> torch.Tensor:
    if out.dtype != product.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {product.dtype}, but got {out.dtype} instead"
        )
    return out.resize_(product.shape).copy_(product)


def _mm_out(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    return _into(out, _mm(a, b))


def _bmm_out(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    return _into(out, _bmm(a, b))


def _addmm(
    added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    added_wide, wide_a, wide_b = _wide(added, a, b)
    total = wide_a.new_empty(a.shape[0], b.shape[-1])
    return _ATEN.addmm.out(added_wide, wide_a, wide_b, beta=beta, alpha=alpha, out=total).to(
        a.dtype
    )


def _baddbmm(
    added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    added_wide, wide_a, wide_b = _wide(added, a, b)
    total = wide_a.new_empty(a.shape[0], a.shape[-2], b.shape[-1])
    return _ATEN.baddbmm.out(added_wide, wide_a, wide_b, beta=beta, alpha=alpha, out=total).to(
        a.dtype
    )


def apply() -> None:
    library = torch.library.Library("aten", "IMPL", "CPU")
    _LIBRARIES.append(library)
    with warnings.catch_warnings():  # replacing the CPU's own kernels is intended
        warnings.simplefilter("ignore")
        for op, kernel in {
            "mm": _mm,
            "mm.out": _mm_out,
            "bmm": _bmm,
            "bmm.out": _bmm_out,
            "addmm": _addmm,
            "baddbmm": _baddbmm,
        }.items():
            library.impl(op, kernel)
