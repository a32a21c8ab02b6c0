# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Remembers what the subjects asked torch.compile for, and so what would not run eagerly on a GPU."""

from __future__ import annotations

import weakref
from types import CodeType, FrameType
from typing import Any

_FUNCTIONS: set[CodeType] = set()
_OBJECTS: list[weakref.ref[Any]] = []  # modules, and the owners of bound methods


def remember(compiled: Any) -> None:
    """`compiled`: a function, a bound method or a module."""
    owner = getattr(compiled, "__self__", None)
    if owner is None and (code := getattr(compiled, "__code__", None)) is not None:
        _FUNCTIONS.add(code)
        return
    try:
        _OBJECTS.append(weakref.ref(compiled if owner is None else owner))
    except TypeError:  # an object without weak references
        return


def is_one(frame: FrameType) -> bool:
    """Whether the frame runs such a function, or a method of such an object."""
    if frame.f_code in _FUNCTIONS:
        return True
    if not _OBJECTS:
        return False
    owner = frame.f_locals.get("self")
    return owner is not None and any(reference() is owner for reference in _OBJECTS)
