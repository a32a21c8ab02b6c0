# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Each era on a package of its shape, in plain objects."""

import dataclasses
import types
import unittest
from typing import Any

import torch

from bkm_cell.adapters.torchtitan_eras import masks
from bkm_cell.adapters.torchtitan_eras.choose import era_of
from bkm_cell.adapters.torchtitan_eras.configuration import configuration_of
from bkm_cell.adapters.torchtitan_eras.flavors import fit

_HF = {"num_hidden_layers": 2, "hidden_size": 256, "vocab_size": 512}


def _flat(**fields: Any) -> Any:
    """Model arguments: a dataclass with these fields."""
    fields = {"dim": 256, "n_layers": 6, "vocab_size": 2048, **fields}
    kind = dataclasses.make_dataclass("ModelArgs", list(fields))
    return kind(**fields)


def _layered(attention: Any, *, in_list: bool) -> types.SimpleNamespace:
    """A model configuration with layers, as a template or as a list."""
    layer = types.SimpleNamespace(attention=attention)
    layers = {"layers": [layer] * 6} if in_list else {"layer": layer, "n_layers": 6}
    return types.SimpleNamespace(dim=256, vocab_size=2048, build=lambda: "built", **layers)


def _package(**members: Any) -> types.ModuleType:
    package = types.ModuleType("torchtitan.models.tiny")
    vars(package).update(members)
    return package


def _with_train_spec(**fields: Any) -> types.ModuleType:
    spec = types.SimpleNamespace(
        model_args={"debugmodel": _flat(**fields)}, model_cls=lambda args: ("built", args)
    )
    return _package(get_train_spec=lambda: spec)


def _inner() -> types.SimpleNamespace:
    class FlexAttention:
        pass

    return types.SimpleNamespace(inner_attention=FlexAttention(), mask_type="causal")


def _with_flavors(*names: str) -> types.ModuleType:
    configs = {name: _layered(_inner(), in_list=True) for name in names}
    return _package(
        tiny_configs=configs,
        model_registry=lambda flavor: types.SimpleNamespace(flavor=flavor, model=configs[flavor]),
    )


