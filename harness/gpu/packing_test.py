# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What is packed of a run, and what is refused."""

import contextlib
import io
import json
import struct
import tempfile
import unittest
from pathlib import Path

from bkm_gpu import command, pack_file, packing
from bkm_gpu.problem import Problem


class PackingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.run = self.folder / "run"
        self.tree = self.write("trees/torchtitan-1/tree/torchtitan/__init__.py", "1").parent.parent
        self.write("trees/torchtitan-1/tree/torchtitan/__pycache__/x.pyc", "1")
        self.write("trees/torchtitan-1/tree/tests/test_a.py", "1")
        self.write("probes/p/probe.json", json.dumps({"numerics": {"seed": 1}}))
        self.write("probes/p/model/config.json", "{}")
        header = json.dumps({}).encode()
        weights = self.folder / "probes/p/model/model.safetensors"
        weights.write_bytes(struct.pack("<Q", len(header)) + header + b"large")
        self.write("root/harness/cell/python/bkm_cell/cell.py", "1")
        self.write("root/harness/cell/python/bkm_cell/cell_test.py", "1")
        self.write("root/harness/gpu/carried.txt", "# why\ndill==0.4.0\n")
        self.write_probe = self.program("write_probe", 'echo "{}"')
        # Stands for uv: puts a package into --target.
        self.uv = self.program("uv", 'while [ "$1" != --target ]; do shift; done; echo 1 > "$2/dill.py"')
        self.write("run/run.json", "{}")
        self.request("a")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name, body):
        path = self.write(name, f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def request(self, name, **changed):
        request = {
            "adapter": "torchtitan",
            "cell": f"engine=torchtitan,attention={name}",
            "packages": {"engine": None, "library": "torchtitan"},
            "paths": {"engine": None, "library": str(self.tree)},
            "probe": {"attention": name},
            "probe_dir": str(self.folder / "probes/p"),
            "limits": {"timeout_s": 180},
            "dir": "/somewhere",
            "python": "/somewhere/python",
        } | changed
        self.write(f"run/cells/{name}/request.json", json.dumps(request))
        self.write(f"run/cells/{name}/observation.json", "{}")

    def pack(self, *patterns):
        options = packing.PackOptions(
            run=self.run,
            out=self.folder / "a.tar.gz",
            root=self.folder / "root",
            patterns=list(patterns),
            write_probe=self.write_probe,
            uv=str(self.uv),
        )
        packing.pack(options)
        return pack_file.read(options.out)

    def test_a_pack_has_code_sources_carried_packages_and_no_weights(self):
        manifest, files = self.pack()
        self.assertEqual(
            {
                "cell/bkm_cell/cell.py",
                "sources/torchtitan-1/torchtitan/__init__.py",
                "carried/dill.py",
                "probes/p/probe.json",
                "probes/p/model/config.json",
                "probes/p/weights.json",
                "probes/p/weights.header",
            },
            set(files),
        )
        self.assertEqual(["dill==0.4.0"], manifest["carried"])
        (cell,) = manifest["cells"]
        self.assertEqual({"engine": None, "library": "sources/torchtitan-1"}, cell["paths"])
        # Nothing of the machine that the run was made on.
        self.assertNotIn("/somewhere", json.dumps(manifest))
        self.assertNotIn(str(self.folder), json.dumps(manifest))

    def test_transformers_is_the_machines(self):
        self.request("b", packages={"engine": None, "library": "transformers"})
        manifest, _ = self.pack("attention=b")
        self.assertEqual({"engine": None, "library": None}, manifest["cells"][0]["paths"])

    def test_planted_faults_several_ranks_and_unfinished_cells_are_left_out(self):
        self.request("b", plant=["x"])
        self.request("c", probe={"ranks": 2})
        self.request("d")
        (self.run / "cells/d/observation.json").unlink()
        manifest, _ = self.pack()
        self.assertEqual(["a"], [cell["folder"] for cell in manifest["cells"]])

    def test_a_filter_that_matches_nothing_is_a_problem(self):
        with self.assertRaisesRegex(Problem, "no cell matches nothing"):
            self.pack("nothing")

    def test_compiled_code_is_refused(self):
        self.write("trees/torchtitan-1/tree/torchtitan/fast.so", "1")
        with self.assertRaisesRegex(Problem, "fast.so: compiled code cannot be packed"):
            self.pack()

    def test_shards_are_refused(self):
        self.write("probes/p/model/model-00001-of-00002.safetensors", "1")
        with self.assertRaisesRegex(Problem, "only probes with one fp32 file"):
            self.pack()

    def test_a_missing_tree_is_a_problem(self):
        self.tree.rename(self.folder / "gone")
        with self.assertRaisesRegex(Problem, "run the matrix again"):
            self.pack()

    def test_a_program_that_fails_is_quoted(self):
        self.program("uv", "echo 'no such package' >&2; exit 1")
        with self.assertRaisesRegex(Problem, "uv failed: no such package"):
            self.pack()

    def test_what_is_no_run_is_one_sentence_of_the_command(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = command.main(["pack", str(self.folder), "--out", str(self.folder / "x")])
        self.assertEqual(2, status)
        self.assertIn("no run.json; first run tools/bkm run matrices/gpu.json", said.getvalue())

    def test_judging_without_results_or_run_is_one_sentence(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = command.main(["judge", str(self.folder), "--run", str(self.run)])
        self.assertEqual(2, status)
        self.assertIn("there are no results", said.getvalue())


if __name__ == "__main__":
    unittest.main()
