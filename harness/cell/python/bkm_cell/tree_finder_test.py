# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The finder of subjects' trees finds what Python's own finder finds."""

import errno
import importlib
import importlib.machinery
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

from bkm_cell import tree_finder

_EXTENSION = importlib.machinery.EXTENSION_SUFFIXES[0]
_FILES = (
    "pkg/__init__.py",
    "pkg/used.py",
    "pkg/both.py",
    "pkg/both/__init__.py",
    "pkg/folder/file.py",
    "pkg/shadowed.py",
    "pkg/shadowed/file.py",
    f"pkg/native{_EXTENSION}",
    "pkg/native.py",
    f"pkg/built/__init__{_EXTENSION}",
    "pkg/compiled.pyc",
    "top.py",
)


class TreeFinderTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for path in _FILES:
            place = pathlib.Path(self.root, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        self.asked = []
        self.hooks = list(sys.path_hooks)
        self.addCleanup(sys.path_hooks.__setitem__, slice(None), self.hooks)
        self.addCleanup(sys.path_importer_cache.clear)

    def answer(self, path, name):
        """As the view does (harness/cell/tree_view_files.cc)."""
        module = name.removeprefix("user.bkm.module.")
        self.asked.append(os.path.relpath(os.path.join(path, module), self.root))
        forms = []
        folder = pathlib.Path(path, module)
        if folder.is_dir():
            forms += [f"{module}/"]
            forms += [f"{module}/{f.name}" for f in folder.glob("__init__.*") if f.is_file()]
        forms += [f.name for f in pathlib.Path(path).glob(f"{module}.*") if f.is_file()]
        return "\n".join(forms).encode()

    def view(self):
        return mock.patch.object(os, "getxattr", self.answer, create=True)

    def test_every_form_is_found_as_by_python(self):
        folder = os.path.join(self.root, "pkg")
        loaders = list(tree_finder._LOADERS)
        python = importlib.machinery.FileFinder(folder, *loaders)
        ours = tree_finder.TreeFinder(folder, *loaders)
        names = [path.split("/")[1].split(".")[0] for path in _FILES if "/" in path]
        with self.view():
            for name in [*names, "missing"]:
                expected, found = python.find_spec(f"pkg.{name}"), ours.find_spec(f"pkg.{name}")
                if expected is None:
                    self.assertIsNone(found)
                    continue
                self.assertEqual(found.origin, expected.origin, name)
                self.assertEqual(type(found.loader), type(expected.loader), name)
                self.assertEqual(found.cached, expected.cached, name)
                self.assertEqual(
                    list(found.submodule_search_locations or []),
                    list(expected.submodule_search_locations or []),
                    name,
                )

    def test_imports_ask_for_modules_and_list_no_folder(self):
        with self.view():
            tree_finder.install([self.root])
            with (
                mock.patch.object(sys, "path", [self.root, *sys.path]),
                mock.patch.object(os, "listdir", side_effect=AssertionError),
            ):
                importlib.import_module("pkg.used")
                self.assertRaises(ImportError, importlib.import_module, "pkg.missing")
        self.addCleanup(lambda: [sys.modules.pop(n, None) for n in ("pkg", "pkg.used")])
        for name in ("pkg", "pkg/used", "pkg/missing"):
            self.assertIn(name, self.asked)

    def test_link_is_looked_up_as_by_python_without_listing(self):
        os.symlink("used.py", os.path.join(self.root, "pkg/link.py"))
        refuse = mock.Mock(side_effect=OSError(errno.EOPNOTSUPP, "a link"))
        finder = tree_finder.TreeFinder(
            os.path.join(self.root, "pkg"), *tree_finder._LOADERS
        )
        with mock.patch.object(os, "getxattr", refuse, create=True):
            self.assertEqual(
                finder.find_spec("pkg.link").origin, os.path.join(self.root, "pkg/link.py")
            )
            self.assertIsNone(finder.find_spec("pkg.missing"))

    def test_folder_that_is_no_view_keeps_pythons_finder(self):
        refuse = mock.Mock(side_effect=OSError(errno.ENODATA, "no view"))
        with mock.patch.object(os, "getxattr", refuse, create=True):
            tree_finder.install([self.root])
            with self.assertRaises(ImportError):
                sys.path_hooks[0](self.root)
        with self.view(), self.assertRaises(ImportError):
            sys.path_hooks[0](tempfile.gettempdir())


if __name__ == "__main__":
    unittest.main()
