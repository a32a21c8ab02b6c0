# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Sends events to the worker (harness/protocol/README.md)."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MAX_WARNINGS = 100
MAX_WARNING_CHARS = 500


def sayable(value: Any) -> Any:
    """The value in JSON's terms: NaN and infinity become null, lone surrogates a question mark.

    Python makes lone surrogates from a file name that is not UTF-8. With them, the worker could
    not parse the event.
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
    """Sends facts as soon as they are known, so a cell that dies loses nothing that it reported."""

    def __init__(self, emit: Callable[[str], None], folder: str = ".") -> None:
        """`folder`: the cell's."""
        self._emit = emit
        self._folder = os.path.abspath(folder)
        self._seen_warnings: set[str] = set()
        self.stage_name = ""
        self.on_stage: list[Callable[[], None]] = []  # called before a stage begins

    def _send(self, event: dict[str, Any]) -> None:
        self._emit(json.dumps(sayable(event)))

    def stage(self, name: str) -> None:
        """Begins a stage and ends the previous one."""
        for hook in self.on_stage:
            hook()
        self.stage_name = name
        self._send({"stage": name})

    def set(self, **facts: Any) -> None:
        """Merges facts: objects recursively; otherwise the later value wins."""
        self._send({"set": facts})

    def append(self, **facts: Any) -> None:
        self._send({"append": facts})

    def written(self, path: str) -> str:
        """The name by which facts call a file of the cell's that was written: where it is, not where
        somebody else will look for it. It is our own error if it is not there."""
        if not os.path.isfile(path):
            raise RuntimeError(f"bkm wrote no {os.path.basename(path)} and reports it")
        return os.path.relpath(path, self._folder)

    def exception(self, facts: dict[str, Any]) -> None:
        self._send({"exception": facts})

    def done(self) -> None:
        self._send({"done": True})

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Reports the seconds that the block took, a part of a stage."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.set(seconds={name: time.monotonic() - start})

    def watch_warnings(self) -> None:
        """Reports each distinct Python warning as a fact, and still prints it."""
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
