# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A trainer's batch is read from the model's keywords, and brought into the probe's order."""

import unittest
from types import SimpleNamespace

import torch

from bkm_cell.probe import Batch
from bkm_cell.witnesses.given_batch import (
    GivenCall,
    UnreadableBatch,
    by_name,
    documents_in,
    given_batch,
    order_of,
)

PROBE = Batch(torch.tensor([5, 6, 7, 8, 9, 5]), torch.zeros(6).long(), [3, 2, 1])


class GivenBatchTest(unittest.TestCase):
    def test_positions_that_restart_are_borders(self):
        ids = torch.tensor([[8, 9, 5, 6, 7, 5]])
        given = given_batch({"input_ids": ids, "position_ids": torch.tensor([[0, 1, 0, 1, 2, 0]])})
        self.assertEqual(given.batch.lengths, [2, 3, 1])
        self.assertEqual(given.batch.input_ids.tolist(), ids[0].tolist())

    def test_rows_are_documents_without_their_padding(self):
        ids = torch.tensor([[5, 6, 7], [0, 8, 9], [5, 0, 0]])
        mask = torch.tensor([[1, 1, 1], [0, 1, 1], [1, 0, 0]])
        given = given_batch({"input_ids": ids, "attention_mask": mask})
        self.assertEqual(given.batch.lengths, [3, 2, 1])
        self.assertEqual(given.batch.input_ids.tolist(), PROBE.input_ids.tolist())
        again = GivenCall({"input_ids": ids, "x": 1}, given).with_tokens(torch.arange(10, 16))
        self.assertEqual(again["input_ids"].tolist(), [[10, 11, 12], [0, 13, 14], [15, 0, 0]])
        self.assertEqual(again["x"], 1)
        self.assertEqual(ids[0, 0], 5, "the trainer's own tensor stays")

    def test_a_row_without_positions_is_cut_into_the_documents_that_are_known(self):
        known = [torch.tensor([5, 6, 7]), torch.tensor([8, 9])]
        given = given_batch({"tokens": torch.tensor([[8, 9, 5, 6, 7]])}, known)
        self.assertEqual(given.batch.lengths, [2, 3])
        given = given_batch({"tokens": torch.tensor([[8, 9, 5, 6, 1, 8, 9]])}, known)
        self.assertEqual(given.batch.lengths, [2, 5], "what is unknown stays whole")

    def test_what_fills_up_a_row_is_no_document(self):
        known = [torch.tensor([5, 6, 7]), torch.tensor([8, 9]), torch.tensor([2])]
        ids = torch.tensor([[5, 6, 7, 2, 2], [8, 9, 8, 9, 2]])
        positions = torch.tensor([[0, 1, 2, 0, 1], [0, 1, 0, 1, 0]])
        for named in ({"tokens": ids}, {"tokens": ids, "positions": positions}):
            given = given_batch(named, known[:2])
            self.assertEqual(given.batch.lengths, [3, 2, 2])
            self.assertEqual(given.places.tolist(), [0, 1, 2, 5, 6, 7, 8])
        given = given_batch({"tokens": ids, "positions": positions}, known)
        self.assertEqual(given.batch.lengths, [3, 2, 2, 1], "a known document is one")

    def test_arguments_by_place_have_the_names_of_the_model(self):
        class Model(torch.nn.Module):
            def forward(self, tokens, attention_masks=None, positions=None):
                return tokens

        ids, positions = torch.tensor([[8, 9, 5]]), torch.tensor([[0, 1, 0]])
        named = by_name(Model(), (ids,), {"positions": positions})
        self.assertEqual(sorted(named), ["positions", "tokens"])
        given = given_batch(named)
        self.assertEqual(given.batch.lengths, [2, 1])
        again = GivenCall(named, given).with_tokens(torch.tensor([1, 2, 3]))
        self.assertEqual(again["tokens"].tolist(), [[1, 2, 3]])

    def test_a_call_without_tokens_is_unreadable(self):
        for named in ({}, {"input_ids": torch.tensor([1, 2])}, {"inputs_embeds": torch.ones(1, 2, 3)}):
            with self.assertRaises(UnreadableBatch):
                given_batch(named)


