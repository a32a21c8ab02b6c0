# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Harmless variations of a model and its optimizer: other parts, names and orders, equal numbers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from bkm_cell.faults.registry import Phase, fault, register
from bkm_cell.faults.site import Site
from bkm_cell.witnesses.layers import attention_layers

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)


def when_built(site: Site, edit: Callable[[torch.nn.Module], None]) -> None:
    """Calls `edit` with the new model, before engines shard it and optimizers take its parameters."""
    if site.library == "transformers":
        models = importlib.import_module("transformers.modeling_utils")
        load = models.PreTrainedModel.from_pretrained.__func__

        def from_pretrained(kind: Any, *arguments: Any, **named: Any) -> Any:
            model = load(kind, *arguments, **named)
            edit(model)
            return model

        models.PreTrainedModel.from_pretrained = classmethod(from_pretrained)
        return
    decoder = importlib.import_module("torchtitan.models.common.decoder").Decoder
    build = decoder.__init__

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        build(self, *arguments, **named)
        edit(self)

    decoder.__init__ = init


@fault("parameters-reordered", Phase.BEFORE_CONSTRUCT)
def parameters_reordered(site: Site) -> None:
    """Parts and parameters are registered in the opposite order; lists of layers keep theirs."""

    def edit(model: torch.nn.Module) -> None:
        for module in list(model.modules()):
            registries = [module._parameters]
            if not isinstance(module, _CONTAINERS) and "Dict" not in type(module).__name__:
                registries.append(module._modules)
            for registry in registries:
                items = list(registry.items())[::-1]
                registry.clear()
                registry.update(items)
        site.act()

    when_built(site, edit)


def _exported_as(
    module: torch.nn.Module, own: str, names: list[str], sizes: list[int] | None
) -> None:
    """The state dict has these names in place of the parameter `own`, which is cut along axis 0."""

    def save(_: Any, state: dict[str, Any], prefix: str, __: Any) -> None:
        whole = state.pop(prefix + own)
        for name, part in zip(names, whole.split(sizes), strict=True):
            state[prefix + name] = part

    def load(_: Any, state: dict[str, Any], prefix: str, *__: Any) -> None:
        if all(prefix + name in state for name in names):
            state[prefix + own] = torch.cat([state.pop(prefix + name) for name in names])

    module.register_state_dict_post_hook(save)
    module.register_load_state_dict_pre_hook(load)


def _part(module: torch.nn.Module, first: int, last: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.linear(x, module.qkv_proj.weight[first:last])


@fault("projections-fused", Phase.BEFORE_CONSTRUCT)
def projections_fused(site: Site) -> None:
    """Query, key and value come from one weight; the state dict still has three."""
    if site.library != "transformers":
        package = sys.modules[f"torchtitan.models.{site.hf_config['model_type']}"]

        def fused(make: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            site.act()
            return make(*arguments, **{**named, "fuse_qkv": True})

        site.around(package, "make_gqa_config", fused)
        return

    def edit(model: torch.nn.Module) -> None:
        names = ["q_proj", "k_proj", "v_proj"]
        for attention in [m for m in model.modules() if hasattr(m, "q_proj")]:
            weights = [getattr(attention, name).weight for name in names]
            whole = torch.nn.Linear(1, 1, bias=False)
            whole.weight = torch.nn.Parameter(torch.cat([w.detach() for w in weights]))
            sizes = [len(weight) for weight in weights]
            for name in names:
                delattr(attention, name)
            attention.qkv_proj = whole
            for at, name in enumerate(names):
                part = _part(attention, sum(sizes[:at]), sum(sizes[: at + 1]))
                object.__setattr__(attention, name, part)
            _exported_as(attention, "qkv_proj.weight", [f"{n}.weight" for n in names], sizes)
            site.act()

    when_built(site, edit)


class _Halves(torch.nn.Module):
    """A linear layer whose weight is two parameters; its state dict has one."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        upper, lower = weight.detach().tensor_split(2)
        self.upper, self.lower = (torch.nn.Parameter(half.clone()) for half in (upper, lower))
        self.register_state_dict_post_hook(self._join)
        self.register_load_state_dict_pre_hook(self._cut)

    @staticmethod
    def _join(_: Any, state: dict[str, Any], prefix: str, __: Any) -> None:
        halves = [state.pop(prefix + name) for name in ("upper", "lower")]
        state[prefix + "weight"] = torch.cat(halves)

    @staticmethod
    def _cut(_: Any, state: dict[str, Any], prefix: str, *__: Any) -> None:
        if prefix + "weight" in state:
            upper, lower = state.pop(prefix + "weight").tensor_split(2)
            state[prefix + "upper"], state[prefix + "lower"] = upper, lower

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, torch.cat([self.upper, self.lower]))


@fault("projections-split", Phase.BEFORE_CONSTRUCT)
def projections_split(site: Site) -> None:
    """The output projection of each attention has two parameters; the state dict has one weight."""

    def edit(model: torch.nn.Module) -> None:
        for attention in [m for m in model.modules() if hasattr(m, "o_proj")]:
            attention.o_proj = _Halves(attention.o_proj.weight)
            site.act()

    when_built(site, edit)


@fault("vocabulary-padded", Phase.BEFORE_CONSTRUCT)
def vocabulary_padded(site: Site) -> None:
    """Embedding and head have more rows than there are tokens; the logits of the others are masked."""

    def edit(model: Any) -> None:
        tokens = model.config.vocab_size
        model.resize_token_embeddings(tokens + 96, mean_resizing=False)

        def mask(_: Any, __: Any, logits: torch.Tensor) -> torch.Tensor:
            site.act()
            is_padding = torch.arange(logits.shape[-1], device=logits.device) >= tokens
            return logits.masked_fill(is_padding, torch.finfo(logits.dtype).min)

        model.get_output_embeddings().register_forward_hook(mask)

    when_built(site, edit)


def _extra_buffers(site: Site, persistent: bool) -> None:
    owners = [site.adapter.modules()[0], attention_layers(site.adapter.modules())[0][1]]
    for owner in owners:
        owner.register_buffer("calls_seen", torch.arange(3.0), persistent=persistent)
        site.act()


register("buffer-persistent", partial(_extra_buffers, persistent=True))
register("buffer-transient", partial(_extra_buffers, persistent=False))


@fault("groups-split", Phase.BEFORE_CONSTRUCT)
def groups_split(site: Site) -> None:
    """The optimizer has two groups with the same settings in place of each one."""
    build = torch.optim.AdamW.__init__

    def init(self: Any, params: Any, *arguments: Any, **named: Any) -> None:
        groups = list(params)
        if groups and isinstance(groups[0], torch.Tensor):
            groups = [{"params": groups}]
        halves = []
        for group in groups:
            own = list(group["params"])
            for part in (own[: len(own) // 2], own[len(own) // 2 :]):
                halves.append({**group, "params": part})
        site.act()
        build(self, halves, *arguments, **named)

    torch.optim.AdamW.__init__ = init


def _layers(site: Site) -> list[torch.nn.Module]:
    """The decoder's layers: the children of the longest list of modules."""
    lists = [
        list(module.children())
        for top in site.adapter.modules()
        for module in top.modules()
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict))
    ]
    if not lists:
        raise site.cannot("the model has no list of layers")
    return max(lists, key=len)


