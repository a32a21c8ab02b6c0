# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which lines of the subjects run, for a self-test that changes such lines.

`built` holds what ran while the subjects constructed and loaded the model, `trained` what ran in
the forwards and training steps. Only functions count: what a module or a class says when it is
imported, possibly late, is no sign that it is used. Recording is slow, so only a request with
"record_lines" asks for it.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bkm_cell.report import Report

# The stage whose end begins a phase.
_PHASES = {"import": "built", "load": "trained"}


def package_folders(request: dict[str, Any]) -> dict[str, str]:
    """The folder of each subject's package, with a slash: in its tree, or where it is installed."""
    folders = {}
    for party, package in (request.get("packages") or {}).items():
        if not package:
            continue
        tree = (request.get("paths") or {}).get(party)
        spec = None if tree else importlib.util.find_spec(package)
        if spec is not None and spec.origin:
            tree = os.path.dirname(os.path.dirname(spec.origin))
        if tree:
            folders[party] = os.path.join(tree, package, "")
    return folders


class Lines:
    """Records the lines of files below some folders, apart for each phase."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders
        self.phases: dict[str, dict[str, set[int]]] = {}
        self._now: dict[str, set[int]] = {}
        self._local: dict[str, Callable[..., Any] | None] = {}

    def begin(self, phase: str) -> None:
        self._now = self.phases.setdefault(phase, {})
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def end(self) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a module or a class
            return None
        file = frame.f_code.co_filename
        if file not in self._local:
            is_ours = file.startswith(tuple(self._folders.values()))
            self._local[file] = self._recorder(file) if is_ours else None
        return self._local[file]

    def _recorder(self, file: str) -> Callable[..., Any]:
        def record(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                self._now.setdefault(file, set()).add(frame.f_lineno)
            return record

        return record

    def facts(self, phase: str) -> dict[str, dict[str, list[int]]]:
        """{party: {file below its tree: lines}}."""
        facts: dict[str, dict[str, list[int]]] = {party: {} for party in self._folders}
        for file, lines in self.phases.get(phase, {}).items():
            for party, folder in self._folders.items():
                if file.startswith(folder):
                    tree = os.path.dirname(os.path.dirname(folder))
                    facts[party][os.path.relpath(file, tree)] = sorted(lines)
        return facts


@contextmanager
def recorded_lines(request: dict[str, Any], report: Report) -> Iterator[None]:
    """Reports `lines` at the end of the block, also if it raises."""
    if not request.get("record_lines"):
        yield
        return
    lines = Lines(package_folders(request))

    def stage_ends() -> None:
        if phase := _PHASES.get(report.stage_name):
            lines.begin(phase)

    report.on_stage.append(stage_ends)
    try:
        yield
    finally:
        lines.end()
        for phase in lines.phases:
            report.set(lines={phase: lines.facts(phase)})
