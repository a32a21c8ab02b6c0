# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""An exception becomes facts: frame owners, kinds of statements, what is missing."""

import os
import sys
import tempfile
import textwrap
import unittest

from bkm_cell.witnesses.errors import Owners, describe

ENGINE = """
def refuse(option):
    if option != "flex":
        raise ValueError(f"{option} not supported")

def check(option):
    assert option in ("flex",), f"{option} not supported"

def pick(values):
    assert len(values) > 0 and values[0] is not None

def import_missing():
    from library_of_test import absent

def call_library():
    import library_of_test
    library_of_test.fail()

def wrap():
    try:
        call_library()
    except KeyError as error:
        raise RuntimeError("wrapped") from error

def gather(kind):
    failures = []
    for _ in range(2):
        try:
            call_library()
        except KeyError as error:
            failures.append(error)
    raise kind("failed", failures)

def attribute():
    import library_of_test
    return library_of_test.nothing
"""

LIBRARY = """
def fail():
    {}["key"]
"""


class ErrorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        paths = {}
        for party, package, source in (
            ("engine", "engine_of_test", ENGINE),
            ("library", "library_of_test", LIBRARY),
        ):
            paths[party] = os.path.join(cls.folder.name, party)
            os.makedirs(paths[party])
            with open(os.path.join(paths[party], package + ".py"), "w") as file:
                file.write(textwrap.dedent(source))
        sys.path[:0] = paths.values()
        cls.owners = Owners({"paths": paths, "packages": {}})

    def facts_of(self, function, *arguments):
        import engine_of_test

        try:
            getattr(engine_of_test, function)(*arguments)
        except Exception as error:
            return describe(error, self.owners)
        self.fail("it did not raise")

    def innermost(self, *call):
        frame = self.facts_of(*call)["frames"][-1]
        return frame["owner"], frame["file"], frame["statement"]

    def test_a_deliberate_raise_is_told(self):
        self.assertEqual(self.innermost("refuse", "sdpa"), ("engine", "engine_of_test.py", "raise"))

    def test_a_deliberate_assert_is_told(self):
        self.assertEqual(self.innermost("check", "sdpa"), ("engine", "engine_of_test.py", "assert"))

    def test_an_error_inside_an_asserts_expression_is_no_assert(self):
        self.assertEqual(self.innermost("pick", {1}), ("engine", "engine_of_test.py", "other"))

    def test_a_missing_name_is_given_with_its_module(self):
        facts = self.facts_of("import_missing")
        self.assertEqual(facts["name"], "library_of_test.absent")
        self.assertEqual(facts["frames"][-1]["statement"], "import")

    def test_a_missing_attribute_is_named(self):
        self.assertEqual(self.facts_of("attribute")["name"], "nothing")

    def test_frames_stand_from_the_outside_in_with_their_owners(self):
        frames = self.facts_of("call_library")["frames"]
        seen = [(frame["owner"], frame["function"], frame["statement"]) for frame in frames[1:]]
        self.assertEqual(seen, [("engine", "call_library", "call"), ("library", "fail", "other")])

    def test_the_cause_is_kept(self):
        facts = self.facts_of("wrap")
        self.assertEqual((facts["type"], facts["cause"]["type"]), ("RuntimeError", "KeyError"))

    def test_an_exception_that_carries_others_is_told_as_the_first_of_them(self):
        class OfRanks(BaseException):
            def __init__(self, message, failures):
                super().__init__(message)
                self.failures = {rank: (error, []) for rank, error in enumerate(failures)}

        kinds = [OfRanks]
        if sys.version_info >= (3, 11):
            kinds.append(ExceptionGroup)  # noqa: F821
        for kind in kinds:
            import engine_of_test

            try:
                engine_of_test.gather(kind)
            except BaseException as error:
                facts = describe(error, self.owners)
            self.assertEqual((facts["type"], facts["message"]), ("KeyError", "'key'"))
            functions = [frame["function"] for frame in facts["frames"]][-4:]
            self.assertEqual(functions, ["gather", "gather", "call_library", "fail"])

    def test_an_exception_that_carries_nothing_is_told_itself(self):
        for failures in ({}, [], 3, {0: None}, (self,)):
            error = RuntimeError("itself")
            error.failures = failures
            self.assertEqual(describe(error, self.owners)["message"], "itself")
        error.failures = [error]
        self.assertEqual(describe(error, self.owners)["message"], "itself")

    def test_the_harness_owns_its_own_frames(self):
        from bkm_cell.faults import CannotPlant, Planted

        try:
            Planted(None, "", ["no-such-fault"])
        except CannotPlant as error:
            self.assertEqual(describe(error, self.owners)["frames"][-1]["owner"], "harness")


if __name__ == "__main__":
    unittest.main()