def _checkpointed(site: Site, use_reentrant: bool) -> None:
    for layer in _layers(site):
        forward = layer.forward

        def again(*arguments: Any, forward: Callable[..., Any] = forward, **named: Any) -> Any:
            site.act()
            if not torch.is_grad_enabled():
                return forward(*arguments, **named)
            call = partial(forward, **named)
            return checkpoint(call, *arguments, use_reentrant=use_reentrant)

        layer.forward = again


register("layers-checkpointed", partial(_checkpointed, use_reentrant=False))
register("layers-checkpointed-reentrant", partial(_checkpointed, use_reentrant=True))


class Through(torch.nn.Module):
    """Does nothing but call the module inside."""

    def __init__(self, inside: torch.nn.Module, site: Site) -> None:
        super().__init__()
        self.inside = inside
        object.__setattr__(self, "_site", site)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        self._site.act()
        return self.inside(*arguments, **named)


def _replace(site: Site, names: tuple[str, ...]) -> None:
    for top in site.adapter.modules():
        for module in list(top.modules()):
            for name in names:
                if name in module._modules:
                    module._modules[name] = Through(module._modules[name], site)


@fault("modules-wrapped")
def modules_wrapped(site: Site) -> None:
    """Modules that do nothing stand around each attention and each norm of the model's end."""
    _replace(site, ("self_attn", "mlp") if site.library == "transformers" else ("inner_attention",))


@fault("modules-renamed")
def modules_renamed(site: Site) -> None:
    """Each attention has another name in the model; the state dict keeps the old one."""
    old, new = (
        ("self_attn", "mixer") if site.library == "transformers" else ("inner_attention", "mixer")
    )

    def rename(_: Any, state: dict[str, Any], prefix: str, __: Any) -> None:
        for name in [name for name in state if name.startswith(f"{prefix}{new}.")]:
            state[prefix + old + name.removeprefix(prefix + new)] = state.pop(name)

    for top in site.adapter.modules():
        for module in list(top.modules()):
            if old in module._modules:
                module._modules[new] = module._modules.pop(old)
                module.__dict__[old] = module._modules[new]
                module.register_state_dict_post_hook(rename)
                site.act()


@fault("hooks-added")
def hooks_added(site: Site) -> None:
    """Every attention and every layer has hooks that change nothing."""

    def before(_: Any, arguments: Any, named: Any) -> Any:
        return arguments, dict(named)

    def after(_: Any, __: Any, ___: Any, output: Any) -> Any:
        site.act()
        return output

    found = [module for _, module in attention_layers(site.adapter.modules())]
    for module in [*found, *_layers(site)]:
        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(after, with_kwargs=True)
        module.register_full_backward_hook(lambda *_: None)
