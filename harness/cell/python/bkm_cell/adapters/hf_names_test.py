# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A model's tensors get the names of the file that they were read from."""

import sys
import types
import unittest
from unittest import mock

import torch

from bkm_cell.adapters.base import hf_names


def revert(model, state):
    """As transformers 5: experts of a layer are split, and quantised ones get the file's names."""
    names = {}
    for name, value in state.items():
        if name == "experts.gate_up_proj":
            for expert, rows in enumerate(value):
                names[f"experts.{expert}.up_proj.weight"] = rows
        else:
            names[name.replace("down_proj", "down_proj_blocks")] = value
    return names


class HfNamesTest(unittest.TestCase):
    def of(self, state, known, conversions=(1,)):
        model = torch.nn.Linear(1, 1)
        model._weight_conversions = conversions
        loading = types.SimpleNamespace(revert_weight_conversion=revert)
        with mock.patch.dict(
            sys.modules, {"transformers": mock.Mock(), "transformers.core_model_loading": loading}
        ):
            in_file = hf_names(model, known)
        return None if in_file is None else in_file(state)

    def test_a_model_that_was_not_converted_keeps_its_names(self):
        self.assertIsNone(self.of({}, {"norm"}, None))

    def test_experts_get_the_names_of_the_file(self):
        experts = torch.rand(2, 3)
        found = self.of(
            {"experts.gate_up_proj": experts, "norm": torch.ones(1)},
            {"experts.0.up_proj.weight", "experts.1.up_proj.weight", "norm"},
        )
        self.assertEqual(
            sorted(found), ["experts.0.up_proj.weight", "experts.1.up_proj.weight", "norm"]
        )
        self.assertTrue(torch.equal(found["experts.1.up_proj.weight"], experts[1]))

    def test_what_was_dequantised_keeps_its_own_name(self):
        weight = torch.rand(3)
        found = self.of({"experts.down_proj": weight}, {"experts.down_proj"})
        self.assertIs(found["experts.down_proj"], weight)
        self.assertEqual(list(found), ["experts.down_proj"])


if __name__ == "__main__":
    unittest.main()
