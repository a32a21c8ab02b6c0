# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs the build backend of a source distribution (PEP 517). It runs the package's code, so it only
ever runs in a sandbox, and what it writes is not to be trusted.

    requires SDIST WORK BACKENDS    WORK/requires.json: what else the backend needs
    wheel SDIST WORK BACKENDS       WORK/wheel/NAME.whl

BACKENDS is a folder with the packages that build it.
"""

import importlib
import json
import os
import pathlib
import sys
import tarfile
import tomllib
import zipfile


def unpack(sdist: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    if zipfile.is_zipfile(sdist):
        with zipfile.ZipFile(sdist) as archive:
            archive.extractall(folder)
    else:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder)
    (source,) = folder.iterdir()  # a source distribution holds one folder
    return source


def backend_of(source: pathlib.Path) -> object:
    declared = source / "pyproject.toml"
    text = declared.read_text("utf-8-sig") if declared.exists() else ""
    system = tomllib.loads(text).get("build-system", {})
    for folder in reversed(system.get("backend-path", [])):
        sys.path.insert(0, str(source / folder))
    name = system.get("build-backend", "setuptools.build_meta:__legacy__")
    module, _, attributes = name.partition(":")
    backend = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        backend = getattr(backend, attribute)
    return backend


def main() -> None:
    command, sdist, work, backends = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    # The first entry stands for the current folder, which holds other modules than the backend's.
    sys.path[0] = str(backends)
    source = unpack(sdist, work / f"source-{command}")
    os.chdir(source)
    backend = backend_of(source)
    if command == "requires":
        hook = getattr(backend, "get_requires_for_build_wheel", lambda settings: [])
        (work / "requires.json").write_text(json.dumps(list(hook({}))))
    else:
        (work / "wheel").mkdir()
        backend.build_wheel(str(work / "wheel"), {})


main()
