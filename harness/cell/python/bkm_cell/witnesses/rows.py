# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Finds the documents in the rows that a model is given.

An engine may pad its rows at any place, put the documents in another order or into several rows.
Who attends to whom is told by document and place, so this must be known, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from bkm_cell.older_torch import local_part

Place = tuple[int, int]  # the row, and where in it a document begins

_POSITIONS = ("positions", "position_ids")
# Integers of a token each that a model may be given beside the tokens.
_BESIDE_TOKENS = (*_POSITIONS, "attention_mask", "labels")


class Unreadable(Exception):
    """Says why a call does not look like an attention whose probabilities can be read."""


@dataclass(frozen=True)
class Rows:
    """The layout of the documents in a forward."""

    lengths: list[int]  # tokens per document, in the batch's order
    places: list[Place]
    count: int
    length: int | None = None  # tokens of a row; None if the model's input did not tell

    @classmethod
    def as_asked(cls, lengths: list[int], is_padded: bool) -> Rows:
        """One packed row, or a right-padded row for each document. More padding may follow."""
        if is_padded:
            return cls(lengths, [(row, 0) for row in range(len(lengths))], len(lengths))
        return cls(lengths, [(0, sum(lengths[:at])) for at in range(len(lengths))], 1)

    @classmethod
    def found(
        cls,
        documents: list[torch.Tensor],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        is_padded: bool = False,
    ) -> Rows | None:
        """The layout of the documents in a model's arguments, if they are there.

        The layout that was asked for (one packed row, or padded rows) explains what is seen before
        another one does: padding may look like a short document, and so may other integers.
        """
        asked = cls.as_asked([len(document) for document in documents], is_padded)
        others = [named[name] for name in named if name in _BESIDE_TOKENS]
        tokens = [named[name] for name in named if name not in _BESIDE_TOKENS]
        given = [
            tensor.detach().cpu().long().reshape(-1, tensor.shape[-1])
            for tensor in _integers([*arguments, *tokens, *others])
        ]
        for rows in given:
            if _are_at(documents, asked.places, rows):
                return cls(asked.lengths, asked.places, *rows.shape)
        for rows in given:
            likely = [_attended(named, rows), _positions(named, rows.numel())]
            places = _places(documents, rows, *likely)
            if places is not None:
                return cls(asked.lengths, places, *rows.shape)
        return None

    @property
    def shape(self) -> tuple[int, int | None]:
        return self.count, self.length

    def axes(self, shape: torch.Size, what: str) -> list[int]:
        """The axes that may be that of tokens: several where there are as many heads. The last axis
        (features) is not considered."""
        least = max(at + size for (_, at), size in zip(self.places, self.lengths, strict=True))
        axes = list(enumerate(shape[:-1]))
        if self.count > 1:
            axes = axes[1:] if shape[0] == self.count else []
        found = [axis for axis, size in axes if size == (self.length or least)]
        found = found or [axis for axis, size in axes if size >= least]
        if not found:
            rows = "" if self.count == 1 else f" in {self.count} rows"
            raise Unreadable(
                f"{what} of shape {tuple(shape)} has no axis of {least} tokens or more{rows}"
            )
        return found

    def flat(self, seen: torch.Tensor) -> torch.Tensor:
        """[rows, length, length] of pairs in rows as [T, T] of pairs in the batch's order."""
        sizes = torch.tensor(self.lengths)
        row = torch.tensor([row for row, _ in self.places]).repeat_interleave(sizes)
        at = torch.cat(
            [start + torch.arange(n) for (_, start), n in zip(self.places, self.lengths, strict=True)]
        )
        flat = seen.new_zeros(len(row), len(row))
        for one in range(self.count):
            mine = (row == one).nonzero().flatten()
            flat[mine[:, None], mine] = seen[one][at[mine][:, None], at[mine]]
        return flat


