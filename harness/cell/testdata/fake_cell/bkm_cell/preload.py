# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Stands in for bkm_cell.preload."""

import sys


def uncompiled() -> list[str]:
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    outside = ["/etc/passwd.py", "relative.py", "/etc/../etc/x.py", "/usr/lib\n/etc/y.py"]
    return [file for file in files if file and file.endswith(".py")] + outside
