# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults that are planted in a real cell, in memory: each breaks one known thing.

harness/selftest/catalogue.json says what each fault breaks, where it exists and what must catch it.
harness/selftest/harmless.json lists those that break nothing: a cell with one must stay `ok`.
"""

from __future__ import annotations

from typing import Any

from bkm_cell.faults import (
    attention,
    backend,
    context,
    data,
    experts,
    flash_arguments,
    gradients,
    hand_over,
    harmless_models,
    harmless_rows,
    loss,
    masks,
    optimizer,
    ranks,
    reporting,
    rollout,
    rope,
    weights,
)
from bkm_cell.faults.registry import CannotPlant, Fault, Phase, registered
from bkm_cell.faults.site import Site

__all__ = ["CannotPlant", "Planted", "attention_to_ask"]

_GROUPS = (
    attention,
    backend,
    context,
    data,
    experts,
    flash_arguments,
    gradients,
    hand_over,
    harmless_models,
    harmless_rows,
    loss,
    masks,
    optimizer,
    ranks,
    reporting,
    rollout,
    rope,
    weights,
)


def attention_to_ask(asked: str, library: str, plant: list[str]) -> str:
    """The attention to ask the subject for. The judge still assumes `asked`."""
    return backend.other_backend(asked, library) if backend.OTHER_BACKEND in plant else asked


class Planted:
    """The faults of one cell. A fault that finds no place to act, or never acts, raises."""

    def __init__(self, adapter: Any, library: str, plant: list[str]) -> None:
        known = {fault.name: fault for fault in registered()}
        unknown = sorted(set(plant) - known.keys())
        if unknown:
            raise CannotPlant(f"{unknown} are not in the catalogue: known are {sorted(known)}")
        self._adapter = adapter
        if plant:
            flash_arguments.open_calls()
        self._faults: list[tuple[Fault, Site]] = [
            (known[name], Site(name, adapter, library)) for name in plant
        ]

    def before_construct(self) -> None:
        """Plants faults between `import` and `construct`, in what the subjects build from."""
        self._plant(Phase.BEFORE_CONSTRUCT)

    def after_construct(self) -> None:
        """Plants faults in what was built, before any witness looks at it."""
        for _, site in self._faults:
            site.watch_documents()
        self._plant(Phase.AFTER_CONSTRUCT)

    def before_restart(self) -> None:
        """Plants faults where a trainer goes on from its checkpoint."""
        self._plant(Phase.RESTART)

    def _plant(self, phase: Phase) -> None:
        for fault, site in self._faults:
            if fault.phase is phase:
                fault.plant(site)

    def confirm(self, restarted: bool = False) -> None:
        """At the end of a cell, or of its restart: a fault that never acted would prove nothing, so it
        raises."""
        for fault, site in self._faults:
            is_due = fault.phase is not Phase.ASK and (fault.phase is Phase.RESTART) == restarted
            if is_due and site.acted == 0:
                raise CannotPlant(f"{fault.name} was planted and never acted")
