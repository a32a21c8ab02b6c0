# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Imports from a subject's tree without listing its folders.

The worker serves each tree through a view that records what the cell looks at. Python's own finder
lists every folder, so that each new file in it would count as seen. This finder asks for one module
at a time.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import spec_from_file_location
from typing import Any

# The view answers with the forms in which a module is in a folder (harness/cell/tree_view.h).
_QUESTION = "user.bkm.module."
_LOADERS: tuple[tuple[type[Any], list[str]], ...] = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


class _Everything:
    """Names of a folder that was not listed: each of them may be there."""

    def __contains__(self, name: object) -> bool:
        return True


class TreeFinder(FileFinder):
    """Finds what FileFinder finds, in its order."""

    def find_spec(self, fullname: str, target: Any = None) -> ModuleSpec | None:
        module = fullname.rpartition(".")[2]
        try:
            forms = set(os.fsdecode(os.getxattr(self.path, _QUESTION + module)).split("\n"))
        except (OSError, ValueError):  # a link, or a name that is too long
            return super().find_spec(fullname, target)
        folder = os.path.join(self.path, module)
        suffixes = [(suffix, loader) for loader, endings in _LOADERS for suffix in endings]
        if f"{module}/" in forms:
            for suffix, loader in suffixes:
                if f"{module}/__init__{suffix}" in forms:
                    return _spec(fullname, os.path.join(folder, "__init__" + suffix), loader, folder)
        for suffix, loader in suffixes:
            if module + suffix in forms:
                return _spec(fullname, folder + suffix, loader)
        if f"{module}/" not in forms:
            return None
        namespace = ModuleSpec(fullname, None)
        namespace.submodule_search_locations = [folder]
        return namespace

    def _fill_cache(self) -> None:
        self._path_cache = self._relaxed_path_cache = _Everything()  # type: ignore[assignment]


def _spec(name: str, path: str, loader: type[Any], package: str | None = None) -> ModuleSpec | None:
    folders = None if package is None else [package]
    return spec_from_file_location(
        name, path, loader=loader(name, path), submodule_search_locations=folders
    )


def install(trees: list[str]) -> None:
    """Takes over the imports from `trees`, if they are views."""
    roots = tuple({name for tree in trees for name in (tree, os.path.abspath(tree))})

    def hook(path: str) -> TreeFinder:
        if path not in roots and not path.startswith(tuple(root + "/" for root in roots)):
            raise ImportError("not in a tree", path=path)
        if not _is_view(path):
            raise ImportError("not in a view", path=path)
        return TreeFinder(path, *_LOADERS)

    sys.path_hooks.insert(0, hook)
    for path in list(sys.path_importer_cache):
        if path in roots:
            del sys.path_importer_cache[path]


def _is_view(folder: str) -> bool:
    try:
        os.getxattr(folder, _QUESTION + "__init__")
    except OSError:
        return False
    return True
