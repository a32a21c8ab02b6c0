# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Why the command cannot do its job."""

from __future__ import annotations


class Problem(Exception):
    """One sentence for the user, with what to do. The command exits with 2."""
