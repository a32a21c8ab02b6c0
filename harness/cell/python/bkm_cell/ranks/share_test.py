# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Documents are dealt once, and a rank's answers are put where its documents are."""

import unittest

import torch

from bkm_cell.probe import Batch
from bkm_cell.ranks.layout import Layout
from bkm_cell.ranks.share import Share
from bkm_cell.witnesses.attended import Attended

LENGTHS = [3, 1, 4, 2, 5]
T = sum(LENGTHS)
BATCH = Batch(torch.arange(100, 100 + T), torch.ones(T, dtype=torch.long), LENGTHS)


class LayoutTest(unittest.TestCase):
    def test_ranks_and_their_parts_of_the_batch(self):
        layout = Layout.parse("dp_replicate=2+dp_shard=2+tp=2")
        self.assertEqual(layout.ranks, 8)
        self.assertEqual([layout.data_rank(rank) for rank in range(8)], [0, 0, 1, 1, 2, 2, 3, 3])
        ulysses = Layout.parse("dp_shard=2+ulysses=2")
        self.assertEqual([ulysses.data_rank(rank) for rank in range(4)], [0, 0, 1, 1])
        self.assertEqual(Layout.parse("ep=2").data_ranks, 2)
        self.assertEqual(Layout.parse("").ranks, 1)


class ShareTest(unittest.TestCase):
    def test_every_document_is_dealt_once_in_order(self):
        for ranks in (1, 2, 3, 5):
            dealt = [d for rank in range(ranks) for d in Share(rank, ranks).documents(BATCH)]
            self.assertEqual(dealt, list(range(len(LENGTHS))))
            tokens = torch.cat([Share(rank, ranks).of(BATCH).input_ids for rank in range(ranks)])
            self.assertTrue(torch.equal(tokens, BATCH.input_ids))

    def test_a_share_knows_the_whole_batch_and_keeps_it_in_micro_batches(self):
        share = Share(1, 2).of(BATCH)
        self.assertEqual(share.lengths, [2, 5])
        self.assertEqual((share.documents_of_all, share.tokens_that_count), (5, T))
        for part in share.micro_batches(2):
            self.assertEqual(part.tokens_that_count, T)

    def test_answers_go_to_the_places_of_the_rank(self):
        share = Share(1, 2, is_one_of_several=True)
        whole = share.whole(BATCH, torch.arange(1.0, 8.0))
        self.assertEqual(whole.tolist(), [0.0] * 8 + [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(share.beside(BATCH)["owned"].tolist(), [0] * 8 + [1] * 7)

    def test_relations_go_to_the_block_of_the_rank(self):
        attended = Attended([2, 5])
        attended.relations = {"a": torch.ones(7, 7, dtype=torch.uint8)}
        attended.layers = [{"layer": 0, "relation": "a"}]
        Share(1, 2).whole_relations(BATCH, attended)
        (relation,) = attended.relations.values()
        self.assertEqual(relation.shape, (T, T))
        self.assertEqual(int(relation.sum()), 49)
        self.assertEqual(int(relation[8:, 8:].sum()), 49)
        self.assertEqual(attended.layers[0]["relation"], next(iter(attended.relations)))


if __name__ == "__main__":
    unittest.main()
