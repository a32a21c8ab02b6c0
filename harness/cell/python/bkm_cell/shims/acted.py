# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""How often each shim did something that would have gone otherwise without it."""

from __future__ import annotations

from collections import Counter

COUNTS: Counter[str] = Counter()


def acted(name: str) -> None:
    COUNTS[name] += 1
