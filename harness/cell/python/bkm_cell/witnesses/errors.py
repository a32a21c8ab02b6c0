# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Describes an exception as facts: its frames, the owner of each, and the kind of statement."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import sysconfig
import traceback
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any

from bkm_cell.stand_ins import FOLDERS
from bkm_cell.witnesses.own_imports import imported_by

MAX_CHAIN = 8
MAX_FRAMES = 200
MAX_MESSAGE = 4000

_HARNESS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STATEMENTS = {
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.Import: "import",
    ast.ImportFrom: "import",
}
_NOT_IMPORTED = re.compile(
    r"cannot import name '([^']+)' from (?:partially initialized module )?'([^']+)'"
)


class Owners:
    """Says whose code a file is: engine, library, torch, runtime, python or harness."""

    def __init__(self, request: dict[str, Any]) -> None:
        packages = request.get("packages") or {}
        paths = request.get("paths") or {}
        self._roots: list[
            tuple[str, str, str]
        ] = []  # (prefix, owner, what file names are relative to)
        # A stand-in refuses what its package's kernels refuse.
        for folder in FOLDERS.values():
            self._add(folder, "runtime", folder)
        self._add(_HARNESS, "harness", os.path.dirname(_HARNESS))
        for party in ("engine", "library"):
            if paths.get(party):
                self._add(paths[party], party, paths[party])
        for site in dict.fromkeys(
            p for p in sys.path if p.endswith(("site-packages", "dist-packages"))
        ):
            for party in ("engine", "library"):
                if packages.get(party):
                    self._add(os.path.join(site, packages[party]), party, site)
            for name in ("torch", "functorch", "torchgen"):
                self._add(os.path.join(site, name), "torch", site)
            self._add(site, "runtime", site)
        for key in ("stdlib", "platstdlib"):
            self._add(sysconfig.get_path(key), "python", sysconfig.get_path(key))

    def _add(self, prefix: str, owner: str, base: str) -> None:
        for path in dict.fromkeys((os.path.abspath(prefix), os.path.realpath(prefix))):
            above = (
                os.path.realpath(base)
                if path == os.path.realpath(prefix)
                else os.path.abspath(base)
            )
            self._roots.append((path.rstrip("/") + "/", owner, above.rstrip("/") + "/"))

    def of(self, file: str) -> tuple[str, str]:
        """(owner, file name relative to that owner's root)."""
        if file.startswith("<frozen"):
            return "python", file
        for prefix, owner, base in self._roots:
            if file.startswith(prefix):
                return owner, file.removeprefix(base)
        return ("runtime" if os.path.isabs(file) else "python"), file


@lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def statement_at(file: str, line: int) -> str:
    """The kind of the innermost statement at `line`: raise, assert, import, call or other."""
    tree = _tree(file)
    found: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            if found is None or node.lineno >= found.lineno:
                found = node
    if found is None:
        return "other"
    if type(found) in _STATEMENTS:
        return _STATEMENTS[type(found)]
    if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return "other"
    calls = (node for node in ast.walk(found) if isinstance(node, ast.Call))
    return (
        "call"
        if any(call.lineno <= line <= (call.end_lineno or call.lineno) for call in calls)
        else "other"
    )


def missing_name(error: BaseException) -> str | None:
    """The missing module, name or attribute, according to Python."""
    if isinstance(error, ImportError):
        if match := _NOT_IMPORTED.search(str(error)):
            return f"{match[2]}.{match[1]}"
        return error.name
    if isinstance(error, (AttributeError, NameError)):
        return error.name
    return None


def _statement(file: str, line: int, error: BaseException, is_innermost: bool) -> str:
    """The kind of statement; `raise` and `assert` only if the statement itself raised on purpose.

    If its expression raised, or called the function that raised, it is a call or other.
    """
    kind = statement_at(file, line)
    if kind in ("raise", "assert") and not is_innermost:
        return "call"
    return "other" if kind == "assert" and not isinstance(error, AssertionError) else kind


