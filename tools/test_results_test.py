#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of test_results.py, as its caller uses it: a log and the reports of a Bazel run in, text and an exit code out."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("test_results.py")
REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="A">{cases}</testsuite></testsuites>"""
PASSED = '<testcase name="Passes" status="run" result="completed" classname="A" />'
FAILED = '<testcase name="Fails" status="run" result="completed" classname="A"><failure message="no" /></testcase>'
SKIPPED = '<testcase name="Skips" status="run" result="skipped" classname="A"><skipped message="a_test.cc:3&#x0A;no mirrors here" /></testcase>'
DISABLED = '<testcase name="DISABLED_Runs" status="notrun" result="suppressed" classname="A" />'


class TestResults(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tools").mkdir()
        shutil.copy(SCRIPT, self.root / "tools")
        self.allow("")

    def allow(self, lines: str) -> None:
        (self.root / "tools/allowed_skips.txt").write_text(lines)

    def run_with(self, cases: str, status: str = "PASSED", bazel: int = 0, lint: int = 0, ci: str = "") -> tuple[int, list[str]]:
        report = self.root / "bazel-testlogs/room/a_test/test.xml"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(REPORT.format(cases=cases))
        (self.root / "log").write_text(f"INFO: something\n//room:a_test      {status} in 0.1s\n")
        result = subprocess.run(
            [sys.executable, "tools/test_results.py", "log", str(bazel), str(lint)],
            cwd=self.root, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False)
        return result.returncode, (result.stdout + result.stderr).splitlines()

    def test_counts_test_cases_and_lint(self) -> None:
        self.assertEqual(self.run_with(PASSED), (0, ["2 passed, 0 failed, 0 skipped"]))

    def test_names_what_failed(self) -> None:
        self.assertEqual(
            self.run_with(PASSED + FAILED, "FAILED", bazel=3, lint=1),
            (1, ["failed: //room:a_test A.Fails", "failed: tools/lint", "1 passed, 2 failed, 0 skipped"]))

    def test_a_target_that_died_early_failed(self) -> None:
        code, lines = self.run_with(PASSED, "TIMEOUT", bazel=3)
        self.assertEqual((code, lines[0]), (1, "failed: //room:a_test (timeout)"))

    def test_a_build_that_failed_fails_the_run(self) -> None:
        code, lines = self.run_with(PASSED, bazel=1)
        self.assertEqual((code, lines[0]), (1, "failed: bazel (exit code 1)"))

    def test_names_skipped_tests_with_their_reasons(self) -> None:
        code, lines = self.run_with(PASSED + SKIPPED + DISABLED)
        self.assertEqual(code, 0)
        self.assertIn("skipped: //room:a_test A.Skips: no mirrors here (not listed in tools/allowed_skips.txt)", lines)
        self.assertIn("skipped: //room:a_test A.DISABLED_Runs: disabled in its source (not listed in tools/allowed_skips.txt)", lines)
        self.assertEqual(lines[-1], "2 passed, 0 failed, 2 skipped")

    def test_an_unlisted_skip_fails_ci(self) -> None:
        code, lines = self.run_with(PASSED + SKIPPED, ci="true")
        self.assertEqual((code, lines[-1]), (1, "2 passed, 1 failed, 1 skipped"))

    def test_a_listed_skip_passes_ci(self) -> None:
        self.allow("# comment\n//room:a_test A.Skips  # CI has no mirrors\n")
        self.assertEqual(self.run_with(PASSED + SKIPPED, ci="true")[0], 0)

    def test_a_skipped_target_is_listed_by_its_label(self) -> None:
        self.assertEqual(self.run_with(PASSED, "SKIPPED", ci="true")[0], 1)
        self.allow("//room:a_test  # needs CUDA\n")
        code, lines = self.run_with(PASSED, "SKIPPED", ci="true")
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))

    def test_a_listed_skip_needs_a_reason(self) -> None:
        self.allow("//room:a_test A.Skips\n")
        code, lines = self.run_with(PASSED)
        self.assertEqual(code, 1)
        self.assertIn("tools/allowed_skips.txt:1: write 'TEST  # reason'", lines[-1])


if __name__ == "__main__":
    unittest.main()
