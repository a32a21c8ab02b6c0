# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Options of a trainer under its own names: which are handed over, and how hydra is told their values."""

import unittest

from bkm_cell.adapters.trainer import UnknownOption, checked_option
from bkm_cell.adapters.verl_trainer import _leaves, of_hydra

KNOWN = ["engine", "engine.param_offload", "engine.strategy", "optim.lr", "optim.override"]


class OptionTest(unittest.TestCase):
    def why(self, name):
        with self.assertRaises(UnknownOption) as raised:
            checked_option(name, KNOWN, {"optim.lr"}, ("optim.",))
        return str(raised.exception)

    def test_a_known_option_that_changes_no_result_is_handed_over(self):
        checked_option("engine.param_offload", KNOWN, {"optim.lr"}, ("optim.",))

    def test_an_unknown_one_is_named_with_the_nearest(self):
        self.assertEqual(
            self.why("engine.param_ofload"),
            "the trainer has no option engine.param_ofload: did you mean engine.param_offload?",
        )
        self.assertEqual(self.why("xyz"), "the trainer has no option xyz")

    def test_what_other_fields_ask_for_or_what_changes_the_result_is_refused(self):
        self.assertIn("the cell sets it", self.why("optim.lr"))
        self.assertIn("changes what the trainer has to compute", self.why("optim.override"))

    def test_settings_have_the_names_of_their_sections(self):
        self.assertEqual(list(_leaves({"a": {"b": 1, "c": {}}, "d": None})), ["a.b", "a.c", "d"])

    def test_values_are_written_as_hydra_reads_them(self):
        self.assertEqual(of_hydra(True), "true")
        self.assertEqual(of_hydra(None), "null")
        self.assertEqual(of_hydra(1e-5), "1e-05")
        self.assertEqual(of_hydra("it's"), "'it\\'s'")
        self.assertEqual(of_hydra({"a": [1, "x"]}), "{a:[1,'x']}")


if __name__ == "__main__":
    unittest.main()
