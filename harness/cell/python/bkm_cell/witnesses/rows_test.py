# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Documents are found where an engine put them, and relations are read in the batch's order."""

import unittest

import torch
import torch.nn.functional as F

from bkm_cell.faults.harmless_rows import arranged
from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.rows import Part, Rows

LENGTHS = [7, 1, 12, 3]
T = sum(LENGTHS)
IDS = torch.arange(100, 100 + T)
DOCUMENTS = list(IDS.split(LENGTHS))

ARRANGEMENTS = {
    "as asked": [(0, 7), (1, 1), (2, 12), (3, 3)],
    "padded": [(0, 7), (1, 1), (2, 12), (3, 3), (None, 9)],
    "padded in front": [(None, 9), (0, 7), (1, 1), (2, 12), (3, 3)],
    "padded between": [(0, 7), (None, 1), (1, 1), (None, 7), (2, 12), (None, 4), (3, 3)],
    "in another order": [(2, 12), (3, 3), (0, 7), (1, 1)],
}


def same_document(lengths):
    document = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return (document[:, None] == document[None, :]).tril()


def read(relation, length, attended):
    torch.manual_seed(1)
    q, k, v = (torch.randn(len(relation), 4, length, 16) for _ in range(3))
    mask = relation[:, None]
    attended.read(0, F.scaled_dot_product_attention, (q, k, v), {"attn_mask": mask})
    return attended


