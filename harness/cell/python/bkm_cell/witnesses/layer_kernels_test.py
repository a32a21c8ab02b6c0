# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Kernels belong to the layer that launched them, forward and backward."""

import tempfile
import unittest

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from bkm_cell.witnesses.layer_kernels import LayerKernels, seen_in

FUSED = "ScaledDotProductFlashAttentionForCpuBackward0"


class PlainAttention(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.mT, -1) @ v


class FusedAttention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class Block(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.wq = nn.Linear(8, 8)
        self.inner_attention = attention

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (2, 4)).transpose(1, 2)
        return self.inner_attention(q, q, q).transpose(1, 2).flatten(2)


class Model(nn.Module):
    """Two layers with different attentions."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(PlainAttention()), Block(FusedAttention())])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def step_of(model, around=lambda model, x: model(x)):
    x = torch.ones(1, 3, 8)
    return lambda: around(model, x).sum().backward()


def by_place(found):
    return {(entry["layer"], entry["phase"]): entry["kernels"] for entry in found["layers"]}


class RealTraceTest(unittest.TestCase):
    """On a CPU: ops stand for kernels."""

    def seen(self, step, model):
        with tempfile.TemporaryDirectory() as folder:
            return seen_in([model], step, folder)

    def test_each_layer_has_its_own_forward_and_backward(self):
        model = Model()
        found = self.seen(step_of(model), model)
        self.assertEqual("ops", found["seen"])
        places = by_place(found)
        self.assertEqual({(0, "forward"), (0, "backward"), (1, "forward"), (1, "backward")}, set(places))
        self.assertIn("SoftmaxBackward0", places[0, "backward"])
        self.assertNotIn(FUSED, places[0, "backward"])
        self.assertEqual(1, places[1, "backward"][FUSED])
        self.assertNotIn("SoftmaxBackward0", places[1, "backward"])
        self.assertIn("aten::scaled_dot_product_attention", places[1, "forward"])

    def test_an_attention_outside_of_the_layers_is_elsewhere(self):
        model = Model()

        def around(model, x):
            return F.scaled_dot_product_attention(*[model(x)[None]] * 3)

        found = self.seen(step_of(model, around), model)
        self.assertIn("aten::scaled_dot_product_attention", found["attention_elsewhere"])

    def test_a_recomputed_layer_is_the_same_layer(self):
        model = Model()

        def around(model, x):
            for layer in model.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

        places = by_place(self.seen(step_of(model, around), model))
        self.assertEqual(1, places[1, "backward"][FUSED])
        # Forward, and once more in the backward pass.
        self.assertEqual(2, places[1, "forward"]["aten::_scaled_dot_product_flash_attention_for_cpu"])


class DeviceTraceTest(unittest.TestCase):
    """A trace with kernels, as a device's: they run later, on no thread of the program."""

    def setUp(self):
        self.watch = LayerKernels([nn.Linear(1, 1)])
        self.watch._nodes = [(10, 13, 0), (13, 16, 1)]

    def event(self, cat, name, ts, dur=1.0, tid=1, **args):
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": tid, "args": args}

    def kernel(self, name, correlation):
        return self.event("kernel", name, 900.0, 2.5, tid="stream 7", correlation=correlation)

    def launch(self, ts, correlation, tid=1, cat="cuda_runtime"):
        return self.event(cat, "cudaLaunchKernel", ts, tid=tid, correlation=correlation)

    def test_a_launch_tells_the_layer_however_late_the_kernel_runs(self):
        node = "autograd::engine::evaluate_function: FlexBackward"
        found = self.watch.of_trace(
            [
                self.event("user_annotation", "bkm.layer.0", 100, 10),
                self.event("user_annotation", "bkm.layer.1", 120, 10),
                self.launch(105, 1),
                self.launch(125, 2, cat="cuda_driver"),
                self.event("cpu_op", node, 200, 10, 2, **{"Sequence number": 15}),
                self.launch(205, 3, tid=2),
                self.launch(205, 4, tid=1),  # at the same time, in another thread
                self.kernel("flash_fwd", 1),
                self.kernel("triton_tem_fused_flex_attention_0", 2),
                self.kernel("flash_bwd", 3),
                self.kernel("flash_of_nobody", 4),
                self.kernel("lost_its_launch", 99),
            ]
        )
        self.assertEqual("kernels", found["seen"])
        self.assertEqual(
            {
                (0, "forward"): {"flash_fwd": 1},
                (1, "forward"): {"triton_tem_fused_flex_attention_0": 1},
                (1, "backward"): {"flash_bwd": 1},
            },
            by_place(found),
        )
        self.assertEqual({"flash_of_nobody": 1}, found["attention_elsewhere"])
        self.assertEqual(2, found["elsewhere"])
        self.assertEqual([2.5] * 3, [entry["microseconds"] for entry in found["layers"]])


if __name__ == "__main__":
    unittest.main()
