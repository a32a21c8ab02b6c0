# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which files of each subject were read: what a result depends on."""

from __future__ import annotations

import os
import sys
from importlib.util import source_from_cache
from typing import Any

from bkm_cell.report import Report


class Closure:
    """An audit hook: Python's own `open` and `os.listdir`; reads by C code escape it.

    A folder whose listing was read ends in "/": a module that is missing there is part of what was
    seen.
    """

    def __init__(self, paths: dict[str, str | None]) -> None:
        self._roots: list[tuple[str, str]] = []
        for party, path in paths.items():
            for root in (
                dict.fromkeys((os.path.abspath(path), os.path.realpath(path))) if path else ()
            ):
                self._roots.append((root.rstrip("/") + "/", party))
        self._read: dict[str, set[str]] = {party: set() for _, party in self._roots}
        self._sent = 0
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir") or not isinstance(arguments[0], (str, os.PathLike)):
            return
        path = os.fspath(arguments[0])
        if not isinstance(path, str):
            return
        is_listing = event == "os.listdir"
        if is_listing:
            path = path.rstrip("/") + "/"
        for root, party in self._roots:
            if path.startswith(root):
                self._read[party].add(_name(path.removeprefix(root), is_listing))

    def send(self, report: Report) -> None:
        """Reports what was read so far, if that is more than before."""
        count = sum(len(files) for files in self._read.values())
        if count > self._sent:
            self._sent = count
            report.set(closure={party: sorted(files) for party, files in self._read.items()})


def _name(relative: str, is_listing: bool) -> str:
    if is_listing:
        return relative or "./"
    if relative.endswith(".pyc"):
        try:
            return source_from_cache(relative)
        except ValueError:
            return relative
    return relative
