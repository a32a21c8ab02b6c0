# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs one cell in a new interpreter, without a worker: for ci/gpu, which has nothing compiled.

ci/gpu starts it as `-c "...; main()" EVENTS REQUEST`. EVENTS is the number of a descriptor that takes
one line of JSON per event; REQUEST is the request as JSON.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import traceback


def main() -> None:
    events, request = int(sys.argv[1]), json.loads(sys.argv[2])
    sys.argv = ["cell"]
    os.set_inheritable(events, False)
    owner = os.getpid()

    def emit(text: str) -> None:
        # A child that the subject forks and that returns to this code must not report for the cell.
        if os.getpid() == owner:
            os.write(events, text.replace("\n", " ").encode() + b"\n")

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    faulthandler.enable(sys.stderr)

    from bkm_cell.cell import run

    status = 0
    try:
        run(request, emit)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        kind = type(error)
        told = {"type": kind.__name__, "module": kind.__module__, "message": str(error)}
        emit(json.dumps({"exception": told}))
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Like the worker, skip the interpreter's teardown.
    os._exit(status & 0xFF)
