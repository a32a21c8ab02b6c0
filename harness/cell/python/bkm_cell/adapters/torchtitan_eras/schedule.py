# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The library's own schedule of the learning rate, with a decay."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from bkm_cell.probe import Probe


def library_schedule(optimizer: torch.optim.Optimizer, probe: Probe) -> Any:
    """The scheduler that torchtitan's Trainer makes for one optimizer."""
    asked = {
        "warmup_steps": probe.warmup_steps,
        "decay_type": probe.decay,
        "min_lr_factor": probe.min_lr_factor,
    }
    module = importlib.import_module("torchtitan.components.lr_scheduler")
    config = getattr(module.LRSchedulersContainer, "Config", None)
    if config is not None:
        made = config(**asked).build(optimizers=[optimizer], training_steps=probe.total_steps)
    else:  # until 2026-02
        settings = importlib.import_module("torchtitan.config").LRScheduler(**asked)
        made = module.build_lr_schedulers([optimizer], settings, probe.total_steps)
    return made.schedulers[0]
