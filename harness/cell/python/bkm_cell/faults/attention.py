# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The inner attention gets wrong tensors, or its output has a wrong layout."""

from __future__ import annotations

import torch

from bkm_cell.faults.attention_calls import AttentionCall, around_attention
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site


@fault("heads-transposed")
def heads_transposed(site: Site) -> None:
    """The features of each token's output are ordered (head_dim, heads); the shape is the same."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        output = call.run()
        axis = call.output_heads_axis
        if axis != output.dim() - 2:  # (.., heads, tokens, features): bring heads beside features
            moved = output.transpose(axis, -2)
            return _transposed(moved).transpose(axis, -2).contiguous()
        return _transposed(output)

    around_attention(site, wrap)


def _transposed(output: torch.Tensor) -> torch.Tensor:
    return output.transpose(-1, -2).reshape(output.shape)


@fault("kv-heads-interleaved")
def kv_heads_interleaved(site: Site) -> None:
    """Query head h reads key/value head h % kv_heads instead of h // group."""
    heads = int(site.hf_config["num_attention_heads"])
    kv_heads = int(site.hf_config["num_key_value_heads"])
    if kv_heads in (1, heads):
        raise site.cannot("with one head per group there is nothing to interleave")
    # Slot s of the call reads key head s // group. Put query head h where that is h % kv_heads.
    order = torch.arange(heads).reshape(heads // kv_heads, kv_heads).t().reshape(-1)

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        slots = order.to(call.query.device)
        output = call.run(query=call.query.index_select(call.heads_axis, slots))
        return output.index_select(call.output_heads_axis, slots.argsort())

    around_attention(site, wrap)


@fault("scale-of-hidden-size")
def scale_of_hidden_size(site: Site) -> None:
    """Scores are scaled by hidden / heads instead of the real head size."""
    config = site.hf_config
    guessed = config["hidden_size"] / config["num_attention_heads"]

    def wrap(call: AttentionCall) -> torch.Tensor:
        real = call.query.shape[-1]
        if real == guessed:
            raise site.cannot("head_dim is hidden / heads: both scales are the same")
        site.act()
        return call.run(query=call.query * (real / guessed) ** 0.5)

    around_attention(site, wrap)


@fault("keys-values-swapped")
def keys_values_swapped(site: Site) -> None:
    def wrap(call: AttentionCall) -> torch.Tensor:
        if call.key.shape != call.value.shape:
            raise site.cannot("keys and values differ in shape")
        site.act()
        return call.run(key=call.value, value=call.key)

    around_attention(site, wrap)


@fault("qk-norm-skipped")
def qk_norm_skipped(site: Site) -> None:
    for _, module in site.modules("q_norm", "k_norm"):

        def identity(
            x: torch.Tensor, *_: object, norm: torch.nn.Module = module, **__: object
        ) -> torch.Tensor:
            site.act()
            return x + 0 * norm.weight.to(x.dtype)  # stays in the graph, so that it decays

        module.forward = identity


@fault("sinks-ignored")
def sinks_ignored(site: Site) -> None:
    """A token's attention weights add up to one: nothing goes to the sinks."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        if not hasattr(call.module, "sinks"):
            raise site.cannot("the model has no sinks")
        site.act()
        # Python looks here before torch looks among the parameters. They stay in the graph.
        call.module.__dict__["sinks"] = 0 * call.module.sinks - 1e4
        try:
            return call.run()
        finally:
            del call.module.__dict__["sinks"]

    around_attention(site, wrap)


_NORMS = ("attention_norm", "ffn_norm", "norm", "input_layernorm", "post_attention_layernorm")


@fault("norm-weights-ignored")
def norm_weights_ignored(site: Site) -> None:
    """Norms of the hidden states do not multiply by their weight."""
    epsilon = site.hf_config["rms_norm_eps"]
    for _, module in site.modules(*_NORMS):

        def normalised(
            x: torch.Tensor, *_: object, norm: torch.nn.Module = module, **__: object
        ) -> torch.Tensor:
            site.act()
            wide = x.float()
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
            # The weight stays in the graph: without a gradient no optimizer would decay it.
            return (wide + 0 * norm.weight.float()).to(x.dtype)

        module.forward = normalised
