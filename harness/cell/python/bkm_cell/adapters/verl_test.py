# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""An option of the probe reaches verl's optimizer configuration, or the adapter complains; what
several ranks would import is imported before they are forked."""

import dataclasses
import sys
import types
import unittest
from typing import Any
from unittest import mock

from bkm_cell.adapters.verl import VerlAdapter
from bkm_cell.adapters.verl_fsdp import Adapter


@dataclasses.dataclass
class Config:
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    clip_grad: float = 1.0
    override_optimizer_config: Any = None
    lr_warmup_steps: int = -1


ASKED = {"learning_rate": 2.0, "beta1": 0.5, "beta2": 0.6, "epsilon": 3.0, "weight_decay": 4.0}


class OptimizerConfigTest(unittest.TestCase):
    def _config(self, kind: type, warmup_steps: int = 0) -> Any:
        probe = types.SimpleNamespace(
            optimizer={**ASKED, "clip_norm": 5.0},
            warmup_steps=warmup_steps,
            decay="",
            total_steps=3,
            batches=[],
            head="lm",
        )
        return Adapter(probe, "sdpa").optimizer_config(kind, {})

    def test_each_option_arrives(self):
        config = self._config(Config, warmup_steps=2)
        self.assertEqual(config, Config(2.0, (0.5, 0.6), 4.0, 5.0, {"eps": 3.0}, 2))

    def test_an_option_that_cannot_be_passed_on_is_the_adapters_fault(self):
        for name in ("lr", "betas", "weight_decay", "clip_grad", "override_optimizer_config"):
            rest = [f for f in dataclasses.fields(Config) if f.name != name]
            kind = dataclasses.make_dataclass("Fewer", [(f.name, Any, f.default) for f in rest])
            with self.assertRaisesRegex(LookupError, f"Fewer has no field .*{name}"):
                self._config(kind)

    def test_a_warmup_is_needed_only_where_it_is_asked_for(self):
        fields = [f for f in dataclasses.fields(Config) if f.name != "lr_warmup_steps"]
        kind = dataclasses.make_dataclass("Fewer", [(f.name, Any, f.default) for f in fields])
        self.assertEqual(self._config(kind).lr, 2.0)
        with self.assertRaisesRegex(LookupError, "lr_warmup_steps"):
            self._config(kind, warmup_steps=2)


class ConfigurationsTest(unittest.TestCase):
    def _reads(self, ranks: int, **failing: Any) -> int:
        """How often the adapter reads the keys that import the configurations."""
        mapping = mock.Mock(**failing)
        module = types.SimpleNamespace(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING=mapping)
        layout = types.SimpleNamespace(ranks=ranks)
        with (
            mock.patch.dict(sys.modules, {"transformers.models.auto.modeling_auto": module}),
            mock.patch.object(VerlAdapter, "import_modules"),
        ):
            Adapter(types.SimpleNamespace(head="lm", layout=layout), "sdpa").import_modules()
        return mapping.keys.call_count

    def test_several_ranks_find_them_imported(self):
        self.assertEqual(self._reads(1), 0)
        self.assertEqual(self._reads(2), 1)

    def test_a_failure_is_left_to_the_engine(self):
        failing = {"keys.side_effect": ImportError("a configuration is broken")}
        self.assertEqual(self._reads(2, **failing), 1)


if __name__ == "__main__":
    unittest.main()
