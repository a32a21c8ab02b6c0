# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Compares the block table of each flex_attention call with the mask that it belongs to.

On a GPU, compiled flex attention walks the table: it skips the blocks that are not listed, and does
not ask the mask about those that are listed as full. On a CPU it runs eagerly and asks the mask
about every pair, so a wrong table changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.attention.flex_attention import create_mask

from bkm_cell.witnesses.ops import flex_watched

# The tuple that a call gets (torch.nn.attention.flex_attention.BlockMask.as_tuple): these, in some
# versions orders of writing for the backward, and the last three.
_FIELDS = (
    "queries",
    "keys",
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
)
_LAST = ("query_block", "key_block", "mask_mod")


class WrongTable(Exception):
    pass


def _listed(
    counts: torch.Tensor | None, indices: torch.Tensor | None, columns: int, what: str
) -> torch.Tensor | int:
    """int64[B,H,rows,columns]: how often each block is listed; 0 for a list that is not there."""
    if counts is None or indices is None:
        return 0
    counts, indices = counts.long(), indices.long()
    if bool((counts < 0).any()) or bool((counts > indices.shape[-1]).any()):
        raise WrongTable(f"{what} lists more blocks than it has places")
    used = torch.arange(indices.shape[-1], device=counts.device) < counts[..., None]
    if bool(((indices < 0) | (indices >= columns))[used].any()):
        raise WrongTable(f"{what} lists a block that does not exist")
    times = torch.zeros(*counts.shape, columns, dtype=torch.long, device=counts.device)
    return times.scatter_add_(-1, indices.clamp(0, columns - 1), used.long())


def _blocks(mask: torch.Tensor, query_block: int, key_block: int, pad: bool) -> torch.Tensor:
    """bool[B,H,query blocks,query_block,key blocks,key_block]; what is beyond the end is `pad`."""
    queries, keys = mask.shape[-2:]
    more = (0, -keys % key_block, 0, -queries % query_block)
    padded = torch.nn.functional.pad(mask, more, value=pad)
    return padded.unflatten(-1, (-1, key_block)).unflatten(-3, (-1, query_block))


def _compare(partial: Any, full: Any, needed: torch.Tensor, whole: torch.Tensor, what: str) -> None:
    times = partial + full
    for wrong, says in (
        (needed & (times == 0), "is not listed, and the mask needs it"),
        (times > 1, "is listed twice"),
        ((full > 0) & ~whole, "is listed as full, and the mask hides a part of it"),
    ):
        places = wrong.nonzero()
        if len(places):
            row, column = places[0, -2:].tolist()
            raise WrongTable(
                f"{what}: block {column} of row {row} {says} ({len(places)} such blocks)"
            )


def check(table: tuple[Any, ...]) -> None:
    """Raises WrongTable unless the table agrees with its mask_mod in both directions."""
    if len(table) < len(_FIELDS) + len(_LAST) or not callable(table[-1]):
        raise LookupError(f"a block mask of {len(table)} parts in an order that is not known")
    t = dict(zip((*_FIELDS, *_LAST), (*table[: len(_FIELDS)], *table[-len(_LAST) :]), strict=True))
    rows, heads = t["kv_num_blocks"].shape[:2]
    device = str(t["kv_num_blocks"].device)
    mask = create_mask(t["mask_mod"], rows, heads, t["queries"], t["keys"], device=device)
    sizes = (t["query_block"], t["key_block"])
    needed = _blocks(mask, *sizes, pad=False).any(-1).any(-2)
    whole = _blocks(mask, *sizes, pad=True).all(-1).all(-2)
    count = needed.shape[-1]
    _compare(
        _listed(t["kv_num_blocks"], t["kv_indices"], count, "kv_indices"),
        _listed(t["full_kv_num_blocks"], t["full_kv_indices"], count, "full_kv_indices"),
        needed,
        whole,
        "keys of each block of queries",
    )
    if t["q_num_blocks"] is None:
        return
    count = needed.shape[-2]
    _compare(
        _listed(t["q_num_blocks"], t["q_indices"], count, "q_indices"),
        _listed(t["full_q_num_blocks"], t["full_q_indices"], count, "full_q_indices"),
        needed.mT,
        whole.mT,
        "queries of each block of keys",
    )


class BlockTables:
    """Checks the table of each call; an equal table of the same step only once."""

    def __init__(self) -> None:
        self._calls = 0
        self._fault: str | None = None
        self._error: str | None = None

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"calls": self._calls}
        if self._fault is not None:
            facts["fault"] = self._fault
        if self._error is not None:
            facts["error"] = self._error
        return facts

    @contextmanager
    def watching(self, where: str) -> Iterator[None]:
        """`where` begins the sentence about a fault: "in step 2"."""
        known: dict[tuple[Any, ...], Any] = {}  # keeps the parts alive, so that no id comes twice

        def saw(_: Any, arguments: tuple[Any, ...]) -> None:
            if len(arguments) < 5 or not isinstance(arguments[4], tuple):
                return
            table = arguments[4]
            self._calls += 1
            key = tuple(
                (id(part), part._version) if isinstance(part, torch.Tensor) else id(part)
                for part in table
            )
            if key in known or self._fault is not None:
                return
            known[key] = table
            try:
                with torch.no_grad():
                    check(table)
            except WrongTable as fault:
                self._fault = f"{where} {fault}"
            except Exception as error:
                self._error = f"{where} {type(error).__name__}: {error}"[:500]

        with flex_watched(saw):
            yield
