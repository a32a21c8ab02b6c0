# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Which lines of a subject ran, and in which phase."""

import json
import os
import sys
import tempfile
import unittest

from bkm_cell.report import Report
from bkm_cell.witnesses.lines import recorded_lines

SOURCE = """
def build(deep):
    if deep:
        return build(False)
    return 1

def train(model):
    return model + 1
"""


class LinesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        package = os.path.join(folder.name, "subject_of_test")
        os.mkdir(package)
        files = {"__init__.py": "", "model.py": SOURCE, "late.py": "class Late:\n    size = 1\n"}
        for name, text in files.items():
            with open(os.path.join(package, name), "w") as file:
                file.write(text)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.addCleanup(self.forget)
        self.request = {
            "packages": {"engine": None, "library": "subject_of_test"},
            "paths": {"library": folder.name},
            "record_lines": True,
        }

    def forget(self):
        for name in [name for name in sys.modules if name.startswith("subject_of_test")]:
            del sys.modules[name]

    def climb(self):
        events = []
        report = Report(lambda line: events.append(json.loads(line)))
        with recorded_lines(self.request, report):
            report.stage("import")
            from subject_of_test import model

            report.stage("construct")
            model.build(True)
            from subject_of_test import late

            self.assertEqual(late.Late.size, 1)
            report.stage("load")
            report.stage("backend")
            model.train(1)
        return [event["set"]["lines"] for event in events if "lines" in event.get("set", {})]

    def test_lines_are_recorded_apart_for_building_and_training(self):
        self.assertEqual(
            self.climb(),
            [
                {"built": {"library": {"subject_of_test/model.py": [3, 4, 5]}}},
                {"trained": {"library": {"subject_of_test/model.py": [8]}}},
            ],
        )

    def test_an_installed_package_is_found_where_it_is_installed(self):
        self.request["paths"] = {"library": None}
        trained = {"library": {"subject_of_test/model.py": [8]}}
        self.assertEqual(self.climb()[1], {"trained": trained})

    def test_nothing_is_recorded_unless_the_request_asks(self):
        del self.request["record_lines"]
        self.assertEqual(self.climb(), [])
        self.assertIsNone(sys.gettrace())


if __name__ == "__main__":
    unittest.main()