def order_in(given, kept=PROBE):
    documents = documents_in(kept, given)
    return None if documents is None else order_of(kept, [documents])


def batch_of(tokens, lengths):
    return Batch(torch.tensor(tokens), torch.zeros(len(tokens)).long(), lengths)


class OrderTest(unittest.TestCase):
    def setUp(self):
        self.given = batch_of([5, 8, 9, 5, 6, 7], [1, 2, 3])
        self.order = order_in(self.given)

    def test_tokens_go_there_and_values_come_back(self):
        theirs = self.order.of(PROBE)
        self.assertEqual(theirs.input_ids.tolist(), self.given.input_ids.tolist())
        self.assertEqual(theirs.lengths, [1, 2, 3])
        self.assertEqual(self.order.whole(PROBE, theirs.input_ids).tolist(), PROBE.input_ids.tolist())
        self.assertIsNone(self.order.whole(PROBE, None))
        self.assertEqual(self.order.beside(PROBE), {})

    def test_relations_are_those_of_the_probe(self):
        relation = torch.zeros(6, 6, dtype=torch.uint8)
        relation[4, 3] = 1  # the second token of their last document sees its first
        attended = SimpleNamespace(
            relations={"x": relation}, layers=[{"layer": 0, "relation": "x"}]
        )
        self.order.whole_relations(PROBE, attended)
        (digest,) = attended.relations
        self.assertEqual(attended.layers, [{"layer": 0, "relation": digest}])
        self.assertEqual(attended.relations[digest].nonzero().tolist(), [[1, 0]])

    def test_equal_documents_are_dealt_once_each(self):
        twice = batch_of([5, 6, 5, 6], [2, 2])
        self.assertEqual(order_in(twice, twice).places.tolist(), [0, 1, 2, 3])

    def test_some_documents_are_a_batch_of_the_dataset(self):
        kept = Batch(torch.tensor([5, 6, 7, 8, 9, 4]), torch.ones(6).long(), [2, 3, 1], after=(1, 2, 3))
        order = order_in(batch_of([4, 5, 6], [1, 2]), kept)
        batch = order.batch(kept)
        self.assertEqual(order.documents, (2, 0))
        self.assertEqual(batch.input_ids.tolist(), [5, 6, 4])
        self.assertEqual((batch.lengths, batch.after), ([2, 1], (1, 3)))
        self.assertEqual(order.of(batch).input_ids.tolist(), [4, 5, 6])
        self.assertEqual(order.whole(batch, torch.tensor([4, 5, 6])).tolist(), [5, 6, 4])

    def test_a_document_that_came_twice_is_there_twice(self):
        order = order_in(batch_of([5, 8, 9, 5], [1, 2, 1]))
        self.assertEqual(len(order.documents), 3)
        self.assertEqual(len(order.batch(PROBE).input_ids), 4)
        self.assertEqual(sorted(order.places.tolist()), [0, 1, 2, 3])

    def test_a_rank_has_a_part_of_the_whole_batch(self):
        first, second = (order_of(PROBE, [[2], [1, 0]], rank) for rank in range(2))
        self.assertEqual(first.of(PROBE).input_ids.tolist(), [5])
        self.assertEqual(second.of(PROBE).input_ids.tolist(), [8, 9, 5, 6, 7])
        self.assertEqual(first.whole(PROBE, torch.tensor([3])).tolist(), [0, 0, 0, 0, 0, 3])
        self.assertEqual(second.beside(PROBE)["owned"].tolist(), [1, 1, 1, 1, 1, 0])
        self.assertEqual(second.batch(PROBE).input_ids.tolist(), PROBE.input_ids.tolist())

    def test_ranks_that_have_one_document_both_have_it_in_turn(self):
        first, second = (order_of(PROBE, [[1], [1]], rank) for rank in range(2))
        self.assertEqual(first.places.tolist() + second.places.tolist(), [0, 1, 2, 3])

    def test_other_documents_have_no_order(self):
        self.assertIsNone(order_in(batch_of([5, 6, 7, 8, 8, 5], [3, 2, 1])), "one has another token")
        self.assertIsNone(order_in(batch_of([5, 6, 7, 8, 9, 5], [3, 1, 2])), "borders differ")


if __name__ == "__main__":
    unittest.main()
