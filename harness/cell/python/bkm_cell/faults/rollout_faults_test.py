# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Faults of an update on a roll-out, on rows that are easy to compute by hand."""

import types
import unittest

import torch

from bkm_cell.faults import CannotPlant, Planted


class RolloutFaultsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.data = {
            "attention_mask": torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
            "response_mask": torch.tensor([[1, 0, 1], [1, 0, 0]]),
            "advantages": torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]),
            "old_log_probs": torch.tensor([[-1.0, -2.0, -3.0], [-4.0, 0.0, 0.0]]),
            "batch_num_tokens": 12,
        }

    def _planted(self, fault: str) -> Planted:
        self.adapter = types.SimpleNamespace(
            edit_rollout=lambda edit: setattr(self, "edit", edit),
            around_loss=lambda wrap: setattr(self, "wrap", wrap),
            probe=types.SimpleNamespace(micro_batches=2),
        )
        planted = Planted(self.adapter, "transformers", [fault])
        planted.before_construct()
        return planted

    def _edited(self, fault: str, name: str) -> list[list[float]]:
        planted = self._planted(fault)
        self.edit(self.data)
        planted.confirm()
        return self.data[name].tolist()

    def test_rows_are_changed(self) -> None:
        for fault, name, expected in (
            ("rollout-mask-lost", "response_mask", [[1, 1, 1], [1, 0, 0]]),
            ("rollout-advantages-shifted", "advantages", [[3, 1, 2], [0, 4, 0]]),
            ("rollout-old-log-probs-shifted", "old_log_probs", [[-3, -1, -2], [0, -4, 0]]),
        ):
            self.assertEqual(self._edited(fault, name), expected, fault)

    def test_the_loss_never_clips(self) -> None:
        config = types.SimpleNamespace(clip_ratio_low=0.2, clip_ratio_c=3.0, lr=0.1)

        def loss(config, model_output, data):
            return config

        self._planted("rollout-never-clipped")
        seen = self.wrap(loss, config, None, data=self.data)
        self.assertGreater(min(seen.clip_ratio_low, seen.clip_ratio_c), 1e6)
        self.assertEqual((seen.lr, config.clip_ratio_low), (0.1, 0.2))

    def test_a_micro_batch_is_divided_by_its_own_tokens(self) -> None:
        self._planted("rollout-mean-of-micro-batches")
        seen, _ = self.wrap(lambda *_, data: (torch.tensor(0.5), {}), None, None, data=self.data)
        self.assertEqual(float(seen), 0.5 * 12 / (3 * 2))  # 3 of 12 count here, in one of 2

    def test_where_nothing_is_updated_is_no_place(self) -> None:
        for fault in ("rollout-mask-lost", "rollout-never-clipped"):
            with self.assertRaises(CannotPlant):
                Planted(types.SimpleNamespace(), "transformers", [fault]).before_construct()


if __name__ == "__main__":
    unittest.main()
