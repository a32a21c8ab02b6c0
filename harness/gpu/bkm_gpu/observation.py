# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Merges a cell's events into its observation, as harness/cell/event_log.cc does."""

from __future__ import annotations

import json
from typing import Any

# Facts that the driver states about a cell, so the cell cannot.
_NOT_THE_CELLS = {"schema", "ending", "stages", "usage", "versions", "sandbox", "observed"}
_NOT_THE_CELLS |= {"measured", "timeouts", "machine", "ignored_events"}
_MOST_BYTES = 32 << 20


def _merge(into: Any, new: Any) -> Any:
    if not isinstance(into, dict) or not isinstance(new, dict):
        return new
    for key, value in new.items():
        into[key] = _merge(into[key], value) if key in into else value
    return into


def _append(into: dict[str, Any], new: dict[str, Any]) -> bool:
    fits = True
    for key, value in new.items():
        place = into.setdefault(key, [])
        if isinstance(place, dict) and isinstance(value, dict):
            fits = _append(place, value) and fits
        elif isinstance(place, list):
            place.append(value)
        else:
            fits = False
    return fits


class EventLog:
    """Takes the lines of one cell. `at` is a time in seconds."""

    def __init__(self, at: float) -> None:
        self._facts: dict[str, Any] = {}
        self._stages: list[dict[str, Any]] = []
        self._entered = at
        self._ignored = 0
        self._bytes = 0
        self.is_done = False

    @property
    def is_too_long(self) -> bool:
        return self._bytes > _MOST_BYTES

    @property
    def has_raised(self) -> bool:
        return "exception" in self._facts

    def take(self, line: bytes, at: float) -> None:
        self._bytes += len(line)
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or not self._apply(event, at):
            self._ignored += 1

    def _apply(self, event: dict[str, Any], at: float) -> bool:
        if isinstance(stage := event.get("stage"), str):
            self._leave_stage(at)
            self._stages.append({"stage": stage})
        fits = True
        for key, apply in (("set", _merge), ("append", _append)):
            facts = event.get(key)
            if not isinstance(facts, dict):
                continue
            own = {name: value for name, value in facts.items() if name not in _NOT_THE_CELLS}
            fits = fits and len(own) == len(facts)
            fits = apply(self._facts, own) is not False and fits
        if "exception" in event:
            self._facts["exception"] = event["exception"]
        if event.get("done") is True:
            self._leave_stage(at)
            self.is_done = True
        return fits

    def _leave_stage(self, at: float) -> None:
        if self._stages and "seconds" not in self._stages[-1] and not self.is_done:
            self._stages[-1]["seconds"] = round(at - self._entered, 6)
        self._entered = at

    def observation(self, ending: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """`own`: facts that the driver states."""
        found = {"schema": 1, **self._facts, "ending": ending, "stages": self._stages, **own}
        if self._ignored:
            found["ignored_events"] = self._ignored
        return found
