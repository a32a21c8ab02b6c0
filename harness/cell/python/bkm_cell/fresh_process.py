# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A process of the cell's that reports over a pipe, and one that is kept until the cell's own has
trained: it has imported the subjects and run nothing of them."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable

from bkm_cell.report import Report
from bkm_cell.witnesses.errors import Described, Owners, describe

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def report_over(
    events: int,
    act: Callable[[Report], None],
    owners: Owners,
    folder: str,
    then: Callable[[], object] = lambda: None,
) -> None:
    """Calls act(report), whose last event says how it ended, and then `then`. `folder`: the cell's."""
    with os.fdopen(events, "w", buffering=1) as pipe:
        report = Report(lambda event: print(event, file=pipe, flush=True), folder)
        report.watch_warnings()
        try:
            act(report)
        except BaseException as error:  # also SystemExit: a subject that exits is a finding
            report.exception(describe(error, owners))
        else:
            report.done()
        sys.stdout.flush()
        sys.stderr.flush()
        then()


def end_as(status: int) -> None:
    """Ends this process as one with this wait status ended, so that the worker names the cause."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    faulthandler.disable()
    os.kill(os.getpid(), -code)
    time.sleep(10)
    os._exit(1)


class FreshProcess:
    def __init__(self, act: Callable[[Report], None], owners: Owners, folder: str) -> None:
        """Forks; the process waits for run()."""
        self._events, write = os.pipe()
        go, self._go = os.pipe()
        gc.collect()
        gc.freeze()  # so that collecting garbage copies no page of what was imported
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                die_with_parent()
                os.close(self._events)
                os.close(self._go)
                if os.read(go, 1):
                    report_over(write, act, owners, folder)
            finally:
                os._exit(0)
        os.close(write)
        os.close(go)

    def run(self, report: Report) -> None:
        """Lets it act, and passes its facts on. Raises what it raised; ends as it ended."""
        os.write(self._go, b"x")
        raised, is_done = None, False
        with os.fdopen(self._events) as events:
            for line in events:
                try:
                    event = json.loads(line)
                except ValueError:  # the subject wrote to the pipe
                    continue
                if "set" in event:
                    report.set(**event["set"])
                if "append" in event:
                    report.append(**event["append"])
                raised = event.get("exception", raised)
                is_done = is_done or "done" in event
        _, status = os.waitpid(self._pid, 0)
        if raised is not None:
            raise Described(raised)
        if not is_done:
            end_as(status)
