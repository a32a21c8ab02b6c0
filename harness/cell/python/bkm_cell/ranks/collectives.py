# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records the collectives of a rank, and which one it is in.

It wraps the functions of torch.distributed and of its functional collectives. Collectives that C++
code starts by itself (DDP's reducer) are not seen.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from bkm_cell.tensor_file import dtype_name

MOST_KINDS = 500

# Functions that take a group and exchange nothing.
_NO_COLLECTIVES = ("get_", "is_", "new_", "init_", "destroy_", "in_", "supports_", "set_", "split_")


def _collectives_of(module: ModuleType) -> list[str]:
    """The module's public functions that take a group; their names differ between versions."""
    names = []
    for name, value in vars(module).items():
        if name.startswith(("_", *_NO_COLLECTIVES)) or not inspect.isroutine(value):
            continue
        try:
            parameters = inspect.signature(value).parameters
        except (TypeError, ValueError):
            continue
        if "group" in parameters or name in ("batch_isend_irecv", "wait_tensor"):
            names.append(name)
    return names


def _first_tensor(values: Any) -> torch.Tensor | None:
    for value in values:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return value[0]
    return None


def _size_of(group: Any) -> int | None:
    """The ranks of a group, in any of the forms that torch takes."""
    try:
        if group is None:
            return dist.get_world_size()
        if isinstance(group, dist.ProcessGroup):
            return group.size()
        if isinstance(group, (list, tuple)) and all(isinstance(one, int) for one in group):
            return len(group)
        if hasattr(group, "size") and callable(group.size):
            return int(group.size())
        if isinstance(group, tuple):
            return group[0].size(group[1])
    except Exception:
        return None
    return None


class Collectives:
    """Counts calls by (operation, reduction, ranks of the group, type, stage) with their elements.

    `stage`: what the rank does now; `witness` while the harness looks at tensors.
    """

    def __init__(self, tell: Callable[[str | None], None]) -> None:
        """`tell`: called with the operation that begins, and with None when it returns."""
        self.stage = "construct"
        self._tell = tell
        self._calls: Counter[tuple[str, str, int | None, str, str]] = Counter()
        self._elements: Counter[tuple[str, str, int | None, str, str]] = Counter()
        self._depth = 0

    def install(self) -> None:
        """For the rest of the process."""
        import torch.distributed._functional_collectives as functional
        from torch.distributed import distributed_c10d

        for module, homes in ((distributed_c10d, [dist, distributed_c10d]), (functional, [functional])):
            for name in _collectives_of(module):
                watched = self._watched(name, getattr(module, name))
                for home in homes:
                    if hasattr(home, name):
                        setattr(home, name, watched)

    def facts(self) -> list[dict[str, Any]]:
        found = []
        for key, calls in sorted(self._calls.items(), key=str):
            names = ("op", "reduce", "ranks", "dtype", "stage")
            facts: dict[str, Any] = dict(zip(names, key, strict=True))
            facts = {name: value for name, value in facts.items() if value}
            found.append({**facts, "calls": calls, "elements": self._elements[key]})
        return found

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            signature = None

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if self._depth > 0 or torch.compiler.is_compiling():
                return function(*arguments, **named)
            self._depth += 1
            self._note(name, signature, arguments, named)
            self._tell(name)
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                self._tell(None)

        return call

    def _note(
        self, name: str, signature: inspect.Signature | None, arguments: Any, named: Any
    ) -> None:
        try:
            given = signature.bind(*arguments, **named).arguments if signature else named
        except TypeError:  # the call itself will fail
            given = named
        tensor = _first_tensor([*arguments, *named.values()])
        reduction = next((given[key] for key in ("op", "reduceOp", "reduce_op") if key in given), "")
        dtype = "" if tensor is None else dtype_name(tensor)
        text = str(reduction).rpartition(".")[2].lower()
        key = (name, text, _size_of(given.get("group")), dtype, self.stage)
        if key in self._calls or len(self._calls) < MOST_KINDS:
            self._calls[key] += 1
            self._elements[key] += 0 if tensor is None else tensor.numel()
