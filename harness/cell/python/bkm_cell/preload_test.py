# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Sources are named until their compiled files are as new as they are."""

import importlib
import os
import py_compile
import sys
import tempfile
import unittest

from bkm_cell.preload import uncompiled


class PreloadTest(unittest.TestCase):
    def test_a_source_is_named_until_it_is_compiled_as_it_is(self):
        folder = tempfile.mkdtemp()
        source = os.path.join(folder, "imported_once.py")
        with open(source, "w") as file:
            file.write("x = 1\n")
        self.addCleanup(setattr, sys, "pycache_prefix", sys.pycache_prefix)
        sys.pycache_prefix = os.path.join(folder, "compiled")
        sys.path.insert(0, folder)
        self.addCleanup(sys.path.remove, folder)
        self.addCleanup(sys.modules.pop, "imported_once", None)
        self.addCleanup(setattr, sys, "dont_write_bytecode", sys.dont_write_bytecode)
        sys.dont_write_bytecode = True
        importlib.import_module("imported_once")
        self.assertIn(source, uncompiled())
        py_compile.compile(source)
        self.assertNotIn(source, uncompiled())
        with open(source, "a") as file:
            file.write("y = 2\n")
        self.assertIn(source, uncompiled())


if __name__ == "__main__":
    unittest.main()
