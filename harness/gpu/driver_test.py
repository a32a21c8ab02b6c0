# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The driver with a machine of shell scripts: it stands for torch and the device."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from bkm_gpu import command, pack_file, results

ALONE = Path("harness/cell/python/bkm_cell/alone.py").absolute()
DESCRIPTION = {
    "python": "3.12.1",
    "machine": "x86_64",
    "kernel": "6",
    "torch": "2.11.0",
    "transformers": "5",
    "triton": "3",
    "numpy": "2",
    "safetensors": "0",
    "cuda_is_available": False,
    "no_cuda": "no driver",
    "devices": [],
}
# What the cells do, by the attention that they are asked for; each writes a line to its witness.
CELL = """
import json, os
def run(request, emit):
    probe = request["probe"]
    with open(os.environ["WITNESS"], "a") as file:
        file.write(probe["attention"] + " " + probe["device"] + " " + str("measures" in request) + "\\n")
    if probe["attention"] == "crash":
        os.kill(os.getpid(), 9)
    if probe["attention"] == "slow":
        import time
        time.sleep(60)
    with open(os.path.join(request["dir"], "tensors", "step0.safetensors"), "wb") as file:
        file.write(probe["attention"].encode())
    assert open(os.path.join(request["probe_dir"], "model", "model.safetensors")).read() == "drawn"
    emit(json.dumps({"stage": "import"}))
    emit(json.dumps({"done": True}))
"""


class DriverTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.description = dict(DESCRIPTION)
        self.witness = self.folder / "witness"

    def make_python(self):
        """An interpreter that answers for the programs of on_machine, and runs cells with ours."""
        path = self.folder / "python"
        path.write_text(
            f"""#!/bin/sh
export WITNESS={self.witness}
case "$3" in
  */describe.py) echo '{json.dumps(self.description)}' ;;
  */draw_weights.py) printf drawn > "$6" ;;
  */attention_probes.py) echo '{{"probes": [{{"probe": "a", "seen": "b", "as_documented": true}}]}}' ;;
  *) exec {sys.executable} "$@" ;;
esac
"""
        )
        path.chmod(0o755)
        return path

    def make_pack(self, *attentions):
        cells = []
        for attention in attentions:
            probe = {"attention": attention, "precision": "fp32", "device": "cpu"}
            request = {"adapter": "a", "cell": f"attention={attention}", "probe": probe}
            request |= {"packages": {}, "limits": {"timeout_s": 1}}
            cells.append({"folder": attention, "probe": "p", "paths": {"library": None}, "request": request})
        files = {"cell/bkm_cell/__init__.py": b"", "cell/bkm_cell/cell.py": CELL.encode()}
        files["cell/bkm_cell/alone.py"] = ALONE.read_bytes()
        files |= {"probes/p/weights.json": b"{}", "probes/p/weights.header": b"", "probes/p/model/c": b""}
        manifest = {"cells": cells, "probes": {"p": {"weights_sha256": "0"}}, "carried": []}
        pack = self.folder / "pack.tar.gz"
        pack_file.write(pack, manifest | {"cell_code_sha256": "1"}, files)
        return pack

    def run_pack(self, pack, *more, python=None, device="cpu", out="out"):
        python = python or self.make_python()
        said = io.StringIO()
        arguments = ["run", str(pack), "--python", str(python), "--out", str(self.folder / out)]
        arguments += ["--device", device, "--work", str(self.folder / "work"), *more]
        with contextlib.redirect_stderr(said):
            status = command.main(arguments)
        return status, said.getvalue()

    def refusal(self, *more, **named):
        status, said = self.run_pack(*more, **named)
        self.assertEqual(2, status)
        # One sentence, at most after the line that says that there is no sandbox.
        lines = [line for line in said.strip().split("\n") if "sandbox: none" not in line]
        self.assertEqual(1, len(lines), said)
        return lines[0]

    def results(self, out="out"):
        return results.read(self.folder / out)

    def seen(self):
        return self.witness.read_text().splitlines()

    def test_every_cell_runs_as_often_as_asked_and_only_the_last_run_is_timed(self):
        status, said = self.run_pack(self.make_pack("flex", "sdpa"), "--runs", "3")
        self.assertEqual(0, status, said)
        self.assertIn("sandbox: none", said)
        self.assertEqual(["flex cpu False"] * 2 + ["sdpa cpu False"] * 2, sorted(self.seen()[:4]))
        self.assertEqual(["flex cpu True", "sdpa cpu True"], self.seen()[4:])
        found = self.results()
        runs = [(cell["folder"], cell["run"]) for cell in found["cells"]]
        self.assertEqual([(c, run) for run in (1, 2, 3) for c in ("flex", "sdpa")], runs)
        self.assertEqual(["completed"] * 6, [c["observation"]["ending"]["kind"] for c in found["cells"]])
        self.assertIn("none", found["sandbox"])
        self.assertEqual(0, found["machine"]["devices"].count(1))
        self.assertEqual("2.11.0", found["cells"][0]["observation"]["versions"]["torch"])

    def test_equal_tensors_come_back_once(self):
        self.run_pack(self.make_pack("flex", "sdpa"))
        self.assertEqual([b"flex", b"sdpa"], sorted(results.read_tensors(self.folder / "out").values()))
        self.assertLessEqual(len(list((self.folder / "out").iterdir())), 8)

    def test_a_cell_that_dies_or_hangs_ends_only_itself(self):
        status, said = self.run_pack(
            self.make_pack("crash", "slow", "sdpa"), "--runs", "1", "--timeout", "2"
        )
        self.assertEqual(0, status, said)
        endings = {c["folder"]: c["observation"]["ending"] for c in self.results()["cells"]}
        self.assertEqual({"kind": "signalled", "signal": 9}, endings["crash"])
        self.assertEqual({"kind": "timed-out"}, endings["slow"])
        self.assertEqual({"kind": "completed"}, endings["sdpa"])

    def test_the_same_command_runs_nothing_again(self):
        pack = self.make_pack("flex")
        self.run_pack(pack)
        before = self.seen()
        shutil.rmtree(self.folder / "work")  # a fresh machine
        status, said = self.run_pack(pack)
        self.assertEqual(0, status)
        self.assertIn("are kept", said)
        self.assertEqual(before, self.seen())
        self.assertEqual([b"flex"], list(results.read_tensors(self.folder / "out").values()))

    def test_a_later_command_runs_only_what_is_missing(self):
        pack = self.make_pack("flex")
        self.run_pack(pack, "--runs", "1")
        self.assertEqual(0, self.run_pack(pack, "--runs", "2")[0])
        self.assertEqual(["flex cpu True"] * 2, self.seen())

    def test_a_used_up_budget_leaves_cells_out_and_says_so(self):
        pack = self.make_pack("sdpa", "slow")
        status, said = self.run_pack(pack, "--budget", "6", "--runs", "1")
        self.assertEqual(1, status)
        self.assertIn("budget is used up", said)
        found = self.results()
        self.assertEqual(["sdpa"], [cell["folder"] for cell in found["cells"]])
        self.assertEqual(["a slow fp32, run 1"], found["not_run"])

    def test_an_interrupt_ends_the_running_cell_and_keeps_the_others(self):
        pack = self.make_pack("sdpa", "slow")
        arguments = ["run", str(pack), "--python", str(self.make_python()), "--device", "cpu"]
        arguments += ["--out", str(self.folder / "out"), "--work", str(self.folder / "work")]
        start = "import sys; from bkm_gpu.command import main; sys.exit(main(sys.argv[1:]))"
        for ask in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(ask):
                self.witness.write_text("")
                environment = os.environ | {"PYTHONPATH": str(Path(command.__file__).parent.parent)}
                process = subprocess.Popen(
                    [sys.executable, "-c", start, *arguments, "--runs", "1"],
                    env=environment,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                while "slow" not in self.witness.read_text():
                    time.sleep(0.05)
                process.send_signal(ask)
                said = process.communicate(timeout=20)[1]
                self.assertEqual(3, process.returncode, said)
                self.assertIn("the same command continues", said)
                self.assertEqual(["sdpa"], [cell["folder"] for cell in self.results()["cells"]])
                self.assertEqual(["a slow fp32, run 1"], self.results()["not_run"])
                leftover = subprocess.run(["pgrep", "-f", str(self.folder / "work")], capture_output=True)
                self.assertEqual(b"", leftover.stdout)

    def test_without_a_device_nothing_is_written(self):
        status, said = self.run_pack(self.make_pack("flex"), device="cuda")
        self.assertEqual((2, 1), (status, said.count("\n")))
        self.assertIn("no CUDA device: torch 2.11.0 finds none (no driver)", said)
        self.assertFalse((self.folder / "out").exists())
        self.assertFalse((self.folder / "work").exists())

    def test_a_python_without_torch_is_refused(self):
        del self.description["torch"]
        self.description["torch_error"] = "ModuleNotFoundError: No module named 'torch'"
        self.assertIn("cannot import torch (ModuleNotFoundError", self.refusal(self.make_pack("flex")))

    def test_an_old_python_is_refused(self):
        self.description = {"python": "3.9.2"}
        self.assertIn("is Python 3.9.2; cells need 3.10", self.refusal(self.make_pack("flex")))

    def test_a_python_without_numpy_is_refused(self):
        self.description["numpy"] = "ModuleNotFoundError: No module named 'numpy'"
        self.assertIn("the weights need it", self.refusal(self.make_pack("flex")))

    def test_what_is_no_python_is_refused(self):
        pack = self.make_pack("flex")
        self.assertIn("no such program", self.refusal(pack, python="/nowhere/python"))
        self.assertIn("does not describe itself", self.refusal(pack, python="/bin/false"))

    def test_a_real_python_without_torch_is_refused(self):
        self.assertRegex(
            self.refusal(self.make_pack("flex"), python=sys.executable), "cannot import (torch|numpy)"
        )

    def test_a_missing_or_broken_pack_is_refused(self):
        self.assertIn("there is no such pack", self.refusal(self.folder / "none.tar.gz"))
        (self.folder / "broken.tar.gz").write_bytes(b"x" * 1000)
        self.assertIn("not a pack", self.refusal(self.folder / "broken.tar.gz"))

    def test_results_of_another_pack_are_not_overwritten(self):
        self.run_pack(self.make_pack("flex"), "--runs", "1")
        before = (self.folder / "out/results.json").read_bytes()
        said = self.refusal(self.make_pack("sdpa"))
        self.assertIn("results of another pack", said)
        self.assertEqual(before, (self.folder / "out/results.json").read_bytes())

    def test_damaged_results_are_refused(self):
        pack = self.make_pack("flex")
        self.run_pack(pack)
        for name, content in (("tensors-1.zip", b"x"), ("results.json", b"{")):
            (self.folder / "out" / name).write_bytes(content)
            self.assertIn("copy the folder again", self.refusal(pack))

    def test_a_number_below_one_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(2, command.main(["run", "x", "--out", "y", "--runs", "0"]))
        self.assertIn("at least 1", said.getvalue())


if __name__ == "__main__":
    unittest.main()
