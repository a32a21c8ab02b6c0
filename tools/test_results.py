#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a `bazel test` run and names the skipped ones.

test_results.py LOG BAZEL_STATUS LINT_FAILED [PATTERN...]: reads the target lines of LOG and bazel-testlogs/**/test.xml. Says how
many targets ran, how many results came from a cache, and which targets took longest. The last line of the output is "N passed,
N failed, N skipped". Exit code 1: a test failed, none passed, a passed target reported no test case, no test of a PATTERN was
among the targets, or with CI=true a test was skipped that tools/allowed_skips.txt does not list.
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed_skips.txt")
# "//harness/base:base_test   (cached) PASSED in 0.0s": one line per target at the end of Bazel's output.
TARGET = re.compile(r"^(//\S+)\s+(\(cached\) )?.*\b(PASSED|FAILED|TIMEOUT|FLAKY|SKIPPED|NO STATUS)\b(?:.* in ([0-9.]+)s)?")
SLOWEST = 5


def allowed_skips() -> dict[str, str]:
    """Test case ("//target Suite.Name", or "//target" for a whole target) -> reason."""
    allowed = {}
    for number, line in enumerate(ALLOWED.read_text().splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        name, mark, reason = line.partition("  # ")
        if not mark or not reason.strip():
            sys.exit(f"{ALLOWED}:{number}: write 'TEST  # reason'")
        allowed[name.strip()] = reason.strip()
    return allowed


class Results:
    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []
        self.skipped: list[tuple[str, str]] = []  # test case, the reason that the test gave
        self.targets: set[str] = set()
        self.cached = 0
        self.seconds: dict[str, float] = {}  # of the targets that ran

    def add_target(self, target: str, cached: bool, status: str, seconds: str | None) -> None:
        self.targets.add(target)
        if status in ("SKIPPED", "NO STATUS"):
            reason = "needs torch, Python or CUDA" if status == "SKIPPED" else "not run"
            self.skipped.append((target, reason))
            return
        if cached:
            self.cached += 1
        else:
            self.seconds[target] = float(seconds or 0)
        failed_before = len(self.failed)
        report = Path("bazel-testlogs") / target.removeprefix("//").replace(":", "/") / "test.xml"
        try:
            cases = list(ElementTree.parse(report).iter("testcase"))
        except (OSError, ElementTree.ParseError):
            cases = []
        for case in cases:
            self._add_case(target, case)
        # A target that ended before it could name the failing test case still failed.
        if status in ("FAILED", "TIMEOUT") and len(self.failed) == failed_before:
            self.failed.append(f"{target} ({status.lower()})")
        if not cases and status in ("PASSED", "FLAKY"):
            self.failed.append(f"{target} (passed, but {report} names no test case)")

    def _add_case(self, target: str, case: ElementTree.Element) -> None:
        suite = case.get("classname", "")
        name = f"{target} {suite + '.' if suite else ''}{case.get('name', '')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append(name)
        elif case.get("status") == "notrun":
            self.skipped.append((name, "disabled in its source"))
        elif skipped is not None or case.get("result") == "skipped":
            message = skipped.get("message", "") if skipped is not None else ""
            # GoogleTest puts "FILE:LINE" on the first line.
            self.skipped.append((name, message.strip().split("\n")[-1]))
        else:
            self.passed += 1


def tests_of(pattern: str) -> set[str]:
    """The test targets of a pattern as `bazel test` takes it; none where Bazel knows no such target."""
    query = subprocess.run(["bazel", "query", "--keep_going", f"tests({pattern})"], capture_output=True, text=True, check=False)
    return set(query.stdout.split())


def unmatched(pattern: str, targets: set[str]) -> str | None:
    """Why no test of the pattern is among the targets that Bazel reported; None if one is."""
    tests = tests_of(pattern)
    if not tests:
        return f"{pattern} (no test target; bazel query 'tests(//...)' lists them)"
    if tests & targets:
        return None
    return f"{pattern} (its tests were left out: slow ones need tools/bkm test --all)"


def main() -> int:
    log, bazel_status, lint_failed, patterns = sys.argv[1], int(sys.argv[2]), sys.argv[3] != "0", sys.argv[4:]
    results = Results()
    for line in Path(log).read_text(errors="replace").splitlines():
        if match := TARGET.match(line):
            target, cached, status, seconds = match.groups()
            results.add_target(target, bool(cached), status, seconds)
        elif line.startswith("//") and "FAILED TO BUILD" in line:
            results.failed.append(line.split()[0] + " (does not build)")
    if lint_failed:
        results.failed.append("tools/lint")
    else:
        results.passed += 1
    # What did not build is not a pattern that matches nothing.
    if bazel_status in (0, 3, 4):
        results.failed += [why for pattern in patterns if (why := unmatched(pattern, results.targets))]
    # No test failed, and Bazel did: the build, or Bazel itself.
    if bazel_status != 0 and not results.failed:
        results.failed.append(f"bazel (exit code {bazel_status})")

    allowed = allowed_skips()
    strict = os.environ.get("CI") == "true"
    for name, reason in results.skipped:
        known = allowed.get(name) or allowed.get(name.split()[0])
        print(f"skipped: {name}: {reason}" + ("" if known else " (not listed in tools/allowed_skips.txt)"))
        if strict and not known:
            results.failed.append(f"{name} (skipped, although CI=true)")
    for name in results.failed:
        print(f"failed: {name}")
    print(f"targets: {len(results.seconds)} ran, {results.cached} came from a cache")
    slowest = sorted(results.seconds.items(), key=lambda item: -item[1])[:SLOWEST]
    if slowest:
        print("slowest: " + ", ".join(f"{target} {seconds:.0f} s" for target, seconds in slowest))
    print(f"{results.passed} passed, {len(results.failed)} failed, {len(results.skipped)} skipped")
    return 0 if results.passed and not results.failed else 1


if __name__ == "__main__":
    sys.exit(main())
