# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The model's own numbers are read where libraries keep them."""

import sys
import unittest
from unittest import mock

import torch

from bkm_cell.witnesses import built
from bkm_cell.witnesses.built import model_numbers, sharding_facts


class Norm(torch.nn.Module):
    def __init__(self, name: str, eps: float) -> None:
        super().__init__()
        setattr(self, name, eps)


class RMSNorm(Norm):
    pass


class BuiltTest(unittest.TestCase):
    def test_what_shards_a_model_is_read_from_the_classes_of_its_modules(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2))
        self.assertEqual(sharding_facts("", [model]), {})
        for name, seen in ((None, "nothing"), ("FSDPModule", "fsdp2"), ("FullyShardedDataParallel", "fsdp1")):
            with mock.patch.object(built, name or "FSDPModule", torch.nn.Linear if name else Norm):
                facts = sharding_facts("fsdp2", [model])
            self.assertEqual(facts, {"sharding_asked": "fsdp2", "sharding": seen})

    def test_the_epsilon_of_each_norm_with_its_name(self):
        model = torch.nn.Sequential(
            RMSNorm("variance_epsilon", 1e-6), torch.nn.RMSNorm(4, eps=1e-5), torch.nn.Linear(2, 2)
        )
        model[1].inner = torch.nn.RMSNorm(4)
        expected = [
            {"name": "0", "epsilon": 1e-6},
            {"name": "1", "epsilon": 1e-5},
            {"name": "1.inner", "epsilon": torch.finfo(torch.float32).eps},
        ]
        self.assertEqual(model_numbers([model]), {"norms": expected})

    def test_the_frequencies_of_the_rotation_and_their_base(self):
        frequencies = 1e6 ** (-torch.arange(0, 64, 2).float() / 64)

        def assert_read(name: str, buffer: torch.Tensor) -> None:
            module = torch.nn.Module()
            module.register_buffer(name, buffer)
            numbers = model_numbers([module])
            self.assertAlmostEqual(numbers["rope_theta"] / 1e6, 1, delta=1e-4)
            read = torch.tensor(numbers["rope_frequencies"])
            torch.testing.assert_close(read, frequencies, rtol=1e-6, atol=0)

        assert_read("inv_freq", frequencies)
        table = torch.outer(torch.arange(8).float(), frequencies)
        assert_read("freqs_cis", torch.polar(torch.ones_like(table), table))
        twice = torch.cat([table, table], dim=1)
        assert_read("cache", torch.cat([twice.cos(), twice.sin()], dim=1))
        # YaRN's factor on both stretches the table and turns no pair further.
        assert_read("cache", 1.3 * torch.cat([twice.cos(), twice.sin()], dim=1))
        self.assertEqual(model_numbers([torch.nn.Linear(2, 2)]), {})
        other = torch.nn.Module()
        other.register_buffer("cache", torch.ones(8, 64))
        self.assertEqual(model_numbers([other]), {})

    def test_a_rotation_that_does_not_turn_has_no_base_that_anybody_asks_for(self):
        rotary = torch.nn.Module()
        rotary.register_buffer("inv_freq", torch.zeros(32))
        expected = {"rope_theta": sys.float_info.max, "rope_frequencies": [0.0] * 32}
        self.assertEqual(model_numbers([rotary]), expected)


if __name__ == "__main__":
    unittest.main()
