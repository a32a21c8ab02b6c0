# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Makes a pack out of a run on a CPU: its requests, its probes, its sources, and the cell's Python."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bkm_gpu import pack_file
from bkm_gpu.problem import Problem

CELL_CODE, SOURCES, CARRIED, PROBES = "cell", "sources", "carried", "probes"
_WEIGHTS = "model.safetensors"
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".a", ".o")
# What a cell never reads.
_LEFT_OUT = {"__pycache__", ".git", "bin", "tests", "test"}
# Of a request: the rest belongs to the machine that the run was made on.
_KEPT = ("adapter", "cell", "packages", "probe", "limits")


@dataclass
class PackOptions:
    run: Path
    out: Path
    root: Path  # of the repository
    patterns: list[str] = field(default_factory=list)  # of cell ids; empty: all cells
    python_version: str = "3.12"  # of the machine
    write_probe: Path | None = None
    uv: str = "uv"


def requests_of(run: Path, patterns: list[str]) -> list[dict[str, Any]]:
    """The requests of a run's finished cells, in the order of its matrix: the first run first."""
    if not (run / "run.json").is_file():
        raise Problem(f"{run}: no run.json; first run tools/bkm run matrices/gpu.json --out {run}")
    found = []
    for path in sorted((run / "cells").glob("*/request.json")):
        if not (path.parent / "observation.json").is_file():
            continue
        request = json.loads(path.read_text())
        if patterns and not any(fnmatch.fnmatch(request["cell"], f"*{p}*") for p in patterns):
            continue
        if request.get("plant") or int(request["probe"].get("ranks", 1)) > 1:
            continue  # a planted fault, or several ranks: one device has one rank
        found.append(request | {"folder": path.parent.name})
    if not found:
        what = f"no cell matches {' or '.join(patterns)}" if patterns else "no cell has finished"
        raise Problem(f"{run}: {what}; nothing to pack")
    cells = json.loads((run / "run.json").read_text()).get("cells", [])
    order = {Path(cell["dir"]).name: number for number, cell in enumerate(cells)}
    return sorted(found, key=lambda request: (order.get(request["folder"], 0), request["cell"]))


def _tree(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a source tree: name below the folder, and content. Links are followed, because
    trees in the cache are made of them."""
    for where, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(names):
            path = Path(where, name)
            if name.endswith(_COMPILED):
                raise Problem(f"{path}: compiled code cannot be packed; the machine may differ")
            if path.is_file() and not name.endswith(".pyc") and not name.startswith("."):
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _add_tree(files: dict[str, bytes], name: str, folder: Path) -> None:
    if not folder.is_dir():
        raise Problem(f"{folder}: the folder is gone; run the matrix again")
    files.update({f"{name}/{path}": data for path, data in _tree(folder)})


def _weights(folder: Path, write_probe: Path) -> tuple[dict[str, bytes], str]:
    """How the model's weights are drawn: files for the pack, and the hash of what must come out."""
    model = folder / "model"
    path = model / _WEIGHTS
    if not path.is_file() or sorted(p.name for p in model.glob("*.safetensors")) != [_WEIGHTS]:
        raise Problem(f"{model}: only probes with one fp32 file can be packed; leave its cells out")
    numerics = json.loads((folder / "probe.json").read_text())["numerics"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as probe:
        json.dump(numerics, probe)
        probe.flush()
        drawn = _output([str(write_probe), "--json", probe.name, "--print-weights"])
    with open(path, "rb") as file:
        start = file.read(8)
        header = start + file.read(struct.unpack("<Q", start)[0])
    return {"weights.json": drawn, "weights.header": header}, pack_file.file_digest(path)


def _output(command: list[str]) -> bytes:
    try:
        ran = subprocess.run(command, capture_output=True, timeout=300, check=False)
    except OSError as error:
        raise Problem(f"{command[0]} does not run: {error}") from error
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise Problem(f"{command[0]} failed: {said[-1] if said else ran.returncode}")
    return ran.stdout


def _add_probe(files: dict[str, bytes], folder: Path, write_probe: Path) -> dict[str, Any]:
    drawn, expected = _weights(folder, write_probe)
    for name, data in [*drawn.items(), *_tree_without_weights(folder)]:
        files[f"{PROBES}/{folder.name}/{name}"] = data
    return {"weights_sha256": expected}


def _tree_without_weights(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _WEIGHTS and not path.name.startswith("."):
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def _carried(options: PackOptions, folder: Path) -> list[str]:
    """Installs the packages of carried.txt into `folder`; returns their pins."""
    listed = options.root / "harness/gpu/carried.txt"
    command = [options.uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", options.python_version, "--target", str(folder)]
    _output([*command, "--requirement", str(listed)])
    lines = (line.split("#")[0].strip() for line in listed.read_text().splitlines())
    return [line for line in lines if line]


def _source_name(tree: Path) -> str:
    """Of a tree in the cache: NAME-HASH/tree."""
    return tree.parent.name if tree.name == "tree" else tree.name


def pack(options: PackOptions) -> dict[str, Any]:
    """Writes the pack. Returns what it holds."""
    requests = requests_of(options.run, options.patterns)
    write_probe = options.write_probe or options.root / "bazel-bin/harness/numerics/write_probe"
    if not write_probe.is_file():
        raise Problem(f"{write_probe} is missing; run: bazel build //harness/numerics:write_probe")
    files: dict[str, bytes] = {}
    python = options.root / "harness/cell/python/bkm_cell"
    cell_code = {n: d for n, d in _tree(python) if not n.endswith("_test.py")}
    files.update({f"{CELL_CODE}/bkm_cell/{name}": data for name, data in cell_code.items()})
    probes: dict[str, Any] = {}
    cells = []
    for request in requests:
        probe_dir = Path(request["probe_dir"])
        if probe_dir.name not in probes:
            probes[probe_dir.name] = _add_probe(files, probe_dir, write_probe)
        paths = {}
        for subject, tree in request["paths"].items():
            if tree is None or _is_machines(request, subject):
                paths[subject] = None
                continue
            name = _source_name(Path(tree))
            if not any(file.startswith(f"{SOURCES}/{name}/") for file in files):
                _add_tree(files, f"{SOURCES}/{name}", Path(tree))
            paths[subject] = f"{SOURCES}/{name}"
        kept = {key: request[key] for key in _KEPT}
        place = {"folder": request["folder"], "probe": probe_dir.name, "paths": paths}
        cells.append(place | {"request": kept})
    with tempfile.TemporaryDirectory() as folder:
        pins = _carried(options, Path(folder))
        _add_tree(files, CARRIED, Path(folder))
    manifest = {
        "cells": cells,
        "probes": probes,
        "carried": pins,
        "cell_code_sha256": _digest_of(cell_code),
    }
    size = pack_file.write(options.out, manifest, files)
    return {"pack": str(options.out), "bytes": size, "cells": [r["cell"] for r in requests]}


def _is_machines(request: dict[str, Any], subject: str) -> bool:
    """transformers belongs to the machine's own packages, also where it is the subject."""
    return (request.get("packages") or {}).get(subject) == "transformers"


def _digest_of(files: dict[str, bytes]) -> str:
    seen = hashlib.sha256()
    for name in sorted(files):
        seen.update(f"{name} {pack_file.digest(files[name])}\n".encode())
    return seen.hexdigest()