class RowsTest(unittest.TestCase):
    def test_relations_are_in_the_order_of_the_batch_wherever_the_documents_are(self):
        for name, parts in ARRANGEMENTS.items():
            row = arranged(LENGTHS, lambda _, parts=parts: parts)
            for leak in (False, True):
                inside, expected = same_document(row.lengths), same_document(LENGTHS)
                if leak:  # the last document's first token sees the first document's second
                    query, key = row.back[sum(LENGTHS[:3])], row.back[1]
                    inside[query, key] = expected[sum(LENGTHS[:3]), 1] = True
                attended = Attended(LENGTHS, input_ids=IDS)
                attended.entered((row.of(IDS)[None],), {"positions": row.positions[None]})
                read(inside[None], len(row.source), attended)
                self.assertIsNone(attended.error, name)
                (relation,) = attended.relations.values()
                self.assertTrue(torch.equal(relation.bool(), expected), name)

    def test_documents_in_several_rows(self):
        rows = torch.zeros(2, 14, dtype=torch.long)
        rows[0, 2:14], rows[1, :7], rows[1, 7:10], rows[1, 13] = *DOCUMENTS[2::-2], *DOCUMENTS[3::-2]
        found = Rows.found(DOCUMENTS, (), {"input_ids": rows})
        self.assertEqual(found.places, [(1, 0), (1, 13), (0, 2), (1, 7)])
        inside = torch.zeros(2, 14, 14, dtype=torch.bool)
        inside[0, 2:, 2:] = same_document([12])
        inside[1] = same_document([7, 3, 3, 1])
        attended = Attended(LENGTHS, input_ids=IDS)
        attended.entered((), {"input_ids": rows})
        (relation,) = read(inside, 14, attended).relations.values()
        self.assertTrue(torch.equal(relation.bool(), same_document(LENGTHS)))

    def test_a_short_document_is_found_where_positions_begin(self):
        row = arranged(LENGTHS, lambda _: [(None, 5), (2, 12), (1, 1), (0, 7), (3, 3)])
        ids = row.of(IDS)
        ids[:5] = DOCUMENTS[1][0]  # padding looks like the document of one token
        found = Rows.found(DOCUMENTS, (ids[None],), {"positions": row.positions[None]})
        self.assertEqual(found.places[1], (0, 17))

    def test_the_layout_that_was_asked_for_comes_before_others(self):
        eos = 9
        for lengths in ([9, 1, 20], [1, 1, 1], [1, 3, 1, 2], [5, 5]):
            ids = torch.arange(100, 100 + sum(lengths))
            documents = list(ids.split(lengths))
            for document in documents:
                document[-1] = eos  # a document of one token looks like padding
            if lengths == [5, 5]:
                documents[1].copy_(documents[0])
            longest = max(lengths)
            rows = torch.full((len(lengths), longest), eos)
            positions = torch.zeros_like(rows)
            for row, document in enumerate(documents):
                rows[row, : len(document)] = document
                positions[row, : len(document)] = torch.arange(len(document))
            mask = torch.tensor(lengths)[:, None] > torch.arange(longest)
            named = {"attention_mask": mask.long(), "position_ids": positions, "input_ids": rows}
            found = Rows.found(documents, (), named, is_padded=True)
            self.assertEqual(found.places, [(row, 0) for row in range(len(lengths))], lengths)
            # One packed row, beside integers in which short documents are found by chance.
            named = {"labels": torch.full((1, 40), eos), "input_ids": ids[None]}
            found = Rows.found(documents, (), named)
            self.assertEqual(found.places, Rows.as_asked(lengths, False).places, lengths)
            self.assertEqual(found.length, len(ids))

    def test_padding_that_the_attention_mask_hides_is_no_document(self):
        rows = torch.tensor([[9, 9, 9, 7, 8], [9, 9, 9, 9, 9], [1, 2, 3, 4, 5]])
        mask = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]])
        documents = [torch.tensor([7, 8]), torch.tensor([9]), torch.arange(1, 6)]
        named = {"input_ids": rows, "attention_mask": mask}
        found = Rows.found(documents, (), named, is_padded=True)
        self.assertEqual(found.places, [(0, 3), (1, 4), (2, 0)])

    def test_a_part_is_found_in_pieces(self):
        whole = torch.cat([IDS, torch.full((32 - T,), 9)])
        positions = torch.cat([torch.cat([torch.arange(n) for n in LENGTHS]), torch.arange(32 - T)])
        for pieces in ([range(0, 8), range(24, 32)], [range(16, 24), range(8, 16)]):
            index = torch.tensor([at for piece in pieces for at in piece])
            named = {"positions": positions[index][None]}
            part = Part.found(DOCUMENTS, (whole[index][None],), named)
            self.assertEqual(part.places.tolist(), index.where(index < T, -1).tolist())
            told = positions[index]
            anew = torch.where((told == 0).cumsum(0) == 0, told - 1, told)
            ones = torch.ones(1, len(index), dtype=torch.long)
            named = {"attention_mask": ones, "ids": whole[index][None], "positions": anew[None]}
            part = Part.found(DOCUMENTS, (), named)
            self.assertEqual(part.places.tolist(), index.where(index < T, -1).tolist())

    def test_no_part_of_other_numbers(self):
        self.assertIsNone(Part.found(DOCUMENTS, (torch.arange(-16, 0)[None],), {}))
        ends = [torch.tensor([3, 4, 5, 6, 7, 9]), torch.tensor([9])]
        named = {"positions": torch.arange(40, 56)[None]}
        padding = Part.found(ends, (torch.full((1, 16), 9),), named)
        self.assertEqual(padding.places.tolist(), [-1] * 16)
        named = {"positions": torch.arange(16)[None]}
        padding = Part.found(DOCUMENTS, (torch.full((1, 16), 9),), named)
        self.assertEqual(padding.places.tolist(), [-1] * 16)

    def test_what_is_not_found_is_taken_as_asked(self):
        self.assertIsNone(Rows.found(DOCUMENTS, (IDS.flip(0)[None], IDS.float()[None]), {}))
        attended = Attended(LENGTHS, input_ids=IDS)
        attended.entered((), {"inputs_embeds": torch.randn(1, T, 8)})
        (relation,) = read(same_document(LENGTHS)[None], T, attended).relations.values()
        self.assertTrue(torch.equal(relation.bool(), same_document(LENGTHS)))


if __name__ == "__main__":
    unittest.main()
