# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Rows beyond the vocabulary are left out, and nothing else is."""

import unittest

import torch

from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.named_tensors import NamedTensors
from bkm_cell.witnesses.vocabulary import WithoutPadding

SHAPES = {"embed_tokens.weight": (6, 4), "up.weight": (7, 4), "down.weight": (4, 7)}


def model(rows):
    parts = {"embed_tokens": (rows, 4), "up": (7, 4), "down": (4, 7)}
    made = torch.nn.ModuleDict(
        {name: torch.nn.Linear(*reversed(shape), bias=False) for name, shape in parts.items()}
    )
    for parameter in made.parameters():
        torch.nn.init.ones_(parameter)
        parameter.grad = torch.ones_like(parameter)
    return made


def tensors(rows):
    return WithoutPadding(NamedTensors([model(rows)], None, SHAPES), SHAPES, 6)


class VocabularyTest(unittest.TestCase):
    def test_padded_rows_are_left_out_of_everything(self):
        padded = tensors(8)
        shapes = {name: tuple(value.shape) for name, value in padded.parameters("before").items()}
        self.assertEqual(shapes, SHAPES)
        self.assertEqual(tuple(padded.gradients()["embed_tokens.weight"].shape), (6, 4))
        self.assertEqual(loaded(padded), loaded(tensors(6)))
        self.assertEqual(padded.rows, 8)

    def test_a_tensor_of_another_shape_stays_as_it_is(self):
        plain = tensors(6)
        self.assertEqual(tuple(plain.held()["up.weight"].shape), (7, 4))  # a row more than 6
        self.assertIsNone(plain.rows)
        for rows in (5, 6 + 1024):  # fewer rows; a whole vocabulary more
            self.assertEqual(tensors(rows).parameters("before")["embed_tokens.weight"].shape[0], rows)


if __name__ == "__main__":
    unittest.main()
