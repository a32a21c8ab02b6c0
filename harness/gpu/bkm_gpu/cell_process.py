# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs one cell in a new process of the machine's interpreter, by bkm_cell/alone.py. No sandbox."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bkm_gpu.observation import EventLog

# Carried packages come last: the interpreter's own are used where it has them.
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.path.append(sys.argv.pop(1)); "
    "from bkm_cell.alone import main; main()"
)
# What harness/cell/cell_environment.cc gives a cell, beside the machine's own variables: a driver and
# a compiler may need these.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENBLAS_NUM_THREADS": "1",
}
_BLOCK = 1 << 16


@dataclass
class Machine:
    """Where cells run."""

    python: Path
    code: Path  # holds bkm_cell
    carried: Path
    compiled: Path  # what torch and Triton compile, for all cells
    environment: dict[str, str] = field(default_factory=dict)


def environment(machine: Machine, work: Path) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    own = {
        "HOME": str(work / "home"),
        "TMPDIR": str(work / "tmp"),
        "TORCHINDUCTOR_CACHE_DIR": str(machine.compiled / "inductor"),
        "TRITON_CACHE_DIR": str(machine.compiled / "triton"),
    }
    return inherited | _ENVIRONMENT | own | machine.environment


def _prepare(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    for made in (work / "home", work / "tmp", folder / "tensors"):
        made.mkdir(parents=True)
    return work


def _pump(
    log: EventLog,
    reader: int,
    process: subprocess.Popen[bytes],
    deadline: float,
    stop: threading.Event,
) -> str:
    """Reads events until the cell ends or must end: "", "timed-out", "cancelled" or "limit"."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timed-out"
            if stop.is_set():
                return "cancelled"
            if log.is_too_long or len(pending) > 8 << 20:
                return "limit"
            # A process that the cell left behind may hold the pipe open.
            if not selector.select(min(left, 1.0)):
                if process.poll() is not None:
                    return ""
                continue
            data = os.read(reader, _BLOCK)
            if not data:
                return ""
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                log.take(line, time.monotonic())


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the cell with all that it started, which is one session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(stopped: str, status: int, log: EventLog) -> dict[str, Any]:
    if stopped == "limit":
        return {"kind": "limit", "limit": "events"}
    if stopped:
        return {"kind": stopped}
    if log.has_raised:
        return {"kind": "raised"}
    if status < 0:
        return {"kind": "signalled", "signal": -status}
    if status == 0 and log.is_done:
        return {"kind": "completed"}
    return {"kind": "exited", "code": status}


def run_cell(
    machine: Machine,
    request: dict[str, Any],
    folder: Path,
    own: dict[str, Any],
    stop: threading.Event | None = None,
) -> dict[str, Any]:
    """Runs the cell and returns its observation. `folder` is made anew; `own`: further facts; `stop`
    ends the cell within a second."""
    work = _prepare(folder)
    request = request | {"dir": str(folder)}
    (folder / "request.json").write_text(json.dumps(request, indent=1))
    start = time.monotonic()
    log = EventLog(start)
    reader, writer = os.pipe()
    command = [str(machine.python), "-I", "-B", "-c", _START, str(machine.code), str(machine.carried)]
    command += [str(writer), json.dumps(request)]
    try:
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as error:
            process = subprocess.Popen(
                command,
                cwd=work,
                env=environment(machine, work),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                pass_fds=[writer],
                start_new_session=True,
            )
        os.close(writer)
        writer = -1
        try:
            deadline = start + float(request["limits"]["timeout_s"])
            stopped = _pump(log, reader, process, deadline, stop or threading.Event())
            if not stopped:
                try:
                    process.wait(timeout=10)  # it has closed its pipe
                except subprocess.TimeoutExpired:
                    stopped = "timed-out"
        finally:
            _end(process)
            status = process.wait()
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    usage = {"wall_s": round(time.monotonic() - start, 3)}
    shutil.rmtree(work, ignore_errors=True)
    observed = log.observation(_ending(stopped, status, log), own | {"usage": usage, "sandbox": []})
    (folder / "observation.json").write_text(json.dumps(observed))
    return observed
