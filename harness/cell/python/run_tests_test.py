# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""run_tests.py, as Bazel starts it: every test case is in the report, and whatever fails fails the run."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

_SCRIPT = pathlib.Path(__file__).with_name("run_tests.py")
_CASES = {
    "passes": "def test_it(self): pass",
    "fails": "def test_it(self): self.assertEqual(1, 2)",
    "raises": "def test_it(self): raise KeyError('x')",
    "skips": "def test_it(self): self.skipTest('not here')",
    "fails_part": "def test_it(self):\n        with self.subTest(i=1): self.assertEqual(1, 2)",
    "cannot_begin": "@classmethod\n    def setUpClass(cls): raise OSError('no disk')\n\n    def test_it(self): pass",
    "leaves": "def test_it(self): os._exit(0)",
}


class RunTestsTest(unittest.TestCase):
    def run_modules(self, *names: str, more: tuple[str, ...] = ()) -> tuple[int, dict[str, str], str]:
        """Exit code, test case -> "failure", "skipped" or "", and the output."""
        folder = pathlib.Path(tempfile.mkdtemp())
        for name in names:
            body = _CASES.get(name, "")
            (folder / f"{name}.py").write_text(
                f"import os, unittest\n\n\nclass T(unittest.TestCase):\n    {body or 'pass'}\n" if name != "broken" else "import no_such_module\n")
        ended = subprocess.run(
            [sys.executable, _SCRIPT, *names, *more], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(folder), "XML_OUTPUT_FILE": str(folder / "out.xml")})
        cases = {}
        for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
            cases[f"{case.get('classname')}.{case.get('name')}"] = next((child.tag for child in case), "")
        return ended.returncode, cases, ended.stdout + ended.stderr

    def test_passed_and_skipped_cases_pass(self) -> None:
        code, cases, _ = self.run_modules("passes", "skips")
        self.assertEqual((code, cases), (0, {"passes.T.test_it": "", "skips.T.test_it": "skipped"}))

    def test_what_fails_fails_the_run_and_is_shown(self) -> None:
        for name in ("fails", "raises", "fails_part"):
            code, cases, text = self.run_modules("passes", name)
            self.assertEqual((code, cases), (1, {"passes.T.test_it": "", f"{name}.T.test_it": "failure"}), text)
            self.assertIn("Traceback", text)

    def test_a_module_that_ends_or_cannot_begin_fails_the_run(self) -> None:
        for name in ("leaves", "cannot_begin", "broken"):
            code, cases, text = self.run_modules("passes", name)
            self.assertEqual(code, 1, text)
            self.assertEqual(sorted(cases.values()), ["", "failure"], text)

    def test_chosen_test_cases_only_and_none_is_an_error(self) -> None:
        code, cases, _ = self.run_modules("passes", "fails", more=("--only", "passes"))
        self.assertEqual((code, list(cases)), (0, ["passes.T.test_it"]))
        self.assertEqual(self.run_modules("passes", more=("--only", "nothing"))[0], 1)


if __name__ == "__main__":
    unittest.main()
