# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""One cell in an interpreter of its own, for Pythons that the worker does not embed.

Started by the worker, inside the cell's sandbox, as `-c "...; main()" EVENTS REQUEST`: the number
of a descriptor that takes a line of JSON per event, and the request as JSON.
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
        # A child of the subject that runs back into here must not speak for the cell.
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
    # As in the embedding worker, the interpreter is not torn down.
    os._exit(status & 0xFF)
