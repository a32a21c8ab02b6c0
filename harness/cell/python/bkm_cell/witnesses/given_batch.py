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

    Positions that restart and rows are borders of documents. A single row without positions is cut
    into the `known` documents, as far as they are found one after another.
    """
    name, of_positions = _first_of(named, _TOKENS), _first_of(named, _POSITIONS)
    if name is None or named[name].dim() != 2:
        raise UnreadableBatch(
            f"the model is not called with {' or '.join(_TOKENS)} of two dimensions"
        )
    ids, positions = named[name], named.get(of_positions or "")
    rows, width = ids.shape
    mask = named.get("attention_mask")
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
    if positions is None and rows == 1:
        lengths = _cut(tokens, known)
    batch = Batch(tokens, torch.zeros_like(tokens), lengths)
    return GivenBatch(batch, places, name)


def _cut(tokens: torch.Tensor, known: Iterable[torch.Tensor]) -> list[int]:
    """The lengths of the documents found; the rest of the row is one more."""
    documents, lengths, begin = list(known), [], 0
    while begin < len(tokens):
        length = next(
            (len(d) for d in documents if torch.equal(tokens[begin : begin + len(d)], d)),
            len(tokens) - begin,
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
