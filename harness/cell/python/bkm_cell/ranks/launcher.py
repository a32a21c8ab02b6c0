# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Forks the ranks of a cell, passes on what they report, and says which one stopped the others.

The calling process stays outside: it runs no step, so it sees a rank that dies, hangs or waits for
another one. The subjects are imported before the fork, once for all ranks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import mmap
import os
import re
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bkm_cell.fresh_process import die_with_parent, end_as, report_over
from bkm_cell.ranks.layout import Layout
from bkm_cell.ranks.merge import Merge
from bkm_cell.report import Report
from bkm_cell.witnesses.errors import Described, Owners, described_frame

# The other ranks may fail for the same reason, a moment later.
GRACE_S = 3.0
# How long no rank may use the processor while some are in a collective.
STUCK_S = 20.0
# Before the cell's time limit ends it, its ranks say where they are.
BEFORE_LIMIT_S = 5.0
_LEAST_MOVED_S = 0.015  # more than one tick of the kernel's clock, between two looks
_NAME_BYTES = 64  # of a collective
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')

Tell = Callable[[str | None], None]
Climb = Callable[[int, Report, Tell], None]


@dataclass
class _Rank:
    number: int
    pid: int
    events: int  # the end that is read
    leave: int  # closed when all ranks may exit
    stacks: str  # file that SIGUSR1 fills
    stage: str = "import"
    ended: str = ""  # done, raised, or how its process ended
    exception: dict[str, Any] | None = None
    status: int | None = None
    unread: bytes = b""
    cpu: float = 0.0
    frames: list[dict[str, Any]] = field(default_factory=list)

    @property
    def has_died(self) -> bool:
        return bool(self.ended) and self.ended not in ("done", "raised")


def run_ranks(
    request: dict[str, Any],
    layout: Layout,
    climb: Climb,
    report: Report,
    owners: Owners,
    deadline: float,
) -> None:
    """Calls climb(rank, its report, tell) in a process for each rank. Returns if all of them did.

    A rank calls `tell` with the collective that it enters, and with None when it leaves it.

    `deadline`: of time.monotonic(). Raises Described; a rank that a signal ended, or that left
    with an exit status, ends this process in the same way.
    """
    _Launcher(request, layout, report, owners, deadline).run(climb)


