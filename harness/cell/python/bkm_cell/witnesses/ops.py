# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Names of the ops that a block dispatches, on a GPU with the kernels that it launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# Only what attentions are told by is worth keeping.
_TELLING = ("attention", "attn", "softmax", "flash", "bmm", "fmha", "cudnn", "triton", "dotproduct")


def is_telling(name: str) -> bool:
    return any(word in name.lower() for word in _TELLING)


@contextmanager
def dispatched(names: set[str]) -> Iterator[None]:
    """Adds the names to `names` when the block ends, also where it raises."""
    seen: set[str] = set()
    recorder = _profiled if torch.cuda.is_available() else _recorded
    try:
        with recorder(seen), _higher_order(seen):
            yield
    finally:
        names.update(name for name in seen if is_telling(name))


@contextmanager
def _profiled(names: set[str]) -> Iterator[None]:
    """By Kineto, whose first start takes a second; it alone sees kernels."""
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
    """By the recorder below torch's older profiler, at next to no cost."""
    try:
        from torch.autograd import (
            ProfilerConfig,
            ProfilerState,
            _disable_profiler_legacy,
            _enable_profiler_legacy,
        )
    except ImportError:  # a torch without it
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
        for thread in _disable_profiler_legacy():
            names.update(event.name() for event in thread)


@contextmanager
def _higher_order(names: set[str]) -> Iterator[None]:
    """No profiler sees flex_attention itself when it runs eagerly."""
    with _flex_watched(lambda op, *_: names.add(op.name() if callable(op.name) else str(op.name))):
        yield


@contextmanager
def flex_calls() -> Iterator[list[Any]]:
    """The mask_mod of each flex_attention call, in order, of those that run eagerly."""
    mask_mods: list[Any] = []

    def saw(_: Any, arguments: tuple[Any, ...]) -> None:
        # (query, key, value, score_mod, block_mask as a tuple that ends in its mask_mod, ...)
        if len(arguments) > 4 and isinstance(arguments[4], tuple) and arguments[4]:
            mask_mods.append(arguments[4][-1])

    with _flex_watched(saw):
        yield mask_mods


@contextmanager
def _flex_watched(saw: Callable[..., None]) -> Iterator[None]:
    operator: Any = type(torch.ops.higher_order.flex_attention)
    call = operator.__call__

    def watched(op: Any, *arguments: Any, **named: Any) -> Any:
        saw(op, arguments)
        return call(op, *arguments, **named)

    operator.__call__ = watched
    try:
        yield
    finally:
        operator.__call__ = call
