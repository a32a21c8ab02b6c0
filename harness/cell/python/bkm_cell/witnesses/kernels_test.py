# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Kernels are those of each layer's own call with gradients."""

import unittest
import unittest.mock

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch import nn

from bkm_cell.witnesses.kernels import AttentionKernels, LossGraphs, autograd_nodes
from bkm_cell.witnesses.layers import attention_layers, inner_attentions, layer_index, numbered


def graphs_of(roots):
    graphs = LossGraphs()
    graphs.add(roots)
    return graphs


class PlainAttention(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.mT, -1) @ v


class FusedAttention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class Block(nn.Module):
    def __init__(self, inner, name):
        super().__init__()
        self.name = name
        self.wq = nn.Linear(8, 8)
        setattr(self, name, inner)

    def forward(self, x):
        q = self.wq(x).unflatten(-1, (2, 4)).transpose(1, 2)
        return getattr(self, self.name)(q, q, q).transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self, name="inner_attention"):
        super().__init__()
        self.layers = nn.ModuleList([Block(PlainAttention(), name), Block(FusedAttention(), name)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class KernelsTest(unittest.TestCase):
    def test_attention_is_found_by_name_or_by_having_no_weights(self):
        expected = [("layers.0.{}", "PlainAttention"), ("layers.1.{}", "FusedAttention")]
        for name in ("inner_attention", "sdpa"):
            found = [(n, type(m).__name__) for n, m in attention_layers([Model(name)])]
            self.assertEqual(found, [(n.format(name), kind) for n, kind in expected])

    def test_layer_index_is_the_number_in_the_name(self):
        self.assertEqual(layer_index("layers.12.attention.inner_attention"), 12)
        self.assertEqual(layer_index("model.layers.0.self_attn"), 0)
        self.assertEqual(layer_index("sdpa"), -1)

    def test_layer_is_the_number_that_tells_layers_apart(self):
        found = inner_attentions([nn.ModuleDict({"parts": nn.Sequential(Model())})])
        self.assertEqual([layer for layer, _ in numbered(found)], [0, 1])

    def test_a_module_around_an_attention_is_not_the_attention(self):
        model = Model()
        for layer in model.layers:
            layer.inner_attention = nn.Sequential(layer.inner_attention)
        kinds = [type(module).__name__ for _, module in attention_layers([model])]
        self.assertEqual(kinds, ["PlainAttention", "FusedAttention"])

    def test_each_layer_shows_its_own_forward_and_backward(self):
        model = Model()
        kernels = AttentionKernels([model], steps=3)
        with kernels.watching(step=1):
            with torch.no_grad():
                model(torch.ones(1, 5, 8))  # not a call with gradients
            model(torch.ones(1, 5, 8)).sum().backward()
        plain, fused = kernels.facts()
        self.assertEqual((plain["layer"], plain["calls"]), (0, [0, 1, 0]))
        self.assertEqual(plain["forward"], ["aten::_softmax", "aten::bmm", "aten::softmax"])
        self.assertEqual(plain["backward"], ["BmmBackward0", "SoftmaxBackward0"])
        self.assertEqual(fused["layer"], 1)
        self.assertIn("aten::scaled_dot_product_attention", fused["forward"])
        self.assertNotIn("aten::_softmax", fused["forward"])
        self.assertEqual(fused["backward"], ["ScaledDotProductFlashAttentionForCpuBackward0"])

    def test_hooks_are_gone_afterwards_also_after_an_error(self):
        model = Model()
        model.layers[1].inner_attention.forward = lambda *_: 1 / 0
        kernels = AttentionKernels([model], steps=1)
        with self.assertRaises(ZeroDivisionError), kernels.watching(step=0):
            model(torch.ones(1, 5, 8))
        self.assertEqual([facts["layer"] for facts in kernels.facts()], [0])
        for module in model.modules():
            self.assertFalse(module._forward_hooks or module._forward_pre_hooks)

    def test_calls_of_another_kind_in_a_later_step_are_told_apart(self):
        model = Model()
        kernels = AttentionKernels([model], steps=2)
        for step, inner in enumerate((FusedAttention(), PlainAttention())):
            model.layers[1].inner_attention = inner
            with kernels.watching(step):
                for _ in range(2):  # two micro-batches
                    model(torch.ones(1, 5, 8))
        calls = {(f["layer"], *f["backward"]): f["calls"] for f in kernels.facts()}
        plain = ("BmmBackward0", "SoftmaxBackward0")
        self.assertEqual(calls[0, *plain], [2, 2])
        self.assertEqual(calls[1, *plain], [0, 2])
        self.assertEqual(calls[1, "ScaledDotProductFlashAttentionForCpuBackward0"], [2, 0])

    def test_nodes_of_a_loss_are_those_that_its_gradients_pass(self):
        model = Model()
        fused = "ScaledDotProductFlashAttentionForCpuBackward0"
        x = torch.ones(1, 5, 8)
        self.assertEqual(graphs_of([model(x).sum()]).attention[fused], 1)
        self.assertEqual(graphs_of((model(x) + model(x)).sum()).attention[fused], 2)
        dropped = model.layers[0](x) + 0 * model(x).detach()
        self.assertNotIn(fused, graphs_of({"tensors": dropped.sum()}).attention)

    def test_a_compiled_call_behind_a_loss_is_told_from_other_compiled_functions(self):
        model = Model()
        attention = torch.compile(FusedAttention(), backend="aot_eager")
        model.layers[1].inner_attention.forward = attention.forward
        other = torch.compile(lambda x: torch.sin(x) * x, backend="aot_eager")
        kernels = AttentionKernels([model], steps=1)
        with kernels.watching(step=0):
            whole = other(model(torch.ones(1, 5, 8))).sum()
            model(torch.ones(1, 5, 8))  # a call whose output is dropped
            graphs = LossGraphs(kernels.is_compiled_call)
            graphs.add(whole)
        # The call that compiles has ops of the compiler beside those of the call.
        fused = [facts for facts in kernels.facts() if facts["layer"] == 1]
        for facts in fused:
            self.assertEqual(facts["backward"], ["CompiledFunctionBackward"])
            self.assertIn("scaled_dot_product", " ".join(facts["forward"]))
        self.assertEqual(sum(facts["calls"][0] for facts in fused), 2)
        self.assertEqual(graphs.attention["CompiledFunctionBackward"], 1)
        with kernels.watching(step=0):
            graphs = LossGraphs(kernels.is_compiled_call)
            graphs.add(whole)
        self.assertNotIn("CompiledFunctionBackward", graphs.attention, "of an earlier step")

    def test_matrix_products_of_a_loss_are_counted_by_their_type(self):
        weight = torch.ones(8, 8, requires_grad=True)
        experts, x = weight.repeat(2, 1, 1), torch.ones(2, 3, 8)
        ends = torch.tensor([2, 6], dtype=torch.int32)
        products = [
            torch._grouped_mm(x.flatten(0, 1).bfloat16(), experts.bfloat16(), offs=ends),
            x @ weight,
            F.linear(x[0], weight, x[0, 0]),
            torch.einsum("bij,jk->bik", x, weight),
            torch.bmm(x, experts),
        ]
        loss = sum(product.float().sum() for product in products)
        self.assertEqual(graphs_of(loss).products, {"bf16": 1, "fp32": 4})

    def test_a_checkpoint_hides_no_product(self):
        weight = torch.ones(4, 4, requires_grad=True)

        def block(x):
            return (x.bfloat16() @ weight.bfloat16()).float()

        for reentrant in (False, True):
            seen, backward = LossGraphs(), torch.autograd.backward

            def watched(*arguments, seen=seen, backward=backward, **named):
                seen.add((arguments, named))
                backward(*arguments, **named)

            x = torch.ones(2, 4, requires_grad=True)
            loss = checkpoint(block, x, use_reentrant=reentrant).sum()
            with unittest.mock.patch.object(torch.autograd, "backward", watched):
                loss.backward()
            self.assertEqual(seen.products, {"bf16": 1})

    def test_nodes_end_where_the_inputs_begin(self):
        x = torch.ones(1, 2, 3, 4, requires_grad=True).softmax(-1)
        self.assertEqual(
            autograd_nodes(F.scaled_dot_product_attention(x, x, x), (x,)),
            ["ScaledDotProductFlashAttentionForCpuBackward0"],
        )
        self.assertEqual(autograd_nodes(x.detach(), (x,)), [])


if __name__ == "__main__":
    unittest.main()
