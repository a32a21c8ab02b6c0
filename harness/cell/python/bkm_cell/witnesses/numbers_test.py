# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Gradients and parameters are sampled under HF's names, around any optimizer's step."""

import json
import os
import tempfile
import types
import unittest

import torch
from safetensors.torch import load_file

from bkm_cell.report import Report
from bkm_cell.witnesses.load import loaded
from bkm_cell.witnesses.named_tensors import NamedTensors
from bkm_cell.witnesses.numbers import StepNumbers, norm_error


class Fused(torch.nn.Module):
    """One weight whose state dict holds two, as torchtitan's fused QKV does."""

    def __init__(self):
        super().__init__()
        self.both = torch.nn.Parameter(torch.arange(8.0).reshape(4, 2))
        self.register_state_dict_post_hook(self._split)

    @staticmethod
    def _split(module, state, prefix, metadata):
        both = state.pop(prefix + "both")
        state[prefix + "a"], state[prefix + "b"] = both[:2], both[2:]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fused = Fused()
        self.embedding = torch.nn.Linear(2, 3, bias=False)
        self.head = torch.nn.Linear(2, 3, bias=False)
        self.head.weight = self.embedding.weight


class Container(torch.optim.Optimizer):
    """An optimizer of optimizers, as torchtitan's OptimizersContainer."""

    def __init__(self, parameters):
        parameters = list(parameters)
        self.inner = torch.optim.AdamW(parameters, lr=0.5, foreach=False)
        torch.optim.Optimizer.__init__(self, parameters, {})

    def step(self, closure=None):
        self.inner.step()


def to_hf(state):
    names = {"fused.a": "a", "fused.b": "b", "embedding.weight": "embed"}
    return {names[name]: value for name, value in state.items() if name in names}


