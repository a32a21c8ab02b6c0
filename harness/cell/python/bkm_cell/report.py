# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Events to the worker, as harness/protocol/README.md has them."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MAX_WARNINGS = 100
MAX_WARNING_CHARS = 500


def sayable(value: Any) -> Any:
    """What JSON can say: NaN and infinity become null, half characters a question mark.

    Python makes half characters (lone surrogates) of a file name that is no UTF-8; the worker
    could not read the event.
    """
    if isinstance(value, dict):
        return {sayable(str(key)): sayable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sayable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


class Report:
    """Sends facts as soon as they are known: a cell that dies keeps what was seen before."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._seen_warnings: set[str] = set()
        self.stage_name = ""
        self.on_stage: list[Callable[[], None]] = []  # called before a stage begins

    def _send(self, event: dict[str, Any]) -> None:
        self._emit(json.dumps(sayable(event)))

    def stage(self, name: str) -> None:
        """Begins a stage and so ends the former one."""
        for hook in self.on_stage:
            hook()
        self.stage_name = name
        self._send({"stage": name})

    def set(self, **facts: Any) -> None:
        """Merges facts; objects are merged recursively, and what comes later wins."""
        self._send({"set": facts})

    def append(self, **facts: Any) -> None:
        self._send({"append": facts})

    def exception(self, facts: dict[str, Any]) -> None:
        self._send({"exception": facts})

    def done(self) -> None:
        self._send({"done": True})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Adds the seconds that a part of a stage took to the facts."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.set(seconds={name: time.monotonic() - start})

    def watch_warnings(self) -> None:
        """Each distinct Python warning becomes a fact; it is still printed."""
        show = warnings.showwarning

        def showwarning(
            message: Any,
            category: Any,
            filename: str,
            lineno: int,
            file: Any = None,
            line: Any = None,
        ):
            text = f"{category.__name__}: {message}"[:MAX_WARNING_CHARS]
            if text not in self._seen_warnings and len(self._seen_warnings) < MAX_WARNINGS:
                self._seen_warnings.add(text)
                self.append(warnings=text)
            show(message, category, filename, lineno, file, line)

        warnings.showwarning = showwarning
