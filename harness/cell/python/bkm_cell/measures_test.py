# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Timed steps are those after the warm-up, with an idle device around each."""

import json
import tempfile
import types
import unittest

import torch
from torch import nn

from bkm_cell.measures import device_settings, report_measures, step_seconds
from bkm_cell.report import Report


class FakeAdapter:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 8))
        self.steps = 0

    def modules(self):
        return [self.model]

    def train_step(self, batch):
        self.steps += 1
        self.model(torch.ones(1, 3, 8)).sum().backward()


class MeasuresTest(unittest.TestCase):
    def measured(self, adapter):
        probe = types.SimpleNamespace(
            device=torch.device("cpu"), batches=[types.SimpleNamespace(input_ids=[1, 2, 3])]
        )
        events = []
        with tempfile.TemporaryDirectory() as folder:
            report = Report(lambda text: events.append(json.loads(text)["set"]["measures"]))
            report_measures({"warm_up": 1, "steps": 3}, probe, adapter, report, folder)
        return {key: value for event in events for key, value in event.items()}

    def test_the_device_is_idle_before_and_after_each_step(self):
        seen = []
        step_seconds(lambda: seen.append("step"), 1, 2, lambda: seen.append("wait"))
        self.assertEqual(["wait", "step", "wait"] * 3, seen)

    def test_only_steps_after_the_warm_up_count(self):
        adapter = FakeAdapter()
        found = self.measured(adapter)
        self.assertEqual(3, len(found["step_seconds"]))
        self.assertEqual(1 + 3 + 1, adapter.steps)  # the last one under the profiler
        self.assertEqual(sorted(found["step_seconds"])[1], found["median_s"])
        self.assertEqual(3, found["tokens"])
        self.assertNotIn("error", found)

    def test_a_step_that_raises_is_a_fact_and_ends_nothing(self):
        adapter = FakeAdapter()
        adapter.train_step = lambda batch: 1 / 0
        self.assertEqual("ZeroDivisionError: division by zero", self.measured(adapter)["error"])

    def test_settings_of_a_cpu_name_no_setting_of_cuda(self):
        facts = device_settings(torch.device("cpu"))
        self.assertEqual("cpu", facts["type"])
        self.assertNotIn("allow_tf32", facts)


if __name__ == "__main__":
    unittest.main()
