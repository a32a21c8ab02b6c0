# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The safetensors package reads our files, and we read its files."""

import os
import tempfile
import unittest

import safetensors.torch
import torch

from bkm_cell.tensor_file import load_file, save_file


class TensorFileTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "x.safetensors")
        self.tensors = {
            "a": torch.arange(6, dtype=torch.int64).reshape(2, 3),
            "b": torch.randn(5, dtype=torch.float64),
            "c": torch.randn(3, 2).bfloat16(),
            "strided": torch.randn(4, 4).t(),
            "none": torch.empty(0),
        }

    def check(self, got: dict[str, torch.Tensor]) -> None:
        self.assertEqual(set(got), set(self.tensors))
        for name, tensor in self.tensors.items():
            self.assertEqual(got[name].dtype, tensor.dtype)
            self.assertTrue(torch.equal(got[name], tensor), name)

    def test_ours_is_read_by_the_package(self) -> None:
        save_file(self.tensors, self.path)
        self.check(safetensors.torch.load_file(self.path))

    def test_the_packages_is_read_by_us(self) -> None:
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors.items()}
        safetensors.torch.save_file(tensors, self.path)
        self.check(load_file(self.path))


if __name__ == "__main__":
    unittest.main()
