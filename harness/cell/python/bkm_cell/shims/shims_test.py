# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Shims answer for the device, and align it with CUDA; hooks run before the importer goes on."""

import os
import sys
import tempfile
import unittest

import torch

from bkm_cell.shims import cuda_autocast
from bkm_cell.shims.after_import import after_import
from bkm_cell.shims.apply import apply_shims
from bkm_cell.shims.cpu_device import CpuDevice


class ShimsTest(unittest.TestCase):
    def test_a_gpu_cell_has_no_shim(self):
        self.assertEqual(apply_shims({"probe": {"device": "cuda"}}), [])

    def test_a_hook_runs_before_the_importer_sees_the_module(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "hooked_of_test.py"), "w") as file:
                file.write("device = 'cuda'\n")
            with open(os.path.join(folder, "importer_of_test.py"), "w") as file:
                file.write("from hooked_of_test import device\n")
            sys.path.insert(0, folder)
            after_import("hooked_of_test", lambda module: setattr(module, "device", "cpu"))
            import importer_of_test

            self.assertEqual(importer_of_test.device, "cpu")

    def test_the_device_forwards_to_torch_cpu_and_refuses_what_it_does_not_know(self):
        device = CpuDevice("torch.cpu")
        self.assertEqual(device.memory_stats()["num_ooms"], 0)
        self.assertIs(device.is_available, torch.cpu.is_available)
        with self.assertRaises(AttributeError):
            device.no_such_call  # noqa: B018

    def test_autocast_promotes_as_cudas_lists_say(self):
        half = torch.ones(2, 4, dtype=torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.bfloat16)
        cuda_autocast.apply()
        with torch.autocast("cpu", torch.bfloat16):
            if "rms_norm" in cuda_autocast.listed("AT_FORALL_FP32"):  # from torch 2.12 on
                self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.float32)
            self.assertEqual(half.pow(2).dtype, torch.float32)
            self.assertEqual(half.sum(-1).dtype, torch.float32)
            self.assertEqual(half.softmax(-1).dtype, torch.float32)
            self.assertEqual(half.softmax(-1, dtype=torch.bfloat16).dtype, torch.bfloat16)
            self.assertEqual((half @ half.T).dtype, torch.bfloat16)
            self.assertEqual(half.double().pow(2).dtype, torch.float64)
        self.assertEqual(torch.rms_norm(half, (4,)).dtype, torch.bfloat16)
        index = torch.zeros(2, 4, dtype=torch.int64)
        with torch.autocast("cpu", torch.bfloat16):
            for sum_dtype in (torch.float32, torch.bfloat16):
                added = torch.zeros(2, 4, dtype=sum_dtype).scatter_add(0, index, half)
                self.assertEqual(added.dtype, sum_dtype)
            with torch.autocast("cpu", torch.float32):
                self.assertEqual((half.float() @ half.T).dtype, torch.float32)
            self.assertEqual((half @ half.T).dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
