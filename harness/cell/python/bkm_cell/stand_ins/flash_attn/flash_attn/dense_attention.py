# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What the kernels compute, one sequence at a time, and what they refuse.

Source of every rule: flash_attn 2.8.3, the docstrings of flash_attn_interface.py and the checks of
csrc/flash_attn/flash_api.cpp, whose messages are kept: a cell must stop here where it would stop on
a GPU.
"""

from __future__ import annotations

import dataclasses
import itertools

import torch

# The types that the kernels take. A repeated forward in fp32 (bkm_cell.witnesses.in_fp32) adds it.
DTYPES = {torch.float16, torch.bfloat16}


def _check(is_right: bool, message: str) -> None:
    if not is_right:
        raise RuntimeError(message)


def check_inputs(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, softcap: float
) -> None:
    """q, k, v: [..., heads, head size]."""
    _check(q.dtype in DTYPES, "FlashAttention only support fp16 and bf16 data type")
    _check(k.dtype == q.dtype, "query and key must have the same dtype")
    _check(v.dtype == q.dtype, "query and value must have the same dtype")
    heads, size = q.shape[-2:]
    _check(size <= 256, "FlashAttention forward only supports head dimension at most 256")
    _check(
        heads % k.shape[-2] == 0,
        "Number of heads in key/value must divide number of heads in query",
    )
    _check(k.shape[-1] == size, f"k must have shape (..., {k.shape[-2]}, {size})")
    _check(v.shape == k.shape, f"v must have shape {tuple(k.shape)}")
    if softcap > 0:
        _check(dropout_p == 0, "Softcapping does not support dropout for now")


def check_lengths(
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    max_seqlen_q: int,
) -> None:
    """cu_seqlens: int32[sequences + 1]; q, k: [tokens, heads, head size]."""
    for name, cu_seqlens in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        _check(cu_seqlens.dtype == torch.int32, f"{name} must have dtype int32")
    for name, cu_seqlens in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        _check(cu_seqlens.is_contiguous(), f"{name} must be contiguous")
    sequences = cu_seqlens_q.numel() - 1
    _check(sequences > 0, "batch size must be positive")
    for name, cu_seqlens in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        _check(
            tuple(cu_seqlens.shape) == (sequences + 1,), f"{name} must have shape (batch_size + 1)"
        )
    if max_seqlen_q == 1 and q.shape[1] > k.shape[1]:
        # The kernel takes the heads of a group for the rows of one sequence.
        q.reshape(sequences, k.shape[1], q.shape[1] // k.shape[1], q.shape[2])


def window_of(window: tuple[int, int], is_causal: bool, longest_key: int) -> tuple[int, int]:
    """(left, right) as the kernel sees them: -1 is no bound. A causal mask wins over `right`."""
    left, right = (-1 if side >= longest_key else side for side in window)
    return left, 0 if is_causal else right


@dataclasses.dataclass(frozen=True)
class Attention:
    """Settings of a call. `window`: (left, right), -1 is no bound; `softcap`: 0 is none.

    Sequences are q [queries, heads, size], k and v [keys, key heads, size]; sums are in fp32. Query
    i stands at key i + keys - queries: masks are aligned to the bottom right.
    """

    scale: float
    window: tuple[int, int]
    softcap: float

    def _weights(
        self, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights and, by softcap, the derivative of the scores, [heads, queries, keys]; the
        logsumexp [heads, queries]."""
        scores = torch.einsum("qhd,khd->hqk", q, k) * self.scale
        slope = torch.ones_like(scores)
        if self.softcap > 0:
            capped = torch.tanh(scores / self.softcap)
            scores, slope = capped * self.softcap, 1 - capped.square()
        place = torch.arange(len(q), device=q.device)[:, None] + len(k) - len(q)
        key = torch.arange(len(k), device=q.device)[None]
        left, right = self.window
        hidden = torch.zeros(len(q), len(k), dtype=torch.bool, device=q.device)
        if left >= 0:
            hidden = hidden | (key < place - left)
        if right >= 0:
            hidden = hidden | (key > place + right)
        scores = scores.masked_fill(hidden, -torch.inf)
        # A query that sees no key has no softmax: its weights, and so its result, are 0.
        weights = torch.softmax(scores, -1).masked_fill(hidden, 0.0)
        return weights, slope, torch.logsumexp(scores, -1)

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One sequence: the result, like q in fp32, and the logsumexp [heads, queries]."""
        groups = q.shape[1] // k.shape[1]
        k, v = (x.float().repeat_interleave(groups, 1) for x in (k, v))
        weights, _, lse = self._weights(q.float(), k)
        return torch.einsum("hqk,khd->qhd", weights, v), lse

    def backward(
        self, dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The gradients of q, k and v in fp32, by the gradient of the result."""
        groups = q.shape[1] // k.shape[1]
        dout, q = dout.float(), q.float()
        k, v = (x.float().repeat_interleave(groups, 1) for x in (k, v))
        weights, slope, _ = self._weights(q, k)
        dweights = torch.einsum("qhd,khd->hqk", dout, v)
        mean = (weights * dweights).sum(-1, keepdim=True)
        dscores = weights * (dweights - mean) * slope * self.scale
        dq = torch.einsum("hqk,khd->qhd", dscores, k)
        dk = torch.einsum("hqk,qhd->khd", dscores, q)
        dv = torch.einsum("hqk,qhd->khd", weights, dout)
        # Heads of a group share their key and value.
        dk, dv = (x.unflatten(1, (-1, groups)).sum(2) for x in (dk, dv))
        return dq, dk, dv


