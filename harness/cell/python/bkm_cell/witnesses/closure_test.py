# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The closure holds exactly what Python looked at in a subject's tree."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

_PROGRAM = """
import importlib, json, os, pathlib, subprocess, sys
from bkm_cell.report import Report
from bkm_cell.witnesses.closure import Closure

root, elsewhere = sys.argv[1:3]
sys.path[:0] = [root, elsewhere]
events = []
closure = Closure({"engine": root, "library": None})
%s
closure.send(Report(events.append))
closure.send(Report(events.append))  # nothing new: nothing is sent
closure.send(Report(events.append), whole=True)
print(json.dumps([json.loads(event)["set"]["closure"] for event in events]))
"""


class ClosureTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.elsewhere = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.addCleanup(shutil.rmtree, self.elsewhere)
        for path in ("pkg/__init__.py", "pkg/used.py", "pkg/unused.py", "pkg/data/a.yaml"):
            place = pathlib.Path(self.root, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        pathlib.Path(self.elsewhere, "stranger.py").touch()

    def closure(self, code: str) -> dict:
        """The closure of a new process: the watching cannot be undone."""
        output = subprocess.run(
            [sys.executable, "-c", _PROGRAM % textwrap.dedent(code), self.root, self.elsewhere],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        *before, whole = json.loads(output)
        self.assertTrue(whole.pop("whole"))
        self.assertLessEqual(len(before), 1)
        self.assertEqual(before, [whole] * len(before))
        return whole

    def test_imports_are_files_and_lookups_not_listings(self):
        closure = self.closure("import pkg.used, stranger")
        self.assertEqual(closure["engine"], ["pkg/__init__.py", "pkg/used.py"])
        self.assertEqual(closure["lookups"], {"engine": ["pkg", "pkg/used", "stranger"]})
        self.assertEqual(closure["escapes"], [])

    def test_missing_module_is_a_lookup(self):
        closure = self.closure(
            """
            try:
                import pkg.missing
            except ModuleNotFoundError:
                pass
            """
        )
        self.assertEqual(closure["engine"], ["pkg/__init__.py"])
        self.assertEqual(closure["lookups"], {"engine": ["pkg", "pkg/missing"]})

    def test_listing_by_a_subject_is_kept(self):
        for code in ("os.listdir(root + '/pkg')", "list(os.scandir(root + '/pkg/'))"):
            self.assertEqual(self.closure(code)["engine"], ["pkg/"])
        self.assertEqual(self.closure("os.listdir(root)")["engine"], ["./"])

    def test_file_that_is_read_or_tried_is_kept_by_its_plain_name(self):
        closure = self.closure(
            """
            open(root + "/pkg/../pkg/data/a.yaml").close()
            os.chdir(root)
            open("pkg/unused.py").close()
            try:
                open(root + "/pkg/none.yaml")
            except FileNotFoundError:
                pass
            """
        )
        self.assertEqual(closure["engine"], ["pkg/data/a.yaml", "pkg/none.yaml", "pkg/unused.py"])

    def test_question_whether_a_path_is_there_is_kept(self):
        closure = self.closure(
            """
            os.path.exists(root + "/pkg/none.py")
            pathlib.Path(root, "pkg", "data").is_dir()
            """
        )
        self.assertEqual(closure["asked"], {"engine": ["pkg/data", "pkg/none.py"]})

    def test_program_that_could_read_a_tree_is_an_escape(self):
        for code, escape in (
            ("subprocess.run([sys.executable, '-c', ''])", "subprocess.Popen python"),
            ("subprocess.run(['/bin/test', '-d', root])", "subprocess.Popen test"),
            ("subprocess.run(['/bin/true'], cwd=root)", "subprocess.Popen true"),
            ("subprocess.run(['/bin/true'], env={'A': root})", "subprocess.Popen true"),
            ("subprocess.run('test -d ' + root, shell=True)", "subprocess.Popen sh"),
            ("os.system('true')", "os.system true"),
            ("os.fork() or os._exit(0)", "os.fork"),
        ):
            (found,) = self.closure(code)["escapes"]
            self.assertTrue(found.startswith(escape), found)

    def test_program_that_is_told_of_no_tree_is_none(self):
        missing = """
            try:
                subprocess.run(["no-such-program-anywhere"])
            except FileNotFoundError:
                pass
            """
        for code in (
            "subprocess.run(['/bin/true', 'x'])",
            "subprocess.run('true', shell=True)",
            missing,
        ):
            self.assertEqual(self.closure(code)["escapes"], [])

    def test_what_the_standard_library_asks_of_stat_stays_true(self):
        self.closure("assert os.stat in os.supports_follow_symlinks")


if __name__ == "__main__":
    unittest.main()
