# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Finds the third-party modules that a worker should import before it forks cells.

As a program, it reads the modules that successful cells recorded (request "record_modules") and
prints the shortest list that imports all of them, in an order that works. preload.txt keeps the
slow ones:

  python -m bkm_cell.preload OBSERVATION.json...
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import struct
import sys
from types import ModuleType
from typing import Any


def third_party_modules(request: dict[str, Any]) -> list[str]:
    """The modules that this process imported, in order, except those of the subjects and ours."""
    subjects = {name for name in (request.get("packages") or {}).values() if name}
    subjects -= {"transformers"}  # belongs to the runtime, also where it is a subject
    ours = {"__main__", "bkm_cell", *subjects, *sys.stdlib_module_names}
    return [name for name in list(sys.modules) if name.split(".")[0] not in ours]


def uncompiled() -> list[str]:
    """The sources of what is imported whose compiled files are missing or older."""
    found = []
    for module in list(sys.modules.values()):
        source = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(source, str) and source.endswith(".py") and not _is_compiled(source):
            found.append(source)
    return found


def _is_compiled(source: str) -> bool:
    """As Python's own loader asks: by the time and size of the source."""
    try:
        info = os.stat(source)
        with open(importlib.util.cache_from_source(source), "rb") as file:
            header = file.read(16)
    except OSError:
        return False
    numbers = struct.pack("<II", int(info.st_mtime) & 0xFFFFFFFF, info.st_size & 0xFFFFFFFF)
    return header[8:] == numbers


def shortest(modules: list[str]) -> list[str]:
    """The modules that no shallower module imports. Imports all of them to find out."""
    needed = []
    for name in sorted(modules, key=lambda name: name.count(".")):
        if name in sys.modules:
            continue
        with contextlib.suppress(Exception):
            importlib.import_module(name)
            needed.append(name)
    return needed


def main(paths: list[str]) -> None:
    recorded: dict[str, None] = {}
    for path in paths:
        with open(path) as file:
            recorded.update(dict.fromkeys(json.load(file).get("modules", [])))
    print("# Written by `python -m bkm_cell.preload`; missing modules are skipped.")
    for name in shortest(list(recorded)):
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
