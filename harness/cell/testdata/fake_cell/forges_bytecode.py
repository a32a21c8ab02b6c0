# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Writes where compiled files lie, as a package could that is imported by a worker."""

import importlib.util
import json
import os

for path in (importlib.util.cache_from_source(json.__file__), f"{importlib.util.sys.pycache_prefix}/forged"):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"forged")
    except OSError:
        pass
    else:
        raise RuntimeError(f"wrote {path}")
