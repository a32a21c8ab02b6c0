# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Starts the program `bkm` of this package, as tools/bkm does in a checkout."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# The version of Python that python_worker embeds, as the wheel's build wrote it.
EMBEDDED = Path(__file__).parent / "embedded_python"


def refusal(system: str, machine: str) -> str:
    """Why this machine cannot run bkm; empty if it can."""
    if (system, machine) == ("Linux", "x86_64"):
        return ""
    return f"bkm: this machine is {machine} {system}, and bkm runs on x86_64 Linux only"


def find_uv() -> str:
    """The uv of this package's environment; empty if there is none."""
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        return shutil.which("uv") or ""


def find_python(version: str, uv: str) -> str:
    """An interpreter of that version; empty if there is none on this machine."""
    own = ".".join(map(str, sys.version_info[:2]))
    if own == version and platform.python_implementation() == "CPython":
        return os.path.realpath(sys.executable)
    if not uv:
        return ""
    try:
        found = subprocess.run(
            [uv, "python", "find", "--no-project", "--no-python-downloads", f"cpython@{version}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "VIRTUAL_ENV": ""},
        )
    except OSError as error:
        sys.exit(f"bkm: cannot start uv at {uv}: {error.strerror} (BKM_UV names it; unset it)")
    return os.path.realpath(found.stdout.strip()) if found.returncode == 0 else ""


def find_links() -> str:
    """Where pip looks for wheels beside its index: uv does not read pip's settings."""
    if os.environ.get("PIP_FIND_LINKS"):
        return os.environ["PIP_FIND_LINKS"]
    pip = shutil.which("pip")
    if not pip:
        return ""
    asked = subprocess.run(
        [pip, "config", "get", "global.find-links"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return asked.stdout.strip()


def environment(package: Path, launcher: str) -> dict[str, str]:
    """The variables of the program, made from those of this process."""
    variables = dict(os.environ)
    variables["BKM_ROOT"] = str(package / "root")
    variables["BKM_BIN"] = str(package / "bin")
    variables["BKM_LAUNCHER"] = launcher
    # These would steer uv away from the environment that it is told to use; `bkm check` asks which
    # one the user has.
    variables["BKM_USER_ENV"] = variables.pop("VIRTUAL_ENV", "")
    variables.pop("UV_PYTHON", None)
    if not variables.get("BKM_UV"):
        variables["BKM_UV"] = find_uv()
    if not variables.get("BKM_PYTHON"):
        variables["BKM_PYTHON"] = find_python(EMBEDDED.read_text().strip(), variables["BKM_UV"])
    if not variables.get("UV_FIND_LINKS"):
        variables["UV_FIND_LINKS"] = find_links()
    return {name: value for name, value in variables.items() if value or not name.startswith("BKM")}


def main() -> None:
    why_not = refusal(platform.system(), platform.machine())
    if why_not:
        sys.exit(why_not)
    package = Path(__file__).resolve().parent
    program = package / "bin" / "harness" / "cli" / "bkm"
    launcher = os.path.abspath(sys.argv[0])
    os.execve(program, ["bkm", *sys.argv[1:]], environment(package, launcher))
