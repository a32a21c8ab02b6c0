# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Writes the wheel: copies files into the layout of the installed package, and packs them.

    make_wheel.py --out NAME-VERSION-TAG.whl --bin FOLDER --python 3.11 --torch 2.13.0+cpu FILE...

A FILE below package/bkm_harness is a module of the package. A program of package/ goes to the place
below bin/ that PROGRAMS names. A licence of package/licenses goes to the metadata. Any other FILE
keeps its path below root/. The same files make the same bytes.
"""

import argparse
import os
import re
import shutil
import tempfile
from pathlib import Path

from wheel.wheelfile import WheelFile

PACKAGE = "bkm_harness"
PROGRAMS = {
    "bkm": "harness/cli/bkm",
    "cell_worker": "harness/cell/cell_worker",
    "python_worker": "harness/cell/python_worker",
    "libbkm_worker.so": "harness/cell/libbkm_worker.so",
    "libvarlen_cpu.so": "harness/kernels/libvarlen_cpu.so",
    "reference_worker": "harness/reference/reference_worker",
}

METADATA = """\
Metadata-Version: 2.1
Name: bkm-harness
Version: {version}
Summary: Checks which versions of training engines and model libraries work together, by running them
License: Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Requires-Python: >=3.9
Requires-Dist: uv >=0.11
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: bkm
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[console_scripts]
bkm = bkm_harness.launcher:main
"""


def place(file: str, bin_folder: str, metadata: str) -> tuple[str, bool]:
    """Where a file lies in the wheel, and whether it is a program."""
    made = file.startswith(bin_folder + "/")
    path = file[len(bin_folder) + 1 :] if made else file
    name = os.path.basename(path)
    if path.startswith("package/licenses/") or path == "LICENSE":
        return f"{metadata}/licenses/{name}", False
    if path.startswith(f"package/{PACKAGE}/"):
        return path[len("package/") :], False
    if path.startswith("package/"):
        return f"{PACKAGE}/bin/{PROGRAMS[name]}", True
    return f"{PACKAGE}/root/{path}", False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--torch", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()

    name, version, tag = re.fullmatch(
        r"([^-]+)-([^-]+)-(.+)\.whl", os.path.basename(arguments.out)
    ).groups()
    source = Path("harness/base/version.h").read_text()
    if f'kVersion[] = "{version}"' not in source:
        raise SystemExit(f"harness/base/version.h does not say {version}: change package/BUILD")
    metadata = f"{name}-{version}.dist-info"
    description = Path("package/README.md").read_text()

    os.environ["SOURCE_DATE_EPOCH"] = "315532800"  # 1980, the oldest time that zip knows
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file in arguments.files:
            path, is_program = place(file, arguments.bin, metadata)
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            target.chmod(0o755 if is_program else 0o644)
        texts = {
            f"{metadata}/METADATA": METADATA.format(version=version, description=description),
            f"{metadata}/WHEEL": WHEEL.format(tag=tag),
            f"{metadata}/entry_points.txt": ENTRY_POINTS,
            f"{PACKAGE}/embedded_python": arguments.python + "\n",
            f"{PACKAGE}/root/libtorch": arguments.torch + "\n",
        }
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
            (root / path).chmod(0o644)
        with WheelFile(arguments.out, "w") as archive:
            archive.write_files(str(root))


if __name__ == "__main__":
    main()
