# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Checks on a device what harness/kernels/README.md says that CUDA's attention kernels do.

A program for the machine's interpreter: `attention_probes.py --device cuda|cpu [--kernels FILE]`
prints JSON. Each probe calls a kernel with one argument and says what it saw; `as_documented` is
null where nothing is promised. On a CPU, the stand-ins (`--kernels`) are called instead; what they
do otherwise on purpose is null there, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

Probe = Callable[[torch.device], dict[str, Any]]
_PROBES: dict[str, Probe] = {}
_ON_DEVICE_ONLY: set[str] = set()
_IN_OWN_PROCESS: set[str] = set()
_HEADS, _DIM = 4, 64


def probe(on_device_only: bool = False, in_own_process: bool = False) -> Callable[[Probe], Probe]:
    """`in_own_process`: it may leave the device unusable for its process."""

    def register(function: Probe) -> Probe:
        name = function.__name__.replace("_", "-")
        _PROBES[name] = function
        if on_device_only:
            _ON_DEVICE_ONLY.add(name)
        if in_own_process:
            _IN_OWN_PROCESS.add(name)
        return function

    return register


def _qkv(
    device: torch.device,
    tokens: int,
    heads: int = _HEADS,
    kv_heads: int | None = None,
    dim: int = _DIM,
    value_dim: int | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> list[torch.Tensor]:
    """Packed q, k and v [tokens, heads, dim], equal on every device."""
    generator = torch.Generator().manual_seed(7)
    shapes = [(heads, dim), (kv_heads or heads, dim), (kv_heads or heads, value_dim or dim)]
    return [torch.randn(tokens, *s, generator=generator).to(dtype).to(device) for s in shapes]


def _offsets(device: torch.device, *bounds: int) -> torch.Tensor:
    return torch.tensor(bounds, dtype=torch.int32, device=device)


def _flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cum: Any, **other: Any) -> Any:
    """Forward; `other` replaces arguments."""
    longest = int(cum.diff().max())
    given: dict[str, Any] = {"max_q": longest, "max_k": longest, "causal": True, "debug": False}
    given |= other
    return torch.ops.aten._flash_attention_forward(
        q,
        k,
        v,
        given.get("cum_q", cum),
        given.get("cum_k", cum),
        given["max_q"],
        given["max_k"],
        0.0,
        given["causal"],
        given["debug"],
    )


def _flash_gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cum: Any, max_k: int) -> Any:
    longest = int(cum.diff().max())
    out, lse, rng_state, unused, _ = _flash(q, k, v, cum)
    _dirty(q), _dirty(k), _dirty(v)
    return torch.ops.aten._flash_attention_backward(
        torch.ones_like(out), q, k, v, out, lse, cum, cum, longest, max_k, 0.0, True, rng_state, unused
    )


