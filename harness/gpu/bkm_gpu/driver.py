# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs the cells of a pack on this machine, and writes what they saw."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bkm_gpu import machine as machines
from bkm_gpu import pack_file, packing, results
from bkm_gpu.cell_process import Machine, run_cell
from bkm_gpu.problem import Problem

SANDBOX = "none: the cells ran with the rights of the user"
_WARM_UP = 5
_WEIGHTS_S = 600.0
_PROBES_S = 300.0


@dataclass
class RunOptions:
    pack: Path
    out: Path
    python: str
    device: str = "cuda"
    runs: int = 2
    jobs: int = 4  # of the runs before the last
    steps: int = 20  # that are timed
    timeout_s: float = 240.0
    budget_s: float | None = None
    kernels: Path | None = None  # stand-ins, for --device cpu
    work: Path | None = None
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Job:
    cell: dict[str, Any]  # of the manifest
    run: int  # from 1

    @property
    def name(self) -> str:
        probe = self.cell["request"]["probe"]
        adapter = self.cell["request"]["adapter"]
        return f"{adapter} {probe['attention']} {probe['precision']}, run {self.run}"


class Driver:
    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._finished: dict[tuple[str, int], dict[str, Any]] = {}
        self._facts: dict[str, Any] = {}

    def run(self) -> int:
        """0: every cell has a result; 1: the time was too short for some."""
        options = self._options
        python = machines.interpreter(options.python)
        # Before anything is written.
        pack_file.read(options.pack)
        self._machine_facts = machines.describe(python)
        machines.require_device(self._machine_facts, options.device)
        options.say(f"sandbox: {SANDBOX}; run only packs that you trust")
        identity = self._prepare(python)
        manifest = self._manifest
        jobs = [Job(cell, run) for run in range(1, options.runs + 1) for cell in manifest["cells"]]
        self._restore(jobs, identity)
        self._facts = {
            "device": options.device,
            "device_name": machines.device_name(self._machine_facts, options.device),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "machine": self._machine_facts,
            "sandbox": SANDBOX,
            **identity,
        }
        try:
            self._draw_weights(python)
            self._facts["attention_probes"] = self._probe_attention(python)
            # The last runs have the device for themselves, because they are timed. What the earlier
            # ones compiled is there by then.
            self._run_all([job for job in jobs if job.run < options.runs], options.jobs)
            self._run_all([job for job in jobs if job.run == options.runs], 1)
        finally:
            left = self._write(jobs)
        for problem in left:
            options.say(problem)
        done = sum((job.cell["folder"], job.run) in self._finished for job in jobs)
        options.say(f"{done} of {len(jobs)} cells have a result: {options.out / results.RESULTS}")
        return 0 if done == len(jobs) else 1

    def _prepare(self, python: Path) -> dict[str, Any]:
        options = self._options
        name = pack_file.file_digest(options.pack)
        home = options.work or Path(tempfile.gettempdir()) / f"bkm-gpu-{os.getuid()}"
        self._work = (home / f"{name[:16]}-{options.device}").absolute()
        self._pack = self._work / "pack"
        self._manifest, digest = pack_file.unpack(options.pack, self._pack)
        self._machine = Machine(
            python,
            self._pack / packing.CELL_CODE,
            self._pack / packing.CARRIED,
            self._work / "compiled",
        )
        self._machine.compiled.mkdir(parents=True, exist_ok=True)
        return {
            "pack_sha256": digest,
            "cell_code_sha256": self._manifest["cell_code_sha256"],
            "torch": self._machine_facts["torch"],
            "carried": self._manifest["carried"],
        }

    def _restore(self, jobs: list[Job], identity: dict[str, Any]) -> None:
        """Takes over results of an earlier, unfinished run of the same pack on the same device."""
        options = self._options
        if not (options.out / results.RESULTS).is_file():
            return
        old = results.read(options.out)
        wanted = identity | {"device": options.device}
        if any(old.get(key) != value for key, value in wanted.items()):
            raise Problem(
                f"{options.out} has results of another pack, torch or device; name another --out folder"
            )
        tensors = results.read_tensors(options.out)
        known = {(job.cell["folder"], job.run) for job in jobs}
        for cell in old["cells"]:
            place = (cell["folder"], int(cell["run"]))
            if place not in known or not set(cell["tensors"].values()) <= tensors.keys():
                continue
            folder = self._folder(*place)
            for name, digest in cell["tensors"].items():
                path = folder / "tensors" / Path(name).name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tensors[digest])
            self._finished[place] = cell
        if self._finished:
            options.say(f"{len(self._finished)} cells have results of an earlier run and are kept")

    def _folder(self, name: str, run: int) -> Path:
        return self._work / "cells" / name / str(run)

    def _left(self) -> float:
        """Seconds of the budget."""
        budget = self._options.budget_s
        return float("inf") if budget is None else budget - (time.monotonic() - self._start)

    def _draw_weights(self, python: Path) -> None:
        for name, probe in self._manifest["probes"].items():
            folder = self._pack / packing.PROBES / name
            out = folder / "model" / "model.safetensors"
            if out.is_file():
                continue
            begin = time.monotonic()
            arguments = [str(folder / "weights.json"), str(folder / "weights.header"), str(out)]
            ran = machines.run_script(
                python, "draw_weights.py", [*arguments, probe["weights_sha256"]], _WEIGHTS_S
            )
            if ran.returncode != 0:
                said = ran.stderr.strip().splitlines()
                raise Problem(f"the weights cannot be drawn: {said[-1] if said else ran.returncode}")
            seconds = time.monotonic() - begin
            self._options.say(f"drew the weights of probe {name[:8]} in {seconds:.1f} s")

    def _probe_attention(self, python: Path) -> dict[str, Any]:
        """What the attention kernels do with arguments; a failure is a result."""
        begin = time.monotonic()
        arguments = ["--device", self._options.device]
        if self._options.kernels:
            arguments += ["--kernels", str(self._options.kernels)]
        try:
            seconds = max(1.0, min(_PROBES_S, self._left()))
            ran = machines.run_script(python, "attention_probes.py", arguments, seconds)
            found = json.loads(ran.stdout.strip().splitlines()[-1])
        except Problem as error:
            return {"error": str(error)}
        except (IndexError, ValueError):
            return {"error": (ran.stderr.strip() or f"exit status {ran.returncode}")[-2000:]}
        as_documented = sum(probe.get("as_documented") is True for probe in found["probes"])
        self._options.say(
            f"attention probes: {as_documented} of {len(found['probes'])} as documented, "
            f"{time.monotonic() - begin:.1f} s"
        )
        return found

    def _run_all(self, jobs: list[Job], at_once: int) -> None:
        waiting = [job for job in jobs if (job.cell["folder"], job.run) not in self._finished]
        with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
            running = [pool.submit(self._run_one, job, jobs, at_once) for job in waiting]
            try:
                for one in as_completed(running):
                    one.result()
            except BaseException:
                self._stop.set()
                for one in running:
                    one.cancel()
                raise

    def _request(self, job: Job, timeout: float) -> dict[str, Any]:
        asked = job.cell["request"]
        paths = {s: str(self._pack / p) if p else None for s, p in job.cell["paths"].items()}
        request = {
            **asked,
            "paths": paths,
            "probe_dir": str(self._pack / packing.PROBES / job.cell["probe"]),
            "probe": asked["probe"] | {"device": self._options.device},
            "limits": asked["limits"] | {"timeout_s": timeout},
            "plant": [],
        }
        if self._options.kernels:
            request["kernels"] = str(self._options.kernels)
        if job.run == self._options.runs:
            steps = self._options.steps
            request["measures"] = {"warm_up": min(_WARM_UP, steps), "steps": steps}
        return request

    def _versions(self) -> dict[str, str]:
        names = ("torch", "transformers", "triton", "numpy", "safetensors")
        return {name: str(self._machine_facts[name]) for name in names}

    def _run_one(self, job: Job, jobs: list[Job], at_once: int) -> None:
        """`jobs`: all that belong together."""
        left = self._left()
        if left <= 0:
            return
        timeout = min(self._options.timeout_s, left)
        folder = self._folder(job.cell["folder"], job.run)
        own = {"cells_at_once": at_once, "versions": self._versions()}
        observation = run_cell(self._machine, self._request(job, timeout), folder, own, self._stop)
        ending = observation["ending"]["kind"]
        seconds = observation["usage"]["wall_s"]
        if ending == "cancelled":
            return
        if ending == "timed-out" and timeout < self._options.timeout_s:
            self._options.say(f"{job.name}: stopped after {seconds:.1f} s, the budget is used up")
            return
        what = {"cell": job.cell["request"]["cell"], "folder": job.cell["folder"], "run": job.run}
        with self._lock:
            place = (job.cell["folder"], job.run)
            self._finished[place] = results.cell_result(folder, observation, what)
            self._write([])
            number = sum((other.cell["folder"], other.run) in self._finished for other in jobs)
        error = observation.get("exception") or {}
        why = f": {error.get('type')}: {str(error.get('message'))[:160]}" if error else ""
        stage = observation["stages"][-1]["stage"] if observation["stages"] else "start"
        where = "" if ending == "completed" else f" at {stage}"
        self._options.say(f"[{number}/{len(jobs)}] {job.name}: {ending}{where}, {seconds:.1f} s{why}")

    def _write(self, jobs: list[Job]) -> list[str]:
        """Everything so far: the machine may be taken away at any time."""
        order = sorted(self._finished, key=lambda place: (place[1], place[0]))
        cells = [self._finished[place] for place in order]
        not_run = [job.name for job in jobs if (job.cell["folder"], job.run) not in self._finished]
        problems = []
        whole = {**self._facts, "cells": cells, "not_run": not_run}
        folders = [(self._folder(*place), self._finished[place]["tensors"]) for place in order]
        left_out = results.write_tensors(self._options.out, folders)
        if left_out:
            whole["tensors_left_out"] = left_out
            problems.append(f"{len(left_out)} tensor files did not fit; their cells are not compared")
        results.write(self._options.out, whole)
        return problems


def run(options: RunOptions) -> int:
    return Driver(options).run()
