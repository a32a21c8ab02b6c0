# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which shims are installed in this cell, and how often each did something."""

from __future__ import annotations

from collections.abc import Callable

_INSTALLED: dict[str, int] = {}
_COUNTED_BY: dict[str, Callable[[], int]] = {}
_STAND_INS: list[str] = []
_HIDDEN: list[str] = []


def install(
    name: str,
    counted_by: Callable[[], int] | None = None,
    stands_in_for: str | None = None,
    hides: str | None = None,
) -> None:
    """`counted_by` tells how often a shim acted that is not written in Python; `stands_in_for`: the
    package whose kernels it replaces; `hides`: the version of it that is installed."""
    _INSTALLED.setdefault(name, 0)
    if stands_in_for is not None:
        _STAND_INS.append(stands_in_for)
        if hides is not None:
            _HIDDEN.append(f"{stands_in_for} {hides}".rstrip())
    if counted_by is not None:
        _COUNTED_BY[name] = counted_by


def is_installed(name: str) -> bool:
    return name in _INSTALLED


def acted(name: str) -> None:
    if name in _INSTALLED:
        _INSTALLED[name] += 1


def stand_ins() -> list[str]:
    return list(_STAND_INS)


def hidden() -> list[str]:
    """Installed packages in whose place a stand-in is imported, with their versions."""
    return list(_HIDDEN)


def counts() -> dict[str, int]:
    return _INSTALLED | {name: count() for name, count in _COUNTED_BY.items()}
