# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Gradients are wrong after autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site, local

Gradients = dict[str, torch.Tensor]  # the real gradients, by parameter name: edit in place


def gradients(site: Site) -> Gradients:
    found = {
        name: local(parameter.grad)
        for name, parameter in site.parameters("")
        if parameter.grad is not None
    }
    if not found:
        raise site.cannot("no parameter has a gradient after backward")
    return found


def after_backward(site: Site, edit: Callable[[Gradients, Gradients, int], None]) -> None:
    """Calls edit(gradients, gradients before this backward, calls since they were empty)."""
    backward = torch.autograd.backward
    state = {"depth": 0, "calls": 0}

    def edited(*arguments: object, **named: object) -> None:
        if state["depth"]:  # nested in another backward
            backward(*arguments, **named)
            return
        state["depth"] = 1
        before = {
            name: local(parameter.grad).clone()
            for name, parameter in site.parameters("")
            if parameter.grad is not None
        }
        state["calls"] = state["calls"] + 1 if before else 0
        try:
            backward(*arguments, **named)
        finally:
            state["depth"] = 0
        # A loss that goes backward by itself, before the model, leaves none.
        if any(parameter.grad is not None for _, parameter in site.parameters("")):
            edit(gradients(site), before, state["calls"])
            site.act()

    torch.autograd.backward = edited


def scale_loss(site: Site, weight_of: Callable[[], float]) -> None:
    """Multiplies what each backward begins with by weight_of()."""
    backward = torch.autograd.backward
    inside = False

    def scaled(tensors: Any, grad_tensors: Any = None, *arguments: Any, **named: Any) -> None:
        nonlocal inside
        # A backward that recomputes is nested in another one.
        if inside or not isinstance(tensors, torch.Tensor):
            backward(tensors, grad_tensors, *arguments, **named)
            return
        scale = torch.ones_like(tensors) if grad_tensors is None else grad_tensors
        weight = weight_of()
        inside = True
        try:
            backward(tensors, scale * weight, *arguments, **named)
        finally:
            inside = False
        site.act()

    torch.autograd.backward = scaled


@fault("gradient-not-scaled")
def gradient_not_scaled(site: Site) -> None:
    """A division by 4 (ranks, micro-batches) is missing."""

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        for gradient in now.values():
            gradient.mul_(4)

    after_backward(site, edit)


@fault("gradient-accumulated-twice")
def gradient_accumulated_twice(site: Site) -> None:
    def edit(now: Gradients, before: Gradients, _: int) -> None:
        for name, gradient in now.items():
            old = before.get(name)
            gradient.add_(gradient if old is None else gradient - old)

    after_backward(site, edit)


@fault("gradient-zeroed")
def gradient_zeroed(site: Site) -> None:
    """One tensor of one layer gets no gradient."""
    layer = rf"(^|\.)layers\.{site.middle_layer}\."
    ((name, _),) = site.parameters(layer + r".*\.(o_proj|wo)\.weight$")

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        now[name].zero_()

    after_backward(site, edit)


@fault("gradient-kept")
def gradient_kept(site: Site) -> None:
    """The gradients of the previous step are not cleared."""
    kept: Gradients = {}

    def edit(now: Gradients, before: Gradients, _: int) -> None:
        for name, gradient in now.items():
            if name in kept:
                gradient.add_(kept[name])
            kept[name] = gradient.clone()

    after_backward(site, edit)


@fault("micro-batches-equal")
def micro_batches_equal(site: Site) -> None:
    """Each micro-batch's mean counts the same, however many tokens it has."""
    whole = sum(site.adapter.probe.batches[0].lengths)
    count = int(site.adapter.probe.asked.get("micro_batches", 1))
    if count < 2:
        raise site.cannot("there is one micro-batch")

    scale_loss(site, lambda: whole / count / sum(site.documents()))
