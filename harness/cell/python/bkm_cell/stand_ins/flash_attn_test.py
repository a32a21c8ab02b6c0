# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The stand-in computes what flash_attn's docstrings say, and refuses what its kernels refuse."""

import importlib.metadata
import inspect
import pathlib
import sys
import unittest
from unittest import mock

import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent / "flash_attn"
sys.path.insert(0, str(FOLDER))

import flash_attn  # noqa: E402
from flash_attn import bert_padding, dense_attention, flash_attn_func, flash_attn_varlen_func  # noqa: E402
from flash_attn.ops.triton.cross_entropy import cross_entropy_loss  # noqa: E402

BF16 = torch.bfloat16


def lengths(*places: int) -> torch.Tensor:
    return torch.tensor(places, dtype=torch.int32)


def drawn(tokens: int, heads: int, size: int = 16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tokens, heads, size, generator=generator).to(BF16)


def seen(queries: int, keys: int, **keywords) -> list[list[int]]:
    """Which keys each query sees: all weights are equal, and values tell keys apart."""
    q, k = torch.zeros(1, queries, 1, 8, dtype=BF16), torch.zeros(1, keys, 1, 8, dtype=BF16)
    v = torch.eye(keys, 8)[None, :, None].to(BF16)
    return (flash_attn_func(q, k, v, **keywords)[0, :, 0, :keys] > 0).int().tolist()


class MaskTest(unittest.TestCase):
    def test_causal_masks_are_aligned_to_the_bottom_right(self):
        self.assertEqual(seen(2, 5, causal=True), [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
        self.assertEqual(seen(5, 2, causal=True), [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]])

    def test_a_window_counts_keys_on_both_sides(self):
        self.assertEqual(seen(3, 3, window_size=(1, 0)), [[1, 0, 0], [1, 1, 0], [0, 1, 1]])
        self.assertEqual(seen(3, 3, window_size=(0, 1)), [[1, 1, 0], [0, 1, 1], [0, 0, 1]])
        self.assertEqual(seen(2, 4, window_size=(1, 1)), [[0, 1, 1, 1], [0, 0, 1, 1]])

    def test_a_causal_mask_wins_over_the_right_side_of_a_window(self):
        self.assertEqual(
            seen(4, 4, causal=True, window_size=(1, 2)),
            [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]],
        )

    def test_a_side_as_long_as_the_keys_is_no_bound(self):
        self.assertEqual(seen(2, 3, window_size=(3, 3)), [[1, 1, 1], [1, 1, 1]])
        self.assertEqual(seen(2, 3, window_size=(-1, -1)), [[1, 1, 1], [1, 1, 1]])

    def test_documents_do_not_see_each_other(self):
        q, k, v = (drawn(9, heads, seed=heads) for heads in (4, 2, 1))
        v = v.repeat(1, 2, 1)
        packed = flash_attn_varlen_func(
            q, k, v, lengths(0, 4, 9), lengths(0, 4, 9), 5, 5, causal=True, softcap=2.0
        )
        alone = [
            flash_attn_func(q[None, a:b], k[None, a:b], v[None, a:b], causal=True, softcap=2.0)[0]
            for a, b in ((0, 4), (4, 9))
        ]
        self.assertTrue(torch.equal(packed, torch.cat(alone)))

    def test_what_the_kernel_does_not_write_is_nan(self):
        q = drawn(6, 1)
        out = flash_attn_varlen_func(q, q, q, lengths(1, 4), lengths(1, 4), 2, 3)
        self.assertEqual(out[:, 0, 0].isnan().tolist(), [True, False, False, True, True, True])


