# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Tells what a cell looked at in the trees of its subjects.

This is for explanations: a subject can change it. What may be reused for other commits is decided by
the record of the worker's view (harness/cell/tree_view.h).
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from importlib.machinery import FileFinder
from importlib.util import source_from_cache
from typing import Any

from bkm_cell.report import Report
from bkm_cell.tree_finder import TreeFinder

# Events that start another process: the files that it reads are not seen.
_ESCAPES = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
)
_IMPORT_SYSTEM = "<frozen importlib._bootstrap_external>"


class _Tree:
    """What the cell looked at in one tree, as paths below the tree."""

    def __init__(self) -> None:
        # Files read or tried, and folders whose names were listed (with "/" at the end).
        self.read: set[str] = set()
        # Modules that the import system looked for, as folder and name. A module of that name in
        # any form would have been found; that it is missing was seen, too.
        self.lookups: set[str] = set()
        # Paths whose presence and kind were asked for, without reading them.
        self.asked: set[str] = set()

    def __len__(self) -> int:
        return len(self.read) + len(self.lookups) + len(self.asked)


class Closure:
    """Sees Python's own file accesses: audit events, the import system's finders, os.stat.

    Reads by C code are not seen. `escapes` names started programs that could read a tree.
    Environment variables come from the worker, never from the user: they belong to the cell code.
    """

    def __init__(self, paths: dict[str, str | None]) -> None:
        self._roots: list[tuple[str, str]] = []
        for party, path in paths.items():
            for root in (
                dict.fromkeys((os.path.abspath(path), os.path.realpath(path))) if path else ()
            ):
                self._roots.append((root.rstrip("/"), party))
        self._trees = {party: _Tree() for _, party in self._roots}
        self._escapes: set[str] = set()
        self._sent = 0
        sys.addaudithook(self._audit)
        self._watch_imports()
        for name in ("stat", "lstat", "access", "readlink"):
            self._watch_questions(name)

    def send(self, report: Report, whole: bool = False) -> None:
        """Reports what was seen so far, if it grew; `whole`: nothing will follow."""
        count = sum(map(len, self._trees.values())) + len(self._escapes)
        if count == self._sent and not whole:
            return
        self._sent = count
        facts: dict[str, Any] = {party: sorted(tree.read) for party, tree in self._trees.items()}
        facts["lookups"] = {party: sorted(tree.lookups) for party, tree in self._trees.items()}
        facts["asked"] = {
            party: sorted(tree.asked - tree.read) for party, tree in self._trees.items()
        }
        facts["escapes"] = sorted(self._escapes)
        report.set(closure=facts | ({"whole": True} if whole else {}))

    def _place(self, path: Any) -> tuple[_Tree, str] | None:
        """The tree that holds `path`, and the path below it ("" is the tree itself)."""
        if isinstance(path, (str, os.PathLike)):
            path = os.fspath(path)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return None
        try:
            path = os.path.abspath(path)
        except OSError:  # the current folder was removed
            return None
        for root, party in self._roots:
            if path == root or path.startswith(root + "/"):
                return self._trees[party], path[len(root) + 1 :].rstrip("/")
        return None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            place = self._place(arguments[0])
            if place is None:
                return
            tree, path = place
            if event == "open":
                tree.read.add(_source(path))
            # The import system lists a folder to look for one module: that is in `lookups`.
            elif sys._getframe(1).f_code.co_filename != _IMPORT_SYSTEM:
                tree.read.add((path or ".") + "/")
        elif event in _ESCAPES and not (event == "subprocess.Popen" and self._is_deaf(*arguments)):
            self._escapes.add(f"{event} {_program(arguments)}".rstrip())

    def _is_deaf(self, program: Any, arguments: Any, cwd: Any, env: Any) -> bool:
        """Whether a program cannot read a tree: it does not exist, or no argument names a tree.

        Python always can: what is piped into it may name a tree.
        """
        if isinstance(program, (list, tuple)):  # subprocess leaves the look-up to the system
            program = program[0]
        found = shutil.which(os.fsdecode(program))
        if found is None:
            return True
        found = os.path.realpath(found)
        if "python" in os.path.basename(found):
            return False
        told = [
            found,
            cwd or os.getcwd(),
            *(arguments if not isinstance(arguments, (str, bytes)) else [arguments]),
        ]
        told += (os.environ if env is None else env).values()
        texts = [os.fsdecode(text) for text in told if isinstance(text, (str, bytes, os.PathLike))]
        return not any(root in text for root, _ in self._roots for text in texts)

    def _watch_imports(self) -> None:
        self._watch_finder(FileFinder)
        self._watch_finder(TreeFinder)

    def _watch_finder(self, kind: type[FileFinder]) -> None:
        find_spec = kind.find_spec

        @functools.wraps(find_spec)
        def watched(finder: FileFinder, fullname: str, target: Any = None) -> Any:
            if place := self._place(finder.path):
                tree, folder = place
                tree.lookups.add(os.path.join(folder, fullname.rpartition(".")[2]))
            return find_spec(finder, fullname, target)

        kind.find_spec = watched  # type: ignore[method-assign]

    def _watch_questions(self, name: str) -> None:
        ask: Callable[..., Any] = getattr(os, name)

        @functools.wraps(ask)
        def watched(path: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is None and (place := self._place(path)):
                tree, inside = place
                tree.asked.add(inside or ".")
            return ask(path, *args, **kwargs)

        setattr(os, name, watched)
        # The standard library asks in this way what the real function can do.
        for capable in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if ask in capable:
                capable.add(watched)


def _source(path: str) -> str:
    if path.endswith(".pyc"):
        try:
            return source_from_cache(path)
        except ValueError:
            return path
    return path


def _program(arguments: tuple[Any, ...]) -> str:
    """The program's name, if it is the first of the event's arguments."""
    first = arguments[0] if arguments else ""
    first = first[0] if isinstance(first, (list, tuple)) and first else first
    return os.path.basename(os.fsdecode(first)) if isinstance(first, (str, bytes)) else ""
