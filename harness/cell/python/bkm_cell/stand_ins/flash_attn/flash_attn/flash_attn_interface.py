# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The functions, operators and autograd functions of flash_attn 2.8.3, by their names.

The names of operators (flash_attn::...) and of autograd functions are those of the real package, so
that whoever looks for them finds the same with both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional, Tuple

import torch

from bkm_cell.stand_ins.lacks import lacks
from flash_attn.dense_attention import (
    Attention,
    Packing,
    check_inputs,
    check_lengths,
    window_of,
)


def _operator(name: str, mutates: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Like the real package: an operator where torch can define one (2.4), else the function."""
    if not hasattr(torch.library, "custom_op"):
        return lambda function: function
    return torch.library.custom_op(f"flash_attn::{name}", mutates_args=mutates, device_types="cpu")


def _refuse(dropout_p: float, alibi_slopes: object, return_softmax: bool) -> None:
    if dropout_p:
        lacks("dropout")
    if alibi_slopes is not None:
        lacks("ALiBi slopes")
    if return_softmax:
        raise RuntimeError("return_softmax is only supported when p_dropout > 0.0")


def _no_extras(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernel returns of dropout: no mask, and a random state that nothing reads."""
    return q.new_empty(0), torch.zeros(2, dtype=torch.int64, device=q.device)


@_operator("_flash_attn_forward")
def _flash_attn_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Optional[torch.Tensor],
    return_softmax: bool,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    check_inputs(q, k, v, dropout_p, softcap)
    _refuse(dropout_p, alibi_slopes, return_softmax)
    window = window_of((window_size_left, window_size_right), causal, k.shape[1])
    attention = Attention(softmax_scale, window, softcap)
    out, lse = (torch.stack(parts) for parts in zip(*map(attention.forward, q, k, v)))
    return out.to(q.dtype), lse, *_no_extras(q)


@_operator("_flash_attn_varlen_forward")
def _flash_attn_varlen_forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int = -1,
    window_size_right: int = -1,
    softcap: float = 0.0,
    alibi_slopes: Optional[torch.Tensor] = None,
    return_softmax: bool = False,
    block_table: Optional[torch.Tensor] = None,
    leftpad_k: Optional[torch.Tensor] = None,
    seqused_k: Optional[torch.Tensor] = None,
    zero_tensors: bool = False,
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    check_inputs(q, k, v, dropout_p, softcap)
    check_lengths(cu_seqlens_q, cu_seqlens_k, q, k, max_seqlen_q)
    _refuse(dropout_p, alibi_slopes, return_softmax)
    if block_table is not None or leftpad_k is not None or seqused_k is not None:
        lacks("paged or padded keys")
    window = window_of((window_size_left, window_size_right), causal, max_seqlen_k)
    packing = Packing.of(q, k, cu_seqlens_q, cu_seqlens_k, max_seqlen_q)
    out, lse = packing.forward(Attention(softmax_scale, window, softcap), q, k, v)
    return out.to(q.dtype), lse, *_no_extras(q)


@_operator("_flash_attn_backward", ("dq", "dk", "dv"))
def _flash_attn_backward(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    dq: Optional[torch.Tensor],
    dk: Optional[torch.Tensor],
    dv: Optional[torch.Tensor],
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Optional[torch.Tensor],
    deterministic: bool,
    rng_state: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    window = window_of((window_size_left, window_size_right), causal, k.shape[1])
    attention = Attention(softmax_scale, window, softcap)
    parts = zip(*map(attention.backward, dout, q, k, v))
    for gradient, part in zip((dq, dk, dv), parts):
        gradient.copy_(torch.stack(part))
    return (dout.float() * out.float()).sum(-1).transpose(1, 2).contiguous()


@_operator("_flash_attn_varlen_backward", ("dq", "dk", "dv"))
def _flash_attn_varlen_backward(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    softmax_lse: torch.Tensor,
    dq: Optional[torch.Tensor],
    dk: Optional[torch.Tensor],
    dv: Optional[torch.Tensor],
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Optional[torch.Tensor],
    deterministic: bool,
    rng_state: Optional[torch.Tensor] = None,
    zero_tensors: bool = False,
) -> torch.Tensor:
    window = window_of((window_size_left, window_size_right), causal, max_seqlen_k)
    packing = Packing.of(q, k, cu_seqlens_q, cu_seqlens_k, max_seqlen_q)
    parts = packing.backward(Attention(softmax_scale, window, softcap), dout, q, k, v)
    for gradient, part in zip((dq, dk, dv), parts):
        gradient.copy_(part)
    return (dout.float() * out.float()).sum(-1).transpose(0, 1).contiguous()


def _called(name: str, function: Any) -> Any:
    """The operator, through the dispatcher, as the real package calls it."""
    return getattr(torch.ops.flash_attn, name) if hasattr(torch.library, "custom_op") else function


class FlashAttnFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, scale, causal, window, softcap, dropout_p, alibi, deterministic):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        out, lse, _, _ = _called("_flash_attn_forward", _flash_attn_forward)(
            q, k, v, dropout_p, scale, causal, *window, softcap, alibi, False
        )
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.arguments = (dropout_p, scale, causal, *window, softcap, alibi, deterministic)
        return out, lse

    @staticmethod
    def backward(ctx, dout, *_):
        q, k, v, out, lse = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        _called("_flash_attn_backward", _flash_attn_backward)(
            dout, q, k, v, out, lse, *gradients, *ctx.arguments
        )
        return *gradients, *[None] * 7


class FlashAttnVarlenFunc(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, q, k, v, lengths, scale, causal, window, softcap, dropout_p, alibi, deterministic, table
    ):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        out, lse, _, _ = _called("_flash_attn_varlen_forward", _flash_attn_varlen_forward)(
            q, k, v, *lengths, dropout_p, scale, causal, *window, softcap, alibi, False, table
        )
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.lengths = lengths
        ctx.arguments = (dropout_p, scale, causal, *window, softcap, alibi, deterministic)
        return out, lse

    @staticmethod
    def backward(ctx, dout, *_):
        q, k, v, out, lse = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        _called("_flash_attn_varlen_backward", _flash_attn_varlen_backward)(
            dout, q, k, v, out, lse, *gradients, *ctx.lengths, *ctx.arguments
        )
        return *gradients, *[None] * 9


def flash_attn_func(
    q,
    k,
    v,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """q [batch, queries, heads, size], k and v [batch, keys, key heads, size] -> like q."""
    out, lse = FlashAttnFunc.apply(
        q, k, v, softmax_scale, causal, window_size, softcap, dropout_p, alibi_slopes, deterministic
    )
    return (out, lse, None) if return_attn_probs else out


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
    block_table=None,
):
    """q [queries, heads, size], k and v [keys, key heads, size], cu_seqlens int32 -> like q."""
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    out, lse = FlashAttnVarlenFunc.apply(
        q,
        k,
        v,
        lengths,
        softmax_scale,
        causal,
        window_size,
        softcap,
        dropout_p,
        alibi_slopes,
        deterministic,
        block_table,
    )
    return (out, lse, None) if return_attn_probs else out


def flash_attn_qkvpacked_func(qkv, *arguments, **keywords):
    """qkv: [batch, tokens, 3, heads, size]; the rest as for flash_attn_func."""
    return flash_attn_func(*qkv.unbind(-3), *arguments, **keywords)


def flash_attn_kvpacked_func(q, kv, *arguments, **keywords):
    """kv: [batch, keys, 2, key heads, size]; the rest as for flash_attn_func."""
    return flash_attn_func(q, *kv.unbind(-3), *arguments, **keywords)


def flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, max_seqlen, *arguments, **keywords):
    """qkv: [tokens, 3, heads, size]; the rest as for flash_attn_varlen_func."""
    return flash_attn_varlen_func(
        *qkv.unbind(-3), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *arguments, **keywords
    )


def flash_attn_varlen_kvpacked_func(q, kv, *arguments, **keywords):
    """kv: [keys, 2, key heads, size]; the rest as for flash_attn_varlen_func."""
    return flash_attn_varlen_func(q, *kv.unbind(-3), *arguments, **keywords)


def flash_attn_with_kvcache(*_, **__):
    lacks("decoding with a cache")
