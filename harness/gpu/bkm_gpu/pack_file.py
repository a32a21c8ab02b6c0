# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The pack: a tar file with a manifest, and files that the manifest names by their hash."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from bkm_gpu.problem import Problem

SCHEMA = 1
MANIFEST = "manifest.json"
LARGEST = 64 << 20  # bytes of a pack
# A pack is small; what it unpacks to must not fill the machine's disk.
LARGEST_UNPACKED = 512 << 20
MOST_FILES = 20_000


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    seen = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            seen.update(block)
    return seen.hexdigest()


def write(path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> int:
    """Writes a pack and returns its size. Equal content gives equal bytes."""
    listed = {name: {"sha256": digest(data), "size": len(data)} for name, data in files.items()}
    whole = {"schema": SCHEMA, **manifest, "files": dict(sorted(listed.items()))}
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, MANIFEST, json.dumps(whole, indent=1).encode())
            for name in sorted(files):
                _add(tar, name, files[name])
    size = packed.tell()
    if size > LARGEST:
        raise Problem(
            f"{path}: the pack has {size / 2**20:.1f} MiB, and at most {LARGEST >> 20} MiB are "
            f"allowed; name fewer cells with --filter. The largest parts: {_largest(files)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(packed.getvalue())
    unfinished.replace(path)
    return size


def _largest(files: Mapping[str, bytes]) -> str:
    parts: dict[str, int] = {}
    for name, data in files.items():
        part = "/".join(name.split("/")[:2])
        parts[part] = parts.get(part, 0) + len(data)
    first = sorted(parts, key=lambda part: -parts[part])[:3]
    return ", ".join(f"{part} {parts[part] / 2**20:.1f} MiB" for part in first)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    is_plain = bool(name) and "\\" not in name and "\0" not in name
    return is_plain and not path.is_absolute() and ".." not in path.parts and str(path) == name


def _entries(path: Path, tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    size = 0
    for entry in tar:
        if not _stays_inside(entry.name):
            raise Problem(f"{path}: refused, the path {entry.name!r} leaves the pack")
        if not entry.isreg():
            raise Problem(f"{path}: refused, {entry.name!r} is neither a plain file nor a folder")
        if entry.name in seen:
            raise Problem(f"{path}: refused, it has {entry.name!r} twice")
        seen.add(entry.name)
        size += entry.size
        if size > LARGEST_UNPACKED or len(seen) > MOST_FILES:
            raise Problem(f"{path}: refused, it unpacks to too much")
        data = tar.extractfile(entry)
        yield entry.name, data.read() if data else b""


def read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and files of a pack; every file is checked against the manifest."""
    if not path.is_file():
        raise Problem(f"{path}: there is no such pack; make one with ci/gpu pack RUN --out {path}")
    if path.stat().st_size > LARGEST:
        raise Problem(f"{path}: refused, a pack has at most {LARGEST >> 20} MiB")
    try:
        with tarfile.open(path, mode="r:*") as tar:
            files = dict(_entries(path, tar))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise Problem(f"{path}: not a pack, or cut short ({why}); copy it again") from error
    try:
        manifest = json.loads(files.pop(MANIFEST))
        listed = {name: one["sha256"] for name, one in manifest["files"].items()}
        schema = manifest["schema"]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Problem(f"{path}: it has no readable {MANIFEST}; it was not made by ci/gpu pack") from error
    if schema != SCHEMA:
        raise Problem(f"{path}: it has schema {schema}, and this program reads {SCHEMA}; pack again")
    if listed.keys() != files.keys():
        odd = sorted(listed.keys() ^ files.keys())[0]
        raise Problem(f"{path}: {odd!r} is in the manifest or in the pack, but not in both; pack again")
    for name, data in files.items():
        if digest(data) != listed[name]:
            raise Problem(f"{path}: {name!r} is damaged; copy the pack again")
    return manifest, files


def unpack(path: Path, into: Path) -> tuple[dict[str, Any], str]:
    """Unpacks into a new or complete folder. Returns manifest and the hash of the pack."""
    manifest, files = read(path)
    name = file_digest(path)
    done = into / ".complete"
    if done.is_file() and done.read_text() == name:
        return manifest, name
    shutil.rmtree(into, ignore_errors=True)
    for file, data in files.items():
        target = into / file
        os.makedirs(target.parent, exist_ok=True)
        target.write_bytes(data)
    done.write_text(name)
    return manifest, name
