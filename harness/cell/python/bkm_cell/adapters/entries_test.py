# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Adapters enter engines as harness/model/engine_kind.cc says; the static check relies on it."""

import dataclasses
import importlib
import pathlib
import re
import types
import unittest
from unittest import mock

_ADAPTERS = pathlib.Path(__file__).absolute().parent
_KINDS = _ADAPTERS.parents[3] / "model" / "engine_kind.cc"
# Files of adapters/ that drive no engine.
_SHARED = {"__init__", "base", "control", "trainer", "verl_trainer", "verl"}


@dataclasses.dataclass
class Kind:
    """How one engine kind is entered, according to the C++ table."""

    engine_source: str
    entry_modules: list[str]
    entry_class: str
    entry_methods: list[str]
    trainer: str
    policy_trainer: str


def engine_kinds() -> dict[str, Kind]:
    text = _KINDS.read_text()
    found = {}
    for block in re.split(r"(?=\{\.name = )", text)[1:]:

        def strings(field: str, block: str = block) -> list[str]:
            match = re.search(rf"\.{field} = (\{{[^}}]*\}}|\"[^\"]*\")", block)
            return re.findall(r'"([^"]*)"', match[1]) if match else []

        found["".join(strings("name"))] = Kind(
            "".join(strings("engine_source")),
            strings("entry_modules"),
            "".join(strings("entry_class")),
            strings("entry_methods"),
            "".join(strings("trainer")),
            "".join(strings("policy_trainer")),
        )
    return found


class Imports:
    """A fake importlib.import_module: a mock module for each name, in the order of the imports."""

    def __init__(self) -> None:
        self.modules: dict[str, mock.MagicMock] = {}

    def __call__(self, name: str) -> mock.MagicMock:
        return self.modules.setdefault(name, mock.MagicMock(name=name))

    def of(self, package: str) -> list[str]:
        return [name for name in self.modules if name.split(".")[0] == package]


@dataclasses.dataclass
class Config:
    pass


class Loading(Exception):
    pass


class EntriesTest(unittest.TestCase):
    def test_every_engine_kind_has_an_adapter_and_every_adapter_a_kind(self) -> None:
        files = {file.stem for file in _ADAPTERS.glob("*.py")}
        adapters = {name for name in files - _SHARED if not name.endswith("_test")}

        kinds = engine_kinds().items()
        expected = {name for name, _ in kinds}
        expected |= {f"{name.removesuffix('-trainer')}-trainer" for name, kind in kinds if kind.trainer}
        expected |= {f"{name}-update" for name, kind in kinds if kind.policy_trainer}
        self.assertEqual({name.replace("-", "_") for name in expected}, adapters)

    def test_an_update_is_that_of_the_trainer_that_its_kind_names(self) -> None:
        trainers = {name: kind.policy_trainer for name, kind in engine_kinds().items()}
        for name, trainer in trainers.items():
            if trainer:
                module = f"bkm_cell.adapters.{name.replace('-', '_')}_update"
                self.assertEqual(importlib.import_module(module).Adapter.entry, trainer)

    def test_a_trainer_is_started_by_the_module_that_its_kind_names(self) -> None:
        trainers = {name: kind.trainer for name, kind in engine_kinds().items() if kind.trainer}
        self.assertTrue(trainers)
        for name, trainer in trainers.items():
            module = name.replace("-", "_").removesuffix("_trainer")
            adapter = importlib.import_module(f"bkm_cell.adapters.{module}_trainer")
            self.assertEqual(adapter.Adapter.entry, trainer)

    def test_verl_torchtitan_is_entered_as_its_kind_says(self) -> None:
        kind = engine_kinds()["verl-torchtitan"]
        adapter_module = importlib.import_module("bkm_cell.adapters.verl_torchtitan")
        probe = types.SimpleNamespace(
            hf_config={"model_type": "qwen3"}, device=None, engine_options={}
        )
        adapter, imports = adapter_module.Adapter(probe, "flex"), Imports()

        with (
            mock.patch("bkm_cell.adapters.verl.start_process_group"),
            mock.patch("importlib.import_module", imports),
            mock.patch.object(adapter, "configs", lambda: (Config(), Config(), Config())),
        ):
            adapter.import_modules()
            imported = imports.of(kind.engine_source)
            adapter.construct()

        made = getattr(imports.modules[kind.entry_modules[-1]], kind.entry_class)
        called = [name for name, _, _ in made.return_value.method_calls]
        self.assertEqual(imported, kind.entry_modules)
        made.assert_called_once()
        self.assertEqual(called, kind.entry_methods)

    def test_a_fixture_is_entered_as_its_kind_says(self) -> None:
        kind = engine_kinds()["fixture"]
        fixture = importlib.import_module("bkm_cell.adapters.fixture")
        report, imports = mock.MagicMock(), Imports()
        report.stage.side_effect = _stop_at_load

        with mock.patch("importlib.import_module", imports), self.assertRaises(Loading):
            fixture.run({}, report)

        made = getattr(imports.modules[kind.entry_modules[-1]], kind.entry_class)
        called = [name for name, _, _ in made.return_value.method_calls]
        self.assertEqual(imports.of(kind.engine_source), kind.entry_modules)
        made.assert_called_once()
        self.assertEqual(called, kind.entry_methods)


def _stop_at_load(stage: str) -> None:
    if stage == "load":
        raise Loading


if __name__ == "__main__":
    unittest.main()
