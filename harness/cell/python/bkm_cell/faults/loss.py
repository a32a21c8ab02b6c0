# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The loss takes wrong tokens or wrong weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site

# (flat mask that the loss function gets, document lengths) -> mask that it uses
Edit = Callable[[torch.Tensor, list[int]], torch.Tensor]


def edit_loss_mask(site: Site, edit: Edit) -> None:
    """verl's loss and the controls' loss accept weights other than 0 and 1."""
    if hasattr(site.adapter, "_loss"):

        def of_verl(loss: Callable[..., Any], *arguments: Any, data: Any, **named: Any) -> Any:
            mask = data["loss_mask"]
            values, offsets = mask.values(), mask.offsets()
            edited = edit(values, offsets.diff().tolist())
            data = data.copy()
            data["loss_mask"] = torch.nested.nested_tensor_from_jagged(edited, offsets)
            site.act()
            return loss(*arguments, data=data, **named)

        site.around(site.adapter, "_loss", of_verl)
        return
    control = importlib.import_module("bkm_cell.adapters.control")

    def of_control(
        loss: Callable[..., Any], log_probs: torch.Tensor, mask: torch.Tensor, *rest: Any, **named
    ) -> Any:
        site.act()
        return loss(log_probs, edit(mask, site.documents()), *rest, **named)

    site.around(control, "sft_loss", of_control)


@fault("loss-mask-shifted")
def loss_mask_shifted(site: Site) -> None:
    """The mask is shifted towards the log-probs in the wrong direction: it ends two tokens off."""
    edit_loss_mask(site, lambda mask, lengths: torch.roll(mask, 2))


@fault("loss-mask-ignored")
def loss_mask_ignored(site: Site) -> None:
    """Every token with a label counts."""

    def edit(mask: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        whole = torch.ones_like(mask)
        whole[torch.tensor([0, *lengths[:-1]]).cumsum(0)] = 0
        return whole

    edit_loss_mask(site, edit)


@fault("loss-per-document")
def loss_per_document(site: Site) -> None:
    """The mean of the documents' means: a token of a short document counts more."""

    def edit(mask: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        parts = mask.float().split(lengths)
        share = mask.sum() / len(lengths)
        return torch.cat([part * share / part.sum().clamp(min=1) for part in parts])

    edit_loss_mask(site, edit)


@fault("nan-masked-to-zero")
def nan_masked_to_zero(site: Site) -> None:
    """One token's log-prob is NaN and where(isnan, 0) hides it: 0 is reported, without gradient."""
    from bkm_cell.faults.reporting import edit_log_probs

    def edit(mask: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        edited = mask.clone()
        edited[_token(lengths) + 1] = 0
        return edited

    def report(log_probs: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        log_probs[_token(lengths)] = 0
        return log_probs

    edit_loss_mask(site, edit)
    edit_log_probs(site, report)


def _token(lengths: list[int]) -> int:
    """A position in the middle of the last document."""
    return sum(lengths) - lengths[-1] // 2 - 2
