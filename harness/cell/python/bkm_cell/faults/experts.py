# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A mixture routes its tokens wrongly, or one of its experts does not learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.gradients import Gradients, after_backward
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site, local

# (scores, experts) -> the same, both [.., experts per token]
Route = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

_COUNTS = ("num_experts", "n_routed_experts", "num_local_experts")  # of HF's configurations
_METHOD = "route_tokens_to_experts"


def _count(site: Site) -> int:
    found = [int(site.hf_config[name]) for name in _COUNTS if site.hf_config.get(name)]
    if not found:
        raise site.cannot("the model has no experts")
    return found[0]


def _modules(site: Site) -> list[torch.nn.Module]:
    return [module for top in site.adapter.modules() for module in top.modules()]


def _around_routers(site: Site, route: Route) -> None:
    """What routes returns, among others, the experts of each token and their scores.

    That is a router, or a method of the layer whose router returns logits (deepseek_v3 of transformers 5).
    """
    routers = [
        (module, _METHOD) for module in _modules(site) if callable(getattr(module, _METHOD, None))
    ] or [
        (module, "forward")
        for module in _modules(site)
        if type(module).__name__.endswith("Router")
    ]
    if not routers:
        raise site.cannot("no module is a router")

    def routed(forward: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = list(forward(*arguments, **named))
        if any(part.dim() == 1 for part in result):
            raise site.cannot("the router counts the tokens of each expert itself")
        experts = next(i for i, part in enumerate(result) if not part.is_floating_point())
        scores = next(
            i
            for i, part in enumerate(result)
            if part.is_floating_point() and part.shape == result[experts].shape
        )
        result[scores], result[experts] = route(result[scores], result[experts])
        site.act()
        return tuple(result)

    for router, name in routers:
        site.around(router, name, routed)


@fault("experts-weigh-alike")
def experts_weigh_alike(site: Site) -> None:
    """The chosen experts of a token all count the same."""
    _around_routers(
        site,
        lambda scores, experts: (torch.ones_like(scores) * scores.mean(-1, keepdim=True), experts),
    )


@fault("weakest-expert-dropped")
def weakest_expert_dropped(site: Site) -> None:
    """Of a token's experts, the one with the lowest score adds nothing."""
    _around_routers(
        site,
        lambda scores, experts: (
            scores * (scores > scores.min(-1, keepdim=True).values).to(scores.dtype),
            experts,
        ),
    )


def _corrections(site: Site) -> list[tuple[torch.nn.Module, torch.Tensor]]:
    """The buffers that correct the scores of experts, with the module of each."""
    count = _count(site)
    found = [
        (module, local(buffer))
        for module in _modules(site)
        for name, buffer in module.named_buffers(recurse=False)
        if "bias" in name and local(buffer).numel() == count
    ]
    if not any(buffer.any() for _, buffer in found):
        raise site.cannot("no buffer corrects the scores of experts")
    return found


@fault("buffer-not-loaded")
def buffer_not_loaded(site: Site) -> None:
    """The correction of the experts' scores, a buffer of the file, is not loaded."""
    for _, buffer in _corrections(site):
        buffer.zero_()
    site.act()


@fault("expert-correction-ignored")
def expert_correction_ignored(site: Site) -> None:
    """Experts are chosen without the correction of their scores, although it was loaded."""
    for module, buffer in _corrections(site):

        def without(
            forward: Callable[..., Any], *arguments: Any, lost: torch.Tensor = buffer, **named: Any
        ) -> Any:
            lost.zero_()
            site.act()
            return forward(*arguments, **named)

        site.around(module, "forward", without)


def _set(site: Site, name: str, value_of: Callable[[torch.nn.Module], float]) -> None:
    """Sets a number of each layer of experts."""
    found = [module for module in _modules(site) if hasattr(module, name)]
    if not found:
        raise site.cannot(f"no module has {name}")
    for module in found:
        setattr(module, name, value_of(module))
    site.act()


@fault("expert-groups-ignored")
def expert_groups_ignored(site: Site) -> None:
    """Experts are chosen from all groups instead of each token's best ones."""
    _set(site, "topk_group", lambda module: module.n_group)


@fault("expert-scale-ignored")
def expert_scale_ignored(site: Site) -> None:
    """The weights of a token's experts are not scaled."""
    _set(site, "routed_scaling_factor", lambda _: 1.0)


@fault("experts-off-by-one")
def experts_off_by_one(site: Site) -> None:
    """Each token goes to the neighbours of its experts."""
    count = _count(site)
    _around_routers(site, lambda scores, experts: (scores, (experts + 1) % count))


@fault("expert-without-gradient")
def expert_without_gradient(site: Site) -> None:
    """The last expert of one layer gets no gradient."""
    last = _count(site) - 1
    experts = site.parameters(rf"(^|\.)layers\.{site.layers - 1}\..*experts\.")
    whole = [name for name, _ in experts if f"experts.{last}." in name]
    stacked = [name for name, parameter in experts if local(parameter).dim() == 3]
    if not whole and not stacked:
        raise site.cannot("no parameter of the last layer belongs to one expert")

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        for name in whole:
            now[name].zero_()
        for name in stacked:
            now[name][last].zero_()

    after_backward(site, edit)
