# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Hooks that run right after a module is executed, before its importer continues."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


class _Loader(importlib.abc.Loader):
    """Wraps the module's own loader; the rest of the module's spec is unchanged."""

    def __init__(self, loader: Any, hook: Hook) -> None:
        self._loader, self._hook = loader, hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._hook(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.hooks: dict[str, Hook] = {}
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in self.hooks or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.hooks[name])
        return spec


_FINDER = _Finder()


def after_import(name: str, hook: Hook) -> None:
    """Runs `hook(module)` when `name` is imported, or at once if it is imported already."""
    if name in sys.modules:
        hook(sys.modules[name])
        return
    _FINDER.hooks[name] = hook
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
