# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""An attention runs that was not asked for; the numbers stay right."""

from __future__ import annotations

from collections.abc import Collection

import torch
import torch.nn.functional as F

from bkm_cell.faults.attention_calls import AttentionCall, around_attention, past_attention
from bkm_cell.faults.masks import causal_in_documents
from bkm_cell.faults.registry import Phase, fault, register
from bkm_cell.faults.site import Site

OTHER_BACKEND = "other-backend"

_OTHERS = {
    "flex": "varlen",
    "varlen": "flex",
    "sdpa": "eager",
    "eager": "sdpa",
    "flex_attention": "sdpa",
}


def other_backend(asked: str, library: str) -> str:
    if library == "torchtitan" and asked == "sdpa":
        return "flex"
    return _OTHERS.get(asked, "sdpa")


register(OTHER_BACKEND, lambda site: None, Phase.ASK)


def _fallen_back(site: Site, call: AttentionCall, plain: bool = False) -> torch.Tensor:
    """The same attention by torch's sdpa, or `plain` or if sdpa was asked for by a softmax."""
    if site.hf_config.get("sliding_window") or site.hf_config.get("model_type") == "gpt_oss":
        raise site.cannot("the fallback has neither windows nor sinks")
    q, k, v = (t.movedim(call.heads_axis, -3) for t in (call.query, call.key, call.value))
    group = q.shape[-3] // k.shape[-3]
    k, v = (t.repeat_interleave(group, -3).to(q.dtype) for t in (k, v))
    allowed = causal_in_documents(site.documents()).to(q.device)
    scale = call.named.get("scale", call.named.get("scaling"))
    if plain or site.adapter.attention == "sdpa":
        scores = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        output = scores.softmax(-1).to(v.dtype) @ v
    else:
        output = F.scaled_dot_product_attention(q, k, v, allowed, scale=scale)
    return output.movedim(-3, call.output_heads_axis).to(call.query.dtype).contiguous()


def _plant_fallback(site: Site, layers: Collection[int] | None) -> None:
    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        return _fallen_back(site, call)

    around_attention(site, wrap, layers)


@fault("kernel-falls-back")
def kernel_falls_back(site: Site) -> None:
    """Class and callable are as asked for, but they call another attention."""
    _plant_fallback(site, None)


@fault("kernel-falls-back-on-one-layer")
def kernel_falls_back_on_one_layer(site: Site) -> None:
    _plant_fallback(site, [site.middle_layer])


@fault("kernel-falls-back-in-backward")
def kernel_falls_back_in_backward(site: Site) -> None:
    """The asked kernel computes the values, another one the gradients."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        other = _fallen_back(site, call)
        with torch.no_grad():
            right = call.run()
        if right.dim() == 3:  # a packed kernel's module may return (tokens, heads, features)
            other = other.movedim(call.output_heads_axis, -2).reshape(right.shape).contiguous()
        return other + (right - other).detach()

    around_attention(site, wrap)


@fault("layer-past-its-attention")
def layer_past_its_attention(site: Site) -> None:
    """The last layer has built the asked attention and computes without it."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        return _fallen_back(site, call, plain=True)

    past_attention(site, wrap, [site.layers - 1])


@fault("attention-result-dropped")
def attention_result_dropped(site: Site) -> None:
    """The last layer calls the asked attention and uses another result."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        call.run()
        return _fallen_back(site, call, plain=True)

    past_attention(site, wrap, [site.layers - 1])
