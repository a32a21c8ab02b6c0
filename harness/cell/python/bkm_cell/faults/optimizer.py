# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The update is not the asked one. A silent fault leaves the settings looking right."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from bkm_cell.faults.gradients import Gradients, after_backward, gradients
from bkm_cell.faults.registry import Phase, fault, register
from bkm_cell.faults.site import Site, local


def before_step(site: Site, edit: Callable[[], None]) -> None:
    """Runs before any witness of the step: hooks run in the order of registration."""

    def hook(*_: Any) -> None:
        edit()
        site.act()

    register_optimizer_step_pre_hook(hook)


def _with_settings(site: Site, key: str, value: Any) -> None:
    """The step runs with another setting, and the asked setting is restored afterwards.

    The groups of a container of optimizers have no settings: they are skipped.
    """
    kept: dict[int, tuple[dict[str, Any], Any]] = {}

    def before(optimizer: Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            if key in group and id(group) not in kept:
                kept[id(group)] = (group, group[key])
                group[key] = value
                site.act()

    def after(*_: Any) -> None:
        for group, asked in kept.values():
            group[key] = asked
        kept.clear()

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def _silently(key: str, value: Any) -> None:
    def plant(site: Site) -> None:
        _with_settings(site, key, value)

    return plant


register("betas-wrong-silently", _silently("betas", (0.8, 0.95)))
register("epsilon-wrong-silently", _silently("eps", 1e-5))
register("weight-decay-dropped-silently", _silently("weight_decay", 0.0))
register("weight-decay-in-gradient", _silently("decoupled_weight_decay", False))


def _openly(key: str, value: Any) -> None:
    def plant(site: Site) -> None:
        def edit(optimizer: Optimizer, *_: Any) -> None:
            for group in optimizer.param_groups:
                if key in group:
                    group[key] = value
                    site.act()

        register_optimizer_step_pre_hook(edit)

    return plant


register("betas-wrong", _openly("betas", (0.8, 0.95)))
register("epsilon-wrong", _openly("eps", 1e-5))
register("weight-decay-dropped", _openly("weight_decay", 0.0))


@fault("clipping-off")
def clipping_off(site: Site) -> None:
    """Gradients are not clipped; the norm is still reported."""
    kept: Gradients = {}

    def keep(now: Gradients, before: Gradients, _: int) -> None:
        kept.update((name, gradient.clone()) for name, gradient in now.items())

    def restore() -> None:
        for name, gradient in gradients(site).items():
            gradient.copy_(kept[name])

    after_backward(site, keep)
    before_step(site, restore)


@fault("tensor-not-updated")
def tensor_not_updated(site: Site) -> None:
    """The optimizer does not move one tensor."""
    layer = rf"(^|\.)layers\.{site.middle_layer}\."
    kept: dict[str, torch.Tensor] = {}

    def weight() -> torch.Tensor:
        ((_, parameter),) = site.parameters(layer + r".*\.(o_proj|wo)\.weight$")
        return local(parameter)

    def keep() -> None:
        kept["weight"] = weight().clone()

    def restore(*_: Any) -> None:
        weight().copy_(kept["weight"])

    before_step(site, keep)
    register_optimizer_step_post_hook(restore)


@fault("schedule-off-by-one", Phase.BEFORE_CONSTRUCT)
def schedule_off_by_one(site: Site) -> None:
    """The schedule is one step ahead."""
    scheduler = torch.optim.lr_scheduler.LRScheduler

    def twice(first: Callable[..., Any], self: Any) -> None:
        first(self)
        self.step()
        site.act()

    site.around(scheduler, "_initial_step", twice)


def _counted_otherwise(site: Site, count: Callable[[int], float]) -> None:
    """Every schedule is asked for the rate at another step."""

    def make(init: Callable[..., None], self: Any, optimizer: Any, rate: Any, *rest: Any) -> None:
        def counted(step: int) -> float:
            site.act()
            return rate(count(step))

        init(self, optimizer, counted, *rest)

    site.around(torch.optim.lr_scheduler.LambdaLR, "__init__", make)


@fault("decay-never-acts", Phase.BEFORE_CONSTRUCT)
def decay_never_acts(site: Site) -> None:
    """The learning rate stays that of the first step."""
    _counted_otherwise(site, lambda step: 0)


@fault("decay-of-longer-training", Phase.BEFORE_CONSTRUCT)
def decay_of_longer_training(site: Site) -> None:
    """The decay is made for twice as many steps."""
    _counted_otherwise(site, lambda step: step / 2)


@fault("norms-without-decay")
def norms_without_decay(site: Site) -> None:
    """The weights of norms are in a group of their own, without weight decay."""
    kept: list[tuple[Optimizer, list[dict[str, Any]], list[Any]]] = []

    def regroup(optimizer: Optimizer, *_: Any) -> None:
        norms = {id(p) for _, p in site.parameters(r"norm[^.]*\.weight$")}
        group = optimizer.param_groups[0] if optimizer.param_groups else {}
        mine = [p for p in group.get("params", []) if id(p) in norms]
        if not mine or "weight_decay" not in group:
            return
        kept.append((optimizer, list(optimizer.param_groups), group["params"]))
        group["params"] = [p for p in group["params"] if id(p) not in norms]
        optimizer.param_groups.append({**group, "params": mine, "weight_decay": 0.0})
        site.act()

    def after(step: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        # A schedule has one rate for each group that it was made with.
        for optimizer, groups, parameters in kept:
            groups[0]["params"] = parameters
            optimizer.param_groups[:] = groups
        kept.clear()
        return step(*arguments, **named)

    register_optimizer_step_pre_hook(regroup)
    site.around(torch.optim.lr_scheduler.LambdaLR, "step", after)


@fault("parameters-in-bf16")
def parameters_in_bf16(site: Site) -> None:
    """The parameters are kept in bf16: small updates are lost."""

    def round_all(*_: Any) -> None:
        with torch.no_grad():
            for _, parameter in site.parameters("."):
                values = local(parameter)
                values.copy_(values.bfloat16())
        site.act()

    before_step(site, round_all)
    register_optimizer_step_post_hook(round_all)


@fault("gradient-halved-after-clipping")
def gradient_halved_after_clipping(site: Site) -> None:
    """The optimizer gets half of the clipped gradients: a division is done once too often."""

    def halve() -> None:
        for gradient in gradients(site).values():
            gradient.mul_(0.5)

    before_step(site, halve)


@fault("experts-not-balanced")
def experts_not_balanced(site: Site) -> None:
    """The hook of the optimizer that balances the load of experts is not installed."""
    for held in gc.get_objects():
        if isinstance(held, Optimizer) and held._optimizer_step_pre_hooks:
            held._optimizer_step_pre_hooks.clear()
            site.act()
