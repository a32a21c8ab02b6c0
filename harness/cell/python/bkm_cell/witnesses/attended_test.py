# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Relations equal the mask in every layout; an unreadable call is an error."""

import itertools
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention.flex_attention import create_block_mask

from bkm_cell.older_torch import DTensor, Replicate
from bkm_cell.witnesses.attended import Attended, watch_calls

LENGTHS = [7, 30, 3]
T = sum(LENGTHS)


def documents():
    """Causal inside each document."""
    document = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    return (document[:, None] == document[None, :]).tril()


def window(width):
    position = torch.arange(T)
    return documents() & (position[:, None] - position[None, :] < width)


def heads_first(q, k, v, *, mask, sink=None, dtype=torch.float32):
    """Takes and returns [B, heads, T, H]; `mask` is [T, T] or [heads, T, T]."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.mT).float() / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.expand(*scores.shape[:-1], 1)], -1)
    weights = torch.softmax(scores, -1)[..., : k.shape[2]].to(dtype)
    return weights @ v.to(dtype)


def qkv(heads=4, kv_heads=2, features=16, v_features=None, dtype=torch.float32):
    torch.manual_seed(1)
    sizes = ((heads, features), (kv_heads, features), (kv_heads, v_features or features))
    return [torch.randn(1, count, T, width).to(dtype) for count, width in sizes]


class Gathered(torch.nn.Module):
    """An attention of own queries and all keys, with a mask of these."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask

    def forward(self, q, k, v):
        return heads_first(q, k, v, mask=self.mask)


class GatheringRanks:
    """Two ranks in threads, each with a part of the row. Their attention gathers all keys.

    `in_hook`: a pre-hook of the attention gathers them. `gathers_backwards`: the last rank's keys come
    first, although the mask expects them last."""

    def __init__(self, parts, mask, in_hook=False, gathers_backwards=False):
        self.parts, self.mask = parts, mask  # `mask`: [T, T], in the order of the packed row
        self.in_hook, self.order = in_hook, -1 if gathers_backwards else 1
        self.slots, self.meet = [None, None], threading.Barrier(2, timeout=30)

    def gathered(self, rank, tensor):
        self.slots[rank] = tensor
        self.meet.wait()
        whole = torch.cat(self.slots[:: self.order], 2)
        self.meet.wait()
        return whole

    def attention(self, rank):
        """Gathers in its forward or in a hook before it."""

        def gather(_, arguments):
            q, k, v = arguments
            return q, self.gathered(rank, k), self.gathered(rank, v)

        module = Gathered(self.mask[self.parts[rank]][:, torch.cat(self.parts)])
        if self.in_hook:
            module.register_forward_pre_hook(gather)
        else:
            forward = module.forward
            module.forward = lambda q, k, v: forward(*gather(None, (q, k, v)))
        return module

    def read(self, ids, positions, lengths=LENGTHS):
        whole = qkv()

        def one(rank):
            attended = Attended(lengths, input_ids=ids[: sum(lengths)], parts=2)
            part = self.parts[rank]
            attended.entered((ids[part][None],), {"positions": positions[part][None]})
            module, calls = self.attention(rank), []
            with ExitStack() as stack:
                watch_calls(stack, module, lambda *call: calls.append(call))
                module(*(tensor[:, :, part] for tensor in whole))
            ((_, repeat, arguments, named),) = calls
            attended.read(0, repeat, arguments, named)
            return attended

        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(one, range(2)))


def read(function, arguments, **named):
    attended = Attended([T])
    attended.read(3, function, tuple(arguments), named)
    return attended


