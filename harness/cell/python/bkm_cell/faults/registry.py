# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Names of faults and the functions that plant them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bkm_cell.faults.site import Site

Plant = Callable[["Site"], None]


class CannotPlant(RuntimeError):
    """The fault does not exist in this engine, or its place was not found."""


class Phase(enum.Enum):
    ASK = "ask"  # in the request to the subject
    BEFORE_CONSTRUCT = "before-construct"
    AFTER_CONSTRUCT = "after-construct"
    RESTART = "restart"  # only in the process that goes on from a trainer's checkpoint


@dataclass(frozen=True)
class Fault:
    name: str
    phase: Phase
    plant: Plant


_FAULTS: dict[str, Fault] = {}


def register(name: str, plant: Plant, phase: Phase = Phase.AFTER_CONSTRUCT) -> None:
    if name in _FAULTS:
        raise ValueError(f"two faults are called {name}")
    _FAULTS[name] = Fault(name, phase, plant)


def fault(name: str, phase: Phase = Phase.AFTER_CONSTRUCT) -> Callable[[Plant], Plant]:
    def decorate(plant: Plant) -> Plant:
        register(name, plant, phase)
        return plant

    return decorate


def registered() -> list[Fault]:
    return list(_FAULTS.values())
