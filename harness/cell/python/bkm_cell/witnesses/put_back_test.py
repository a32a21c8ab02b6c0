# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
from __future__ import annotations

import unittest

import torch

from bkm_cell.witnesses.put_back import put_back


class PutBackTest(unittest.TestCase):
    def test_counters_and_random_numbers_are_as_before_even_after_an_error(self) -> None:
        model = torch.nn.BatchNorm1d(2)
        state = torch.get_rng_state()
        with self.assertRaises(KeyError), put_back([model]):
            model(torch.randn(4, 2))
            raise KeyError
        self.assertEqual(int(model.num_batches_tracked), 0)
        self.assertTrue(torch.equal(model.running_mean, torch.zeros(2)))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))

    def test_weights_that_autocast_cast_for_a_witness_are_cast_again(self) -> None:
        model = torch.nn.Linear(2, 2)
        with torch.autocast("cpu", torch.bfloat16):
            with put_back([model]), torch.no_grad():
                model(torch.randn(1, 2))
            model(torch.randn(1, 2)).sum().backward()
        self.assertIsNotNone(model.weight.grad)


if __name__ == "__main__":
    unittest.main()
