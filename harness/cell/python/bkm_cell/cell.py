# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The entry: runs one cell in the calling process."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bkm_cell import tree_finder
from bkm_cell.report import Report
from bkm_cell.witnesses.closure import Closure
from bkm_cell.witnesses.errors import Owners, describe

# The variables that a launcher sets; ranks have other numbers (bkm_cell.ranks.launcher).
LAUNCHER = {
    "LOCAL_RANK": "0",
    "RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",
}

# Of what the weights take in fp32: a model may hold buffers, padding and parameters of its own.
_MOST_HELD = 3


def run(request: dict[str, Any], emit: Callable[[str], None]) -> None:
    """Never raises: a failure is the last event. The process cannot run a second cell."""
    start = time.monotonic()
    report = Report(emit, request.get("dir") or ".")
    owners = Owners(request)
    try:
        report.watch_warnings()
        paths = [path for path in (request.get("paths") or {}).values() if path]
        sys.path[:0] = paths
        tree_finder.install(paths)
        closure = Closure(request.get("paths") or {})
        report.on_stage.append(lambda: closure.send(report))
        try:
            _climb(request, report, owners, start)
        finally:
            closure.send(report, whole=True)
    except BaseException as error:  # also SystemExit: a subject that exits is a finding
        report.exception(describe(error, owners))
    else:
        report.done()


def _climb(request: dict[str, Any], report: Report, owners: Owners, start: float) -> None:
    os.environ.update(LAUNCHER)
    name = request["adapter"].replace("-", "_")
    if name == "fixture":
        importlib.import_module("bkm_cell.adapters.fixture").run(request, report)
        return
    import torch

    from bkm_cell.device import check_device
    from bkm_cell.faults import attention_to_ask
    from bkm_cell.preload import third_party_modules
    from bkm_cell.probe import Probe
    from bkm_cell.ranks.gather import Gather, Rank, SharedMemory
    from bkm_cell.ranks.launcher import run_ranks
    from bkm_cell.sft import Ladder
    from bkm_cell.shims import acts
    from bkm_cell.shims.apply import apply_shims
    from bkm_cell.witnesses import flash_calls
    from bkm_cell.witnesses.lines import recorded_lines

    torch.set_num_threads(int(request["probe"].get("threads", 1)))
    if request["probe"].get("device", "cpu") != "cpu":
        check_device(request.get("sandbox") or "")
    apply_shims(request)
    flash_calls.install()
    report.set(shims=acts.counts(), plant=request.get("plant") or [])
    if acts.stand_ins():
        report.set(stand_ins=acts.stand_ins(), stand_ins_hide=acts.hidden())
    report.on_stage.append(lambda: report.set(shims=acts.counts()))
    probe = Probe(request["probe_dir"], request["probe"])
    packages, plant = request.get("packages") or {}, request.get("plant") or []
    attention = attention_to_ask(probe.attention, packages.get("library") or "", plant)
    kind = Ladder
    if probe.drive == "trainer":
        by = "update" if probe.objective == "ppo" else "trainer"
        name = f"{name.removesuffix('_trainer')}_{by}"
        kind = importlib.import_module("bkm_cell.driven").DrivenLadder
    adapter = importlib.import_module(f"bkm_cell.adapters.{name}").Adapter(probe, attention)
    ladder = kind(request, probe, adapter, report, owners)
    layout = probe.layout
    try:
        with recorded_lines(request, report):
            ladder.begin()
            if layout.ranks == 1:
                ladder.climb()
            else:
                memory = SharedMemory(layout.ranks, _MOST_HELD * 4 * probe.parameters)

                def climb(number: int, own: Report, tell: Callable[[str | None], None]) -> None:
                    gather = Gather(memory, number, tell, own, is_pipeline=layout.pp > 1)
                    rank = Rank(number, tell, gather)
                    kind(request, probe, adapter, own, owners, rank).climb()

                deadline = start + float(request["limits"]["timeout_s"])
                run_ranks(request, layout, climb, report, owners, deadline)
    finally:
        report.set(shims=acts.counts())
    if request.get("record_modules"):
        report.set(modules=third_party_modules(request))
