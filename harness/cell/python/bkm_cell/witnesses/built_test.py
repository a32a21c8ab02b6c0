# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The model's own numbers are read where libraries keep them."""

import sys
import unittest

import torch

from bkm_cell.witnesses.built import model_numbers


class Norm(torch.nn.Module):
    def __init__(self, name: str, eps: float) -> None:
        super().__init__()
        setattr(self, name, eps)


class RMSNorm(Norm):
    pass


class BuiltTest(unittest.TestCase):
    def test_epsilons_of_all_norms(self):
        model = torch.nn.Sequential(
            RMSNorm("variance_epsilon", 1e-6), torch.nn.RMSNorm(4, eps=1e-5), torch.nn.Linear(2, 2)
        )
        self.assertEqual(model_numbers([model]), {"norm_epsilons": [1e-6, 1e-5]})
        default = model_numbers([torch.nn.Sequential(torch.nn.RMSNorm(4))])
        self.assertEqual(default["norm_epsilons"], [torch.finfo(torch.float32).eps])

    def test_the_base_of_the_rotation(self):
        frequencies = 1e6 ** (-torch.arange(0, 64, 2).float() / 64)
        rotary = torch.nn.Module()
        rotary.register_buffer("inv_freq", frequencies)
        self.assertAlmostEqual(model_numbers([rotary])["rope_theta"] / 1e6, 1, delta=1e-4)
        table = torch.outer(torch.arange(8).float(), frequencies)
        titan = torch.nn.Module()
        titan.register_buffer("freqs_cis", torch.polar(torch.ones_like(table), table))
        self.assertAlmostEqual(model_numbers([titan])["rope_theta"] / 1e6, 1, delta=1e-4)
        self.assertEqual(model_numbers([torch.nn.Linear(2, 2)]), {})
        twice = torch.cat([table, table], dim=1)
        later = torch.nn.Module()
        later.register_buffer("cache", torch.cat([twice.cos(), twice.sin()], dim=1))
        self.assertAlmostEqual(model_numbers([later])["rope_theta"] / 1e6, 1, delta=1e-4)
        other = torch.nn.Module()
        other.register_buffer("cache", torch.ones(8, 64))
        self.assertEqual(model_numbers([other]), {})

    def test_a_rotation_that_does_not_turn_has_no_base_that_anybody_asks_for(self):
        rotary = torch.nn.Module()
        rotary.register_buffer("inv_freq", torch.zeros(32))
        self.assertEqual(model_numbers([rotary]), {"rope_theta": sys.float_info.max})


if __name__ == "__main__":
    unittest.main()
