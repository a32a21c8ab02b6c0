# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Compares a block mask's table with its mask function.

A compiled flex attention visits the blocks that the table lists, and asks the mask function only in
those that are not marked full. The eager one asks the mask function everywhere and ignores the
table. So a block that is needed and not listed, or listed as full and not full, or listed twice,
changes the result of a GPU only. A listed block in which nothing is allowed is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from bkm_cell.older_torch import flex

Difference = tuple[str, str]  # the argument, and the first place where it is wrong


@dataclass(frozen=True)
class Table:
    """The flat tuple that flex_attention's op gets. Its middle grew with versions of torch."""

    parts: tuple[Any, ...]

    @property
    def mask_mod(self) -> Any:
        return self.parts[-1]

    @property
    def block_size(self) -> tuple[int, int]:
        return int(self.parts[-3]), int(self.parts[-2])  # of queries, of keys

    @property
    def tensors(self) -> tuple[torch.Tensor | None, ...]:
        """(number, indices) of partial and of full blocks, by rows of queries, then of keys."""
        return self.parts[2:10]


def allowed_pairs(table: Table, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """bool[batch, heads, queries, keys]; one batch or head stands for all that are alike."""
    batch, heads, queries, _ = query.shape
    # Modes of the subject, such as checkpointing's, must not see these ops.
    with torch.no_grad(), _disable_current_modes():
        allowed = flex.create_mask(
            table.mask_mod, batch, heads, queries, key.shape[-2], device=str(query.device)
        )
    for axis in (0, 1):
        if allowed.stride(axis) == 0:  # expanded: the function did not look at this index
            allowed = allowed.narrow(axis, 0, 1)
    return allowed


def _reduced(allowed: torch.Tensor, rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Per block of rows x columns: whether any pair is allowed, and whether all of them are."""
    height, width = allowed.shape[-2:]
    down, across = -(-height // rows), -(-width // columns)
    results = []
    for outside in (False, True):
        padded = allowed.new_full((*allowed.shape[:2], down * rows, across * columns), outside)
        padded[..., :height, :width] = allowed
        blocks = padded.unflatten(-1, (across, columns)).unflatten(-3, (down, rows))
        results.append(blocks.all(-1).all(-2) if outside else blocks.any(-1).any(-2))
    return results[0], results[1]


class _Side:
    """One direction of a table: for each block of its own axis, the blocks of the other axis."""

    def __init__(self, own: str, other: str, own_size: int, other_size: int) -> None:
        self._own, self._other = own, other
        self._own_size, self._other_size = own_size, other_size
        self._prefix = "kv" if other == "keys" else "q"

    def _place(self, row: int, column: int) -> str:
        first, second = row * self._own_size, column * self._other_size
        return (
            f"{self._own} {first} to {first + self._own_size - 1} and "
            f"{self._other} {second} to {second + self._other_size - 1}"
        )

    def _listed(
        self, name: str, number: torch.Tensor, indices: torch.Tensor, needed: torch.Tensor
    ) -> tuple[torch.Tensor | None, list[Difference]]:
        """How often each block is listed, or what makes that unreadable."""
        rows, columns = needed.shape[-2:]
        if number.shape[-1] < rows or indices.shape[-2] < rows:
            have = min(number.shape[-1], indices.shape[-2])
            return None, [(f"{name}_num_blocks", f"it has {have} rows of the {rows} needed")]
        of_batch = torch.arange(needed.shape[0]) % number.shape[0]
        of_head = torch.arange(needed.shape[1]) % number.shape[1]
        number = number[of_batch][:, of_head, :rows].long()
        indices = indices[of_batch][:, of_head, :rows].long()
        used = torch.arange(indices.shape[-1]) < number[..., None]
        if bool((number > indices.shape[-1]).any() | (number < 0).any()):
            what = f"{int(number.max())} blocks are said to be listed of {indices.shape[-1]}"
            return None, [(f"{name}_num_blocks", what)]
        outside = used & ((indices < 0) | (indices >= columns))
        if bool(outside.any()):
            what = f"block {int(indices[outside][0])} is listed, and there are {columns}"
            return None, [(f"{name}_indices", what)]
        counts = torch.zeros(*needed.shape[:-1], columns + 1, dtype=torch.long)
        counts.scatter_add_(-1, indices.where(used, columns), used.long())
        return counts[..., :columns], []

    def differences(
        self, tensors: tuple[torch.Tensor | None, ...], needed: torch.Tensor, full: torch.Tensor
    ) -> Iterator[Difference]:
        number, indices, full_number, full_indices = tensors
        if number is None or indices is None:
            return
        shape = [max(a, b) for a, b in zip(needed.shape[:2], number.shape[:2], strict=True)]
        needed, full = (x.expand(*shape, -1, -1) for x in (needed, full))
        listed, full_listed = self._prefix, f"full_{self._prefix}"
        counts, wrong = self._listed(listed, number, indices, needed)
        as_full = torch.zeros_like(needed, dtype=torch.long)
        if counts is not None and full_number is not None and full_indices is not None:
            found, wrong = self._listed(full_listed, full_number, full_indices, needed)
            as_full = as_full if found is None else found
        yield from wrong
        if wrong or counts is None:
            return
        for argument, bad, what in (
            (listed, needed & (counts + as_full == 0), "see each other, and no block is listed"),
            (listed, needed & (counts + as_full > 1), "see each other, and are listed twice"),
            (full_listed, (as_full > 0) & ~full, "are marked full, and mask_mod hides some"),
        ):
            if bool(bad.any()):
                *_, row, column = bad.nonzero()[0].tolist()
                name = f"{argument}_indices"
                yield name, f"{self._place(row, column)} {what} ({int(bad.sum())} such blocks)"


def differences(table: Table, query: torch.Tensor, key: torch.Tensor) -> list[Difference]:
    """What a GPU would read in the table that its mask function does not say."""
    allowed = allowed_pairs(table, query, key)
    # A mask that nobody asked for has one block of a million million: as large as the tensors.
    rows, columns = (
        min(size, length) for size, length in zip(table.block_size, allowed.shape[-2:], strict=True)
    )
    needed, full = _reduced(allowed, rows, columns)
    tensors = tuple(t if t is None else t.detach().cpu() for t in table.tensors)
    by_queries = _Side("queries", "keys", rows, columns).differences(tensors[:4], needed, full)
    by_keys = _Side("keys", "queries", columns, rows).differences(tensors[4:], needed.mT, full.mT)
    return [*by_queries, *by_keys]
