# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Numbers of a HF config reach the configuration of a flavor, or the control says that it cannot."""

import dataclasses
import unittest
from typing import Any

from bkm_cell.adapters.torchtitan_eras.asked_numbers import ask_for_numbers


def _config(**fields: Any) -> Any:
    return dataclasses.make_dataclass("Config", list(fields), slots=True)(**fields)


def _linear(inputs: int, outputs: int) -> Any:
    return _config(in_features=inputs, out_features=outputs)


def _nested() -> Any:
    def layer() -> Any:
        return _config(
            attention_norm=_config(eps=1e-6),
            attention=_config(rope=_config(theta=1e6), qkv_linear=None, n_kv_heads=8),
            feed_forward=_config(w1=_linear(4, 8), w2=_linear(8, 4), w3=_linear(4, 8)),
        )

    return _config(norm=_config(eps=1e-6), layers=[layer(), layer()])


class AskedNumbersTest(unittest.TestCase):
    def test_every_part_of_a_nested_configuration_gets_the_number(self) -> None:
        config = _nested()

        ask_for_numbers(config, {"rms_norm_eps": 1e-5, "rope_theta": 1e4, "num_hidden_layers": 2})

        self.assertEqual(config.norm.eps, 1e-5)
        for layer in config.layers:
            self.assertEqual(layer.attention_norm.eps, 1e-5)
            self.assertEqual(layer.attention.rope.theta, 1e4)

    def test_a_dense_layer_gets_another_width(self) -> None:
        config = _nested()

        ask_for_numbers(config, {"intermediate_size": 16})

        for layer in config.layers:
            dense = layer.feed_forward
            self.assertEqual((dense.w1.out_features, dense.w2.in_features), (16, 16))
            self.assertEqual((dense.w3.out_features, dense.w2.out_features), (16, 4))

    def test_flat_arguments_get_the_number(self) -> None:
        config = _config(norm_eps=1e-6, rope_theta=1e6, n_kv_heads=8, hidden_dim=8)

        ask_for_numbers(
            config, {"rms_norm_eps": 1e-5, "num_key_value_heads": 4, "intermediate_size": 16}
        )

        self.assertEqual((config.norm_eps, config.n_kv_heads, config.hidden_dim), (1e-5, 4, 16))

    def test_a_number_without_a_field_is_refused(self) -> None:
        for numbers in ({"num_key_value_heads": 4}, {"head_dim": 64}, {"num_experts_per_tok": 1}):
            with self.assertRaisesRegex(LookupError, "the control cannot ask this version for it"):
                ask_for_numbers(_nested(), numbers)


if __name__ == "__main__":
    unittest.main()
