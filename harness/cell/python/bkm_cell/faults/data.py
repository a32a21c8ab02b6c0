# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A trainer's dataset or loss makes other training data of the same file.

Planted where the trainer takes its documents and its loss from (TrainerAdapter.edit_documents,
scale_loss), before it is started.
"""

from __future__ import annotations

from typing import Any

import torch

from bkm_cell.adapters.trainer import EditDocument
from bkm_cell.faults.registry import Phase, fault
from bkm_cell.faults.site import Site

_NO_LIMIT = 1 << 16  # tokens
Document = tuple[torch.Tensor, torch.Tensor]  # its tokens, and 1 where a token counts; [T] each


def edit_documents(site: Site, edit: EditDocument) -> None:
    if not hasattr(site.adapter, "edit_documents"):
        raise site.cannot("no trainer reads documents here")

    def edited(tokens: torch.Tensor, counts: torch.Tensor) -> Document:
        site.act()
        return edit(tokens, counts)

    site.adapter.edit_documents(edited)


@fault("data-mask-shifted", Phase.BEFORE_CONSTRUCT)
def mask_shifted(site: Site) -> None:
    """The loss mask begins and ends one token late."""
    edit_documents(site, lambda tokens, counts: (tokens, torch.roll(counts, 1)))


@fault("data-end-untrained", Phase.BEFORE_CONSTRUCT)
def end_untrained(site: Site) -> None:
    """The end token does not count."""
    edit_documents(
        site, lambda tokens, counts: (tokens, torch.cat([counts[:-1], torch.zeros_like(counts[-1:])]))
    )


@fault("data-mask-lost", Phase.BEFORE_CONSTRUCT)
def mask_lost(site: Site) -> None:
    """Prompts are trained, too."""
    edit_documents(site, lambda tokens, counts: (tokens, torch.ones_like(counts)))


@fault("data-template-dropped", Phase.BEFORE_CONSTRUCT)
def template_dropped(site: Site) -> None:
    """The first turn comes without the template's beginning of it."""
    edit_documents(site, lambda tokens, counts: (tokens[2:], counts[2:]))


@fault("data-truncated", Phase.BEFORE_CONSTRUCT)
def truncated(site: Site) -> None:
    """Documents lose their last tokens."""
    edit_documents(site, lambda tokens, counts: (tokens[:-2], counts[:-2]))


@fault("data-document-twice", Phase.BEFORE_CONSTRUCT)
def document_twice(site: Site) -> None:
    """A document comes twice, and another one never."""
    kept: list[Document] = []

    def edit(tokens: torch.Tensor, counts: torch.Tensor) -> Document:
        kept.append((tokens, counts))
        is_second = len(kept) > 1 and torch.equal(tokens, kept[1][0])
        return kept[0] if is_second else (tokens, counts)

    edit_documents(site, edit)


@fault("data-epoch-repeats-a-document", Phase.BEFORE_CONSTRUCT)
def epoch_repeats_a_document(site: Site) -> None:
    """A document comes in two steps of an epoch, and another one in none."""
    size = site.adapter.probe.global_batch_size
    kept: list[Document] = []  # each once

    def edit(tokens: torch.Tensor, counts: torch.Tensor) -> Document:
        if not any(torch.equal(tokens, each) for each, _ in kept):
            kept.append((tokens, counts))
        is_of_next_step = len(kept) > size and torch.equal(tokens, kept[size][0])
        return kept[0] if is_of_next_step else (tokens, counts)

    edit_documents(site, edit)


@fault("data-rank-gets-anothers-documents", Phase.BEFORE_CONSTRUCT)
def rank_gets_anothers_documents(site: Site) -> None:
    """Every rank's sampler gives the documents of the first rank."""
    kind = torch.utils.data.distributed.DistributedSampler

    def make(init: Any, self: Any, *arguments: Any, **named: Any) -> None:
        site.act()
        init(self, *arguments, **{**named, "rank": 0})

    site.around(kind, "__init__", make)


@fault("data-mask-lost-on-truncation", Phase.BEFORE_CONSTRUCT)
def mask_lost_on_truncation(site: Site) -> None:
    """What is left of a document that was cut off counts, prompts too."""
    longest = site.adapter.probe.max_length

    def edit(tokens: torch.Tensor, counts: torch.Tensor) -> Document:
        return tokens, torch.ones_like(counts) if len(tokens) == longest else counts

    edit_documents(site, edit)


@fault("data-truncated-on-the-other-side", Phase.BEFORE_CONSTRUCT)
def truncated_on_the_other_side(site: Site) -> None:
    """A document that is too long loses its beginning where its end was to be cut off."""
    longest = site.adapter.probe.max_length
    site.adapter.probe.asked["max_length"] = _NO_LIMIT
    edit_documents(site, lambda tokens, counts: (tokens[-longest:], counts[-longest:]))


@fault("data-loss-over-all-tokens", Phase.BEFORE_CONSTRUCT)
def loss_over_all_tokens(site: Site) -> None:
    """The loss is divided by the number of all tokens, not of those that count."""
    if not hasattr(site.adapter, "scale_loss"):
        raise site.cannot("no trainer has a loss here")

    def factor(counted: int, tokens: int) -> float:
        site.act()
        return counted / tokens

    site.adapter.scale_loss(factor)
