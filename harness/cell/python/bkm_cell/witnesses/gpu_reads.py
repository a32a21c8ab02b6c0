# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads the arguments of each attention call as a GPU's kernel reads them.

The CPU's stand-ins do not need all of them: flex follows the mask function and not the block table,
varlen computes every token whatever maximum it is told. A GPU would not. What flash_attn's functions
are given is recorded, for the judge to compare.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import torch

from bkm_cell.shims import acts, flex_cpu, varlen_cpu
from bkm_cell.witnesses import flash_calls
from bkm_cell.witnesses.block_table import Difference, Table, differences
from bkm_cell.witnesses.layers import hf_attention, inner_attentions, numbered
from bkm_cell.witnesses.ops import flex_watched

MOST_DIFFERENCES = 1000


def _forward_calls() -> int:
    return varlen_cpu.forward_calls() + flash_calls.count()


def _captured(value: Any, found: list[torch.Tensor], seen: set[int]) -> None:
    """The tensors that a mask function looks at."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _captured(item, found, seen)
    elif isinstance(value, functools.partial):
        _captured([value.func, *value.args, *value.keywords.values()], found, seen)
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            with_content = getattr(cell, "cell_contents", None)
            _captured(with_content, found, seen)
        _captured(list(value.__defaults__ or ()), found, seen)


class _KnownTables:
    """What was found in the tables of one step. A tensor changed in place is read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[Difference]] = {}
        self._kept: list[Any] = []  # so that no other object gets the same id

    def differences(self, table: Table, query: torch.Tensor, key: torch.Tensor) -> list[Difference]:
        tensors = [tensor for tensor in table.tensors if tensor is not None]
        _captured(table.mask_mod, tensors, set())
        place = (query.shape[:3], key.shape[-2], table.block_size, id(table.mask_mod))
        place += tuple((id(tensor), tensor._version) for tensor in tensors)
        if place not in self._known:
            self._kept += [table, tensors]
            self._known[place] = differences(table, query, key)
        return self._known[place]


class GpuReads:
    """Watches every attention call of a stand-in; `step` is None in the evidence forwards."""

    def __init__(self, modules: list[torch.nn.Module], steps: int) -> None:
        self._modules = modules
        self._reads = [0] * steps
        self._step: int | None = None
        self._layer = -1
        self._error: str | None = None
        self._tables = _KnownTables()
        self._is_paused = False
        # (stand-in, layer, step, argument, what) -> calls
        self._differences: dict[tuple[str, int, int | None, str, str], int] = {}
        # (step, arguments as JSON) -> layer -> calls
        self._kernel_calls: dict[tuple[int | None, str], dict[int, int]] = {}

    def facts(self) -> dict[str, Any]:
        names = ("stand_in", "layer", "step", "argument", "what")
        found = []
        for key, calls in self._differences.items():
            named = {name: value for name, value in zip(names, key, strict=True)}
            found.append({k: v for k, v in named.items() if v is not None} | {"calls": calls})
        facts: dict[str, Any] = {"gpu_reads": self._reads, "gpu_differences": found}
        if self._kernel_calls:
            facts["kernel_calls"] = [
                {"layers": list(layers), "calls": list(layers.values())}
                | ({} if step is None else {"step": step})
                | json.loads(arguments)
                for (step, arguments), layers in self._kernel_calls.items()
            ]
        return facts | ({"gpu_read_error": self._error} if self._error else {})

    @contextmanager
    def watching(self, step: int | None) -> Iterator[None]:
        self._step, self._layer, self._tables = step, -1, _KnownTables()
        list(flash_calls.taken())  # of forwards that nobody watched
        calls = _forward_calls()
        with ExitStack() as stack:
            for layer, module in numbered(inner_attentions(self._modules)):
                enter = functools.partial(self._enter, layer)
                stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.enter_context(hf_attention(self._modules, self._watched))
            if acts.is_installed(flex_cpu.NAME):
                stack.enter_context(flex_watched(self._flex))
            try:
                yield
            finally:
                self._take_noted()
                self._count(_forward_calls() - calls)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """In this context calls are the witnesses' own: they are not read and do not count."""
        self._take_noted()
        calls = _forward_calls()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False
            for noted in (varlen_cpu.differences(), flash_calls.taken()):
                list(noted)
            self._count(calls - _forward_calls())

    def _count(self, calls: int) -> None:
        if self._step is not None:
            self._reads[self._step] += calls

    def _note(self, stand_in: str, layer: int, difference: Difference) -> None:
        key = (stand_in, layer, self._step, *difference)
        if key in self._differences or len(self._differences) < MOST_DIFFERENCES:
            self._differences[key] = self._differences.get(key, 0) + 1

    def _enter(self, layer: int, *_: Any) -> None:
        if self._is_paused:
            return
        self._take_noted()  # of the layer before
        self._layer = layer

    def _take_noted(self) -> None:
        for is_backward, argument, what in varlen_cpu.differences():
            layer = -1 if is_backward else self._layer
            self._note(varlen_cpu.NAME, layer, (argument, what))
        for arguments in flash_calls.taken():
            key = (self._step, json.dumps(arguments))
            if key in self._kernel_calls or len(self._kernel_calls) < MOST_DIFFERENCES:
                layers = self._kernel_calls.setdefault(key, {})
                layers[self._layer] = layers.get(self._layer, 0) + 1

    def _flex(self, _: Any, arguments: tuple[Any, ...]) -> None:
        """(query, key, value, score_mod, block mask as a tuple, ...)"""
        if self._is_paused:
            return
        try:
            found = self._tables.differences(Table(arguments[4]), arguments[0], arguments[1])
        except Exception as error:  # the subject's own call goes on and may raise the same
            self._error = f"layer {self._layer}: {type(error).__name__}: {error}"[:500]
            return
        self._count(1)
        for difference in found:
            self._note(flex_cpu.NAME, self._layer, difference)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            self._enter(getattr(module, "layer_idx", -1))
            return function(module, *arguments, **named)

        return call
