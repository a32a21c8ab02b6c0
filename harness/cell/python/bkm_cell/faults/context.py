# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Ranks with parts of one row, under context parallelism, lose sight of the rest of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site
from bkm_cell.older_torch import BlockMask, flex

_TORCHS = "torch.distributed.tensor.experimental._context_parallel._attention"


def _places(site: Site) -> torch.Tensor:
    """Where in the row the tokens of this rank's last forward are."""
    places = getattr(site.adapter, "places", None)
    if places is None:
        raise site.cannot("no rank is given a part of a row")
    return places


@fault("context-mask-of-own-part")
def context_mask_of_own_part(site: Site) -> None:
    """The mask takes a token's place in the rank's part for its place in the row."""
    cut = importlib.import_module(_TORCHS)

    def local(
        _: Callable[..., BlockMask],
        mask_mod: Any,
        B: int,
        H: int,
        Q_LEN: int,
        KV_LEN: int,
        device_mesh: Any,
        load_balancer: Any = None,
    ) -> BlockMask:
        site.act()
        queries = Q_LEN // device_mesh.size()
        return flex.create_block_mask(mask_mod, B, H, queries, KV_LEN, device_mesh.device_type)

    site.around(cut, "_create_cp_block_mask", local)


@fault("context-positions-restart")
def context_positions_restart(site: Site) -> None:
    """Positions begin anew where a part begins inside a document."""

    def enter(_: Any, arguments: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        positions = named["positions"]
        is_cut = (positions == 0).cumsum(-1) == 0
        restarted = torch.where(is_cut, positions - positions[:, :1], positions)
        site.act()
        return arguments, named | {"positions": restarted}

    for module in site.adapter.modules():
        module.register_forward_pre_hook(enter, with_kwargs=True)


@fault("context-labels-of-own-part")
def context_labels_of_own_part(site: Site) -> None:
    """Labels are shifted after the cut: a piece's last token is to predict the next piece's first."""
    control = importlib.import_module("bkm_cell.adapters.control")

    def shifted(
        log_probs_of: Callable[..., torch.Tensor],
        logits: torch.Tensor,
        labels: torch.Tensor,
        *rest: Any,
    ) -> torch.Tensor:
        own = _places(site)
        own = own[own < len(labels)]
        following = torch.roll(own, -1)
        is_cut = (following != own + 1) & (own + 1 < len(labels))
        labels = labels.clone().index_copy(0, own[is_cut] + 1, labels[following[is_cut]])
        site.act()
        return log_probs_of(logits, labels, *rest)

    site.around(control, "log_probs_of", shifted)
