# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults of gradients, optimizer and reports, on one weight that is easy to compute by hand."""

import sys
import types
import unittest

import torch

from bkm_cell.adapters.base import StepOutcome
from bkm_cell.faults import Planted


class Container(torch.optim.Optimizer):
    """An optimizer of optimizers, like torchtitan's: its own groups hold no settings."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner
        super().__init__(inner.param_groups[0]["params"], {})

    def step(self, closure=None):
        self.inner.step()


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Module()
        self.attention.wo = torch.nn.Linear(2, 1, bias=False)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer()])

    @property
    def weight(self) -> torch.nn.Parameter:
        return self.layers[0].attention.wo.weight


class TrainingFaultsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.backward = torch.autograd.backward
        self.hooks = [dict(h) for h in self._global_hooks()]
        self.model = Model()
        with torch.no_grad():
            self.model.weight.copy_(torch.tensor([[1.0, -2.0]]))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1, weight_decay=0.5)
        self.seen: list[torch.Tensor] = []  # gradients at the optimizer's step
        self.adapter = types.SimpleNamespace(
            modules=lambda: [self.model],
            train_step=self._step,
            attention="flex",
            probe=types.SimpleNamespace(
                hf_config={"num_hidden_layers": 1}, optimizer={"clip_norm": 1.0}, asked={}
            ),
        )

    def tearDown(self) -> None:
        torch.autograd.backward = self.backward
        for hooks, before in zip(self._global_hooks(), self.hooks, strict=True):
            hooks.clear()
            hooks.update(before)

    @staticmethod
    def _global_hooks() -> list[dict]:
        module = sys.modules[torch.optim.Optimizer.__module__]
        return [module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks]

    def _step(self, batch: types.SimpleNamespace) -> StepOutcome:
        self.optimizer.zero_grad()
        loss = (self.model.weight * torch.tensor([[3.0, 4.0]])).sum()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        Container(self.optimizer).step()
        self.seen.append(self.model.weight.grad.clone())
        return StepOutcome(loss.item(), norm.item(), torch.tensor([-1.0, -2.0, -3.0, -4.0]))

    def _run(self, fault: str, steps: int = 1) -> list[StepOutcome]:
        planted = Planted(self.adapter, "torchtitan", [fault])
        planted.after_construct()
        batch = types.SimpleNamespace(lengths=[4])
        outcomes = [self.adapter.train_step(batch) for _ in range(steps)]
        planted.confirm()
        return outcomes

    def test_silent_settings_change_the_update_and_look_right_afterwards(self) -> None:
        self._run("weight-decay-dropped-silently")
        self.assertEqual(self.optimizer.param_groups[0]["weight_decay"], 0.5)
        # A first step moves each value by the learning rate, against the gradient's sign; no decay.
        torch.testing.assert_close(self.model.weight.data, torch.tensor([[0.9, -2.1]]))

    def test_open_settings_stay(self) -> None:
        self._run("betas-wrong")
        self.assertEqual(self.optimizer.param_groups[0]["betas"], (0.8, 0.95))

    def test_clipping_off_leaves_the_gradient_and_reports_its_norm(self) -> None:
        (outcome,) = self._run("clipping-off")
        torch.testing.assert_close(self.seen[0], torch.tensor([[3.0, 4.0]]))
        self.assertAlmostEqual(outcome.grad_norm, 5.0, places=4)

    def test_scale_shows_in_the_norm_before_clipping(self) -> None:
        (outcome,) = self._run("gradient-not-scaled")
        self.assertAlmostEqual(outcome.grad_norm, 20.0, places=3)
        torch.testing.assert_close(self.seen[0], torch.tensor([[0.6, 0.8]]))

    def test_zeroed_gradient_and_tensor_that_stays(self) -> None:
        self._run("gradient-zeroed")
        self.assertEqual(self.seen[0].abs().sum().item(), 0)

    def test_tensor_that_is_not_updated_stays(self) -> None:
        self._run("tensor-not-updated")
        torch.testing.assert_close(self.model.weight.data, torch.tensor([[1.0, -2.0]]))

    def test_kept_gradient_is_seen_in_the_second_step(self) -> None:
        first, second = self._run("gradient-kept", steps=2)
        self.assertAlmostEqual(first.grad_norm, 5.0, places=4)
        self.assertAlmostEqual(second.grad_norm, 10.0, places=3)

    def test_reports_are_edited_and_the_step_is_not(self) -> None:
        (outcome,) = self._run("one-log-prob-wrong")
        self.assertEqual(outcome.log_probs.tolist(), [-1.0, -2.0, -5.0, -4.0])
        torch.testing.assert_close(self.seen[0], torch.tensor([[0.6, 0.8]]))

    def test_norm_and_loss_of_another_time(self) -> None:
        (outcome,) = self._run("grad-norm-after-clipping")
        self.assertEqual(outcome.grad_norm, 1.0)
        first, second = self._run("loss-of-previous-step", steps=2)
        self.assertEqual(first.loss, second.loss)


if __name__ == "__main__":
    unittest.main()
