# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a cell's result depends on in the trees of its subjects."""

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

# What leaves this process, or starts another program: who can say what that reads?
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
    """What was looked at in one tree, as paths below it."""

    def __init__(self) -> None:
        # Files read or tried; folders whose names were read, with "/" at their end.
        self.read: set[str] = set()
        # Modules that the import system looked for: folder and name. A module of that name, in any
        # of its forms, would have been seen, and a missing one was.
        self.lookups: set[str] = set()
        # Paths that were asked for without being read: is it there, and what is it?
        self.asked: set[str] = set()

    def __len__(self) -> int:
        return len(self.read) + len(self.lookups) + len(self.asked)


class Closure:
    """Sees Python's own looks at files: audit events, the import system's finders, os.stat.

    Reads by C code escape it; programs that are started and could read a tree are named in
    `escapes`. Environment variables are the worker's, never the user's, and belong to its own code.
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
        """Reports what was seen so far, if that is more than before; `whole`: it is all there is."""
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
        """The tree that `path` lies in, and where in it: "" is the tree itself."""
        if isinstance(path, (str, os.PathLike)):
            path = os.fspath(path)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return None
        try:
            path = os.path.abspath(path)
        except OSError:  # the current folder is gone
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
            # The import system reads a folder's names to look for one module: see `lookups`.
            elif sys._getframe(1).f_code.co_filename != _IMPORT_SYSTEM:
                tree.read.add((path or ".") + "/")
        elif event in _ESCAPES and not (event == "subprocess.Popen" and self._is_deaf(*arguments)):
            self._escapes.add(f"{event} {_program(arguments)}".rstrip())

    def _is_deaf(self, program: Any, arguments: Any, cwd: Any, env: Any) -> bool:
        """Whether a program that is started cannot read a tree: it is not there at all, or it is
        told of none (and is no Python, which may be told by what is piped into it)."""
        if isinstance(program, (list, tuple)):  # where subprocess leaves the look-up to the system
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
        find_spec = FileFinder.find_spec

        @functools.wraps(find_spec)
        def watched(finder: FileFinder, fullname: str, target: Any = None) -> Any:
            if place := self._place(finder.path):
                tree, folder = place
                tree.lookups.add(os.path.join(folder, fullname.rpartition(".")[2]))
            return find_spec(finder, fullname, target)

        FileFinder.find_spec = watched  # type: ignore[method-assign]

    def _watch_questions(self, name: str) -> None:
        ask: Callable[..., Any] = getattr(os, name)

        @functools.wraps(ask)
        def watched(path: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dir_fd") is None and (place := self._place(path)):
                tree, inside = place
                tree.asked.add(inside or ".")
            return ask(path, *args, **kwargs)

        setattr(os, name, watched)
        # How the standard library asks what the real function can do.
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
    """Of an escape's arguments the program's name, if that is what comes first."""
    first = arguments[0] if arguments else ""
    first = first[0] if isinstance(first, (list, tuple)) and first else first
    return os.path.basename(os.fsdecode(first)) if isinstance(first, (str, bytes)) else ""
