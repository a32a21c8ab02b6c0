# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Judges results of a machine where golden and floors are: beside the run that was packed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

from bkm_gpu import results, table
from bkm_gpu.comparison import Seen, compare
from bkm_gpu.problem import Problem

_BKM = "harness/cli/bkm"
# Evidence of the cell on the CPU: who watched it, its checksums, and its verdict.
_OF_THE_CPU = ("manifest.sha256", "observed.json", "verdict.json", "stdout", "stderr", "rerun.sh")


class Judging:
    def __init__(self, folder: Path, run: Path) -> None:
        self._results = results.read(folder)
        self._tensors = results.read_tensors(folder)
        self._run = run
        if not (run / "run.json").is_file():
            raise Problem(f"{run}: no run.json; --run names the run that was packed")
        self._record = json.loads((run / "run.json").read_text())
        self._cells = {Path(cell["dir"]).name: cell for cell in self._record["cells"]}

    def whole(self) -> dict[str, Any]:
        """Everything that the table shows."""
        found = self._results
        verdicts = self._verdicts()
        rows = []
        for name in self._measured():
            rows.append(self._row(name, verdicts.get(name, {})))
        kept = {key: value for key, value in found.items() if key not in ("cells", "schema")}
        return kept | {"cells": rows, "attentions": self._attentions()}

    def _measured(self) -> list[str]:
        """The folders of the cells, in the order of the run."""
        names = {cell["folder"] for cell in self._results["cells"]}
        if missing := sorted(names - self._cells.keys()):
            raise Problem(f"{self._run} has no cell {missing[0]}: --run names the run that was packed")
        return [name for name in self._cells if name in names]

    def _seen(self, name: str, run: int) -> Seen | None:
        for cell in self._results["cells"]:
            if (cell["folder"], cell["run"]) == (name, run):
                held = {path: digest for path, digest in cell["tensors"].items()}
                data = {p: self._tensors[d] for p, d in held.items() if d in self._tensors}
                return Seen(f"{name}, run {run}", cell["observation"], data)
        return None

    def _on_cpu(self, name: str) -> Seen:
        folder = self._run / self._cells[name]["dir"]
        try:
            observation = json.loads((folder / "observation.json").read_text())
        except (OSError, ValueError) as error:
            raise Problem(f"{folder}: no readable observation ({error}); run the matrix again") from error
        paths = sorted((folder / "tensors").glob("*.safetensors"))
        data = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return Seen(f"{name} on the CPU", observation, data)

    def _runs(self, name: str) -> list[int]:
        return sorted(cell["run"] for cell in self._results["cells"] if cell["folder"] == name)

    def _row(self, name: str, verdict: dict[str, Any]) -> dict[str, Any]:
        cell, runs = self._cells[name], self._runs(name)
        first = self._seen(name, runs[0])
        others = [seen for run in runs[1:] if (seen := self._seen(name, run))]
        assert first is not None
        observed = first.observation
        row = {
            "cell": cell["id"],
            "library": f"{cell['library']} {self._version(cell)}",
            **{key: cell[key] for key in ("model", "attention", "precision")},
            "ending": first.ending,
            "exception": _sentence(observed.get("exception")),
            "verdict": verdict,
            "verdict_on_cpu": {key: cell.get(key) for key in ("verdict", "stage", "reason", "message")},
            "same_again": [compare(other, first) for other in others],
            "against_cpu": compare(first, self._on_cpu(name)),
            "measures": self._measures(name),
            "seconds": (observed.get("usage") or {}).get("wall_s"),
        }
        return row

    def _measures(self, name: str) -> Any:
        """Of the last run that was timed."""
        found = [cell["observation"].get("measures") for cell in self._results["cells"] if cell["folder"] == name]
        return next((measures for measures in reversed(found) if measures), None)

    def _version(self, cell: dict[str, Any]) -> str:
        """transformers is the machine's own; other libraries travel with the pack."""
        if cell["library"] == "transformers":
            return str(self._results["machine"].get("transformers"))
        return str(cell["library_label"])

    def _attentions(self) -> list[dict[str, Any]]:
        """The first runs of each library, model and precision, by pairs of attentions."""
        groups: dict[tuple[str, ...], list[tuple[str, Seen]]] = {}
        for name in self._measured():
            cell = self._cells[name]
            seen = self._seen(name, self._runs(name)[0])
            if seen is not None and seen.observation.get("steps"):
                place = (cell["library"], cell["model"], cell["precision"])
                groups.setdefault(place, []).append((cell["attention"], seen))
        found = []
        for (library, model, precision), members in sorted(groups.items()):
            for (one, first), (other, second) in combinations(members, 2):
                named = {"library": library, "model": model, "precision": precision}
                found.append(named | {"attentions": [one, other]} | compare(first, second))
        return found

    def _verdicts(self) -> dict[str, dict[str, Any]]:
        """By `bkm judge`, of a copy of the run whose cells are those of the machine."""
        bkm = Path(os.environ.get("BKM_BIN", _root() / "bazel-bin")) / _BKM
        if not bkm.is_file():
            raise Problem(f"{bkm} is missing; run: bazel build //harness/cli:bkm")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "run"
            shutil.copytree(self._run, copy, symlinks=True)
            self._record_of_machine(copy)
            environment = os.environ | {"BKM_ROOT": str(_root())}
            ran = subprocess.run(
                [str(bkm), "judge", str(copy)], capture_output=True, text=True, env=environment, check=False
            )
            judged = copy / "run.json"
            if ran.returncode not in (0, 1):
                said = ran.stderr.strip().splitlines()
                raise Problem(f"bkm judge failed: {said[-1] if said else ran.returncode}")
            cells = json.loads(judged.read_text())["cells"]
        wanted = ("verdict", "stage", "reason", "message")
        return {Path(cell["dir"]).name: {key: cell.get(key) for key in wanted} for cell in cells}

    def _record_of_machine(self, copy: Path) -> None:
        record = json.loads((copy / "run.json").read_text())
        kept = []
        for cell in record["cells"]:
            name = Path(cell["dir"]).name
            if not (runs := self._runs(name)):
                continue
            seen = self._seen(name, runs[0])
            assert seen is not None
            folder = copy / cell["dir"]
            for stale in _OF_THE_CPU:
                (folder / stale).unlink(missing_ok=True)
            shutil.rmtree(folder / "tensors", ignore_errors=True)
            (folder / "tensors").mkdir()
            for path, data in seen.tensors.items():
                (folder / "tensors" / Path(path).name).write_bytes(data)
            (folder / "observation.json").write_text(json.dumps(seen.observation))
            device = self._results["device"]
            cell["id"] = cell["id"].replace(f"device={cell['device']}", f"device={device}")
            cell["device"] = cell["probe"]["device"] = device
            kept.append(cell)
        record["cells"] = kept
        (copy / "run.json").write_text(json.dumps(record))


def _root() -> Path:
    return Path(__file__).resolve().parent.parent.parent.parent


def _sentence(exception: Any) -> str:
    if not isinstance(exception, dict):
        return ""
    first = (str(exception.get("message")).splitlines() or [""])[0]
    return f"{exception.get('type')}: {first}"[:300]


def judge(folder: Path, run: Path, out: Path | None, as_json: bool) -> int:
    """Prints the comparison; with `out`, writes it to a folder named by device and date."""
    whole = Judging(folder, run).whole()
    text = table.markdown(whole)
    print(json.dumps(whole, indent=1) if as_json else text, end="" if not as_json else "\n")
    if out is not None:
        place = out / f"{whole['device_name']}-{whole['date']}"
        if whole["device"] != "cuda" and "golden" in place.absolute().parts:
            raise Problem(f"{place}: these are results of a CPU; golden holds results of devices only")
        place.mkdir(parents=True, exist_ok=True)
        (place / "table.md").write_text(text)
        (place / "table.json").write_text(json.dumps(whole, indent=1) + "\n")
        print(f"gpu: wrote {place}", file=sys.stderr)
    return 1 if whole["not_run"] else 0