def _dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """In float64: [tokens, heads, dim]; `allowed`: bool[queries, keys]."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~allowed.to(q.device), float("-inf"))
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)


def _causal(*lengths: int) -> torch.Tensor:
    return torch.block_diag(*(torch.ones(n, n).tril() for n in lengths)).bool()


def _dirty(like: torch.Tensor) -> None:
    """Leaves NaN in memory of this size, which the kernel is given next."""
    filled = [torch.full_like(like, float("nan")) for _ in range(4)]
    del filled


def _wrong_rows(seen: torch.Tensor, right: torch.Tensor) -> list[int]:
    difference = (seen.double() - right).abs().flatten(1).amax(1)
    return torch.nonzero(~(difference < 0.05)).flatten().tolist()


def _refused(call: Callable[[], Any], *words: str) -> dict[str, Any]:
    try:
        call()
    except Exception as error:
        said = str(error).splitlines()[0][:300]
        return {"seen": f"refused: {said}", "as_documented": all(word in said for word in words)}
    return {"seen": "computed without an error", "as_documented": False}


@probe()
def computes(device: torch.device) -> dict[str, Any]:
    numbers = torch.arange(256, device=device)
    right = (numbers * numbers).cpu().tolist() == [i * i for i in range(256)]
    return {"seen": "right" if right else "wrong numbers", "as_documented": right}


@probe()
def flash_causal(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 256)
    seen = _flash(q, k, v, _offsets(device, 0, 200, 256))[0]
    right = _dense(q, k, v, _causal(200, 56))
    error = (seen.double() - right).abs().max().item()
    rounded = (right.bfloat16().double() - right).abs().max().item()
    text = f"largest error {error:.2e}; of the result itself, rounded once, {rounded:.2e}"
    return {"seen": text, "as_documented": error < 0.02, "error": error, "rounded_once": rounded}


@probe()
def flash_grouped_heads(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 128, heads=8, kv_heads=2)
    wrong = _wrong_rows(_flash(q, k, v, _offsets(device, 0, 128))[0], _dense(q, k, v, _causal(128)))
    return {"seen": f"{len(wrong)} wrong rows of 128", "as_documented": not wrong}


@probe()
def flash_fp32(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64, dtype=torch.float32)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64)), "fp16 and bf16")


@probe()
def flash_head_dim_not_a_multiple_of_8(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64, dim=20)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64)), "multiple of 8")


@probe()
def flash_head_dim_above_256(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64, dim=264)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64)), "256")


@probe()
def flash_key_heads_that_do_not_divide(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64, heads=8, kv_heads=3)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64)), "divide")


@probe()
def flash_offsets_of_int64(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64).long()), "int32")


@probe()
def flash_debug_mask_without_dropout(device: torch.device) -> dict[str, Any]:
    q, k, v = _qkv(device, 64)
    return _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64), debug=True), "dropout")


@probe()
def flash_wider_values(device: torch.device) -> dict[str, Any]:
    """FlashAttention 2 refuses it; the stand-in takes what FlashAttention 3 takes."""
    q, k, v = _qkv(device, 64, dim=64, value_dim=128)
    seen = _refused(lambda: _flash(q, k, v, _offsets(device, 0, 64)))
    return seen | ({} if device.type == "cuda" else {"as_documented": None})


@probe()
def flash_max_q_too_small(device: torch.device) -> dict[str, Any]:
    """Documented: queries beyond max_q, rounded up to a tile, are not computed."""
    q, k, v = _qkv(device, 512)
    cum, right = _offsets(device, 0, 500, 512), _dense(q, k, v, _causal(500, 12))
    _dirty(q)
    wrong = _wrong_rows(_flash(q, k, v, cum, max_q=64)[0], right)
    return {
        "seen": f"{len(wrong)} wrong rows of 512, from row {wrong[0] if wrong else '-'}",
        "as_documented": bool(wrong) and wrong[0] >= 64 if device.type == "cuda" else None,
    }


@probe()
def flash_first_offset_not_0(device: torch.device) -> dict[str, Any]:
    """Documented: rows before the first offset are left as allocated."""
    q, k, v = _qkv(device, 128)
    right = _dense(q[32:], k[32:], v[32:], _causal(96))
    _dirty(q)
    seen = _flash(q, k, v, _offsets(device, 32, 128))[0]
    rest = _wrong_rows(seen[32:], right)
    stale = int(seen[:32].isnan().any(-1).any(-1).sum())
    return {
        "seen": f"{stale} of 32 rows before the offset hold old memory; {len(rest)} wrong rows after it",
        "as_documented": not rest if device.type == "cuda" else None,
        "stale_rows": stale,
    }


@probe()
def flash_last_offset_too_small(device: torch.device) -> dict[str, Any]:
    """Documented: rows from the last offset on are left as allocated."""
    q, k, v = _qkv(device, 128)
    right = _dense(q[:96], k[:96], v[:96], _causal(96))
    _dirty(q)
    seen = _flash(q, k, v, _offsets(device, 0, 96))[0]
    rest = _wrong_rows(seen[:96], right)
    stale = int(seen[96:].isnan().any(-1).any(-1).sum())
    return {
        "seen": f"{stale} of 32 rows after the offset hold old memory; {len(rest)} wrong rows before it",
        "as_documented": not rest if device.type == "cuda" else None,
        "stale_rows": stale,
    }


@probe()
def flash_causal_with_one_query(device: torch.device) -> dict[str, Any]:
    """Documented: with max_q 1, every key is visible."""
    q, k, v = _qkv(device, 20)
    given = {"cum_q": _offsets(device, 0, 1), "max_q": 1}
    seen = _flash(q[:1], k, v, _offsets(device, 0, 20), **given)[0]
    wrong = _wrong_rows(seen, _dense(q[:1], k, v, torch.ones(1, 20).bool()))
    return {"seen": "sees every key" if not wrong else "does not", "as_documented": not wrong}


@probe()
def flash_max_k_too_small_in_backward(device: torch.device) -> dict[str, Any]:
    """Documented: max_k sizes the launch for the gradients of key and value."""
    q, k, v = _qkv(device, 512)
    cum = _offsets(device, 0, 512)
    right = [g.double() for g in _flash_gradients(q, k, v, cum, 512)]
    seen = _flash_gradients(q, k, v, cum, 64)
    wrong = [len(_wrong_rows(a, b)) for a, b in zip(seen, right, strict=True)]
    return {
        "seen": "wrong rows of 512 in the gradients of query, key, value: {}, {}, {}".format(*wrong),
        "as_documented": wrong[1] > 0 and wrong[2] > 0 if device.type == "cuda" else None,
    }


@probe()
def flash_backward_twice(device: torch.device) -> dict[str, Any]:
    """Documented: the query's gradient may differ in the last bits."""
    q, k, v = _qkv(device, 1024)
    cum = _offsets(device, 0, 1024)
    first, second = (_flash_gradients(q, k, v, cum, 1024) for _ in range(2))
    moved = [int((a != b).sum()) for a, b in zip(first, second, strict=True)]
    text = "elements of {} that differ, query, key, value: {}, {}, {}"
    return {"seen": text.format(q.numel(), *moved), "as_documented": moved[1:] == [0, 0], "moved": moved}


