#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of compile_commands.py, as tools/lint uses it: what Bazel's aquery prints in, compile_commands.json out."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("compile_commands.py")
GCC = ["/usr/bin/gcc", "-Wall", "-D_FORTIFY_SOURCE=1", "-std=c++0x", "-DVERSION=\"3.11\"", "-iquote", ".", "-isystem", "/usr/include/fuse3",
       "-std=c++20", "-Wno-maybe-uninitialized", "-include", "test.h", "-D__DATE__=\"redacted\"", "-c", "a.cc", "-o", "a.o"]


class TestCompileCommands(unittest.TestCase):
    def run_with(self, *sources: str) -> tuple[subprocess.CompletedProcess, Path]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        actions = {"actions": [{"arguments": GCC}, {"arguments": ["gcc", "-c", "other.cc"]},
                               {"arguments": ["gcc", "-isystem", "external/torch/include", "-c", "torch.cc"]}]}
        result = subprocess.run([sys.executable, SCRIPT, folder.name, *sources], input=json.dumps(actions), capture_output=True,
                                text=True, check=False)
        return result, Path(folder.name) / "compile_commands.json"

    def test_keeps_what_decides_the_meaning_of_a_source(self) -> None:
        result, file = self.run_with("a.cc")
        self.assertEqual(result.returncode, 0, result.stderr)
        [command] = json.loads(file.read_text())
        self.assertEqual(command["file"], "a.cc")
        self.assertEqual(command["arguments"], ["clang++", "-DVERSION=\"3.11\"", "-iquote", ".", "-isystem", "/usr/include/fuse3",
                                                "-std=c++20", "-c", "a.cc"])

    def test_leaves_out_what_uses_libtorch_and_says_so(self) -> None:
        result, file = self.run_with("a.cc", "torch.cc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([command["file"] for command in json.loads(file.read_text())], ["a.cc"])
        self.assertIn("1 sources; 1 use LibTorch or Python", result.stderr)

    def test_a_source_that_bazel_does_not_compile_is_an_error(self) -> None:
        result, file = self.run_with("a.cc", "forgotten.cc")
        self.assertEqual(result.returncode, 1)
        self.assertIn("forgotten.cc", result.stderr)
        self.assertFalse(file.exists())


if __name__ == "__main__":
    unittest.main()