def _frame(
    owners: Owners, frame: FrameType, line: int, error: BaseException, is_innermost: bool
) -> dict[str, Any]:
    file = frame.f_code.co_filename
    owner, relative = owners.of(file)
    facts = {
        "file": relative,
        "line": line,
        "function": frame.f_code.co_qualname
        if sys.version_info >= (3, 11)
        else frame.f_code.co_name,
        "owner": owner,
        "text": linecache.getline(file, line).strip()[:300],
        "statement": _statement(file, line, error, is_innermost),
    }
    return facts


def _unparsed(owners: Owners, error: SyntaxError) -> dict[str, Any]:
    owner, relative = owners.of(error.filename or "")
    return {
        "file": relative,
        "line": error.lineno or 0,
        "function": "<module>",
        "owner": owner,
        "text": (error.text or "").strip()[:300],
        "statement": "other",
    }


def _wanted_by_us(error: BaseException, frames: list[dict[str, Any]]) -> str | None:
    """The module, or the name of a module, that our own code asked for and that is not there."""
    deepest = next((frame for frame in reversed(frames) if frame["owner"] != "python"), None)
    if deepest is None or deepest["owner"] != "harness":
        return None
    if isinstance(error, ImportError):
        return missing_name(error)
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"{error.obj.__name__}.{error.name}"
    return None


class Described(Exception):
    """An exception of another process, whose facts are known."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(facts.get("message", ""))
        self.facts = facts


def described_frame(owners: Owners, file: str, line: int, function: str) -> dict[str, Any]:
    """A frame that another process printed: where it waits."""
    owner, relative = owners.of(file)
    return {
        "file": relative,
        "line": line,
        "function": function,
        "owner": owner,
        "text": linecache.getline(file, line).strip()[:300],
        "statement": "call",
    }


def _gathered(error: BaseException) -> BaseException | None:
    """The first exception that another one only carries: an ExceptionGroup, or the failures of all
    ranks by which torch's distributed checkpoints report those of a single one, too."""
    members: Any = getattr(error, "exceptions", None) or getattr(error, "failures", None)
    if isinstance(members, dict):
        members = list(members.values())
    first = members[0] if isinstance(members, (list, tuple)) and members else None
    if isinstance(first, tuple) and first:  # with its frames as text
        first = first[0]
    return first if isinstance(first, BaseException) and first is not error else None


def describe(error: BaseException, owners: Owners, depth: int = 0) -> dict[str, Any]:
    """The facts of an exception and its causes, outermost frame first."""
    if isinstance(error, Described):
        return error.facts
    if depth < MAX_CHAIN and (carried := _gathered(error)) is not None:
        facts = describe(carried, owners, depth + 1)
        walked = list(traceback.walk_tb(error.__traceback__))
        around = [_frame(owners, frame, line, error, False) for frame, line in walked]
        facts["frames"] = (around + facts["frames"])[-MAX_FRAMES:]
        return facts
    try:
        message = str(error)
    except Exception as broken:  # an exception's own __str__ may be broken
        message = f"<str() of it raised {type(broken).__name__}>"
    walked = list(traceback.walk_tb(error.__traceback__))[-MAX_FRAMES:]
    last = len(walked) - 1
    facts: dict[str, Any] = {
        "type": type(error).__name__,
        "module": type(error).__module__,
        "message": message[:MAX_MESSAGE],
        "frames": [
            _frame(owners, frame, line, error, index == last)
            for index, (frame, line) in enumerate(walked)
        ],
    }
    if isinstance(error, SyntaxError) and error.filename:
        facts["frames"].append(_unparsed(owners, error))  # Python has no frame for it
    if name := missing_name(error):
        facts["name"] = name
    if (wanted := _wanted_by_us(error, facts["frames"])) and (place := imported_by(wanted)):
        facts["imported_by"] = place
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < MAX_CHAIN:
        facts["cause"] = describe(cause, owners, depth + 1)
    return facts