class NumbersTest(unittest.TestCase):
    def test_equal_to_sdpa_with_grouped_heads_and_gradients(self):
        q, k, v = (drawn(7, heads, seed=heads).requires_grad_() for heads in (4, 2, 1))
        wide = v.expand(7, 2, 16)
        out = flash_attn_func(q[None], k[None], wide[None], causal=True, softmax_scale=0.3)
        weights = drawn(7, 4, seed=9)
        (out[0].float() * weights.float()).sum().backward()
        ours = [out[0].float(), *(x.grad.float() for x in (q, k, v))]
        leaves = [x.detach().float().requires_grad_() for x in (q, k, v)]
        rows = [x[None].transpose(1, 2) for x in (leaves[0], leaves[1], leaves[2].expand(7, 2, 16))]
        other = F.scaled_dot_product_attention(*rows, is_causal=True, scale=0.3, enable_gqa=True)
        other = other.transpose(1, 2)[0]
        (other * weights.float()).sum().backward()
        for mine, theirs in zip(ours, [other, *(x.grad for x in leaves)]):
            self.assertLess((mine - theirs).abs().max(), 0.01 * theirs.abs().max())

    def test_packed_gradients_are_those_of_the_documents_alone(self):
        q, k, v = (drawn(9, 2, seed=seed).requires_grad_() for seed in (1, 2, 3))
        cu = lengths(0, 4, 9)
        flash_attn_varlen_func(q, k, v, cu, cu, 5, 5, causal=True, window_size=(2, 0)).sum().backward()
        packed = [x.grad.clone() for x in (q, k, v)]
        for x in (q, k, v):
            x.grad = None
        for a, b in ((0, 4), (4, 9)):
            part = (x[None, a:b] for x in (q, k, v))
            flash_attn_func(*part, causal=True, window_size=(2, 0)).sum().backward()
        for mine, x in zip(packed, (q, k, v)):
            self.assertTrue(torch.equal(mine, x.grad))

    def test_softcap_and_scale_change_the_result(self):
        q = drawn(5, 1)[None]
        plain = flash_attn_func(q, q, q)
        self.assertFalse(torch.equal(plain, flash_attn_func(q, q, q, softcap=1.0)))
        self.assertFalse(torch.equal(plain, flash_attn_func(q, q, q, softmax_scale=1.0)))
        scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), q.float()) * 16**-0.5
        expected = torch.einsum("bhqk,bkhd->bqhd", (scores / 3).tanh().mul(3).softmax(-1), q.float())
        self.assertLess((flash_attn_func(q, q, q, softcap=3.0) - expected).abs().max(), 0.02)

    def test_gradients_with_a_softcap_are_those_of_autograd(self):
        leaves = [drawn(5, 1, seed=seed).float().requires_grad_() for seed in (1, 2, 3)]
        q, k, v = leaves
        scores = torch.einsum("qhd,khd->hqk", q, k) * 0.5
        hidden = torch.ones(5, 5).triu(1).bool()
        weights = (scores / 2).tanh().mul(2).masked_fill(hidden, -torch.inf).softmax(-1)
        torch.einsum("hqk,khd->qhd", weights, v).sum().backward()
        dout = torch.ones(5, 1, 16)
        ours = dense_attention.Attention(0.5, (-1, 0), 2.0).backward(dout, q, k, v)
        for mine, leaf in zip(ours, leaves):
            self.assertTrue(torch.allclose(mine, leaf.grad, atol=1e-5))

    def test_packed_forms_take_the_same(self):
        qkv = torch.stack([drawn(6, 2, seed=seed) for seed in (1, 2, 3)], 1)
        cu = lengths(0, 2, 6)
        one = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, cu, 4, causal=True)
        two = flash_attn_varlen_func(*qkv.unbind(1), cu, cu, 4, 4, causal=True)
        three = flash_attn.flash_attn_varlen_kvpacked_func(
            qkv[:, 0], qkv[:, 1:], cu, cu, 4, 4, causal=True
        )
        self.assertTrue(torch.equal(one, two) and torch.equal(two, three))


class RefusalTest(unittest.TestCase):
    def refuses(self, message: str, function, *arguments, error=RuntimeError, **keywords):
        with self.assertRaisesRegex(error, message):
            function(*arguments, **keywords)

    def test_types(self):
        q = drawn(4, 2)[None]
        self.refuses("only support fp16 and bf16", flash_attn_func, *[q.float()] * 3)
        self.refuses("query and key must have", flash_attn_func, q, q.half(), q)
        self.refuses("query and value must have", flash_attn_func, q, q, q.half())

    def test_lengths(self):
        q, cu = drawn(4, 2), lengths(0, 4)
        self.refuses(
            "cu_seqlens_q must have dtype int32", flash_attn_varlen_func, q, q, q, cu.long(), cu, 4, 4
        )
        self.refuses(
            "cu_seqlens_k must have dtype int32", flash_attn_varlen_func, q, q, q, cu, cu.long(), 4, 4
        )
        self.refuses(
            "cu_seqlens_k must have shape",
            flash_attn_varlen_func, q, q, q, cu, lengths(0, 2, 4), 4, 4,
        )  # fmt: skip
        every_other = lengths(0, 9, 4, 9)[::2]
        self.refuses(
            "must be contiguous", flash_attn_varlen_func, q, q, q, every_other, every_other, 4, 4
        )
        self.refuses(
            "leave the 4 tokens", flash_attn_varlen_func, q, q, q, lengths(0, 5), lengths(0, 4), 5, 4
        )
        self.refuses(
            "shape .* is invalid", flash_attn_varlen_func, q, q[:, :1], q[:, :1], cu, cu, 1, 4
        )

    def test_heads(self):
        q = drawn(4, 3)[None]
        self.refuses("must divide number of heads", flash_attn_func, q, q[:, :, :2], q[:, :, :2])
        wide = drawn(2, 1, 264)[None]
        self.refuses("head dimension at most 256", flash_attn_func, wide, wide, wide)
        self.refuses("Softcapping", flash_attn_func, q, q, q, dropout_p=0.1, softcap=1.0)

    def test_keywords(self):
        q = drawn(4, 2)[None]
        self.refuses("is_causal", flash_attn_func, q, q, q, is_causal=True, error=TypeError)

    def test_what_the_stand_in_lacks_is_no_refusal_of_the_kernel(self):
        q = drawn(4, 2)[None]
        lacks = NotImplementedError
        self.refuses("bkm's stand-in", flash_attn_func, q, q, q, dropout_p=0.1, error=lacks)
        self.refuses("bkm's stand-in", flash_attn.flash_attn_with_kvcache, q, q, q, error=lacks)


    def test_names_of_einops_can_be_imported_without_it(self):
        with mock.patch.dict(sys.modules, {"einops": None}):
            from flash_attn.bert_padding import rearrange
        self.refuses("einops", rearrange, torch.ones(1), "a -> a 1", error=NotImplementedError)


