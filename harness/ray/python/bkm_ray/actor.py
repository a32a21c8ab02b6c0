# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The end of a pipe on a node: starts a program there and passes lines to it and from it.

It knows nothing of cells. Ray sends this class to the nodes by value, so it uses the standard library only.
"""

from __future__ import annotations

import collections
import ctypes
import os
import signal
import subprocess
import threading
import time

_PR_SET_PDEATHSIG = 1
_MOST_CHARACTERS = 8 << 20  # of one answer: further lines wait for the next one


class Pipe:
    """One program, its stdin and its stdout. Methods of the group "out" may run beside those of the group "in"."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque()
        self._changed = threading.Condition()
        self._ended = False
        self._program: subprocess.Popen[str] | None = None
        threading.Thread(target=self._end_with_node, args=(os.getppid(),), daemon=True).start()

    @staticmethod
    def _end_with_node(raylet: int) -> None:
        """Ends this process when its raylet has died. Ray itself does not notice below a process that adopts orphans."""
        while os.getppid() == raylet:
            time.sleep(1)
        os._exit(1)

    def open(self, argv: list[str], environment: dict[str, str]) -> None:
        """Starts the program. It dies with this process, however that ends."""
        started: list[OSError | None] = []
        ready = threading.Event()
        # The thread that starts the program lives as long as the program: the kernel ends a child with its parent's thread.
        threading.Thread(target=self._run, args=(argv, environment, started, ready), daemon=True).start()
        ready.wait()
        if started[0] is not None:
            raise started[0]

    def _run(
        self, argv: list[str], environment: dict[str, str], started: list[OSError | None], ready: threading.Event
    ) -> None:
        libc = ctypes.CDLL(None)

        def die_with_parent() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

        try:
            self._program = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**environment, **os.environ},  # what the node says wins
                text=True,
                preexec_fn=die_with_parent,
            )
            started.append(None)
        except OSError as error:
            started.append(error)
            return
        finally:
            ready.set()
        assert self._program.stdout is not None
        for line in self._program.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify()
        self._program.wait()
        with self._changed:
            self._ended = True
            self._changed.notify()

    def send(self, text: str) -> None:
        """Writes whole lines. Those for a program that has ended are dropped: `receive` says that it has ended."""
        assert self._program is not None and self._program.stdin is not None
        try:
            self._program.stdin.write(text)
            self._program.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def receive(self, seconds: float) -> tuple[list[str], bool]:
        """The lines so far, after at most `seconds`, and whether the program has ended without further lines."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended, seconds)
            lines: list[str] = []
            size = 0
            while self._lines and size < _MOST_CHARACTERS:
                lines.append(self._lines.popleft())
                size += len(lines[-1])
            return lines, self._ended and not self._lines

    def status(self) -> str:
        """How the program ended."""
        assert self._program is not None
        code = self._program.wait()
        return f"signal {-code}" if code < 0 else f"exit {code}"