@probe()
def flash_strides_of_output(device: torch.device) -> dict[str, Any]:
    """Documented: those of the query, if it is dense; contiguous in the stand-in."""
    q, k, v = _qkv(device, 64)
    q = q.transpose(0, 1).contiguous().transpose(0, 1)
    seen = _flash(q, k, v, _offsets(device, 0, 64))[0].stride()
    wanted = q.stride() if device.type == "cuda" else (_HEADS * _DIM, _DIM, 1)
    return {"seen": f"query {q.stride()}, output {seen}", "as_documented": seen == wanted}


@probe(in_own_process=True)
def flash_rows_not_aligned(device: torch.device) -> dict[str, Any]:
    """Documented: a row that does not begin at 16 bytes is an error of the device."""
    q, k, v = _qkv(device, 64)
    storage = torch.zeros(q.numel() + 1, dtype=q.dtype, device=device)
    shifted = storage[1:].view(q.shape).copy_(q)
    try:
        seen = _flash(shifted, k, v, _offsets(device, 0, 64))[0]
        if device.type == "cuda":
            torch.cuda.synchronize()
        wrong = _wrong_rows(seen, _dense(q, k, v, _causal(64)))
    except Exception as error:
        return {"seen": str(error).splitlines()[0][:300], "as_documented": device.type == "cuda"}
    return {"seen": f"{len(wrong)} wrong rows of 64", "as_documented": None if wrong else device.type == "cpu"}


