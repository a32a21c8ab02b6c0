# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a stand-in cannot do is bkm's failure: it is raised here, outside of the stand-ins."""

from __future__ import annotations

from typing import NoReturn


def lacks(what: str) -> NoReturn:
    raise NotImplementedError(f"bkm's stand-in on a CPU has no {what}")
