# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Assembles tensors from the parts that ranks hold, and compares parts that are held more than once.

It uses memory that the ranks share and none of the subject's process groups, so it costs a copy of
each part and works if those groups are out of step. Only parts of parts and unfinished sums are
assembled by torch's collectives.
"""

from __future__ import annotations

import json
import math
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from bkm_cell.older_torch import DTensor, local_part, Shard
from bkm_cell.report import Report
from bkm_cell.tensor_file import dtype_name
from bkm_cell.witnesses.flat_parameters import FlatPart
from bkm_cell.witnesses.named_tensors import Tensors, gathered

_TABLE_BYTES = 4 << 20  # of each rank; pages that are not written cost nothing
_ALIGNMENT = 64
_COUNTER_BYTES = 8
_FIRST_POLL_S, _LAST_POLL_S = 0.0005, 0.02  # a rank that waits long hardly uses the processor
_NAME = "the harness's gathering"


@dataclass(frozen=True)
class _Part:
    """What one rank holds of a tensor: `sizes` elements from `starts` on, in each dimension.

    `is_cut_plainly`: False if the part is not a block that its placements tell. A FlatPart is a
    part of a whole in one dimension, which gets the shape `seen_as`.
    """

    dtype: str
    shape: tuple[int, ...]  # of the whole
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    is_cut_plainly: bool = True
    seen_as: tuple[int, ...] | None = None

    @property
    def place(self) -> tuple[slice, ...]:
        return tuple(slice(start, start + size) for start, size in zip(self.starts, self.sizes))


def part_of(tensor: torch.Tensor | FlatPart) -> _Part:
    """Where this rank's part of a tensor lies in the whole."""
    if isinstance(tensor, FlatPart):
        return _Part(
            dtype_name(tensor.values),
            (math.prod(tensor.shape),),
            (tensor.start,),
            (len(tensor.values),),
            seen_as=tensor.shape,
        )
    dtype, shape = dtype_name(tensor), tuple(tensor.shape)
    starts, sizes = [0] * len(shape), list(shape)
    if not isinstance(tensor, DTensor):
        return _Part(dtype, shape, tuple(starts), tuple(sizes))
    coordinates = tensor.device_mesh.get_coordinate() or []
    for placement, ranks, at in zip(tensor.placements, tensor.device_mesh.shape, coordinates):
        if placement.is_replicate():
            continue
        # Parts of parts (_StridedShard) and sums (Partial) are torch's to assemble.
        if type(placement) is not Shard or starts[placement.dim] or sizes[placement.dim] != shape[placement.dim]:
            return _Part(dtype, shape, tuple(starts), tuple(sizes), is_cut_plainly=False)
        each = -(-shape[placement.dim] // ranks)  # as torch.chunk cuts
        starts[placement.dim] = min(at * each, shape[placement.dim])
        sizes[placement.dim] = min(each, shape[placement.dim] - starts[placement.dim])
    is_as_told = tuple(tensor.to_local().shape) == tuple(sizes)
    return _Part(dtype, shape, tuple(starts), tuple(sizes), is_as_told)


def largest_difference(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """Of two tensors of one shape; None if they are alike. NaN is like NaN."""
    if bool(((one == other) | (one.isnan() & other.isnan())).all()):
        return None
    return (one.double() - other.double()).abs().max().item()


class SharedMemory:
    """Made before the ranks are forked. `most_bytes`: of all tensors of one call."""

    def __init__(self, ranks: int, most_bytes: int) -> None:
        self.ranks = ranks
        self.counters = mmap.mmap(-1, ranks * _COUNTER_BYTES)
        self.tables = mmap.mmap(-1, ranks * _TABLE_BYTES)
        self.data = mmap.mmap(-1, most_bytes)


@dataclass(frozen=True)
class Rank:
    """One of several. `tell` is called with the collective that it enters, and with None when it
    leaves it."""

    number: int
    tell: Callable[[str | None], None]
    gather: Gather


class Gather:
    """Reports differences: name, rank and the largest difference, which is None for another shape
    or type, or if the rank has no such tensor.

    `is_pipeline`: ranks have other layers, so a tensor need not be on all of them. `when`: what the
    cell does, for differences.
    """

    def __init__(
        self,
        memory: SharedMemory,
        rank: int,
        tell: Callable[[str | None], None],
        report: Report,
        is_pipeline: bool,
    ) -> None:
        self.when = ""
        self._memory = memory
        self._rank = rank
        self._tell = tell
        self._report = report
        self._is_pipeline = is_pipeline
        self._bytes = torch.frombuffer(memory.data, dtype=torch.uint8)

    def whole(self, kind: str, tensors: Tensors) -> Tensors:
        """Called by all ranks. Rank 0 gets whole tensors, which stay until the next call; the
        others get none. `kind` stands before the names in differences."""
        tables = self._exchange({name: part_of(value) for name, value in tensors.items()})
        plainly = {name: True for table in tables for name in table}
        for table in tables:
            for name, part in table.items():
                plainly[name] &= part.is_cut_plainly
        if not all(plainly.values()):
            tensors = {
                name: value if plainly[name] else gathered(value)
                for name, value in tensors.items()
            }
            tables = self._exchange({name: part_of(value) for name, value in tensors.items()})
        wholes = self._places(tables)
        places = {name: part.place for name, part in tables[self._rank].items()}
        writers = {name: self._first_with(name, tables) for name in tensors}
        for name, value in tensors.items():
            if writers[name] == self._rank:
                wholes[name][places[name]].copy_(_local(value))
        self._wait()
        for name, value in tensors.items():
            if writers[name] is None:
                self._differ(f"{kind}/{name}", self._rank)
            elif writers[name] != self._rank:
                largest = largest_difference(wholes[name][places[name]], _local(value))
                if largest is not None:
                    self._differ(f"{kind}/{name}", self._rank, largest)
        if self._rank > 0:
            return {}
        for name, whole in wholes.items():
            if not _is_covered(name, tables):  # what lies there is of an earlier call
                whole = torch.full(whole.shape, float("nan"))
            wholes[name] = whole.view(_first_part(name, tables).seen_as or whole.shape)
        if not self._is_pipeline:
            for rank, table in enumerate(tables):
                for name in sorted(wholes.keys() - table.keys()):
                    self._differ(f"{kind}/{name}", rank)
        return wholes

    def _exchange(self, own: dict[str, _Part]) -> list[dict[str, _Part]]:
        """The parts of each rank."""
        text = json.dumps({name: vars(part) for name, part in own.items()}).encode()
        if len(text) > _TABLE_BYTES - _COUNTER_BYTES:
            raise RuntimeError(f"bkm: the names of {len(own)} tensors do not fit into shared memory")
        tables = self._memory.tables
        self._wait()  # until the first rank has used the tensors of the call before
        at = self._rank * _TABLE_BYTES
        tables[at : at + _COUNTER_BYTES] = len(text).to_bytes(_COUNTER_BYTES, "little")
        tables[at + _COUNTER_BYTES : at + _COUNTER_BYTES + len(text)] = text
        self._wait()
        found = []
        for rank in range(self._memory.ranks):
            at = rank * _TABLE_BYTES
            size = int.from_bytes(tables[at : at + _COUNTER_BYTES], "little")
            read = json.loads(tables[at + _COUNTER_BYTES : at + _COUNTER_BYTES + size])
            found.append(
                {
                    name: _Part(
                        part["dtype"],
                        tuple(part["shape"]),
                        tuple(part["starts"]),
                        tuple(part["sizes"]),
                        part["is_cut_plainly"],
                        part["seen_as"] and tuple(part["seen_as"]),
                    )
                    for name, part in read.items()
                }
            )
        return found

    def _places(self, tables: list[dict[str, _Part]]) -> Tensors:
        """A tensor in shared memory for each name."""
        wholes: Tensors = {}
        at = 0
        for name in dict.fromkeys(name for table in tables for name in table):
            part = _first_part(name, tables)
            dtype = getattr(torch, part.dtype)
            size = math.prod(part.shape) * dtype.itemsize
            if at + size > len(self._bytes):
                raise RuntimeError(
                    f"bkm: the tensors need more than {len(self._bytes) >> 20} MiB of shared memory"
                )
            wholes[name] = self._bytes[at : at + size].view(dtype).view(part.shape)
            at += -(-size // _ALIGNMENT) * _ALIGNMENT
        return wholes

    def _first_with(self, name: str, tables: list[dict[str, _Part]]) -> int | None:
        """The lowest rank that holds the same part as this one; None if the tensor is of another
        shape or type than that of a lower rank."""
        mine = tables[self._rank][name]
        first = _first_part(name, tables)
        if (mine.dtype, mine.shape) != (first.dtype, first.shape):
            return None
        return next(rank for rank, table in enumerate(tables) if table.get(name) == mine)

    def _differ(self, name: str, rank: int, largest: float | None = None) -> None:
        difference = {"when": self.when, "name": name, "rank": rank, "largest": largest}
        self._report.append(rank_differences=difference)

    def _wait(self) -> None:
        """Until all ranks have come here as often as this one."""
        counters = memoryview(self._memory.counters).cast("Q")
        counters[self._rank] += 1
        self._tell(_NAME)
        poll = _FIRST_POLL_S
        while min(counters) < counters[self._rank]:
            time.sleep(poll)
            poll = min(1.5 * poll, _LAST_POLL_S)
        self._tell(None)


def _first_part(name: str, tables: list[dict[str, _Part]]) -> _Part:
    """Of the lowest rank that has the tensor, which says what it is."""
    return next(table[name] for table in tables if name in table)


def _is_covered(name: str, tables: list[dict[str, _Part]]) -> bool:
    """Whether the ranks hold all parts of a tensor together."""
    whole = _first_part(name, tables).shape
    parts = {table[name] for table in tables if name in table and table[name].shape == whole}
    return sum(math.prod(part.sizes) for part in parts) >= math.prod(whole)


def local_elements(parameter: torch.Tensor) -> int:
    """How many elements of a parameter this rank holds."""
    return _local(parameter).numel()


def _local(tensor: torch.Tensor | FlatPart) -> torch.Tensor:
    if isinstance(tensor, FlatPart):
        return tensor.values
    return local_part(tensor.detach())
