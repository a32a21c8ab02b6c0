# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Runs a trainer's cell again with no witness and no checkpoint: `python -m bkm_cell.unwatched REQUEST`, in a folder of
its own. Prints the digest of what it trained, which the watched cell must have, bit by bit."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from bkm_cell import tree_finder
from bkm_cell.cell import LAUNCHER
from bkm_cell.tensor_file import tensor_bytes


def parameters_digest(optimizer: Optimizer) -> str:
    """Of all parameters that the optimizer steps, in its order."""
    digest = hashlib.sha256()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            value = parameter.detach()
            value = value.to_local() if hasattr(value, "to_local") else value
            digest.update(tensor_bytes(value.contiguous().cpu()))
    return digest.hexdigest()


def run(request: dict[str, Any]) -> str:
    os.environ.update(LAUNCHER)
    paths = [path for path in (request.get("paths") or {}).values() if path]
    sys.path[:0] = paths
    tree_finder.install(paths)
    torch.set_num_threads(int(request["probe"].get("threads", 1)))
    importlib.import_module("bkm_cell.shims.apply").apply_shims(request)
    asked = {name: value for name, value in request["probe"].items() if name != "resume_checkpoint"}
    probe = importlib.import_module("bkm_cell.probe").Probe(request["probe_dir"], asked)
    name = request["adapter"].replace("-", "_").removesuffix("_trainer")
    adapter = importlib.import_module(f"bkm_cell.adapters.{name}_trainer").Adapter(
        probe, probe.attention
    )
    digests: list[str] = []

    def stepped(optimizer: Optimizer, *_: Any) -> None:
        if any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
            digests.append(parameters_digest(optimizer))

    register_optimizer_step_post_hook(stepped)
    adapter.import_modules()
    adapter.write_inputs()
    adapter.run()
    return digests[-1]


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        asked = json.load(file)
    print(run(asked))
