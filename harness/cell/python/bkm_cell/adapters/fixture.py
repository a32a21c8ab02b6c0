# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Drives the fake pairs of fixtures/packages: engines that misbehave. Does not use torch."""

from __future__ import annotations

import importlib
from typing import Any

from bkm_cell.report import Report


def run(request: dict[str, Any], report: Report) -> None:
    """Climbs the stages with the packages `fake_library` and `fake_engine`, which are on the path."""
    probe = request.get("probe") or {}
    attention = probe.get("attention", "flex")
    report.stage("import")
    library = importlib.import_module("fake_library")
    module = importlib.import_module("fake_engine")
    report.stage("construct")
    engine = module.Engine(library, attention)
    report.set(
        adapter={"engine_class": "fake_engine.Engine", "asked": {"attention": attention}},
        backend={"configured": engine.attention},
    )
    report.stage("load")
    engine.load()
    for _ in range(int(probe.get("steps", 1))):
        report.stage("forward")
        loss = engine.forward()
        report.stage("backward")
        engine.backward()
        report.stage("step")
        engine.step()
        report.append(steps={"loss": loss})
