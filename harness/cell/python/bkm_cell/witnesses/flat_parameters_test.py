# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The parts of FSDP1's flat tensors have the names and values of the module's own parameters."""

import os
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from bkm_cell.witnesses.named_tensors import NamedTensors


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("seen", torch.ones(4))

    def forward(self, x):
        return self.linear(x)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(8, 4)
        self.layers = torch.nn.ModuleList([Layer(), Layer()])
        self.head = torch.nn.Linear(4, 8, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class FlatParametersTest(unittest.TestCase):
    def setUp(self):
        store = os.path.join(tempfile.mkdtemp(), "store")
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)

    def tearDown(self):
        dist.destroy_process_group()

    def test_parameters_and_gradients_are_those_of_the_module(self):
        for use_orig_params in (False, True):
            with self.subTest(use_orig_params=use_orig_params):
                torch.manual_seed(1)
                plain = Model()
                known = dict(plain.named_parameters())
                wrapped = Model()
                wrapped.load_state_dict(plain.state_dict())
                sharded = FullyShardedDataParallel(
                    wrapped,
                    auto_wrap_policy=ModuleWrapPolicy({Layer}),
                    device_id=torch.device("cpu"),
                    device_mesh=init_device_mesh("cpu", (1,)),
                    use_orig_params=use_orig_params,
                )
                for model in (plain, sharded):
                    model(torch.arange(8)).logsumexp(-1).sum().backward()
                tensors = NamedTensors([sharded], None, known.keys())
                seen, gradients = tensors.parameters("before"), tensors.gradients()
                self.assertEqual(seen.keys(), known.keys())
                self.assertEqual(gradients.keys(), known.keys())
                for name, parameter in known.items():
                    torch.testing.assert_close(seen[name], parameter.detach())
                    torch.testing.assert_close(gradients[name], parameter.grad)
                buffers = dict(plain.named_buffers()).keys()
                self.assertEqual(tensors.parameters("loaded", buffers).keys(), known.keys() | buffers)
                held = sum(value.numel() for value in tensors.held().values())
                self.assertEqual(held, sum(p.numel() for p in known.values()))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    sys.stderr.flush()
    # As a rank ends: torch aborts now and then when the interpreter ends after a group was used.
    os._exit(0 if program.result.wasSuccessful() else 1)
