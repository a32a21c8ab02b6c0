# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Labels and weights of any cross entropy are read from the gradient of its logits."""

import unittest

import torch
import torch.nn.functional as F

from bkm_cell.witnesses.loss_labels import labels_of, on_gradient

TOKENS, VOCABULARY = 6, 11


class LossLabelsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.logits = torch.randn(TOKENS, VOCABULARY, requires_grad=True)
        self.labels = torch.tensor([3, 0, 10, 7, 7, 2])

    def seen(self, loss, dtype=torch.float32):
        (gradient,) = torch.autograd.grad(loss, self.logits)
        return labels_of(gradient.to(dtype), self.logits.to(dtype))

    def test_the_mean_gives_all_the_same_weight(self):
        seen = self.seen(F.cross_entropy(self.logits, self.labels))
        self.assertEqual(seen.labels.tolist(), self.labels.tolist())
        torch.testing.assert_close(seen.weights, torch.full((TOKENS,), 1 / TOKENS))
        self.assertLess(seen.residual, 1e-5)

    def test_a_copy_in_another_type_has_the_gradient_of_what_was_copied(self):
        inner = (self.logits * 1).bfloat16()
        given, seen = inner.float(), []  # as accelerate gives it, beside the loss of the model itself
        on_gradient(given, seen.append)
        F.cross_entropy(inner.float(), self.labels).backward()
        (gradient,) = seen
        self.assertEqual(labels_of(gradient, given).labels.tolist(), self.labels.tolist())

    def test_what_does_not_count_has_no_label(self):
        self.labels[2] = -100
        seen = self.seen(F.cross_entropy(self.logits, self.labels))
        self.assertEqual(seen.labels.tolist(), [3, 0, -1, 7, 7, 2])
        self.assertEqual(seen.weights[2], 0)

    def test_weights_may_differ_and_be_negative(self):
        weights = torch.tensor([0.5, -1.0, 0.0, 2.0, 0.25, 1.0])
        each = F.cross_entropy(self.logits, self.labels, reduction="none")
        seen = self.seen((each * weights).sum())
        torch.testing.assert_close(seen.weights, weights)
        self.assertEqual(seen.labels[2], -1)

    def test_bf16_is_read_to_half_a_percent(self):
        seen = self.seen(F.cross_entropy(self.logits, self.labels), torch.bfloat16)
        self.assertEqual(seen.labels.tolist(), self.labels.tolist())
        self.assertLess((seen.weights * TOKENS - 1).abs().max(), 0.01)

    def test_another_loss_leaves_a_residual(self):
        loss = F.cross_entropy(self.logits, self.labels, label_smoothing=0.2)
        self.assertGreater(self.seen(loss).residual, 0.01)

    def test_nothing_that_counts_is_no_error(self):
        seen = self.seen((self.logits * 0).sum())
        self.assertEqual(set(seen.labels.tolist()), {-1})
        self.assertEqual(seen.residual, 0)


if __name__ == "__main__":
    unittest.main()
