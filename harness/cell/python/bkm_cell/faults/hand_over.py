# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Training is right; what the engine exports or saves is not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from bkm_cell.faults.registry import Phase, fault
from bkm_cell.faults.site import Site
from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors


def _edit_export(site: Site, edit: Callable[[Tensors], Tensors]) -> None:
    def exported(export: Callable[[], Iterable[tuple[str, torch.Tensor]]]) -> Any:
        site.act()
        return edit(dict(export())).items()

    site.around(site.adapter, "exported", exported)


def _query_of_first_layer(site: Site, weights: Tensors) -> str:
    ends = tuple(f"layers.0.self_attn.{name}.weight" for name in ("q_proj", "q_b_proj"))
    names = [name for name in weights if name.endswith(ends)]
    if not names:
        raise site.cannot("no projection to the queries of layer 0 is exported")
    return names[0]


@fault("export-of-initial-weights")
def export_of_initial_weights(site: Site) -> None:
    """The weights from before training are exported, as if they were never synchronized."""
    initial = {name: value.detach().clone() for name, value in site.adapter.exported()}
    _edit_export(site, lambda weights: initial)


@fault("export-lacks-a-tensor")
def export_lacks_a_tensor(site: Site) -> None:
    def edit(weights: Tensors) -> Tensors:
        lost = _query_of_first_layer(site, weights)
        return {name: value for name, value in weights.items() if name != lost}

    _edit_export(site, edit)


@fault("export-swaps-layers")
def export_swaps_layers(site: Site) -> None:
    """Two layers' tensors of one shape have each other's names."""

    def edit(weights: Tensors) -> Tensors:
        one = _query_of_first_layer(site, weights)
        other = one.replace("layers.0.", "layers.1.")
        return {**weights, one: weights[other], other: weights[one]}

    _edit_export(site, edit)


def _edit_mapping(site: Site, edit: Callable[[Tensors], Tensors]) -> None:
    """Edits what the library's mapping to HF's names returns."""

    def tensors(named: Callable[[], NamedTensors]) -> NamedTensors:
        found = named()
        to_hf = found._to_hf
        if to_hf is None:
            raise site.cannot("the model's names are those of HF: there is no mapping")

        def edited(state: Tensors) -> Tensors:
            site.act()
            return edit(to_hf(state))

        found._to_hf = edited
        return found

    site.around(site.adapter, "tensors", tensors)


@fault("mapping-lacks-a-tensor")
def mapping_lacks_a_tensor(site: Site) -> None:
    """The library's mapping to HF's names leaves out one tensor that the model holds."""

    def edit(weights: Tensors) -> Tensors:
        lost = _query_of_first_layer(site, weights)
        return {name: value for name, value in weights.items() if name != lost}

    _edit_mapping(site, edit)


@fault("mapping-adds-a-tensor")
def mapping_adds_a_tensor(site: Site) -> None:
    """The library's mapping to HF's names gives one tensor under two of them."""

    def edit(weights: Tensors) -> Tensors:
        one = _query_of_first_layer(site, weights)
        return {**weights, one.replace("layers.0.", "layers.-1."): weights[one]}

    _edit_mapping(site, edit)


def _edit_resumed(site: Site, edit: Callable[[Any], None]) -> None:
    def resumed(resume: Callable[[str], Any], folder: str) -> Any:
        fresh = resume(folder)
        edit(fresh.engine.optimizer)
        site.act()
        return fresh

    site.around(site.adapter, "resumed", resumed)


def _optimizers(optimizer: Any) -> list[torch.optim.Optimizer]:
    """Those of a container, or the one itself."""
    return list(getattr(optimizer, "optimizers", [optimizer]))


@fault("resume-without-moments")
def resume_without_moments(site: Site) -> None:
    """The checkpoint restores the weights and not the optimizer's moments."""

    def edit(optimizer: Any) -> None:
        for one in _optimizers(optimizer):
            one.state.clear()

    _edit_resumed(site, edit)


@fault("restart-forgets-the-data", Phase.RESTART)
def restart_forgets_the_data(site: Site) -> None:
    """The data loader begins anew."""

    def load(_: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        site.act()

    def skip(_: Callable[..., Any], loader: Any, *arguments: Any, **named: Any) -> Any:
        site.act()
        return loader

    for module, owner, name, wrap in (
        ("torchdata.stateful_dataloader", "StatefulDataLoader", "load_state_dict", load),
        ("transformers.trainer", "", "skip_first_batches", skip),
    ):
        found = sys.modules.get(module)
        if found is not None:
            site.around(getattr(found, owner) if owner else found, name, wrap)


@fault("restart-forgets-the-schedule", Phase.RESTART)
def restart_forgets_the_schedule(site: Site) -> None:
    """The schedule of the learning rate begins anew."""

    def load(_: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        site.act()

    for kind in (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.LambdaLR):
        site.around(kind, "load_state_dict", load)


@fault("restart-forgets-the-moments", Phase.RESTART)
def restart_forgets_the_moments(site: Site) -> None:
    """The optimizer's moments begin anew."""
    begun: set[int] = set()

    def before(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        rates = [group.get("lr", 0.0) for group in optimizer.param_groups]
        # A checkpoint's reader steps with rate 0 to make the moments that it fills.
        if id(optimizer) in begun or not any(rates) or not optimizer.state:
            return
        begun.add(id(optimizer))
        optimizer.state.clear()
        site.act()

    register_optimizer_step_pre_hook(before)