class AttendedTest(unittest.TestCase):
    def test_ranks_that_gather_keys_show_the_whole_row_together(self):
        torch.manual_seed(3)
        ids = torch.randint(0, 500, (T,))
        positions = torch.cat([torch.arange(n) for n in LENGTHS])
        row = torch.arange(T)
        masks = (documents(), window(4))
        cuts = ((row[:20], row[20:]), (row[[*range(10), *range(30, 40)]], row[10:30]))
        for parts, expected, in_hook in itertools.product(cuts, masks, (False, True)):
            ranks = GatheringRanks(parts, expected, in_hook).read(ids, positions)
            self.assertEqual([one.error for one in ranks], [None, None])
            seen = [next(iter(one.relations.values())) for one in ranks]
            self.assertTrue(torch.equal((seen[0] | seen[1]).bool(), expected))
            self.assertFalse(seen[0][parts[1]].any())

    def test_keys_that_are_gathered_in_another_order_than_their_mask_show(self):
        ids = torch.arange(100, 100 + T)
        positions = torch.cat([torch.arange(n) for n in LENGTHS])
        parts = (torch.arange(20), torch.arange(20, T))
        for in_hook in (False, True):
            first, last = GatheringRanks(parts, documents(), in_hook, True).read(ids, positions)
            self.assertEqual([first.error, last.error], [None, None])
            (relation,) = first.relations.values()
            expected = torch.zeros(T, T, dtype=torch.bool)
            expected[:20, 20:] = documents()[:20, :20]
            self.assertTrue(torch.equal(relation.bool(), expected))

    def test_a_rank_with_nothing_but_padding_reads_beside_the_others(self):
        lengths, ids = [7, 13], torch.full((T,), 9)
        ids[:20] = torch.arange(100, 120)
        positions = torch.cat([torch.arange(n) for n in (7, 13, 20)])
        document = torch.repeat_interleave(torch.arange(3), torch.tensor([7, 13, 20]))
        expected = (document[:, None] == document[None, :]).tril()
        ranks = GatheringRanks((torch.arange(20), torch.arange(20, T)), expected)
        first, last = ranks.read(ids, positions, lengths)
        self.assertEqual([first.error, last.error], [None, None])
        (relation,) = first.relations.values()
        self.assertTrue(torch.equal(relation.bool(), expected[:20, :20]))
        self.assertFalse(next(iter(last.relations.values())).any())

    def test_a_row_that_is_cut_off_shows_what_is_left(self):
        ids = torch.arange(100, 100 + T)
        attended = Attended(LENGTHS, input_ids=ids)
        attended.entered((ids[None, :30],), {})
        own = tuple(tensor[:, :, :30] for tensor in qkv())
        attended.read(0, heads_first, own, {"mask": documents()[:30, :30]})
        self.assertIsNone(attended.error)
        expected = documents()
        expected[30:] = False
        (relation,) = attended.relations.values()
        self.assertTrue(torch.equal(relation.bool(), expected))

    def assert_reads(self, expected, function, arguments, /, **named):
        attended = read(function, arguments, **named)
        self.assertIsNone(attended.error)
        (relation,) = attended.relations.values()
        self.assertEqual(relation.dtype, torch.uint8)
        self.assertTrue(torch.equal(relation.bool(), expected))

    def assert_says(self, words, function, arguments, /, **named):
        attended = read(function, arguments, **named)
        self.assertIn(words, attended.error or "")
        self.assertEqual(attended.facts().keys(), {"attended_error"})

    def test_facts_name_layer_and_relation(self):
        attended = read(heads_first, qkv(), mask=documents())
        (digest,) = attended.relations
        self.assertEqual(attended.facts(), {"attended": [{"layer": 3, "relation": digest}]})

    def test_padded_rows_are_read_in_the_flat_order(self):
        lengths = [5, 9, 3]
        rows = torch.ones(3, 1, 9, 9, dtype=torch.bool).tril()
        for row, length in enumerate(lengths):
            rows[row, :, :, length:] = False
        rows[1, 0, 7, 2] = False
        expected = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths))
        expected[5 + 7, 5 + 2] = 0
        q, k, v = (torch.randn(3, 4, 9, 16) for _ in range(3))
        attended = Attended(lengths, is_padded=True)
        attended.read(0, heads_first, (q, k, v), {"mask": rows})
        self.assertIsNone(attended.error)
        (seen,) = attended.relations.values()
        self.assertTrue(torch.equal(seen, expected.to(torch.uint8)))

    def test_equal_relations_are_kept_once(self):
        attended = Attended([T])
        for layer, mask in enumerate((documents(), window(5), documents())):
            attended.read(layer, heads_first, tuple(qkv()), {"mask": mask})
        digests = [entry["relation"] for entry in attended.layers]
        self.assertEqual(digests[0], digests[2])
        self.assertEqual(attended.relations.keys(), {digests[0], digests[1]})

    def test_masks_are_read_in_fp32_and_bf16_for_few_and_many_heads(self):
        for dtype in (torch.float32, torch.bfloat16):
            for heads, kv_heads, features in ((4, 2, 16), (2, 1, 64), (12, 12, 8), (72, 72, 8)):
                for mask in (documents(), window(6), torch.ones(T, T, dtype=torch.bool)):
                    arguments = qkv(heads, kv_heads, features, dtype=dtype)
                    self.assert_reads(mask, heads_first, arguments, mask=mask, dtype=dtype)

    def test_one_pair_too_many_or_too_few_shows(self):
        for query, key in ((7, 6), (36, 0), (20, 21), (12, 12), (39, 38)):
            mask = documents()
            mask[query, key] = ~mask[query, key]
            self.assert_reads(mask, heads_first, qkv(), mask=mask)

    def test_tokens_first_and_joined_or_flattened_outputs(self):
        def tokens_first(q, k, v):  # (B, L, N, H), as HF returns it and torchtitan takes it
            return heads_first(*(x.transpose(1, 2) for x in (q, k, v)), mask=mask).transpose(1, 2)

        def flattened(q, k, v):  # (T, N, H), as varlen kernels return it
            return heads_first(q, k, v, mask=mask).transpose(1, 2).flatten(0, 1)

        def with_weights(q, k, v):
            return tokens_first(q, k, v).flatten(2), None

        mask = documents()
        q, k, v = qkv()
        swapped = [x.transpose(1, 2) for x in (q, k, v)]
        self.assert_reads(mask, tokens_first, swapped)
        self.assert_reads(mask, with_weights, swapped)
        self.assert_reads(mask, flattened, (q, k, v))

    def test_q_k_and_v_may_be_keywords_of_any_name(self):
        def named_otherwise(xq, xk, xv, *, attention_masks):
            return heads_first(xq, xk, xv, mask=attention_masks)

        q, k, v = qkv()
        attended = read(named_otherwise, (q,), xk=k, xv=v, attention_masks=window(4))
        (relation,) = attended.relations.values()
        self.assertTrue(torch.equal(relation.bool(), window(4)))

    def test_v_may_have_other_features_than_q_and_sinks_take_their_share(self):
        sink = torch.tensor([3.0, -2.0, 0.0, 1.0]).reshape(1, 4, 1, 1)
        self.assert_reads(window(9), heads_first, qkv(v_features=24), mask=window(9), sink=sink)

    def test_interleaved_groups_are_no_mask(self):
        def interleaved(q, k, v):
            k, v = (x.repeat(1, 2, 1, 1) for x in (k, v))
            return heads_first(q, k, v, mask=documents())

        self.assert_reads(documents(), interleaved, qkv())

    def test_a_head_without_its_mask_shows_in_the_keys_that_it_shows(self):
        mask = documents().expand(4, T, T).clone()
        mask[3] = torch.ones(T, T).tril().bool()
        (relation,) = read(heads_first, qkv(), mask=mask).relations.values()
        self.assertGreater(int(relation.sum()), int(documents().sum()))

    def test_flex_and_sdpa_of_torch(self):
        from torch.nn.attention.flex_attention import flex_attention

        mask = documents()
        block = create_block_mask(lambda b, h, q, kv: mask[q, kv], 1, None, T, T, device="cpu")
        self.assert_reads(mask, flex_attention, qkv(), block_mask=block, enable_gqa=True)
        self.assert_reads(
            mask, F.scaled_dot_product_attention, qkv(4, 4), attn_mask=mask[None, None]
        )
        causal = torch.ones(T, T).tril().bool()
        self.assert_reads(causal, F.scaled_dot_product_attention, qkv(4, 4), is_causal=True)

    def test_padded_rows_are_read_document_by_document(self):
        def padded(q, k, v, *, width, masked_padding):
            """[documents, heads, longest, H]; padding attends to nothing, so its output is NaN."""
            longest = q.shape[2]
            position = torch.arange(longest)
            distance = position[:, None] - position[None, :]
            real = position[None, :] < torch.tensor(LENGTHS)[:, None]
            mask = ((distance >= 0) & (distance < width)).expand(len(LENGTHS), longest, longest)
            if masked_padding:
                mask = mask & real[:, None, :] & real[:, :, None]
            return heads_first(q, k, v, mask=mask[:, None])

        torch.manual_seed(1)
        sizes = ((4, 16), (2, 16), (2, 16))
        q, k, v = (torch.randn(len(LENGTHS), n, max(LENGTHS) + 2, h) for n, h in sizes)
        for width, expected in ((99, documents()), (4, window(4))):
            for masked in (False, True):
                attended = Attended(LENGTHS, is_padded=True)
                named = {"width": width, "masked_padding": masked}
                attended.read(0, padded, (q, k, v), named)
                self.assertIsNone(attended.error)
                (relation,) = attended.relations.values()
                self.assertTrue(torch.equal(relation.bool(), expected))

    def test_tensors_of_a_mesh_stay_of_it_and_their_own_part_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            store = f"file://{folder}/store"
            torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
            try:
                mesh = init_device_mesh("cpu", (1,))

                def attention(q, k, v):
                    assert isinstance(q, DTensor) and isinstance(v, DTensor)
                    local = (each.to_local() for each in (q, k, v))
                    output = heads_first(*local, mask=documents())
                    return DTensor.from_local(output, mesh, [Replicate()])

                spread = [DTensor.from_local(each, mesh, [Replicate()]) for each in qkv()]
                attended = read(attention, spread)
            finally:
                torch.distributed.destroy_process_group()
        self.assertIsNone(attended.error)
        (relation,) = attended.relations.values()
        self.assertTrue(torch.equal(relation.bool(), documents()))

    def test_as_many_heads_as_tokens_are_told_apart_by_what_they_show(self):
        lengths = [9, 7]
        mask = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths)).bool()
        q, k, v = (torch.randn(1, 16, 16, 32) for _ in range(3))
        for tokens_first in (False, True):

            def attention(q, k, v, tokens_first=tokens_first):
                out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                return out.transpose(1, 2) if tokens_first else out

            attended = Attended(lengths)
            attended.read(0, attention, (q, k, v), {})
            self.assertIsNone(attended.error)
            (relation,) = attended.relations.values()
            self.assertTrue(torch.equal(relation.bool(), mask))

    def test_what_is_no_attention_is_an_error(self):
        def mixed_up(q, k, v):  # features in the order (H, N)
            out = heads_first(q, k, v, mask=documents())
            return out.permute(0, 2, 3, 1).reshape(1, T, -1).unflatten(-1, (4, -1)).transpose(1, 2)

        def swapped(q, k, v):
            return heads_first(q, v, k, mask=documents())

        def stops(q, k, v):
            raise RuntimeError("no kernel")

        q, k, v = qkv()
        self.assert_says("in their places", mixed_up, (q, k, v))
        self.assert_says("probabilities", swapped, (q, k, v))
        self.assert_says("RuntimeError: no kernel", stops, (q, k, v))
        self.assert_says("not the tensors q, k and v", lambda q, k, v: q, (q, k))
        self.assert_says("no axis of 40 tokens", heads_first, [x[:, :, :9] for x in (q, k, v)])
        self.assert_says("not a tensor", lambda q, k, v: None, (q, k, v))

    def test_nothing_of_the_cell_changes(self):
        q, k, v = qkv()
        q.requires_grad_()
        before = [x.detach().clone() for x in (q, k, v)]
        state = torch.get_rng_state()
        read(lambda q, k, v: F.dropout(heads_first(q, k, v, mask=documents()), 1e-9), (q, k, v))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertIsNone(q.grad)
        for now, then in zip((q, k, v), before, strict=True):
            self.assertTrue(torch.equal(now, then))


if __name__ == "__main__":
    unittest.main()
