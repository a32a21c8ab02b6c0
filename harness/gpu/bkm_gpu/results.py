# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What comes back from a machine: few files of bounded size, each tensor file once by content."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bkm_gpu.problem import Problem

SCHEMA = 1
RESULTS = "results.json"
_PART = "tensors-{}.zip"
# A transport may take 8 files of 16 MiB: results.json, the log, and these.
_MOST_PARTS = 6
_PART_BYTES = 14 << 20
_DATE = (1980, 1, 1, 0, 0, 0)
# Explanations of what is reused; large, and judged by nothing.
_LEFT_OUT = ("closure", "modules", "lines")


def cell_result(folder: Path, observation: dict[str, Any], what: dict[str, Any]) -> dict[str, Any]:
    """`what` names the cell and its run."""
    kept = {key: value for key, value in observation.items() if key not in _LEFT_OUT}
    tensors = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "tensors").glob("*.safetensors"))
    }
    tail = (folder / "stderr").read_bytes()[-2000:].decode(errors="replace")
    return {**what, "observation": kept, "tensors": tensors, "stderr_tail": tail}


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text)
    unfinished.replace(path)


def write(out: Path, results: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    _replace(out / RESULTS, json.dumps({"schema": SCHEMA, **results}, indent=1))


def write_tensors(out: Path, folders: Iterable[tuple[Path, dict[str, str]]]) -> list[str]:
    """Writes the tensor files of each (cell's folder, its tensors). Returns the hashes of those that
    did not fit: the last cells'."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = {digest: folder / name for folder, tensors in folders for name, digest in tensors.items()}
    waiting = list(wanted.items())
    written = []
    while waiting and len(written) < _MOST_PARTS:
        path = out / (_PART.format(len(written) + 1) + ".part")
        waiting = _write_part(path, waiting)
        written.append(path)
    for path in written:
        path.replace(path.with_suffix(""))
    for old in out.glob(_PART.format("*")):
        if old.name not in {path.stem for path in written}:
            old.unlink()
    return [digest for digest, _ in waiting]


def _write_part(path: Path, waiting: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Writes as many files as one part may have; returns the others."""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (digest, file) in enumerate(waiting):
            if path.stat().st_size > _PART_BYTES:
                return waiting[number:]
            info = zipfile.ZipInfo(digest, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())
            archive.fp.flush()
    return []


def read(out: Path) -> dict[str, Any]:
    path = out / RESULTS
    if not path.is_file():
        raise Problem(f"{path}: there are no results; make them with ci/gpu run PACK --out {out}")
    try:
        found = json.loads(path.read_text())
        schema, cells = found["schema"], found["cells"]
        for cell in cells:
            ending = cell["observation"]["ending"]["kind"]
            if not all(isinstance(text, str) for text in (cell["cell"], cell["folder"], ending)):
                raise ValueError("a cell without a name")
            if "/" in cell["folder"] or cell["folder"].startswith("."):
                raise ValueError(f"a folder {cell['folder']!r}")
            int(cell["run"])
            dict(cell["tensors"])
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(f"{path}: not results of ci/gpu run ({error}); copy the folder again") from error
    if schema != SCHEMA:
        raise Problem(f"{path}: it has schema {schema}, and this program reads {SCHEMA}; run again")
    return found


def read_tensors(out: Path) -> dict[str, bytes]:
    """All tensor files by hash; a file with another content than its hash says is refused."""
    found: dict[str, bytes] = {}
    for path in sorted(out.glob(_PART.format("*"))):
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if info.file_size > 64 << 20:
                        raise Problem(f"{path}: {info.filename!r} is too large; copy the folder again")
                    data = archive.read(info)
                    if hashlib.sha256(data).hexdigest() != info.filename:
                        raise Problem(f"{path}: {info.filename!r} is damaged; copy the folder again")
                    found[info.filename] = data
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise Problem(f"{path}: cut short or damaged ({error}); copy the folder again") from error
    return found
