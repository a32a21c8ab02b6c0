# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults of experts on two layers of four experts, of which each token has two."""

import types
import unittest

import torch

from bkm_cell.faults import CannotPlant, Planted

_EXPERTS, _CHOSEN, _HIDDEN = 4, 2, 8


class TopKRouter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(_HIDDEN, _EXPERTS)
        self.register_buffer("expert_bias", torch.ones(_EXPERTS))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        every = self.gate(x).softmax(-1)
        scores, experts = every.topk(_CHOSEN, -1)
        return every, scores, experts


class CountingRouter(TopKRouter):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        _, scores, experts = super().forward(x)
        return scores, experts, experts.flatten().bincount(minlength=_EXPERTS)


class Layer(torch.nn.Module):
    def __init__(self, router: type[TopKRouter]) -> None:
        super().__init__()
        self.router = router()
        self.experts = torch.nn.Module()
        self.experts.w1 = torch.nn.Parameter(torch.randn(_EXPERTS, _HIDDEN, _HIDDEN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.routed = self.router(x)
        _, scores, experts = self.routed
        return x + (scores[..., None] * torch.einsum("td,tkde->tke", x, self.experts.w1[experts])).sum(1)


class ExpertFaultsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.before: dict[str, torch.Tensor] = {}  # the first correction before a step, by fault

    def _planted(self, fault: str, router: type[TopKRouter] = TopKRouter) -> torch.nn.ModuleList:
        torch.manual_seed(0)
        model = torch.nn.Module()
        model.layers = torch.nn.ModuleList([Layer(router), Layer(router)])
        config = {"num_experts": _EXPERTS, "num_hidden_layers": 2}
        adapter = types.SimpleNamespace(
            modules=lambda: [model], probe=types.SimpleNamespace(hf_config=config)
        )
        backward = torch.autograd.backward
        self.addCleanup(lambda: setattr(torch.autograd, "backward", backward))
        planted = Planted(adapter, "transformers", [fault])
        planted.after_construct()
        self.before[fault] = model.layers[0].router.expert_bias.clone()
        x = torch.randn(6, _HIDDEN)
        self.right = TopKRouter.forward(model.layers[0].router, x)
        for layer in model.layers:
            x = layer(x)
        x.square().sum().backward()
        planted.confirm()
        return model.layers

    def test_scores_become_their_mean(self) -> None:
        _, scores, experts = self._planted("experts-weigh-alike")[0].routed
        self.assertTrue(torch.equal(experts, self.right[2]))
        torch.testing.assert_close(scores, self.right[1].mean(-1, keepdim=True).expand(6, _CHOSEN))

    def test_the_lower_score_becomes_zero(self) -> None:
        _, scores, _ = self._planted("weakest-expert-dropped")[0].routed
        self.assertTrue(torch.equal(scores[:, 0], self.right[1][:, 0]))
        self.assertFalse(scores[:, 1].any())

    def test_the_correction_becomes_zero(self) -> None:
        for fault in ("buffer-not-loaded", "expert-correction-ignored"):
            for layer in self._planted(fault):
                self.assertFalse(layer.router.expert_bias.any())
        self.assertTrue(self.before["expert-correction-ignored"].any())
        self.assertFalse(self.before["buffer-not-loaded"].any())

    def test_a_correction_of_zero_cannot_be_ignored(self) -> None:
        class Uncorrected(TopKRouter):
            def __init__(self) -> None:
                super().__init__()
                self.expert_bias.zero_()

        with self.assertRaisesRegex(CannotPlant, "no buffer corrects"):
            self._planted("expert-correction-ignored", Uncorrected)

    def test_tokens_go_to_the_neighbours(self) -> None:
        _, scores, experts = self._planted("experts-off-by-one")[0].routed
        self.assertTrue(torch.equal(scores, self.right[1]))
        self.assertTrue(torch.equal(experts, (self.right[2] + 1) % _EXPERTS))

    def test_one_expert_of_the_last_layer_learns_nothing(self) -> None:
        first, last = self._planted("expert-without-gradient")
        self.assertTrue(first.experts.w1.grad[-1].any())
        self.assertTrue(last.experts.w1.grad[-2].any())
        self.assertFalse(last.experts.w1.grad[-1].any())

    def test_a_router_that_counts_tokens_is_refused(self) -> None:
        with self.assertRaisesRegex(CannotPlant, "counts the tokens"):
            self._planted("experts-off-by-one", CountingRouter)


if __name__ == "__main__":
    unittest.main()