def _sdpa_backends(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = _qkv(device, 256, dtype=dtype)
    right = _dense(q, k, v, _causal(256))
    q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
    found: dict[str, Any] = {}
    attend = torch.nn.functional.scaled_dot_product_attention
    for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        try:
            with sdpa_kernel(getattr(SDPBackend, name)):
                seen = attend(q, k, v, is_causal=True)[0].transpose(0, 1)
            found[name] = f"largest error {(seen.double() - right).abs().max().item():.2e}"
        except Exception as error:
            found[name] = f"refused: {str(error).splitlines()[0][:160]}"
    chosen = torch._fused_sdp_choice(q, k, v, is_causal=True)
    found["chosen"] = str(SDPBackend(chosen)).rpartition(".")[2]
    return {"seen": found, "as_documented": None}


@probe()
def sdpa_backends_bf16(device: torch.device) -> dict[str, Any]:
    return _sdpa_backends(device, torch.bfloat16)


@probe()
def sdpa_backends_fp32(device: torch.device) -> dict[str, Any]:
    return _sdpa_backends(device, torch.float32)


def _flex(device: torch.device, counts: Any, indices: Any, full_counts: Any, full: Any) -> Any:
    """(compiled flex with this block table, q, k, v); 256 tokens in blocks of 128, causal."""
    from torch.nn.attention.flex_attention import BlockMask, flex_attention

    def table(values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    mask = BlockMask.from_kv_blocks(
        table(counts)[None, None],
        table(indices)[None, None],
        table(full_counts)[None, None],
        table(full)[None, None],
        BLOCK_SIZE=128,
        mask_mod=lambda b, h, q, k: q >= k,
    )
    q, k, v = _qkv(device, 256)
    heads_first = [t.transpose(0, 1)[None].contiguous() for t in (q, k, v)]
    torch._dynamo.reset()
    seen = torch.compile(flex_attention)(*heads_first, block_mask=mask)
    return seen[0].transpose(0, 1), q, k, v


_RIGHT_TABLE = ([1, 1], [[0, 1], [1, 0]], [0, 1], [[0, 1], [0, 1]])


@probe(on_device_only=True)
def flex_right_table(device: torch.device) -> dict[str, Any]:
    seen, *qkv = _flex(device, *_RIGHT_TABLE)
    wrong = _wrong_rows(seen, _dense(*qkv, _causal(256)))
    return {"seen": f"{len(wrong)} wrong rows of 256", "as_documented": not wrong}


@probe(on_device_only=True)
def flex_needed_block_not_listed(device: torch.device) -> dict[str, Any]:
    """Documented: only listed blocks are computed."""
    seen, *qkv = _flex(device, [1, 1], [[0, 1], [1, 0]], [0, 0], [[0, 1], [0, 1]])
    without = _causal(256)
    without[128:, :128] = False
    wrong = _wrong_rows(seen, _dense(*qkv, without))
    return {"seen": "the block is not seen" if not wrong else "other", "as_documented": not wrong}


@probe(on_device_only=True)
def flex_hidden_pair_in_a_full_block(device: torch.device) -> dict[str, Any]:
    """Documented: in a full block, mask_mod is not asked."""
    seen, *qkv = _flex(device, [0, 1], [[0, 1], [1, 0]], [1, 1], [[0, 1], [0, 1]])
    whole = _causal(256)
    whole[:128, :128] = True
    wrong = _wrong_rows(seen, _dense(*qkv, whole))
    return {"seen": "hidden pairs are seen" if not wrong else "other", "as_documented": not wrong}


@probe(on_device_only=True)
def flex_block_listed_twice(device: torch.device) -> dict[str, Any]:
    """Documented: blocks are computed as listed. Twice as a full block: its keys count twice."""
    seen, *qkv = _flex(device, [1, 1], [[0, 1], [1, 0]], [0, 2], [[0, 1], [0, 0]])
    wrong = _wrong_rows(seen, _dense(*qkv, _causal(256)))
    return {"seen": f"{len(wrong)} wrong rows of 256", "as_documented": bool(wrong) and wrong[0] >= 128}


def _run(name: str, device: torch.device) -> dict[str, Any]:
    begin = time.monotonic()
    try:
        with torch.no_grad():
            found = _PROBES[name](device)
            if device.type == "cuda":
                torch.cuda.synchronize()
    except Exception as error:
        found = {"seen": f"{type(error).__name__}: {error}"[:500], "as_documented": False}
    return {"probe": name, **found, "seconds": round(time.monotonic() - begin, 3)}


def _in_own_process(name: str, arguments: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-I", "-B", __file__, *arguments, "--only", name]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return json.loads(ran.stdout.strip().splitlines()[-1])["probes"][0]
    except (subprocess.TimeoutExpired, IndexError, KeyError, ValueError) as error:
        seen = f"its process did not answer: {type(error).__name__}"
        return {"probe": name, "seen": seen, "as_documented": False}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--kernels")
    parser.add_argument("--only", choices=sorted(_PROBES))
    options = parser.parse_args()
    device = torch.device(options.device)
    if options.kernels and options.device == "cpu":
        torch.ops.load_library(options.kernels)
    found = []
    for name in [options.only] if options.only else _PROBES:
        if device.type == "cpu" and name in _ON_DEVICE_ONLY:
            continue
        if device.type == "cpu" and name.startswith("flash") and not options.kernels:
            continue
        if name in _IN_OWN_PROCESS and not options.only:
            found.append(_in_own_process(name, sys.argv[1:]))
        else:
            found.append(_run(name, device))
    print(json.dumps({"device": options.device, "probes": found}))


if __name__ == "__main__":
    main()
