# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Asks the machine's interpreter what it is, and whether it can run cells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bkm_gpu.problem import Problem

ON_MACHINE = Path(__file__).resolve().parent / "on_machine"
_OLDEST = (3, 10)


def interpreter(named: str) -> Path:
    """The absolute path; a virtual environment's own link is kept."""
    path = shutil.which(named)
    if path is None:
        raise Problem(f"--python {named}: there is no such program")
    return Path(os.path.abspath(path))


def run_script(python: Path, script: str, arguments: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Runs a program of on_machine with nothing but the interpreter's own packages."""
    command = [str(python), "-I", "-B", str(ON_MACHINE / script), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except OSError as error:
        raise Problem(f"--python {python} does not run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise Problem(f"--python {python}: {script} took more than {timeout:.0f} s") from error


def describe(python: Path) -> dict[str, Any]:
    ran = run_script(python, "describe.py", [], 300)
    try:
        found = json.loads(ran.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        said = (ran.stderr or ran.stdout).strip().splitlines()
        why = said[-1] if said else f"exit status {ran.returncode}"
        raise Problem(f"--python {python} does not describe itself: {why}") from None
    version = str(found.get("python", "?"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST:
        raise Problem(f"--python {python} is Python {version}; cells need 3.10 or newer")
    if "torch" not in found:
        why = found.get("torch_error", "unknown reason")
        raise Problem(f"--python {python} cannot import torch ({why}); name one with torch")
    if "Error" in str(found.get("numpy")):
        raise Problem(f"--python {python} cannot import numpy ({found['numpy']}): the weights need it")
    return found


def require_device(found: dict[str, Any], device: str) -> None:
    if device == "cuda" and not found["cuda_is_available"]:
        why = found.get("no_cuda", "no reason given")
        raise Problem(
            f"no CUDA device: torch {found['torch']} finds none ({why}); run on a machine with a GPU "
            "and its driver, or test with --device cpu"
        )


def device_name(found: dict[str, Any], device: str) -> str:
    """For people and folders: "nvidia-h100-80gb-hbm3"."""
    name = found["devices"][0]["name"] if device == "cuda" else f"cpu-{found['machine']}"
    return "-".join("".join(c if c.isalnum() else " " for c in name).lower().split())
