# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs unittest modules, each in a process forked from this one, which has imported torch once.

    run_tests.py MODULE... [--only WORD]

MODULE: below this folder, such as bkm_cell.witnesses.mask_test. --only: of these, the modules and test cases whose name contains
WORD (bazel test ... --test_arg=--only --test_arg=WORD). As many run at once as there are processors. Writes the JUnit report that
Bazel asks for. Exit code 1: a test failed, a module could not be run, or no test case was chosen.
"""

import argparse
import importlib
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import traceback
import unittest
from xml.etree import ElementTree

import torch  # noqa: F401  for all modules


class TimedResult(unittest.TextTestResult):
    """What became of each test case: [name, seconds, "failure" | "skipped" | "", text]."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.cases: list[list] = []

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.cases.append([test.id(), time.monotonic(), "", ""])

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.cases[-1][1] = time.monotonic() - self.cases[-1][1]

    def _mark(self, test: unittest.TestCase, kind: str, text: str) -> None:
        # An error in setUpClass belongs to no test case that started.
        if not self.cases or self.cases[-1][0] != test.id():
            if not (hasattr(test, "test_case") and self.cases):
                self.cases.append([test.id(), 0.0, "", ""])
        self.cases[-1][2:] = [kind, text]

    def addFailure(self, test: unittest.TestCase, err: tuple) -> None:
        super().addFailure(test, err)
        self._mark(test, "failure", self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: tuple) -> None:
        super().addError(test, err)
        self._mark(test, "failure", self.errors[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: tuple | None) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._mark(test, "failure", (self.failures + self.errors)[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._mark(test, "skipped", reason)


def chosen(suite: unittest.TestSuite, word: str) -> unittest.TestSuite:
    cases = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            cases.addTest(chosen(test, word))
        elif word in test.id():
            cases.addTest(test)
    return cases


def run_module(name: str, word: str) -> list[list]:
    """The test cases of a module, in this process."""
    suite = chosen(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name)), word)
    return unittest.TextTestRunner(stream=sys.stderr, resultclass=TimedResult).run(suite).cases


class Running:
    """A module in a process of its own; its output and its results go to files."""

    def __init__(self, name: str, word: str, folder: pathlib.Path) -> None:
        self.name = name
        self._output, self._results = folder / f"{name}.out", folder / f"{name}.json"
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                output = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(output, 1)
                os.dup2(output, 2)
                sys.argv = [name]
                cases = run_module(name, word)
                self._results.write_text(json.dumps(cases))
                code = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self, code: int) -> list[list]:
        """Its test cases. Prints its output if one of them failed."""
        told = self._results.is_file()  # not if a test case ended the process
        cases = json.loads(self._results.read_text()) if told else []
        if code != 0 or not told:
            cases.append([self.name, 0.0, "failure", f"the module ended with {code} before its last test case"])
        if any(kind == "failure" for _, _, kind, _ in cases):
            print(f"=== {self.name}\n{self._output.read_text(errors='replace')}", flush=True)
        return cases


def report(cases: list[list]) -> bytes:
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="python")
    for name, seconds, kind, text in cases:
        owner, _, last = name.rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=owner, name=last, time=f"{seconds:.3f}")
        if kind:
            # What XML cannot hold is left out.
            shown = "".join(c for c in text if c in "\t\n" or c >= " ")
            ElementTree.SubElement(case, kind, message=shown[-4000:])
    out = io.BytesIO()
    ElementTree.ElementTree(suites).write(out, encoding="utf-8", xml_declaration=True)
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--only", default="")
    chosen_by = parser.parse_args()
    waiting = list(reversed(chosen_by.modules))
    running: dict[int, Running] = {}
    cases: list[list] = []
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                module = Running(waiting.pop(), chosen_by.only, pathlib.Path(folder))
                running[module.pid] = module
            pid, status = os.wait()
            if pid in running:
                cases += running.pop(pid).ended(os.waitstatus_to_exitcode(status))
    if path := os.environ.get("XML_OUTPUT_FILE"):
        pathlib.Path(path).write_bytes(report(cases))
    failed = [name for name, _, kind, _ in cases if kind == "failure"]
    print(f"{len(cases)} test cases of {len(chosen_by.modules)} modules, {len(failed)} failed")
    for name in failed:
        print(f"failed: {name}")
    return 0 if cases and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
