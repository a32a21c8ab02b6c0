# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which kernels each layer's attention runs in one training step, forward and backward.

The step runs under torch's profiler. A range around each call tells which kernels its forward
launches. Autograd numbers its nodes in the order in which they are made, so the numbers before and
after the call tell which nodes of the backward pass are the layer's.

Kernels are launched from the thread of the range or of the node, so a launch inside one belongs to
it, however late the kernel itself runs. On a CPU there are no kernels: the ops stand for them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import _get_sequence_nr as next_node

from bkm_cell.witnesses.layers import hf_attention, inner_attentions, numbered
from bkm_cell.witnesses.ops import is_telling

_RANGE = "bkm.layer."
_NODE = "autograd::engine::evaluate_function: "
_LAUNCHES = ("cuda_runtime", "cuda_driver")
_TRACE = "trace.json"


@dataclass(frozen=True)
class _Span:
    """A time of one thread, in the trace's microseconds."""

    thread: Any
    begin: float
    end: float
    layer: int
    phase: str

    def holds(self, thread: Any, at: float) -> bool:
        return thread == self.thread and self.begin <= at <= self.end


@dataclass(frozen=True)
class _Work:
    """A kernel, with the place of its launch; on a CPU an op."""

    name: str
    thread: Any
    at: float
    microseconds: float


class LayerKernels:
    """Watches one training step."""

    def __init__(self, modules: list[torch.nn.Module]) -> None:
        self._modules = modules
        self._nodes: list[tuple[int, int, int]] = []  # first node, node after the last, layer

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for layer, module in numbered(inner_attentions(self._modules)):
                self._watch(stack, layer, module)
            stack.enter_context(hf_attention(self._modules, self._watched))
            yield

    @contextmanager
    def _range(self, layer: int) -> Iterator[None]:
        first = next_node()
        with torch.profiler.record_function(f"{_RANGE}{layer}"):
            yield
        self._nodes.append((first, next_node(), layer))

    def _watch(self, stack: ExitStack, layer: int, module: torch.nn.Module) -> None:
        open_ranges: list[ExitStack] = []

        def before(*_: Any) -> None:
            current = ExitStack()
            current.enter_context(self._range(layer))
            open_ranges.append(current)

        def after(*_: Any) -> None:
            if open_ranges:
                open_ranges.pop().close()

        stack.callback(module.register_forward_pre_hook(before, prepend=True).remove)
        # Also after an exception: a checkpoint ends its second forward with one.
        stack.callback(module.register_forward_hook(after, always_call=True).remove)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            with self._range(getattr(module, "layer_idx", -1)):
                return function(module, *arguments, **named)

        return call

    def of_trace(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        """`events`: a trace in Chrome's format, as torch's profiler exports it."""
        found = [event for event in events if event.get("ph") == "X"]
        spans = list(self._spans(found))
        works = list(_kernels(found))
        is_device = bool(works)
        if not is_device:
            works = [work for work in _ops(found) if is_telling(work.name)]
        layers: dict[tuple[int, str], Counter[str]] = {}
        microseconds: Counter[tuple[int, str]] = Counter()
        elsewhere: Counter[str] = Counter()
        for work in works:
            # Ranges may be nested: a layer that is recomputed runs inside a node of the backward.
            holding = [span for span in spans if span.holds(work.thread, work.at)]
            if not holding:
                elsewhere[work.name] += 1
                continue
            span = min(holding, key=lambda one: one.end - one.begin)
            place = (span.layer, span.phase)
            layers.setdefault(place, Counter())[work.name] += 1
            microseconds[place] += work.microseconds
        return {
            "seen": "kernels" if is_device else "ops",
            "layers": [
                {
                    "layer": layer,
                    "phase": phase,
                    "kernels": dict(sorted(names.items())),
                    # Ops are nested, so their times cannot be added up.
                    **({"microseconds": round(microseconds[layer, phase], 1)} if is_device else {}),
                }
                for (layer, phase), names in sorted(layers.items())
            ],
            "elsewhere": sum(elsewhere.values()),
            "attention_elsewhere": {n: c for n, c in sorted(elsewhere.items()) if is_telling(n)},
        }

    def _spans(self, events: list[dict[str, Any]]) -> Iterator[_Span]:
        for event in events:
            name, begin = event.get("name", ""), float(event["ts"])
            where = (_thread(event), begin, begin + float(event.get("dur", 0)))
            if event.get("cat") == "user_annotation" and name.startswith(_RANGE):
                yield _Span(*where, int(name.removeprefix(_RANGE)), "forward")
            elif name.startswith(_NODE):
                number = int(event.get("args", {}).get("Sequence number", -1))
                for first, end, layer in self._nodes:
                    if first <= number < end:
                        yield _Span(*where, layer, "backward")


def _thread(event: dict[str, Any]) -> Any:
    return event.get("pid"), event.get("tid")


def _kernels(events: list[dict[str, Any]]) -> Iterator[_Work]:
    launches = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in _LAUNCHES and "correlation" in event.get("args", {})
    }
    for event in events:
        if event.get("cat") != "kernel":
            continue
        launch = launches.get(event.get("args", {}).get("correlation"))
        at = (_thread(launch), float(launch["ts"])) if launch else (None, 0.0)
        yield _Work(event["name"], *at, float(event.get("dur", 0)))


def _ops(events: list[dict[str, Any]]) -> Iterator[_Work]:
    for event in events:
        if event.get("cat") == "cpu_op" and not event["name"].startswith(_NODE):
            yield _Work(
                event["name"], _thread(event), float(event["ts"]), float(event.get("dur", 0))
            )


def seen_in(
    modules: list[torch.nn.Module], step: Callable[[], Any], folder: str
) -> dict[str, Any]:
    """Runs `step` once. The trace is written to `folder`, read, and removed."""
    watch = LayerKernels(modules)
    path = os.path.join(folder, _TRACE)
    with watch.watching():
        with torch.profiler.profile(activities=torch.profiler.supported_activities()) as profile:
            step()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    profile.export_chrome_trace(path)
    try:
        with open(path) as file:
            return watch.of_trace(json.load(file)["traceEvents"])
    finally:
        os.remove(path)
