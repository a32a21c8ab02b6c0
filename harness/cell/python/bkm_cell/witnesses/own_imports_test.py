# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A name that is gone counts against a subject only if its own code imports it."""

import importlib
import os
import sys
import tempfile
import types
import unittest

from bkm_cell.adapters.base import find_module
from bkm_cell.witnesses.errors import Owners, describe
from bkm_cell.witnesses.own_imports import imported_by


class OwnImportsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        sys.path.insert(0, self.folder)
        self.addCleanup(sys.path.remove, self.folder)
        self.addCleanup(self.forget)
        self.write("__init__.py")

    def forget(self):
        for name in [name for name in sys.modules if name.split(".")[0] == "enginelike"]:
            del sys.modules[name]

    def write(self, file, text=""):
        path = os.path.join(self.folder, "enginelike", file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
        importlib.invalidate_caches()

    def test_an_import_of_its_own_code_is_found_in_every_form(self):
        for text, wanted in (
            ("import enginelike.gone\n", "enginelike.gone"),
            ("from enginelike import gone\n", "enginelike.gone"),
            ("from enginelike.gone import f\n", "enginelike.gone"),
            ("def late():\n    from .. import gone\n", "enginelike.gone"),
            ("from ..gone.deeper import f\n", "enginelike.gone"),
            ("from .gone import f\n", "enginelike.trainer.gone"),
            ("from enginelike.config import Gone\n", "enginelike.config.Gone"),
        ):
            self.write("trainer/main.py", text)
            line = text.count("\n")
            self.assertEqual(imported_by(wanted), f"enginelike/trainer/main.py:{line}", text)

    def test_what_may_fail_and_what_nobody_runs_does_not_count(self):
        for text in (
            "try:\n    import enginelike.gone\nexcept ImportError:\n    pass\n",
            "try:\n    import enginelike.gone\nexcept (KeyError, ImportError):\n    pass\n",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import enginelike.gone\n",
            "import enginelike.gone_elsewhere\n",
            "gone = 1\n",
            "import enginelike.gone (\n",
        ):
            self.write("trainer/main.py", text)
            self.assertIsNone(imported_by("enginelike.gone"), text)
        self.write("tests/main.py", "import enginelike.gone\n")
        self.assertIsNone(imported_by("enginelike.gone"))
        self.assertIsNone(imported_by("enginelike"))
        self.assertIsNone(imported_by("nosuchpackage.gone"))

    def described(self, act):
        request = {"packages": {"engine": "enginelike"}, "paths": {"engine": self.folder}}
        try:
            act()
        except Exception as error:
            return describe(error, Owners(request))
        self.fail("nothing was raised")

    def test_the_facts_of_an_exception_say_it(self):
        def missing_module():
            importlib.import_module("enginelike.gone")

        def missing_name():
            importlib.import_module("enginelike.config").Gone  # noqa: B018

        self.write("config.py")
        self.write("trainer/main.py", "def f():\n    return 1\n")
        for act in (missing_module, missing_name):
            self.assertNotIn("imported_by", self.described(act))
        self.write(
            "trainer/main.py", "from enginelike.config import Gone\nimport enginelike.gone\n"
        )
        for act, line in ((missing_module, 2), (missing_name, 1)):
            place = f"enginelike/trainer/main.py:{line}"
            self.assertEqual(self.described(act)["imported_by"], place)
        # In the subject's own code, the frames say whose it is.
        facts = self.described(lambda: importlib.import_module("enginelike.trainer.main"))
        self.assertNotIn("imported_by", facts)
        self.assertEqual(facts["frames"][-1]["owner"], "engine")

    def test_a_file_that_cannot_be_parsed_is_a_frame_of_its_owner(self):
        self.write("wrong.py", "x = 1\ndef f(:\n")
        facts = self.described(lambda: importlib.import_module("enginelike.wrong"))
        self.assertEqual(facts["type"], "SyntaxError")
        last = facts["frames"][-1]
        self.assertEqual((last["owner"], last["line"]), ("engine", 2))
        self.assertEqual(last["file"], "enginelike/wrong.py")

    def test_a_module_is_found_where_this_version_keeps_it(self):
        self.write("roles/utils/losses.py", "def sft_loss():\n    pass\n")
        self.write("other/losses.py", "def another_loss():\n    pass\n")
        found = find_module("enginelike.utils.losses", "sft_loss")
        self.assertEqual(found.__name__, "enginelike.roles.utils.losses")
        with self.assertRaises(ModuleNotFoundError) as raised:
            find_module("enginelike.utils.losses", "ppo_loss")
        self.assertEqual(raised.exception.name, "enginelike.utils")
        self.write("again/losses.py", "class sft_loss:\n    pass\n")
        with self.assertRaises(ModuleNotFoundError):  # which of the two?
            find_module("enginelike.utils.losses", "sft_loss")
        self.write("utils/losses.py", "def sft_loss():\n    pass\n")
        self.assertEqual(
            find_module("enginelike.utils.losses", "sft_loss").__name__, "enginelike.utils.losses"
        )

    def test_a_module_that_is_there_and_fails_is_not_looked_for_elsewhere(self):
        self.write("utils/losses.py", "import nosuchpackage\n")
        self.write("roles/losses.py", "def sft_loss():\n    pass\n")
        with self.assertRaises(ModuleNotFoundError) as raised:
            find_module("enginelike.utils.losses", "sft_loss")
        self.assertEqual(raised.exception.name, "nosuchpackage")

    def test_a_model_package_is_found_by_its_init(self):
        self.write("experiments/gpt/__init__.py", "def get_train_spec():\n    pass\n")
        found = find_module("enginelike.models.gpt", "get_train_spec", "model_registry")
        self.assertIsInstance(found, types.ModuleType)
        self.assertEqual(found.__name__, "enginelike.experiments.gpt")


if __name__ == "__main__":
    unittest.main()
