# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Each rank computes something right, and together they are wrong."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from bkm_cell.faults.gradients import Gradients, after_backward, gradients, scale_loss
from bkm_cell.faults.optimizer import before_step
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site, local
from bkm_cell.older_torch import DTensor


def _ranks(site: Site) -> int:
    if not dist.is_initialized() or dist.get_world_size() < 2:
        raise site.cannot("there is one rank")
    return dist.get_world_size()


def _one_weight(site: Site) -> str:
    """The pattern of one weight's name in the middle of the model."""
    return rf"layers\.{site.middle_layer}\.self_attn\.o_proj\.weight$"


def _shard(site: Site, tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard. FSDP1 cuts a flat tensor anywhere: a rank may have nothing of a weight, and
    then the fault would change nothing."""
    if not isinstance(tensor, DTensor):
        raise site.cannot("the ranks do not share each weight evenly")
    return local(tensor)


def _scale_all(site: Site, factor: float, pattern: str = "") -> None:
    names = {name for name, _ in site.parameters(pattern)}

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        for name, gradient in now.items():
            if name in names:
                gradient.mul_(factor)

    after_backward(site, edit)


@fault("rank-gradients-summed")
def rank_gradients_summed(site: Site) -> None:
    """Gradients are summed over the ranks and not averaged."""
    _scale_all(site, _ranks(site))


@fault("rank-gradients-averaged-twice")
def rank_gradients_averaged_twice(site: Site) -> None:
    _scale_all(site, 1 / _ranks(site))


@fault("rank-norms-summed")
def rank_norms_summed(site: Site) -> None:
    """Only the gradients of norms are summed and not averaged."""
    _scale_all(site, _ranks(site), r"norm\.weight$")


@fault("rank-group-not-reduced")
def rank_group_not_reduced(site: Site) -> None:
    """The gradients of one group of parameters keep each rank's own part."""
    _ranks(site)
    state = {"calls": 0}
    backward = torch.autograd.backward
    names = _reduce_scatters()
    reduce_scatter = getattr(dist, names[-1])

    def counted(*arguments: Any, **named: Any) -> None:
        state["calls"] = 0
        backward(*arguments, **named)

    def reduced(output: torch.Tensor, input: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        work = reduce_scatter(output, input, *arguments, **named)
        state["calls"] += 1
        if state["calls"] == 2:  # of a layer: the first group is the root's
            if work is not None:
                work.wait()
            output.copy_(input.view(dist.get_world_size(), -1)[dist.get_rank()].view_as(output))
            site.act()
        return work

    torch.autograd.backward = counted
    for name in names:
        setattr(dist, name, reduced)


def _reduce_scatters() -> list[str]:
    """The names of one function, which differ between versions of torch."""
    return [n for n in ("reduce_scatter_tensor", "reduce_scatter_single") if hasattr(dist, n)]


@fault("rank-gradients-not-reduced")
def rank_gradients_not_reduced(site: Site) -> None:
    """Each rank keeps its own part of its shards' gradients."""
    _ranks(site)

    def keep(output: torch.Tensor, input: torch.Tensor, *_: Any, **__: Any) -> None:
        output.copy_(input.view(dist.get_world_size(), -1)[dist.get_rank()].view_as(output))
        site.act()

    for name in _reduce_scatters():
        setattr(dist, name, keep)


@fault("rank-replicas-not-reduced")
def rank_replicas_not_reduced(site: Site) -> None:
    """Each replica keeps its own gradients."""
    _ranks(site)
    state = {"inside": False}
    backward, all_reduce = torch.autograd.backward, dist.all_reduce

    def watched(*arguments: Any, **named: Any) -> None:
        state["inside"] = True
        try:
            backward(*arguments, **named)
        finally:
            state["inside"] = False

    def reduced(*arguments: Any, **named: Any) -> Any:
        if not state["inside"]:
            return all_reduce(*arguments, **named)
        site.act()
        return None

    torch.autograd.backward = watched
    dist.all_reduce = reduced


@fault("rank-shard-without-gradient")
def rank_shard_without_gradient(site: Site) -> None:
    """The last rank's shard of one weight gets no gradient."""
    ranks = _ranks(site)
    ((name, parameter),) = site.parameters(_one_weight(site))
    _shard(site, parameter)

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        if dist.get_rank() == ranks - 1:
            now[name].zero_()

    after_backward(site, edit)


@fault("rank-shard-not-updated")
def rank_shard_not_updated(site: Site) -> None:
    """The optimizer leaves out the last rank's shard of one weight."""
    ranks = _ranks(site)
    ((_, parameter),) = site.parameters(_one_weight(site))
    _shard(site, parameter)
    kept: list[torch.Tensor] = []

    def keep(*_: Any) -> None:
        kept[:] = [local(parameter).clone()]

    def restore(*_: Any) -> None:
        if kept and dist.get_rank() == ranks - 1:
            with torch.no_grad():
                local(parameter).copy_(kept[0])
        site.act()

    register_optimizer_step_pre_hook(keep)
    register_optimizer_step_post_hook(restore)


@fault("rank-loads-another-shard")
def rank_loads_another_shard(site: Site) -> None:
    """The last rank loads the first rank's part of one weight."""
    ranks = _ranks(site)
    ((_, parameter),) = site.parameters(_one_weight(site))
    with torch.no_grad():
        own = _shard(site, parameter)
        first = own.clone()
        dist.broadcast(first, src=0)
        if dist.get_rank() == ranks - 1:
            own.copy_(first)
    site.act()


@fault("rank-loss-over-own-tokens")
def rank_loss_over_own_tokens(site: Site) -> None:
    """Each rank divides by its own tokens, and the ranks' means are averaged."""
    ranks = _ranks(site)

    def scale() -> float:
        own = torch.tensor(float(sum(site.documents())))
        total = own.clone()
        dist.all_reduce(total)
        return (total / own / ranks).item()

    scale_loss(site, scale)


@fault("rank-skips-a-backward")
def rank_skips_a_backward(site: Site) -> None:
    """The last rank's documents of the second step count for nothing."""
    ranks = _ranks(site)
    state = {"calls": 0}

    def scale() -> float:
        state["calls"] += 1
        skipped = state["calls"] == 2 and dist.get_rank() == ranks - 1
        return 0.0 if skipped else 1.0

    scale_loss(site, scale)


@fault("rank-clips-by-own-norm")
def rank_clips_by_own_norm(site: Site) -> None:
    """Each rank clips by the norm of its own shard; the norm of all is reported."""
    _ranks(site)

    def edit() -> None:
        own = torch.sqrt(sum(g.double().square().sum() for g in gradients(site).values()))
        total = own.square()
        dist.all_reduce(total)
        for gradient in gradients(site).values():
            gradient.mul_((total.sqrt() / own).item())

    before_step(site, edit)


@fault("rank-moments-of-another-shard")
def rank_moments_of_another_shard(site: Site) -> None:
    """After the first step the ranks exchange the moments of one weight's shards."""
    ranks = _ranks(site)
    ((_, parameter),) = site.parameters(_one_weight(site))
    state = {"done": False}

    def exchange(optimizer: Optimizer, *_: Any) -> None:
        moments = optimizer.state.get(parameter, {}).get("exp_avg")
        if state["done"] or moments is None:
            return
        own = _shard(site, moments)
        parts = [torch.empty_like(own) for _ in range(ranks)]
        dist.all_gather(parts, own)
        own.copy_(parts[(dist.get_rank() + 1) % ranks])
        state["done"] = True
        site.act()

    register_optimizer_step_post_hook(exchange)


@fault("rank-drifts-apart")
def rank_drifts_apart(site: Site) -> None:
    """After the first step the last replica's weights are a little off."""
    ranks = _ranks(site)
    ((_, parameter),) = site.parameters(_one_weight(site))
    state = {"steps": 0}

    def drift(optimizer: Optimizer, *_: Any) -> None:
        state["steps"] += 1
        if state["steps"] == 1 and dist.get_rank() == ranks - 1:
            with torch.no_grad():
                local(parameter).view(-1)[:64].mul_(1.001)
        site.act()

    register_optimizer_step_post_hook(drift)
