# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The command line of ci/gpu."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from bkm_gpu import driver, judging, packing
from bkm_gpu.problem import Problem

ROOT = Path(__file__).resolve().parent.parent.parent.parent
_DESCRIPTION = """\
Runs control cells on a machine that has a GPU but nothing of bkm's: only Python 3.10 or newer,
torch, transformers and a driver. Three commands, on two machines:

  tools/bkm run matrices/gpu.json --out runs/gpu          here: the same cells on a CPU
  ci/gpu pack runs/gpu --out gpu.tar.gz                   here
  ci/gpu run gpu.tar.gz --python python3 --out results    on the machine with the GPU (needs this repository's ci and harness/gpu)
  ci/gpu judge results --run runs/gpu --out golden/gpu    here: a folder DEVICE-DATE with the table

Exit status: 0 done; 1 some cells have no result, because the time was up; 2 the command could not do
its job; 3 interrupted.
"""


def _say(text: str) -> None:
    print(f"gpu: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/gpu", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    pack = commands.add_parser("pack", help="pack the cells of a run, without anything compiled")
    pack.add_argument("run", type=Path, metavar="RUN", help="a finished run on a CPU")
    pack.add_argument("--out", type=Path, required=True, metavar="FILE.tar.gz")
    pack.add_argument(
        "--filter", action="append", default=[], metavar="TEXT", help="only cells whose id has this"
    )
    pack.add_argument(
        "--python-version",
        default="3.12",
        metavar="3.N",
        help="of the machine with the GPU (default: %(default)s)",
    )
    pack.add_argument("--json", action="store_true", help="print what was packed as JSON")
    pack.set_defaults(act=_pack)
    run = commands.add_parser("run", help="run a pack on this machine; the same command resumes")
    run.add_argument("pack", type=Path, metavar="PACK")
    run.add_argument("--python", default="python3", help="the interpreter with torch")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="for the results")
    run.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    run.add_argument("--runs", type=int, default=2, help="of each cell (default: %(default)s: A/A)")
    run.add_argument(
        "--jobs", type=int, default=4, help="cells at once before the last, timed runs (default: %(default)s)"
    )
    run.add_argument(
        "--steps", type=int, default=20, help="that are timed in each cell (default: %(default)s)"
    )
    run.add_argument(
        "--timeout", type=float, default=240, metavar="S", help="of one cell (default: %(default)s)"
    )
    run.add_argument("--budget", type=float, metavar="S", help="of the whole command (default: none)")
    run.add_argument(
        "--kernels", type=Path, metavar="FILE", help="libvarlen_cpu.so, for --device cpu"
    )
    run.add_argument(
        "--work", type=Path, metavar="DIR", help="for unpacked files (default: in the temporary folder)"
    )
    run.set_defaults(act=_run)
    judge = commands.add_parser("judge", help="compare results, and judge them by golden and floors")
    judge.add_argument("results", type=Path, metavar="DIR", help="of ci/gpu run")
    judge.add_argument("--run", type=Path, required=True, metavar="RUN", help="that was packed")
    judge.add_argument("--out", type=Path, metavar="DIR", help="write the folder DEVICE-DATE here")
    judge.add_argument("--json", action="store_true", help="print JSON instead of the table")
    judge.set_defaults(act=_judge)
    return parser


def _pack(options: argparse.Namespace) -> int:
    packed = packing.pack(
        packing.PackOptions(
            run=options.run.resolve(),
            out=options.out,
            root=ROOT,
            patterns=options.filter,
            python_version=options.python_version,
            write_probe=_binary("harness/numerics/write_probe"),
            uv=os.environ.get("BKM_UV", "uv"),
        )
    )
    if options.json:
        print(json.dumps(packed, indent=1))
    else:
        size = packed["bytes"] / 2**20
        print(f"{packed['pack']}: {len(packed['cells'])} cells, {size:.1f} MiB")
    return 0


def _binary(name: str) -> Path:
    return Path(os.environ.get("BKM_BIN", ROOT / "bazel-bin")) / name


def _run(options: argparse.Namespace) -> int:
    if min(options.runs, options.jobs, options.steps) < 1:
        raise Problem("--runs, --jobs and --steps are at least 1")
    return driver.run(
        driver.RunOptions(
            pack=options.pack,
            out=options.out.absolute(),
            python=options.python,
            device=options.device,
            runs=options.runs,
            jobs=options.jobs,
            steps=options.steps,
            timeout_s=options.timeout,
            budget_s=options.budget,
            kernels=options.kernels.absolute() if options.kernels else None,
            work=options.work,
            say=_say,
        )
    )


def _judge(options: argparse.Namespace) -> int:
    return judging.judge(options.results, options.run, options.out, options.json)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Whoever takes the machine away asks by SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    act: Callable[[argparse.Namespace], int] = options.act
    try:
        return act(options)
    except Problem as problem:
        _say(str(problem))
        return 2
    except KeyboardInterrupt:
        _say("interrupted; the same command continues")
        return 3
