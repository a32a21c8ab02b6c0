# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A trainer's dataset or loss makes other training data of the same file.

Planted where the trainer takes its documents from (TrainerAdapter.dataset) and its loss
(TrainerAdapter.loss), before it is started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.registry import Phase, fault
from bkm_cell.faults.site import Site

Item = dict[str, Any]  # input_ids, position_ids and loss_mask, [tokens] each


def edit_items(site: Site, edit: Callable[[Item], Item]) -> None:
    def changed(get: Callable[..., Item], *arguments: Any) -> Item:
        site.act()
        return edit(dict(get(*arguments)))

    site.around(_dataset(site), "__getitem__", changed)


def _dataset(site: Site) -> type:
    if not hasattr(site.adapter, "dataset"):
        raise site.cannot("no trainer reads documents here")
    return site.adapter.dataset()


def _cut(item: Item, first: int, last: int) -> Item:
    """Without the first and last tokens."""
    tokens = len(item["input_ids"])
    cut = {k: v[first : tokens - last] for k, v in item.items() if isinstance(v, torch.Tensor)}
    return item | cut | {"position_ids": torch.arange(tokens - first - last)}


@fault("data-mask-shifted", Phase.BEFORE_CONSTRUCT)
def mask_shifted(site: Site) -> None:
    """The loss mask begins and ends one token late."""
    edit_items(site, lambda item: item | {"loss_mask": torch.roll(item["loss_mask"], 1)})


@fault("data-end-untrained", Phase.BEFORE_CONSTRUCT)
def end_untrained(site: Site) -> None:
    """The end token does not count."""

    def edit(item: Item) -> Item:
        mask = item["loss_mask"].clone()
        mask[-1] = 0
        return item | {"loss_mask": mask}

    edit_items(site, edit)


@fault("data-mask-lost", Phase.BEFORE_CONSTRUCT)
def mask_lost(site: Site) -> None:
    """Prompts are trained, too."""
    edit_items(site, lambda item: item | {"loss_mask": torch.ones_like(item["loss_mask"])})


@fault("data-template-dropped", Phase.BEFORE_CONSTRUCT)
def template_dropped(site: Site) -> None:
    """The first turn comes without the template's beginning of it."""
    edit_items(site, lambda item: _cut(item, 2, 0))


@fault("data-truncated", Phase.BEFORE_CONSTRUCT)
def truncated(site: Site) -> None:
    """Documents lose their last tokens."""
    edit_items(site, lambda item: _cut(item, 0, 2))


@fault("data-document-twice", Phase.BEFORE_CONSTRUCT)
def document_twice(site: Site) -> None:
    """A document comes twice, and another one never."""

    def changed(get: Callable[..., Item], dataset: Any, index: int) -> Item:
        site.act()
        return get(dataset, 0 if index == 1 else index)

    site.around(_dataset(site), "__getitem__", changed)


@fault("data-loss-over-all-tokens", Phase.BEFORE_CONSTRUCT)
def loss_over_all_tokens(site: Site) -> None:
    """The loss is divided by the number of all tokens, not of those that count."""
    if not hasattr(site.adapter, "loss"):
        raise site.cannot("no trainer has a loss here")
    home, name = site.adapter.loss()

    def changed(loss: Callable[..., Any], *arguments: Any, data: Any, **named: Any) -> Any:
        site.act()
        mask = data["loss_mask"].values()
        result, metrics = loss(*arguments, data=data, **named)
        return result * (mask.sum() / mask.numel()), metrics

    site.around(home, name, changed)