class NamesTest(unittest.TestCase):
    def test_operators_and_nodes_have_the_names_of_the_real_package(self):
        q = drawn(4, 2).requires_grad_()
        cu = lengths(0, 4)
        out = flash_attn_varlen_func(q, q, q, cu, cu, 4, 4)
        self.assertEqual(out.grad_fn.name(), "FlashAttnVarlenFuncBackward")
        self.assertTrue(hasattr(torch.ops.flash_attn, "_flash_attn_varlen_forward"))
        self.assertEqual(flash_attn_func(*[q[None]] * 3).grad_fn.name(), "FlashAttnFuncBackward")

    def test_parameters_are_those_of_2_8_3(self):
        rest = ["dropout_p", "softmax_scale", "causal", "window_size", "softcap"]
        rest += ["alibi_slopes", "deterministic", "return_attn_probs"]
        packed = ["cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"]
        self.assertEqual([*inspect.signature(flash_attn_func).parameters], ["q", "k", "v", *rest])
        self.assertEqual(
            [*inspect.signature(flash_attn_varlen_func).parameters],
            ["q", "k", "v", *packed, *rest, "block_table"],
        )

    def test_the_distribution_names_every_file(self):
        self.assertEqual(importlib.metadata.version("flash_attn"), flash_attn.__version__)
        record = (FOLDER / "flash_attn-2.8.3.dist-info/RECORD").read_text()
        names = {line.split(",")[0] for line in record.splitlines()}
        there = {
            str(path.relative_to(FOLDER))
            for path in FOLDER.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        self.assertEqual(names, there)


class PaddingTest(unittest.TestCase):
    def test_rows_lose_their_padding_and_get_it_back(self):
        mask = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 1, 0]])
        rows = torch.arange(1, 19.0).view(3, 3, 2).requires_grad_()
        tokens, indices, cu, longest, used = bert_padding.unpad_input(rows, mask)
        self.assertEqual(indices.tolist(), [0, 1, 4, 5, 7])
        self.assertEqual((cu.tolist(), cu.dtype, longest), ([0, 2, 4, 5], torch.int32, 2))
        self.assertEqual(used.tolist(), [2, 2, 1])
        back = bert_padding.pad_input(tokens, indices, 3, 3)
        self.assertTrue(torch.equal(back, rows * mask[..., None]))
        back.sum().backward()
        self.assertTrue(torch.equal(rows.grad, mask[..., None].expand(3, 3, 2).float()))

    def test_tokens_of_another_mask_stay(self):
        mask, unused = torch.tensor([[1, 0, 0]]), torch.tensor([[0, 1, 0]])
        tokens, _, cu, _, used = bert_padding.unpad_input(torch.ones(1, 3, 1), mask, unused)
        self.assertEqual((len(tokens), cu.tolist(), used.tolist()), (2, [0, 2], [1]))


class CrossEntropyTest(unittest.TestCase):
    def test_equal_to_torch(self):
        logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
        labels = torch.tensor([1, 6, -100, 0, 3])
        for smoothing in (0.0, 0.2):
            logits.grad = None
            losses, z_losses = cross_entropy_loss(logits, labels, label_smoothing=smoothing)
            losses.sum().backward()
            other = logits.detach().clone().requires_grad_()
            F.cross_entropy(other, labels, label_smoothing=smoothing, reduction="sum").backward()
            self.assertTrue(torch.allclose(logits.grad, other.grad, atol=1e-6))
            self.assertEqual((losses[2].item(), z_losses.abs().max().item()), (0.0, 0.0))

    def test_in_place_the_gradient_lies_in_the_logits(self):
        weights = torch.randn(4, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()
        logits = weights * 1.0
        losses, _ = cross_entropy_loss(logits, torch.tensor([0, 1, 2, 3]), inplace_backward=True)
        losses.sum().backward()
        self.assertTrue(torch.equal(logits.detach(), weights.grad))

    def test_the_logsumexp_counts_squared(self):
        logits = torch.tensor([[0.0, 0.0]])
        losses, z_losses = cross_entropy_loss(logits, torch.tensor([0]), lse_square_scale=0.5)
        lse = torch.tensor(2.0).log()
        self.assertTrue(torch.allclose(z_losses, 0.5 * lse**2))
        self.assertTrue(torch.allclose(losses, lse + 0.5 * lse**2))


if __name__ == "__main__":
    unittest.main()
