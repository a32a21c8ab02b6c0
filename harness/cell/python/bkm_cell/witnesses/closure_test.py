# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The closure holds the files and folders of a subject that Python read, and nothing else."""

import importlib
import json
import os
import sys
import tempfile
import unittest

from bkm_cell.report import Report
from bkm_cell.witnesses.closure import Closure


class ClosureTest(unittest.TestCase):
    def test_sources_and_listings_are_kept_relative_to_their_root(self):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as elsewhere:
            os.makedirs(os.path.join(root, "closure_of_test"))
            for name in ("__init__", "used", "unused"):
                open(os.path.join(root, "closure_of_test", name + ".py"), "w").close()
            open(os.path.join(elsewhere, "stranger.py"), "w").close()
            sys.path[:0] = [root, elsewhere]
            closure = Closure({"engine": root, "library": None})
            events = []
            with self.assertRaises(ModuleNotFoundError):
                for name in ("closure_of_test.used", "stranger", "closure_of_test.missing"):
                    importlib.import_module(name)
            closure.send(Report(events.append))
            closure.send(Report(events.append))  # nothing new: nothing is sent
            self.assertEqual(
                [json.loads(event) for event in events],
                [
                    {
                        "set": {
                            "closure": {
                                "engine": [
                                    "./",
                                    "closure_of_test/",
                                    "closure_of_test/__init__.py",
                                    "closure_of_test/used.py",
                                ]
                            }
                        }
                    }
                ],
            )


if __name__ == "__main__":
    unittest.main()
