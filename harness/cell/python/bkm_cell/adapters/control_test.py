# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What a model returns is checked against the probe before it is used."""

import unittest

import torch

from bkm_cell.adapters.base import WrongShape, log_probs_of

IDS = torch.tensor([1, 0, 2])


class LogProbsTest(unittest.TestCase):
    def test_a_log_prob_belongs_to_the_next_token(self):
        logits = torch.zeros(3, 4)
        logits[0, 0] = logits[1, 2] = 50
        log_probs = log_probs_of(logits, IDS, 4)
        torch.testing.assert_close(log_probs[:2], torch.zeros(2))

    def test_what_cannot_be_logits_is_the_subjects_fault(self):
        for shape in ((3, 3), (2, 4), (1, 3, 4), (3,)):  # hidden states; tokens; rows; one number
            with self.subTest(shape), self.assertRaisesRegex(WrongShape, "these are no logits"):
                log_probs_of(torch.zeros(shape), IDS, 4)

    def test_an_engine_may_pad_the_vocabulary(self):
        self.assertEqual(log_probs_of(torch.zeros(3, 8), IDS, 4).shape, (3,))


if __name__ == "__main__":
    unittest.main()