class _Launcher:
    def __init__(
        self,
        request: dict[str, Any],
        layout: Layout,
        report: Report,
        owners: Owners,
        deadline: float,
    ) -> None:
        self._layout = layout
        self._report = report
        self._owners = owners
        self._deadline = deadline
        self._folder = request["dir"]
        self._merge = Merge(layout.ranks, self._folder, report)
        self._ranks: list[_Rank] = []
        self._inside = mmap.mmap(-1, layout.ranks * _NAME_BYTES)  # shared with the ranks
        self._failed_at: float | None = None
        self._first: _Rank | None = None  # the first one that failed
        self._idle_since = time.monotonic()
        self._has_told_waits = False

    def run(self, climb: Climb) -> None:
        variables = {
            "WORLD_SIZE": str(self._layout.ranks),
            "LOCAL_WORLD_SIZE": str(self._layout.ranks),
            "MASTER_PORT": str(_free_port()),
            "BKM_RESTART_PORT": str(_free_port()),  # of a trainer that is started again
            "GLOO_SOCKET_IFNAME": "lo",
        }
        os.environ.update(variables)
        gc.collect()
        gc.freeze()  # so that collecting garbage copies no page of what was imported
        for number in range(self._layout.ranks):
            self._ranks.append(self._fork(number, climb))
        try:
            self._watch()
        finally:
            self._end_all()
        self._tell()
        self._finish()

    def _fork(self, number: int, climb: Climb) -> _Rank:
        read, write = os.pipe()
        stay, leave = os.pipe()
        stacks = os.path.abspath(f"stacks-of-rank-{number}")
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent()
                for other in self._ranks:
                    os.close(other.events)
                    os.close(other.leave)
                os.close(read)
                os.close(leave)
                tell = partial(_write_name, self._inside, number * _NAME_BYTES)
                act = partial(climb, number, tell=tell)
                _be_rank(number, act, self._owners, write, stay, stacks, self._folder)
            finally:
                os._exit(1)
        os.close(write)
        os.close(stay)
        os.set_blocking(read, False)
        return _Rank(number, pid, read, leave, stacks)

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for rank in self._ranks:
                selector.register(rank.events, selectors.EVENT_READ, rank)
            while any(not rank.ended for rank in self._ranks):
                for key, _ in selector.select(timeout=0.25):
                    if not self._read(key.data):
                        selector.unregister(key.fileobj)
                        self._reap(key.data)
                for rank in self._ranks:
                    if not rank.ended and self._has_exited(rank):
                        self._read(rank)
                        self._reap(rank)
                if self._failed_at is not None and time.monotonic() > self._failed_at + GRACE_S:
                    return
                self._look_for_a_standstill()

    def _read(self, rank: _Rank) -> bool:
        """False at the end of the rank's events."""
        while True:
            try:
                read = os.read(rank.events, 1 << 20)
            except BlockingIOError:
                return True
            if not read:
                return False
            *lines, rank.unread = (rank.unread + read).split(b"\n")
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:  # the subject wrote to the pipe
                    continue
                if isinstance(event, dict):
                    self._take(rank, event)

    def _take(self, rank: _Rank, event: dict[str, Any]) -> None:
        if "stage" in event:
            rank.stage = event["stage"]
            if rank.number == 0:
                self._report.stage(rank.stage)
        if "set" in event:
            self._merge.set(rank.number, event["set"])
        if "append" in event:
            self._merge.append(rank.number, event["append"])
        if "exception" in event:
            rank.exception = event["exception"]
            self._end(rank, "raised")
        if "done" in event:
            rank.ended = "done"

    def _end(self, rank: _Rank, how: str) -> None:
        rank.ended = how
        if self._first is None:
            self._first, self._failed_at = rank, time.monotonic()

    def _has_exited(self, rank: _Rank) -> bool:
        """Also if a process that the subject forked keeps the pipe open."""
        if rank.status is None:
            pid, status = os.waitpid(rank.pid, os.WNOHANG)
            rank.status = status if pid else None
        return rank.status is not None

    def _reap(self, rank: _Rank) -> None:
        """The rank closed its pipe: it has ended, or is about to."""
        if rank.status is None:
            _, rank.status = os.waitpid(rank.pid, 0)
        # One that is done stays until it is let go, so it was ended, and the others miss it.
        if rank.ended != "raised":
            code = os.waitstatus_to_exitcode(rank.status)
            self._end(rank, f"signal {-code}" if code < 0 else f"exit status {code}")

    def _look_for_a_standstill(self) -> None:
        now = time.monotonic()
        if now > self._deadline - BEFORE_LIMIT_S and not self._has_told_waits:
            # The time limit is the worker's: it ends the cell, and counts it as a timeout.
            self._has_told_waits = True
            self._take_stacks()
            self._tell()
        moved = False
        for rank in self._ranks:
            if rank.ended:
                continue
            used, is_asleep = _use_of(rank.pid)
            # One that waits for a processor or the disk is not stuck.
            moved |= used > rank.cpu + _LEAST_MOVED_S or not is_asleep
            rank.cpu = used
        if moved:
            self._idle_since = now
        waiting = [rank for rank in self._ranks if not rank.ended]
        if now > self._idle_since + STUCK_S and any(self._collective(rank) for rank in waiting):
            self._failed_at = now - GRACE_S - 1

    def _take_stacks(self) -> None:
        waiting = [rank for rank in self._ranks if not rank.ended]
        for rank in waiting:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank.pid, signal.SIGUSR1)
        time.sleep(0.5)
        for rank in waiting:
            with contextlib.suppress(OSError), open(rank.stacks, errors="replace") as file:
                rank.frames = self._frames_of(file.read())

    def _frames_of(self, stack: str) -> list[dict[str, Any]]:
        """The last dump of a stack, outermost frame first."""
        dump = stack.rpartition("most recent call first")[2]
        found = [match for line in dump.splitlines() if (match := _FRAME.match(line))]
        return [
            described_frame(self._owners, match[1], int(match[2]), match[3])
            for match in reversed(found)
        ]

    def _end_all(self) -> None:
        if any(not rank.ended for rank in self._ranks):
            self._take_stacks()
        for rank in self._ranks:
            os.close(rank.leave)
        for rank in self._ranks:
            if rank.status is None and rank.ended != "done":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank.pid, signal.SIGKILL)
        for rank in self._ranks:
            if rank.status is None:
                _, rank.status = os.waitpid(rank.pid, 0)
            os.close(rank.events)
            with contextlib.suppress(OSError):
                os.remove(rank.stacks)

    def _tell(self) -> None:
        """What each rank did, for the observation."""
        told = []
        for rank in self._ranks:
            facts = {
                "rank": rank.number,
                "stage": rank.stage,
                "ended": rank.ended or "waiting",
                **self._merge.of_rank(rank.number),
            }
            if not rank.ended:
                facts["waits"] = self._waits(rank)
            if rank.exception is not None:
                facts["exception"] = (
                    f"{rank.exception.get('type')}: {rank.exception.get('message', '')}"[:1000]
                )
            told.append(facts)
        self._report.set(ranks=told, rank_differences=self._merge.differences())

    def _waits(self, rank: _Rank) -> str:
        place = self._place_of(rank)
        inside = self._collective(rank)
        what = f"in {inside}" if inside else "outside any collective"
        return what + (f" at {place}" if place else "")

    def _collective(self, rank: _Rank) -> str:
        """The collective that a rank is in; empty if it is in none."""
        at = rank.number * _NAME_BYTES
        return bytes(self._inside[at : at + _NAME_BYTES]).rstrip(b"\0").decode()

    def _place_of(self, rank: _Rank) -> str:
        """The innermost frame of the subjects, or of anyone."""
        for owners in (("engine", "library"), ("engine", "library", "torch", "runtime", "harness")):
            for frame in reversed(rank.frames):
                if frame["owner"] in owners:
                    return f"{frame['file']}:{frame['line']}"
        return ""

    def _finish(self) -> None:
        # A rank that raised stays until all are done. So a process that ended is nobody's
        # consequence, and the others may have raised because it was gone.
        first = next((rank for rank in self._ranks if rank.has_died), self._first)
        waiting = [rank for rank in self._ranks if not rank.ended]
        if first is None and not waiting:
            return
        others = "; ".join(f"rank {rank.number} waited {self._waits(rank)}" for rank in waiting)
        while_others = f", while {others}" if others else ""
        total = self._layout.ranks
        if first is None:
            stuck = waiting[0]
            raise Described(
                {
                    "type": "RanksStuck",
                    "module": "bkm_cell.ranks",
                    "message": f"no rank has moved for {STUCK_S:.0f} s: {others}",
                    "frames": stuck.frames,
                }
            )
        same = [rank for rank in self._ranks if _same(rank.exception, first.exception)]
        if first.exception is not None and not first.has_died:
            facts = dict(same[0].exception or first.exception)
            if len(same) < total:
                which = ", ".join(str(rank.number) for rank in same)
                facts["message"] = (
                    f"{facts.get('message', '')} [rank {which} of {total}{while_others}]"
                )
            raise Described(facts)
        self._report.set(rank_ended=f"rank {first.number} of {total}{while_others}")
        end_as(first.status or 0)


def _same(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    if one is None or other is None:
        return False
    return all(one.get(key) == other.get(key) for key in ("type", "message"))


def _write_name(shared: mmap.mmap, at: int, name: str | None) -> None:
    shared[at : at + _NAME_BYTES] = (name or "").encode()[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0")


def _be_rank(
    number: int,
    climb: Callable[[Report], None],
    owners: Owners,
    events: int,
    stay: int,
    stacks: str,
    folder: str,
) -> None:
    """Runs one rank in this process, which ends here."""
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number))
    with open(stacks, "w") as file:
        faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
        # A rank that left would break the connections of those that still work.
        report_over(events, climb, owners, folder, then=lambda: os.read(stay, 1))
    os._exit(0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _use_of(pid: int) -> tuple[float, bool]:
    """User and system seconds of a process and of those that it started and that run, such as a trainer
    that is started again; and whether all of them sleep or are stopped."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0, False
    children: list[int] = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        children = [int(child) for child in file.read().split()]
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    sleeps = fields[0] in "ST"
    for used, is_asleep in map(_use_of, children):
        seconds += used
        sleeps = sleeps and is_asleep
    return seconds, sleeps
