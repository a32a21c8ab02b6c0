# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads the batch that a trainer gives to a model: its tokens, and where documents are."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from bkm_cell.probe import Batch
from bkm_cell.ranks.share import Share, change_relations
from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.named_tensors import Tensors


class UnreadableBatch(Exception):
    """The call's arguments do not say what the batch is."""


# The names that models have for the same argument: Hugging Face's and torchtitan's.
_TOKENS = ("input_ids", "tokens")
_POSITIONS = ("position_ids", "positions")


def by_name(
    module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call, with those that came by place under the names of module.forward."""
    if not arguments:
        return named
    names = list(inspect.signature(module.forward).parameters)
    return {**dict(zip(names, arguments)), **named}


def _first_of(named: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if isinstance(named.get(name), torch.Tensor)), None)


@dataclass(frozen=True)
class GivenBatch:
    """`places`: the flat places of the batch's tokens in the rows that the model was given as the
    argument `name`."""

    batch: Batch
    places: torch.Tensor  # int64[T]
    name: str


@dataclass(frozen=True)
class GivenCall:
    """A call of a model, and the batch in it."""

    named: dict[str, Any]
    given: GivenBatch

    def with_tokens(self, tokens: torch.Tensor) -> dict[str, Any]:
        """The call's keywords with other tokens in the same places."""
        ids = self.named[self.given.name].clone()
        ids.view(-1)[self.given.places.to(ids.device)] = tokens.to(ids.device, ids.dtype)
        return {**self.named, self.given.name: ids}


def given_batch(named: dict[str, Any], known: Iterable[torch.Tensor] = ()) -> GivenBatch:
    """From the arguments of a call of a model, by name.

    Positions that restart and rows are borders of documents. A row without positions is cut into the
    `known` documents, as far as they are found one after another. What fills up a row behind them is
    no document: one token again and again, not known.
    """
    name, of_positions = _first_of(named, _TOKENS), _first_of(named, _POSITIONS)
    if name is None or named[name].dim() != 2:
        raise UnreadableBatch(
            f"the model is not called with {' or '.join(_TOKENS)} of two dimensions"
        )
    ids, positions = named[name].detach().cpu(), named.get(of_positions or "")
    rows, width = ids.shape
    documents, mask = list(known), named.get("attention_mask")
    is_token = torch.ones(rows, width, dtype=torch.bool)
    if isinstance(mask, torch.Tensor) and tuple(mask.shape) == (rows, width):
        is_token = mask.detach().cpu().bool()
    has_positions = isinstance(positions, torch.Tensor) and tuple(positions.shape) == (rows, width)
    places, lengths = [], []
    for row in range(rows):
        own = is_token[row].nonzero().flatten()
        tokens = ids[row, own]
        if has_positions:
            pieces = _between_zeros(positions[row].detach().cpu()[own])
        elif positions is None:
            pieces = _cut(tokens, documents)
        else:
            pieces = [len(own)]
        if len(pieces) > 1 and _fills_up(tokens[len(tokens) - pieces[-1] :], documents):
            own = own[: -pieces.pop()]
        places.append(row * width + own)
        lengths += pieces
    flat = torch.cat(places)
    tokens = ids.flatten()[flat]
    return GivenBatch(Batch(tokens, torch.zeros_like(tokens), lengths), flat, name)


def _between_zeros(positions: torch.Tensor) -> list[int]:
    begins = sorted({0, *(positions == 0).nonzero().flatten().tolist()})
    return [end - begin for begin, end in zip(begins, [*begins[1:], len(positions)])]


def _fills_up(tokens: torch.Tensor, known: list[torch.Tensor]) -> bool:
    is_constant = bool((tokens == tokens[0]).all())
    return bool(known) and is_constant and not any(torch.equal(tokens, each) for each in known)


def _cut(tokens: torch.Tensor, known: list[torch.Tensor]) -> list[int]:
    """The lengths of the documents found, the longest first; the rest of the row is one more."""
    lengths, begin = [], 0
    while begin < len(tokens):
        length = max(
            (len(d) for d in known if torch.equal(tokens[begin : begin + len(d)], d)),
            default=len(tokens) - begin,
        )
        lengths.append(length)
        begin += length
    return lengths


def together(parts: list[Batch]) -> Batch:
    return Batch(
        torch.cat([part.input_ids for part in parts]),
        torch.cat([part.loss_mask for part in parts]),
        [length for part in parts for length in part.lengths],
    )


@dataclass(frozen=True)
class OrderOfTrainer(Share):
    """A trainer's batch has some documents of its dataset, in any order, and one of several ranks has
    some of them; reports are in terms of the whole batch, in the dataset's order."""

    lengths: tuple[int, ...] = ()  # of this rank's documents, in its order
    documents: tuple[int, ...] = ()  # their places in the dataset, likewise
    of_all: tuple[int, ...] = ()  # those of all ranks, in their order
    # int64[T], of this rank's tokens in its order: where each is in the whole batch.
    places: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def batch(self, kept: Batch) -> Batch:
        """The whole batch in the order of its dataset."""
        return kept.take(sorted(self.of_all))

    def of(self, batch: Batch) -> Batch:
        return replace(
            batch,
            input_ids=batch.input_ids[self.places],
            loss_mask=batch.loss_mask[self.places],
            lengths=list(self.lengths),
        )

    def whole(self, batch: Batch, values: torch.Tensor | None) -> torch.Tensor | None:
        """[T] of the whole batch; 0 where other ranks' documents are."""
        if values is None:
            return None
        spread = values.new_zeros(len(batch.input_ids))
        spread[self.places.to(values.device)] = values
        return spread

    def beside(self, batch: Batch) -> Tensors:
        if not self.is_one_of_several:
            return {}
        owned = torch.zeros(len(batch.input_ids), dtype=torch.uint8)
        owned[self.places] = 1
        return {"owned": owned}

    def whole_relations(self, batch: Batch, attended: Attended) -> None:
        size = len(batch.input_ids)

        def spread(relation: torch.Tensor) -> torch.Tensor:
            whole = torch.zeros(size, size, dtype=torch.uint8)
            whole[self.places[:, None], self.places] = relation
            return whole

        change_relations(attended, spread)


def documents_in(kept: Batch, given: Batch) -> list[int] | None:
    """The places among the `kept` documents of a dataset of those of a trainer's batch, in its order;
    None if one is none of them."""
    places: dict[tuple[int, ...], list[int]] = {}
    for place, document in enumerate(kept.input_ids.split(kept.lengths)):
        places.setdefault(tuple(document.tolist()), []).append(place)
    documents: list[int] = []
    for document in given.input_ids.split(given.lengths):
        alike = places.get(tuple(document.tolist()))
        if not alike:
            return None
        documents.append(min(alike, key=documents.count))  # equal documents in turn
    return documents


def order_of(kept: Batch, of_ranks: list[list[int]], rank: int = 0) -> OrderOfTrainer:
    """Of a rank's documents, given those of each rank."""
    of_all = [document for documents in of_ranks for document in documents]
    # Where each begins in the whole batch: one that came twice is there twice.
    begins: dict[int, list[int]] = {}
    at = 0
    for document in sorted(of_all):
        begins.setdefault(document, []).append(at)
        at += kept.lengths[document]
    places = []
    for number, documents in enumerate(of_ranks):
        for document in documents:
            begin = begins[document].pop(0)
            if number == rank:
                places.append(torch.arange(begin, begin + kept.lengths[document]))
    mine = of_ranks[rank]
    return OrderOfTrainer(
        is_one_of_several=len(of_ranks) > 1,
        lengths=tuple(kept.lengths[document] for document in mine),
        documents=tuple(mine),
        of_all=tuple(of_all),
        places=torch.cat(places),
    )