@dataclasses.dataclass(frozen=True)
class Packing:
    """Where the sequences of packed tokens are: [tokens, heads, size].

    The kernel writes no token outside of the sequences and none behind the first `max_seqlen_q` of
    a sequence: what lies in memory there is NaN here. (It writes whole blocks, so a sequence a
    little longer than `max_seqlen_q` may still be complete on a GPU.)
    """

    queries: list[slice]
    keys: list[slice]
    max_seqlen_q: int

    @classmethod
    def of(
        cls,
        q: torch.Tensor,
        k: torch.Tensor,
        cu_seqlens_q: torch.Tensor,
        cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int,
    ) -> Packing:
        sides = []
        for cu_seqlens, tokens in ((cu_seqlens_q, len(q)), (cu_seqlens_k, len(k))):
            places = cu_seqlens.tolist()
            if places[0] < 0 or places != sorted(places) or places[-1] > tokens:
                raise RuntimeError(
                    f"cu_seqlens {places} leave the {tokens} tokens: the kernel would use other"
                    " memory"
                )
            sides.append([slice(*pair) for pair in itertools.pairwise(places)])
        return cls(*sides, max_seqlen_q)

    def forward(
        self, attention: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The result, like q in fp32, and the logsumexp [heads, tokens]."""
        out = torch.full(q.shape, torch.nan, dtype=torch.float32, device=q.device)
        lse = torch.full((q.shape[1], len(q)), torch.nan, dtype=torch.float32, device=q.device)
        for queries, keys in zip(self.queries, self.keys):
            part, part_lse = attention.forward(q[queries], k[keys], v[keys])
            written = self._written(queries)
            out[written] = part[: self.max_seqlen_q]
            lse[:, written] = part_lse[:, : self.max_seqlen_q]
        return out, lse

    def backward(
        self,
        attention: Attention,
        dout: torch.Tensor,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        gradients = tuple(torch.zeros(x.shape, dtype=torch.float32, device=x.device) for x in (q, k, v))
        for queries, keys in zip(self.queries, self.keys):
            flows = torch.zeros_like(dout[queries])
            flows[: self.max_seqlen_q] = dout[self._written(queries)]
            parts = attention.backward(flows, q[queries], k[keys], v[keys])
            for gradient, part, place in zip(gradients, parts, (queries, keys, keys)):
                gradient[place] += part
        return gradients

    def _written(self, queries: slice) -> slice:
        return slice(queries.start, min(queries.stop, queries.start + self.max_seqlen_q))