class NumbersTest(unittest.TestCase):
    def test_a_state_dict_hook_maps_gradients_as_it_maps_parameters(self):
        model = Model()
        model.fused.both.grad = 10 * torch.ones(4, 2).cumsum(0)
        tensors = NamedTensors([model], to_hf)
        self.assertEqual(tensors.gradients()["b"].tolist(), [[30, 30], [40, 40]])
        self.assertEqual(tensors.gradients()["embed"].abs().sum().item(), 0)
        self.assertEqual(tensors.parameters("before")["b"].tolist(), [[4, 5], [6, 7]])

    def test_without_a_mapping_a_tied_tensor_has_one_name(self):
        model = torch.nn.ModuleDict({"m": Model()})
        del model["m"].fused
        self.assertEqual(list(NamedTensors([model], None).parameters("before")), ["m.embedding.weight"])

    def test_names_of_the_file_are_found_whatever_the_model_adds(self):
        model = Model()
        model.register_buffer("seen", torch.ones(3))
        model._modules = dict(reversed(list(model._modules.items())))  # the head comes first
        model.embedding = torch.nn.ModuleDict({"inside": model.embedding})
        known = ["fused.a", "fused.b", "embedding.weight"]
        self.assertEqual(sorted(NamedTensors([model], None, known).parameters("before")), sorted(known))
        model.fused.both.grad = 10 * torch.ones(4, 2).cumsum(0)
        gradients = NamedTensors([model], None, known).gradients()
        self.assertEqual(sorted(gradients), sorted(known))
        self.assertEqual(gradients["fused.b"].tolist(), [[30, 30], [40, 40]])
        self.assertEqual(gradients["embedding.weight"].abs().sum().item(), 0)

    def test_a_tied_tensor_has_the_name_of_the_file(self):
        model = Model()
        for known in ("embedding.weight", "head.weight"):
            names = NamedTensors([model], None, [known]).parameters("before").keys()
            self.assertIn(known, names)
            self.assertEqual(len(names & {"embedding.weight", "head.weight"}), 1)

    def test_a_mapping_need_not_know_a_buffer(self):
        model = Model()
        model.register_buffer("seen", torch.ones(3))
        strict = {"fused.a": "a", "fused.b": "b", "embedding.weight": "e", "head.weight": "h"}
        mapped = lambda state: {strict[name]: value for name, value in state.items()}  # noqa: E731
        self.assertEqual(sorted(NamedTensors([model], mapped).parameters("before")), ["a", "b", "e", "h"])
        del strict["fused.a"]
        with self.assertRaises(KeyError):
            NamedTensors([model], mapped).parameters("before")

    def test_names_that_the_file_lacks_stand_for_parameters(self):
        model = Model()
        model.register_buffer("seen", torch.ones(3))
        names = {"fused.a": "a", "fused.b": "b", "embedding.weight": "e", "head.weight": "h", "seen": "s"}

        def mapped(state):
            return {names[n]: v for n, v in state.items()} | {"a.again": state["fused.a"]}

        found = NamedTensors([model], mapped, ["a", "b", "e"]).parameters("before")
        self.assertEqual(sorted(found), ["a", "a.again", "b", "e"])
        # A buffer of the file keeps its name, where it is wanted.
        found = NamedTensors([model], mapped, ["a", "a.again", "b", "e"]).parameters("before", {"s"})
        self.assertEqual(sorted(found), ["a", "a.again", "b", "e", "s"])

    def test_a_mapping_may_need_the_second_name_of_a_tied_tensor(self):
        def mapped(state):
            fused = state["fused.a"]
            names = {"e": state["embedding.weight"], "h": state["head.weight"], "a": fused, "a.again": fused}
            return names | {"s": state["seen"]} if "seen" in state else names

        model = Model()
        found = NamedTensors([model], mapped, ["a", "e"]).parameters("before")
        self.assertEqual(sorted(found), ["a", "a.again", "e"])
        model.register_buffer("seen", torch.ones(3))
        found = NamedTensors([model], mapped, ["a", "e"]).parameters("before")
        self.assertEqual(sorted(found), ["a", "a.again", "e"])

    def test_the_error_of_a_norm_is_that_of_the_gradients_own_type(self):
        gradients = [torch.full((3,), 1.0), torch.full((1 << 20,), 1.0)]
        self.assertLess(norm_error(gradients), 1e-5)
        # Each norm is rounded to bf16: 300 halves are 17.32 / 2, and bf16 has 8.625 and 8.6875.
        halves = torch.full((300,), 0.5, dtype=torch.bfloat16)
        self.assertAlmostEqual(norm_error([halves]), 8.6875 / (300**0.5 / 2) - 1, 6)
        for nothing in ([], [torch.zeros(2)], [torch.full((1,), torch.inf)]):
            self.assertIsNone(norm_error(nothing))

    def test_gradients_of_this_rank_need_no_mapping(self):
        model = Model()
        self.assertEqual(NamedTensors([model], to_hf).own_gradients(), [])
        model.fused.both.grad = torch.ones(4, 2)
        self.assertEqual(len(NamedTensors([model], to_hf).own_gradients()), 1)

    def test_what_is_held_needs_no_mapping_and_counts_a_tied_tensor_once(self):
        model = Model()
        with torch.no_grad():
            model.embedding.weight.fill_(2)
        tensors = NamedTensors([model], lambda state: {"b": state["fused.b"]})
        self.assertEqual(sorted(tensors.held()), ["embedding.weight", "fused.both"])
        facts = loaded(tensors)
        self.assertEqual(facts["load"], {"b": {"norm": 126**0.5, "sum": 22.0, "numel": 4}})
        self.assertEqual(facts["held"], {"norm": 164**0.5, "sum": 40.0, "numel": 14})

    def test_buffers_of_the_file_are_measured_apart(self):
        model = torch.nn.ModuleDict({"m": torch.nn.Linear(2, 1, bias=False)})
        model["m"].register_buffer("seen", torch.tensor([3.0, 4.0]))
        model["m"].register_buffer("other", torch.ones(2))
        names = {"m.weight": "w", "m.seen": "s"}

        def mapped(state):
            return {names[n]: v for n, v in state.items() if n in names}

        size = {"norm": 5.0, "sum": 7.0, "numel": 2}
        for mapping, weight, seen in ((mapped, "w", "s"), (None, "m.weight", "m.seen")):
            facts = loaded(NamedTensors([model], mapping, [weight]), {seen, "missing"})
            self.assertEqual(facts["load"].keys(), {weight})
            self.assertEqual(facts["load_buffers"], {seen: size})
        self.assertNotIn("load_buffers", loaded(NamedTensors([model], mapped, ["w"])))

    def test_a_parameter_that_no_name_leads_to_is_held(self):
        model = Model()
        model.embedding.bias = torch.nn.Parameter(torch.ones(3))
        without, with_bias = (loaded(NamedTensors([m], to_hf)) for m in (Model(), model))
        self.assertEqual(without["load"].keys(), with_bias["load"].keys())
        self.assertEqual(with_bias["held"]["numel"] - without["held"]["numel"], 3)

    def test_a_container_is_sampled_once_with_the_settings_of_its_optimizer(self):
        model, events = Model(), []
        optimizer = Container(model.parameters("before"))
        for parameter in model.parameters("before"):
            parameter.grad = torch.full_like(parameter, 2.0)
        probe = types.SimpleNamespace(places={"a": torch.tensor([3, 0])})
        with tempfile.TemporaryDirectory() as folder:
            numbers = StepNumbers(
                probe, NamedTensors([model], to_hf), folder, Report(events.append)
            )
            with numbers:
                optimizer.step()
            numbers.finish(0, {"loss": float("nan")}, torch.zeros(2), 1.0)
            written = load_file(os.path.join(folder, "step0.safetensors"))
        self.assertEqual(written["grad/a"].tolist(), [2, 2])
        self.assertEqual(written["before/a"].tolist(), [3, 0])
        torch.testing.assert_close(written["after/a"], torch.tensor([3 * 0.995 - 0.5, -0.5]))
        # Gradient at the step, parameter before, parameter after; a is [[0, 1], [2, 3]].
        after = torch.tensor([0.0, 1, 2, 3], dtype=torch.float64) * 0.995 - 0.5
        expected = [4.0, 14.0**0.5, after.norm().item()]
        torch.testing.assert_close(written["norms/a"].tolist(), expected)
        step = json.loads(events[0])["append"]["steps"]
        self.assertIsNone(step["loss"])
        self.assertEqual(step["optimizer"]["class"], "AdamW")
        self.assertEqual(step["optimizer"]["param_groups"][0]["betas"], [0.9, 0.999])
        self.assertEqual(step["learning_rate"], 0.5)
        self.assertLess(step["norm_error"], 1e-6)

    def test_a_gradient_of_another_size_has_fewer_samples(self):
        model, seen = Model(), []
        optimizer = torch.optim.SGD([model.fused.both], lr=0.5)
        model.fused.both.grad = torch.ones(4, 2)

        def to_hf_of_half_a_gradient(state):
            seen.append(state)  # gradients first
            return {"a": state["fused.a"][: 1 if len(seen) == 1 else 2]}

        probe = types.SimpleNamespace(places={"a": torch.tensor([3, 0])})
        with tempfile.TemporaryDirectory() as folder:
            tensors = NamedTensors([model], to_hf_of_half_a_gradient)
            numbers = StepNumbers(probe, tensors, folder, Report(lambda _: None))
            with numbers:
                optimizer.step()
            numbers.finish(0, {}, None, 1.0)
            written = load_file(os.path.join(folder, "step0.safetensors"))
        self.assertEqual(written["grad/a"].tolist(), [1])
        self.assertEqual(written["before/a"].tolist(), [3, 0])

    def test_a_parameter_that_is_gone_after_the_step_has_no_norms(self):
        model, seen = Model(), []
        optimizer = torch.optim.SGD([model.fused.both], lr=0.5)
        model.fused.both.grad = torch.ones(4, 2)

        def to_hf_that_forgets(state):
            seen.append(state)
            return {"a": state["fused.a"]} if len(seen) < 3 else {}

        probe = types.SimpleNamespace(places={"a": torch.tensor([3, 0])})
        with tempfile.TemporaryDirectory() as folder:
            tensors = NamedTensors([model], to_hf_that_forgets)
            numbers = StepNumbers(probe, tensors, folder, Report(lambda _: None))
            with numbers:
                optimizer.step()
            numbers.finish(0, {}, None, 1.0)
            written = load_file(os.path.join(folder, "step0.safetensors"))
        self.assertEqual(sorted(written), ["before/a", "grad/a"])

    def test_a_step_that_never_came_shows_as_no_optimizer(self):
        events = []
        with tempfile.TemporaryDirectory() as folder:
            probe = types.SimpleNamespace(places={})
            numbers = StepNumbers(
                probe, NamedTensors([Model()], to_hf), folder, Report(events.append)
            )
            with numbers:
                pass
            numbers.finish(0, {}, None, 1.0)
        self.assertNotIn("optimizer", json.loads(events[0])["append"]["steps"])


if __name__ == "__main__":
    unittest.main()
