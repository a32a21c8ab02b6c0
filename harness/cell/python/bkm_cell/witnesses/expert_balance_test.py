# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
from __future__ import annotations

import unittest

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import checkpoint

from bkm_cell.witnesses.expert_balance import ExpertBalance

_EXPERTS = 4


class _Router(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(3, _EXPERTS)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scores, chosen = torch.topk(self.gate(x), 2)
        return scores, chosen, torch.bincount(chosen.flatten(), minlength=_EXPERTS)


class _Experts(torch.nn.Module):
    def __init__(self, coefficient: float | None) -> None:
        super().__init__()
        self.router = _Router()
        self.load_balance_coeff = coefficient
        self.register_buffer("expert_bias", torch.zeros(_EXPERTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.router(x)[0].sum()


class ExpertBalanceTest(unittest.TestCase):
    def test_counts_what_the_router_chose_to_train_and_how_the_bias_moved(self) -> None:
        layer, x = _Experts(1e-3), torch.randn(5, 3)
        balance = ExpertBalance([layer], ranks=1)
        with balance.watching():
            layer(x).backward()
            with torch.no_grad():
                layer(x)
                layer.expert_bias += torch.tensor([1.0, 0, 0, -1])
        (facts,) = balance.facts()["experts"]
        self.assertEqual(sum(facts["tokens"]), 10)
        self.assertEqual(facts["moved"], [1, 0, 0, -1])
        self.assertEqual((facts["layer"], facts["coefficient"]), ("", 1e-3))

    def test_a_step_counts_anew_and_what_is_recomputed_counts_once(self) -> None:
        layer, x = _Experts(1e-3), torch.randn(5, 3)
        balance = ExpertBalance([layer], ranks=1)
        for _ in range(2):
            with balance.watching():
                checkpoint(layer, x, use_reentrant=False).backward()
            self.assertEqual(sum(balance.facts()["experts"][0]["tokens"]), 10)

    def test_a_layer_without_a_bias_or_a_router_is_told_and_shows_nothing(self) -> None:
        unbiased, unrouted = _Experts(1e-3), _Experts(1e-3)
        del unbiased.expert_bias
        del unrouted.router
        balance = ExpertBalance([unbiased, unrouted], ranks=1)
        with balance.watching():
            unbiased.router(torch.randn(5, 3))
        first, second = balance.facts()["experts"]
        self.assertEqual((first["moved"], sum(second["tokens"])), ([], 0))

    def test_a_wrapper_is_no_second_layer(self) -> None:
        wrapped = checkpoint_wrapper(_Experts(1e-3))
        self.assertEqual(len(ExpertBalance([wrapped], ranks=1).facts()["experts"]), 1)

    def test_layers_that_are_not_balanced_are_none(self) -> None:
        self.assertEqual(ExpertBalance([_Experts(None), torch.nn.Linear(1, 1)], ranks=1).facts(), {})


if __name__ == "__main__":
    unittest.main()