class ErasTest(unittest.TestCase):
    def test_the_flag_of_flex_is_an_era_of_its_own(self) -> None:
        package = _with_train_spec(use_flex_attn=False, attn_mask_type="causal")

        era = era_of(package, _HF, "flex")
        spec, config = era.spec_and_config()

        self.assertEqual(type(era).__name__, "FlexFlagEra")
        self.assertEqual((config.use_flex_attn, config.attn_mask_type), (True, "block_causal"))
        self.assertEqual(era.asked_by, "model_args.use_flex_attn, attn_mask_type")
        self.assertEqual(era.build(spec, config), ("built", config))

    def test_the_flag_of_flex_cannot_ask_for_varlen(self) -> None:
        era = era_of(_with_train_spec(use_flex_attn=False), _HF, "varlen")

        with self.assertRaisesRegex(LookupError, "it cannot ask for varlen"):
            era.spec_and_config()

    def test_model_arguments_are_asked_in_a_copy(self) -> None:
        package = _with_train_spec(attn_type="sdpa")

        era = era_of(package, _HF, "varlen")
        spec, config = era.spec_and_config()

        self.assertEqual(type(era).__name__, "AttentionTypeEra")
        self.assertEqual(config.attn_type, "varlen")
        self.assertEqual(spec.model_args["debugmodel"].attn_type, "sdpa")
        self.assertEqual(era.asked_by, "model_args.attn_type")

    def test_the_template_of_a_layer_is_asked(self) -> None:
        config = _layered(types.SimpleNamespace(attn_backend="sdpa"), in_list=False)
        spec = types.SimpleNamespace(model=config)
        package = _package(tiny_configs={"debugmodel": config}, model_registry=lambda flavor: spec)

        era = era_of(package, _HF, "flex")
        made, asked = era.spec_and_config()

        self.assertEqual(type(era).__name__, "LayerBackendEra")
        self.assertIs(made, spec)
        self.assertEqual(asked.layer.attention.attn_backend, "flex")
        self.assertEqual(era.asked_by, "model.layer.attention.attn_backend")
        self.assertEqual(era.build(made, asked), "built")

    def test_keywords_of_the_registry_are_asked_whatever_the_configuration_has(self) -> None:
        config = _layered(types.SimpleNamespace(attn_backend="sdpa"), in_list=False)

        def by_override(flavor: str, attn_backend_override: str | None = None) -> Any:
            return types.SimpleNamespace(model=config, asked=attn_backend_override)

        def by_backend(flavor: str, attn_backend: str = "sdpa") -> Any:
            return types.SimpleNamespace(model=config, asked=attn_backend)

        for registry, name, asked_by in (
            (by_override, "OverrideEra", "model_registry(attn_backend_override=)"),
            (by_backend, "KeywordEra", "model_registry(attn_backend=)"),
        ):
            package = _package(tiny_configs={"debugmodel": config}, model_registry=registry)
            era = era_of(package, _HF, "varlen")
            spec, _ = era.spec_and_config()
            self.assertEqual(
                (type(era).__name__, spec.asked, era.asked_by), (name, "varlen", asked_by)
            )

    def test_an_attention_is_a_flavor_where_flavors_are_named_after_attentions(self) -> None:
        package = _with_flavors("debugmodel", "debugmodel_flex", "debugmodel_varlen")

        for attention, flavor in (("sdpa", "debugmodel"), ("varlen", "debugmodel_varlen")):
            era = era_of(package, _HF, attention)
            spec, _ = era.spec_and_config()
            self.assertEqual(type(era).__name__, "FlavorEra")
            self.assertEqual((spec.flavor, era.asked_by), (flavor, f"flavor {flavor}"))

    def test_a_missing_flavor_is_named(self) -> None:
        era = era_of(_with_flavors("debugmodel", "debugmodel_flex_attn"), _HF, "flex")

        with self.assertRaisesRegex(
            LookupError, "^torchtitan.models.tiny has no flavor debugmodel_flex$"
        ):
            era.spec_and_config()

    def test_a_registry_without_a_choice_is_asked_nothing(self) -> None:
        era = era_of(_with_flavors("debugmodel"), _HF, "varlen")
        spec, _ = era.spec_and_config()

        self.assertEqual(type(era).__name__, "OneAttentionEra")
        self.assertEqual(spec.flavor, "debugmodel")
        self.assertEqual(era.asked_by, "")
        self.assertIn("offers no choice", era.not_asked)

    def test_a_package_of_no_era_says_what_it_lacks(self) -> None:
        with self.assertRaises(AttributeError) as raised:
            era_of(_package(), _HF, "flex")

        message = "module 'torchtitan.models.tiny' has no attribute 'model_registry'"
        self.assertEqual(str(raised.exception), message)
        self.assertEqual(raised.exception.name, "model_registry")

    def test_a_registry_without_configurations_says_so(self) -> None:
        package = _package(model_registry=lambda flavor: None)

        with self.assertRaisesRegex(LookupError, "has a model_registry and no \\*_configs"):
            era_of(package, _HF, "flex")

    def test_without_a_flavor_of_the_size_the_sizes_are_named(self) -> None:
        with self.assertRaisesRegex(LookupError, "512 wide, 2 layers or more, without experts"):
            era_of(_with_flavors("debugmodel"), {**_HF, "hidden_size": 512}, "flex")


class InitialiseTest(unittest.TestCase):
    def test_init_states_goes_before_its_older_name(self) -> None:
        era = era_of(_with_flavors("debugmodel"), _HF, "flex")
        called: list[str] = []
        old = types.SimpleNamespace(init_weights=lambda buffer_device: called.append("weights"))
        new = types.SimpleNamespace(
            init_states=lambda buffer_device: called.append("states"), **vars(old)
        )

        for model in (old, new):
            era.initialise(model, torch.device("cpu"))

        self.assertEqual(called, ["weights", "states"])


