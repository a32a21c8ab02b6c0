# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The schedule of the learning rate, as torchtitan is asked for it."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from bkm_cell.probe import Probe


def schedule_of(probe: Probe) -> dict[str, Any]:
    """What decays, under the names of torchtitan's configuration and verl's; without the warm-up.

    torchtitan always decays: without a decay in the probe, to the full rate.
    """
    if not probe.decay:
        return {"min_lr_factor": 1.0}
    return {"decay_type": probe.decay, "min_lr_factor": probe.min_lr_factor}


def library_schedule(optimizer: torch.optim.Optimizer, probe: Probe) -> Any:
    """The scheduler that torchtitan's Trainer makes for one optimizer."""
    asked = {"warmup_steps": probe.warmup_steps, **schedule_of(probe)}
    module = importlib.import_module("torchtitan.components.lr_scheduler")
    config = getattr(module.LRSchedulersContainer, "Config", None)
    if config is not None:
        made = config(**asked).build(optimizers=[optimizer], training_steps=probe.total_steps)
    else:  # until 2026-02
        settings = importlib.import_module("torchtitan.config").LRScheduler(**asked)
        made = module.build_lr_schedulers([optimizer], settings, probe.total_steps)
    return made.schedulers[0]
