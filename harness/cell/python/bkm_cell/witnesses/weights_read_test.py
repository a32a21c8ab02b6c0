# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The first read of weights is reported once, under any name of the reader."""

import os
import tempfile
import unittest

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from bkm_cell.witnesses.weights_read import first_weights_read


class WeightsReadTest(unittest.TestCase):
    def test_only_the_first_read_inside_the_block_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            save_file({"x": torch.ones(2)}, path)
            began = []
            load_file(path)
            with first_weights_read(began.append):
                self.assertEqual(globals()["load_file"](path)["x"].tolist(), [1, 1])
                with globals()["safe_open"](path, "pt") as file:
                    self.assertEqual(list(file.keys()), ["x"])
            load_file(path)
            self.assertEqual(began, ["safetensors.torch.load_file"])

    def test_readers_are_back_after_the_block_also_where_it_raises(self):
        before = (safe_open, load_file)
        with self.assertRaises(KeyError), first_weights_read(lambda reader: None):
            raise KeyError
        self.assertEqual((safe_open, load_file), before)


if __name__ == "__main__":
    unittest.main()