@dataclass(frozen=True)
class Part:
    """The tokens of the packed documents that a rank is given; parts may cut documents anywhere."""

    places: torch.Tensor  # int64[tokens of the rank's row]: the flat position of each; -1: padding

    @classmethod
    def found(
        cls, documents: list[torch.Tensor], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Part | None:
        """In a model's arguments, if they are there. A rank may be given several pieces, in any
        order, or nothing but padding, which has one value."""
        flat = torch.cat(documents)
        own = torch.cat([torch.arange(len(document)) for document in documents])
        best: torch.Tensor | None = None
        for tensor in _integers([*arguments, *named.values()]):
            row = tensor.detach().cpu().long().reshape(-1)
            alike = row[:, None] == flat
            positions = _positions(named, len(row))
            places = torch.full((len(row),), -1)
            if positions is not None:
                is_told = positions.detach().cpu().long().reshape(-1, 1) == own
                places = _pieces(alike & is_told, last_is_short=True)
            # An engine may count the positions of a part anew.
            is_taken = torch.zeros(len(flat), dtype=torch.bool)
            is_taken[places[places >= 0]] = True
            alike &= (places < 0)[:, None] & ~is_taken
            places = torch.maximum(places, _pieces(alike, last_is_short=False))
            if len(row[places < 0].unique()) > 1:
                continue
            # A mask of ones beside the tokens looks like padding.
            if best is None or int((places >= 0).sum()) > int((best >= 0).sum()):
                best = places
        return None if best is None else cls(best)

    @property
    def is_padding(self) -> bool:
        return not bool((self.places >= 0).any())

    @property
    def length(self) -> int:
        return len(self.places)


# A shorter piece may be chance, in padding.
_SHORTEST_PIECE = 4


def _pieces(alike: torch.Tensor, last_is_short: bool) -> torch.Tensor:
    """int64[t]: the place of each token of a row, found as pieces of neighbours, the longest first
    where several begin alike; -1 where there is none. `alike`: bool[t, T]. `last_is_short`: whether
    a piece that ends with the documents may have any length."""
    length, whole = alike.shape
    # runs[i, j]: how many tokens from i on are alike to those from j on.
    runs = torch.zeros(length + 1, whole + 1, dtype=torch.int32)
    for at in range(length - 1, -1, -1):
        runs[at, :-1] = torch.where(alike[at], runs[at + 1, 1:] + 1, 0)
    places = torch.full((length,), -1)
    is_free = torch.ones(whole + 1, dtype=torch.bool)
    at = 0
    while at < length:
        size, begin = runs[at].where(is_free, 0).max(0)
        size, begin = int(size), int(begin)
        if size >= _SHORTEST_PIECE or (last_is_short and 0 < size == whole - begin):
            places[at : at + size] = torch.arange(begin, begin + size)
            is_free[begin : begin + size] = False
        at += max(size, 1)
    return places


def _positions(named: dict[str, Any], tokens: int) -> torch.Tensor | None:
    """The positions among a model's arguments, if they are of so many tokens."""
    positions = next((named[name] for name in _POSITIONS if name in named), None)
    if isinstance(positions, torch.Tensor) and positions.numel() == tokens:
        return positions
    return None


def _attended(named: dict[str, Any], rows: torch.Tensor) -> torch.Tensor | None:
    """bool[rows, places]: which tokens the attention mask does not call padding, if there is one."""
    mask = named.get("attention_mask")
    if isinstance(mask, torch.Tensor) and mask.shape == rows.shape and not mask.is_floating_point():
        return mask.detach().cpu().bool()
    return None


def _integers(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor) and value.dtype in (torch.int32, torch.int64):
            if value.dim() in (1, 2) and value.numel() > 0:
                yield local_part(value)


def _starts(positions: torch.Tensor | None, rows: torch.Tensor, length: int) -> torch.Tensor:
    """bool[rows, places]: where a document of this length begins and ends, by the positions."""
    places = rows.shape[-1] - length + 1
    if positions is None:
        return torch.zeros(len(rows), places, dtype=torch.bool)
    begins = positions.detach().cpu().reshape(rows.shape) == 0
    ends = torch.cat([begins, torch.ones(len(rows), 1, dtype=torch.bool)], 1)
    return begins[:, :places] & ends[:, length:]


def _are_at(documents: list[torch.Tensor], places: list[Place], rows: torch.Tensor) -> bool:
    """Whether each document is at its place."""
    return all(
        row < len(rows) and torch.equal(rows[row, at : at + len(document)], document)
        for document, (row, at) in zip(documents, places, strict=True)
    )


def _places(
    documents: list[torch.Tensor],
    rows: torch.Tensor,
    attended: torch.Tensor | None,
    positions: torch.Tensor | None,
) -> list[Place] | None:
    """Where each document is; None if one is nowhere. No two overlap.

    A short document may be found by chance, in padding: long documents come before short ones, then
    places that the attention mask does not hide, then places where positions begin anew.
    """
    taken = torch.zeros_like(rows, dtype=torch.bool)
    places: dict[int, Place] = {}
    for index in sorted(range(len(documents)), key=lambda index: -len(documents[index])):
        document = documents[index]
        length = len(document)
        if length > rows.shape[-1]:
            return None
        is_here = (rows.unfold(-1, length, 1) == document).all(-1)
        is_here &= ~taken.unfold(-1, length, 1).any(-1)
        if not bool(is_here.any()):
            return None
        likely = [_starts(positions, rows, length)]
        if attended is not None:
            likely.insert(0, attended.unfold(-1, length, 1).all(-1))
        for narrower in likely:
            if bool((is_here & narrower).any()):
                is_here &= narrower
        row, at = is_here.nonzero()[0].tolist()
        taken[row, at : at + length] = True
        places[index] = (row, at)
    return [places[index] for index in range(len(documents))]
