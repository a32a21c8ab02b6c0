# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records the names of the ops that a block dispatches; on a GPU also the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

# Only names that identify an attention are kept.
_TELLING = ("attention", "attn", "softmax", "flash", "bmm", "fmha", "cudnn", "triton", "dotproduct")


def is_telling(name: str) -> bool:
    return any(word in name.lower() for word in _TELLING)


@contextmanager
def dispatched(names: set[str]) -> Iterator[None]:
    """Adds the names to `names` when the block ends, also by an exception."""
    seen: set[str] = set()
    recorder = _profiled if torch.cuda.is_available() else _recorded
    try:
        with recorder(seen), _higher_order(seen):
            yield
    finally:
        names.update(name for name in seen if is_telling(name))


@contextmanager
def _profiled(names: set[str]) -> Iterator[None]:
    """Uses Kineto: only it sees kernels, but its first start is slow."""
    activities = torch.profiler.supported_activities()
    profile = torch.profiler.profile(activities=activities)
    profile.start()
    try:
        yield
    finally:
        profile.stop()
        names.update(event.name() for event in profile.profiler.kineto_results.events())


@contextmanager
def _recorded(names: set[str]) -> Iterator[None]:
    """Uses the recorder below torch's older profiler, which costs next to nothing."""
    try:
        from torch.autograd import (
            ProfilerConfig,
            ProfilerState,
            _disable_profiler_legacy,
            _enable_profiler_legacy,
        )
    except ImportError:  # this torch has none
        with _profiled(names):
            yield
        return
    experimental = torch._C._profiler._ExperimentalConfig()
    _enable_profiler_legacy(
        ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, experimental)
    )
    try:
        yield
    finally:
        # An error in a recomputation ends the backward, and with it the recorder that began there.
        with suppress(RuntimeError):
            for thread in _disable_profiler_legacy():
                names.update(event.name() for event in thread)


@contextmanager
def _higher_order(names: set[str]) -> Iterator[None]:
    """Notes flex_attention itself, which no profiler sees when it runs eagerly."""
    with flex_watched(lambda op, *_: names.add(op.name() if callable(op.name) else str(op.name))):
        yield


@contextmanager
def flex_calls() -> Iterator[list[Any]]:
    """The mask_mod of each flex_attention call that runs eagerly, in order."""
    mask_mods: list[Any] = []

    def saw(_: Any, arguments: tuple[Any, ...]) -> None:
        # (query, key, value, score_mod, block_mask as a tuple that ends in its mask_mod, ...)
        if len(arguments) > 4 and isinstance(arguments[4], tuple) and arguments[4]:
            mask_mods.append(arguments[4][-1])

    with flex_watched(saw):
        yield mask_mods


@contextmanager
def flex_watched(saw: Callable[..., None]) -> Iterator[None]:
    """Calls saw(op, arguments) at each call; the op calls itself again below autograd."""
    operator: Any = type(torch.ops.higher_order.flex_attention)
    call = operator.__call__
    depth = 0

    def watched(op: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal depth
        if depth == 0:
            saw(op, arguments)
        depth += 1
        try:
            return call(op, *arguments, **named)
        finally:
            depth -= 1

    operator.__call__ = watched
    try:
        yield
    finally:
        operator.__call__ = call
