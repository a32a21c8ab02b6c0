# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs the source of a program in a process of its own that need not import torch again. For tests only."""

import os
import sys
import tempfile
import traceback
from dataclasses import dataclass

import torch  # noqa: F401  each program uses it: the forked process has it already
import torch.distributed  # noqa: F401


@dataclass
class Ended:
    """As of subprocess.run: a negative returncode is the signal that ended the process."""

    returncode: int
    stdout: str
    stderr: str


def run_forked(source: str) -> Ended:
    """The program runs in an empty folder. A test that hangs ends by its target's time limit."""
    folder = tempfile.mkdtemp()
    streams = [os.path.join(folder, name) for name in ("stdout", "stderr")]
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os._exit(_run(source, folder, streams))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for path in streams:
        with open(path, errors="replace") as file:
            texts.append(file.read())
    return Ended(code, *texts)


def _run(source: str, folder: str, streams: list[str]) -> int:
    os.mkdir(os.path.join(folder, "work"))
    os.chdir(os.path.join(folder, "work"))
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    code = 0
    try:
        exec(compile(source, "<forked program>", "exec"), {"__name__": "__main__"})
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code
