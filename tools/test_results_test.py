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

    def report(self, target: str, cases: str) -> None:
        report = self.root / "bazel-testlogs/room" / target / "test.xml"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(REPORT.format(cases=cases))

    def knows(self, tests: str) -> None:
        """A `bazel query` that answers with these tests for pattern //room/..., and with none for any other."""
        program = self.root / "bin/bazel"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\ncase "$*" in *"tests(//room/...)") echo {tests} ;; *) exit 7 ;; esac\n')
        program.chmod(0o755)

    def run_log(self, log: str, bazel: int = 0, lint: int = 0, ci: str = "", patterns: tuple[str, ...] = ()) -> tuple[int, list[str]]:
        (self.root / "log").write_text("INFO: something\n" + log)
        result = subprocess.run(
            [sys.executable, "tools/test_results.py", "log", str(bazel), str(lint), *patterns],
            cwd=self.root, env={**os.environ, "CI": ci, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}, capture_output=True, text=True,
            check=False)
        return result.returncode, (result.stdout + result.stderr).splitlines()

    def run_with(self, cases: str, status: str = "PASSED", bazel: int = 0, lint: int = 0, ci: str = "") -> tuple[int, list[str]]:
        self.report("a_test", cases)
        return self.run_log(f"//room:a_test      {status} in 0.1s\n", bazel, lint, ci)

    def test_counts_test_cases_and_lint(self) -> None:
        code, lines = self.run_with(PASSED)
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 0 skipped"))

    def test_says_what_ran_what_was_cached_and_what_took_longest(self) -> None:
        log = "//room:cached_test    (cached) PASSED in 900.0s\n"
        self.report("cached_test", PASSED)
        for i in range(6):
            self.report(f"t{i}_test", PASSED)
            log += f"//room:t{i}_test    PASSED in {i}.4s\n"
        code, lines = self.run_log(log)
        self.assertEqual((code, lines), (0, [
            "targets: 6 ran, 1 came from a cache",
            "slowest: //room:t5_test 5 s, //room:t4_test 4 s, //room:t3_test 3 s, //room:t2_test 2 s, //room:t1_test 1 s",
            "8 passed, 0 failed, 0 skipped"]))

    def test_a_passed_target_that_names_no_test_case_fails(self) -> None:
        code, lines = self.run_with("")
        self.assertEqual(code, 1)
        self.assertEqual(lines[0], "failed: //room:a_test (passed, but bazel-testlogs/room/a_test/test.xml names no test case)")
        code, lines = self.run_log("//room:silent_test   (cached) PASSED in 0.1s\n")
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_pattern_without_a_test_fails(self) -> None:
        self.knows("//room:a_test //room:slow_test")
        self.report("a_test", PASSED)
        ran = "//room:a_test   PASSED in 0.1s\n"
        self.assertEqual(self.run_log(ran, patterns=("//room/...",))[0], 0)
        # The other pattern did match.
        code, lines = self.run_log(ran, patterns=("//room/...", "//room:library"))
        self.assertEqual((code, lines[0]), (1, "failed: //room:library (no test target; bazel query 'tests(//...)' lists them)"))
        # Bazel ends with 4 when it finds no test at all.
        code, lines = self.run_log("", bazel=4, patterns=("//room/...",))
        self.assertEqual((code, lines[0]), (1, "failed: //room/... (its tests were left out: slow ones need tools/bkm test --all)"))
        self.assertEqual(self.run_log("", bazel=4)[0], 1)

    def test_names_what_failed(self) -> None:
        code, lines = self.run_with(PASSED + FAILED, "FAILED", bazel=3, lint=1)
        self.assertEqual((code, lines[:2], lines[-1]),
                         (1, ["failed: //room:a_test A.Fails", "failed: tools/lint"], "1 passed, 2 failed, 0 skipped"))

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
