# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Tells a name that a subject lacks from one that only our adapter looks for.

An adapter imports modules of a subject and takes names from them. If one is missing, either this
version keeps it elsewhere, and the adapter is out of date, or it is gone although the subject's own
code still imports it: then the subject is broken for everybody.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator

# Code that users of a package do not run.
_ASIDE = {"tests", "test", "examples", "example", "benchmarks", "docs", "third_party"}
_FORGIVEN = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def imported_by(wanted: str) -> str | None:
    """Where the package's own code imports `wanted`, "verl.utils.seqlen" or "verl.workers.config.X":
    "verl/trainer/sft.py:12". None if nowhere, or only where it may fail."""
    top, _, rest = wanted.partition(".")
    leaf = rest.rpartition(".")[2]
    if not leaf:
        return None
    for root, package, path in _sources(top):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if leaf not in text:
                continue
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for name, line in _imports(tree, package):
            if name == wanted or name.startswith(wanted + "."):
                return f"{os.path.relpath(path, os.path.dirname(root))}:{line}"
    return None


def folders_of(top: str) -> list[str]:
    """Where a top-level package lies; empty if it is not there."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or []) if spec is not None else []


def _sources(top: str) -> Iterator[tuple[str, str, str]]:
    """(the package's folder, the package that relative imports start from, file)."""
    for root in folders_of(top):
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _ASIDE)
            inside = os.path.relpath(folder, root)
            package = top if inside == "." else f"{top}.{inside.replace(os.sep, '.')}"
            for file in sorted(files):
                if file.endswith(".py") and not file.startswith("test_"):
                    yield root, package, os.path.join(folder, file)


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Absolute names of modules, and of what is taken from them, that must be there."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
        return
    if isinstance(node, ast.ImportFrom):
        base = _base(node, package)
        for alias in node.names:
            yield f"{base}.{alias.name}" if alias.name != "*" else base, node.lineno
        return
    skipped: set[ast.AST] = set()
    if isinstance(node, ast.Try) and any(map(_forgives, node.handlers)):
        skipped.update(node.body)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        skipped.update(node.body)
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from _imports(child, package)


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _forgives(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _FORGIVEN for kind in kinds)