class ConfigurationTest(unittest.TestCase):
    def test_every_shape_is_cut_to_the_models_layers_and_vocabulary(self) -> None:
        flat = _flat(attn_type="flex")
        template = _layered(_inner(), in_list=False)
        listed = _layered(_inner(), in_list=True)

        for config in (flat, template, listed):
            fit(config, _HF)

        self.assertEqual((flat.n_layers, template.n_layers, len(listed.layers)), (2, 2, 2))
        self.assertEqual({c.vocab_size for c in (flat, template, listed)}, {512})

    def test_every_shape_tells_its_attention(self) -> None:
        backend = types.SimpleNamespace(attn_backend="varlen")

        for config, told in (
            (_flat(attn_type="flex"), "flex"),
            (_flat(use_flex_attn=True), "flex"),
            (_flat(use_flex_attn=False), "sdpa"),
            (_flat(), None),
            (_layered(backend, in_list=False), "varlen"),
            (_layered(_inner(), in_list=False), "_inner.<locals>.FlexAttention"),
            (_layered(_inner(), in_list=True), "_inner.<locals>.FlexAttention"),
            (_layered(None, in_list=True), None),
            (None, None),
        ):
            self.assertEqual(configuration_of(config).attention(), told)

    def test_every_shape_tells_whether_it_has_experts(self) -> None:
        dense, sparse = types.SimpleNamespace(moe=None), types.SimpleNamespace(moe=object())
        off = types.SimpleNamespace(moe=object(), moe_enabled=False)

        for config, told in (
            (_flat(), False),
            (_flat(moe_args=None), True),
            (_flat(moe_args=None, moe_enabled=False), False),
            (types.SimpleNamespace(layer=sparse), True),
            (types.SimpleNamespace(layer=off), False),
            (types.SimpleNamespace(layers=[dense, sparse]), True),
            (types.SimpleNamespace(layers=[dense, dense]), False),
        ):
            self.assertEqual(configuration_of(config).has_experts(), told)

    def test_packed_documents_are_masked_where_there_is_a_choice(self) -> None:
        flat = _flat(attn_mask_type="causal")
        template = _layered(types.SimpleNamespace(attn_mask_type="causal"), in_list=False)
        listed = _layered(_inner(), in_list=True)
        without = _layered(types.SimpleNamespace(), in_list=True)

        for config in (flat, template, listed, without):
            configuration_of(config).mask_packed_documents()

        self.assertEqual(flat.attn_mask_type, "block_causal")
        self.assertEqual(template.layer.attention.attn_mask_type, "block_causal")
        self.assertEqual(listed.layers[0].attention.mask_type, "block_causal")
        self.assertFalse(hasattr(without.layers[0].attention, "mask_type"))


class MasksTest(unittest.TestCase):
    _TOKENS = torch.tensor([[5, 6, 2, 7, 2]])
    _POSITIONS = torch.tensor([[0, 1, 2, 0, 1]])

    def test_a_library_that_keeps_its_masks_is_told_the_batch_and_hands_over_none(self) -> None:
        told: list[Any] = []
        module = types.SimpleNamespace(init_attention_mask=lambda *given: told.append(given))

        made = masks.LibraryMasks(module, 2).of(self._TOKENS, self._POSITIONS)

        self.assertIsNone(made)
        self.assertEqual(told, [(self._TOKENS, 2)])

    def test_a_models_own_masks_take_what_its_era_names(self) -> None:
        def by_eos(input_batch: Any, tokenizer: Any, extra_inputs: Any = None) -> Any:
            return input_batch, tokenizer.eos_id

        def by_positions(positions: Any) -> Any:
            return positions

        old = types.SimpleNamespace(get_attention_masks=by_eos)
        new = types.SimpleNamespace(get_attention_masks=by_positions)

        self.assertEqual(
            masks.ModelMasks(old, 2).of(self._TOKENS, self._POSITIONS), (self._TOKENS, 2)
        )
        self.assertIs(masks.ModelMasks(new, 2).of(self._TOKENS, self._POSITIONS), self._POSITIONS)

    def test_a_callers_varlen_mask_has_the_documents_bounds(self) -> None:
        module = types.SimpleNamespace(VarlenMetadata=lambda **fields: fields)

        made = masks.CallerMasks(module, "varlen").of(self._TOKENS, self._POSITIONS)

        self.assertEqual(made["cu_seq_q"].tolist(), [0, 3, 5])
        self.assertEqual((made["max_q"], made["max_k"]), (3, 3))


if __name__ == "__main__":
    unittest.main()
