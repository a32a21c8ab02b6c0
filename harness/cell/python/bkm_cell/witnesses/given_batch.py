# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads the batch that a trainer gives to a model: its tokens, and where documents are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from bkm_cell.probe import Batch
from bkm_cell.ranks.share import Share, change_relations
from bkm_cell.witnesses.attended import Attended


class UnreadableBatch(Exception):
    """The call's arguments do not say what the batch is."""


@dataclass(frozen=True)
class GivenBatch:
    """`places`: the flat places of the batch's tokens in the rows that the model was given."""

    batch: Batch
    places: torch.Tensor  # int64[T]

    def with_tokens(self, named: dict[str, Any], tokens: torch.Tensor) -> dict[str, Any]:
        """The call's keywords with other tokens in the same places."""
        ids = named["input_ids"].clone()
        ids.view(-1)[self.places.to(ids.device)] = tokens.to(ids.device, ids.dtype)
        return {**named, "input_ids": ids}


def given_batch(named: dict[str, Any]) -> GivenBatch:
    """From a call model(input_ids=, position_ids=, attention_mask=)."""
    ids = named.get("input_ids")
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2:
        raise UnreadableBatch("the model is not called with input_ids of two dimensions")
    rows, width = ids.shape
    mask, positions = named.get("attention_mask"), named.get("position_ids")
    is_token = torch.ones(rows, width, dtype=torch.bool)
    if isinstance(mask, torch.Tensor) and tuple(mask.shape) == (rows, width):
        is_token = mask.detach().cpu().bool()
    starts = torch.zeros(rows, width, dtype=torch.bool)
    starts[torch.arange(rows), is_token.int().argmax(1)] = True
    if isinstance(positions, torch.Tensor) and tuple(positions.shape) == (rows, width):
        starts |= (positions.detach().cpu() == 0) & is_token
    places = is_token.flatten().nonzero().flatten()
    begins = starts.flatten()[places].nonzero().flatten().tolist()
    ends = [*begins[1:], len(places)]
    lengths = [end - begin for begin, end in zip(begins, ends)]
    tokens = ids.detach().cpu().flatten()[places]
    batch = Batch(tokens, torch.zeros_like(tokens), lengths)
    return GivenBatch(batch, places)


@dataclass(frozen=True)
class OrderOfTrainer(Share):
    """A trainer's batch has the documents of the probe's in another order; reports are in the
    probe's."""

    lengths: tuple[int, ...] = ()  # of the trainer's documents, in its order
    # int64[T]: where each token of the probe's batch is in the trainer's.
    order: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def of(self, batch: Batch) -> Batch:
        def moved(values: torch.Tensor) -> torch.Tensor:
            theirs = torch.empty_like(values)
            theirs[self.order] = values
            return theirs

        return replace(
            batch,
            input_ids=moved(batch.input_ids),
            loss_mask=moved(batch.loss_mask),
            lengths=list(self.lengths),
        )

    def whole(self, batch: Batch, values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values[self.order.to(values.device)]

    def whole_relations(self, batch: Batch, attended: Attended) -> None:
        change_relations(
            attended, lambda relation: relation[self.order][:, self.order].contiguous()
        )


def order_of(expected: Batch, given: Batch) -> OrderOfTrainer | None:
    """None if the trainer gave other documents than the probe's."""
    begins: dict[tuple[int, ...], list[int]] = {}
    at = 0
    for document in given.input_ids.split(given.lengths):
        begins.setdefault(tuple(document.tolist()), []).append(at)
        at += len(document)
    order = []
    for document in expected.input_ids.split(expected.lengths):
        places = begins.get(tuple(document.tolist()))
        if not places:
            return None
        begin = places.pop(0)
        order.append(torch.arange(begin, begin + len(document)))
    if any(begins.values()):
        return None
    return OrderOfTrainer(lengths=tuple(given.lengths), order=torch.cat(order))
