# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Sees that the machine, the driver and the sandbox give this cell a CUDA device that computes."""

from __future__ import annotations

import os


class DeviceUnusable(Exception):
    """The verdict is `unsupported (device-missing)`: no subject has run yet."""


# CUDA's library makes a Unix socket when it starts, with which a cell without a network namespace
# could also reach the machine's services.
_WEAK = "; the sandbox level weak keeps CUDA from starting: use full or off"


def check_device(level: str) -> None:
    """Computes on the device, in a child: a process that has used CUDA cannot fork ranks."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            import torch

            torch.ones(1, device="cuda").add_(1).item()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            os.write(writes, text.encode(errors="replace")[:2000])
            os._exit(1)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, errors="replace") as stream:
        message = stream.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        return
    if os.WIFSIGNALED(status):
        message = f"signal {os.WTERMSIG(status)}"
    hint = _WEAK if level == "weak" else ""
    raise DeviceUnusable(f"torch cannot compute on the CUDA device in this sandbox: {message}{hint}")
