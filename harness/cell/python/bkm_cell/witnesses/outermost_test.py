# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A model's calls are seen from outside, with what it was given; its parts and losses are not."""

import tempfile
import unittest

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from bkm_cell.witnesses.outermost import outermost_calls


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x, scale=1.0):
        return checkpoint(self.layer, x, use_reentrant=False) * scale


class OutermostTest(unittest.TestCase):
    def setUp(self):
        self.seen = []

    def watching(self):
        return outermost_calls(
            lambda module, arguments, named: self.seen.append(("entered", module, sorted(named))),
            lambda module, result: self.seen.append(("left", module, tuple(result.shape))),
            lambda module, result: self.seen.append(("part", module, tuple(result.shape))),
        )

    def test_a_model_is_entered_once_with_its_keywords(self):
        model = Model()
        with self.watching():
            model(torch.ones(2, 3, requires_grad=True), scale=2.0).sum().backward()
        self.assertEqual(
            self.seen,
            [("entered", model, ["scale"]), ("left", model, (2, 3))],
            "the layer that backward calls again does not end there",
        )

    def test_a_layer_that_the_backward_computes_again_is_entered(self):
        model, again = Model(), []
        with outermost_calls(lambda *_: None, lambda *_: None, lambda *_: None, again.append):
            model(torch.ones(2, 3, requires_grad=True)).sum().backward()
        self.assertEqual(again, [model.layer])

    def test_a_part_that_is_called_by_itself_is_seen_as_one(self):
        model = Model()
        with self.watching():
            model(torch.ones(2, 3))
            model.layer(torch.ones(1, 3))
        self.assertEqual(
            self.seen,
            [("entered", model, []), ("left", model, (2, 3)), ("part", model.layer, (1, 3))],
        )

    def test_what_ddp_wraps_is_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            store = f"file://{folder}/store"
            torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
            try:
                model = Model()
                wrapped = DistributedDataParallel(model)
                with self.watching():
                    wrapped(torch.ones(2, 3), scale=2.0)
            finally:
                torch.distributed.destroy_process_group()
        self.assertEqual(self.seen, [("entered", model, ["scale"]), ("left", model, (2, 3))])

    def test_a_loss_has_no_parameters(self):
        with self.watching():
            torch.nn.CrossEntropyLoss()(torch.zeros(2, 3), torch.tensor([0, 1]))
        self.assertEqual(self.seen, [])

    def test_an_error_passes_and_the_next_call_is_outermost_again(self):
        model = Model()
        with self.watching():
            with self.assertRaises(RuntimeError):
                model(torch.ones(2, 5))
            model(torch.ones(1, 3))
        self.assertEqual([event for event, *_ in self.seen], ["entered", "entered", "left"])

    def test_afterwards_nothing_is_watched(self):
        call = torch.nn.Module._call_impl
        with self.watching():
            self.assertIsNot(torch.nn.Module._call_impl, call)
        self.assertIs(torch.nn.Module._call_impl, call)
        Model()(torch.ones(1, 3))
        self.assertEqual(self.seen, [])


if __name__ == "__main__":
    unittest.main()
