# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Whether the biases that choose experts move against the experts' load (auxiliary-loss-free load
balancing, Wang et al. 2024, arXiv:2408.15664). torchtitan moves them in a hook of the optimizer, which
whoever makes the optimizer has to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from bkm_cell.older_torch import local_part


class _Layer:
    """One layer of experts. Eras differ in the suffixes of names. Where it has no router or no bias, nothing
    is seen."""

    def __init__(self, name: str, module: torch.nn.Module, coefficient: float) -> None:
        self.name = name
        self.coefficient = coefficient
        biases = (b for n, b in module.named_buffers(recurse=False) if n.startswith("expert_bias"))
        self._bias = next(biases, torch.zeros(0))
        is_whole = self._bias.numel() > 0
        self.router = dict(module.named_children()).get("router") if is_whole else None
        self._before = self._bias
        self._tokens = self._bias

    def begin(self) -> None:
        self._before = local_part(self._bias).detach().clone()
        self._tokens = torch.zeros(self._before.numel(), dtype=torch.int64)

    def count(self, _: Any, __: Any, result: Any) -> None:
        """What the router chose in a forward that trains; not where a backward computes it again."""
        if not torch.is_grad_enabled() or torch._C._current_graph_task_id() != -1:
            return
        for chosen in result:
            if isinstance(chosen, torch.Tensor) and chosen.dtype == torch.int64 and chosen.dim() > 1:
                flat = local_part(chosen).flatten().cpu()
                self._tokens += torch.bincount(flat, minlength=self._tokens.numel())
                return

    def facts(self, ranks: int) -> dict[str, Any]:
        tokens = self._tokens
        if ranks > 1:
            torch.distributed.all_reduce(tokens)
        moved = local_part(self._bias).detach() - self._before
        return {
            "layer": self.name,
            "coefficient": self.coefficient,
            "tokens": tokens.tolist(),
            "moved": moved.float().cpu().tolist(),
        }


class ExpertBalance:
    """Of one training step at a time. `ranks`: which share its tokens, and nothing else of a layer."""

    def __init__(self, modules: list[torch.nn.Module], ranks: int) -> None:
        self._ranks = ranks
        self._layers: list[_Layer] = []
        for root in modules:
            for name, module in root.named_modules():
                # Its own attribute: a wrapper shows those of what it wraps, too.
                coefficient = vars(module).get("load_balance_coeff")
                if coefficient is not None:
                    self._layers.append(_Layer(name, module, float(coefficient)))

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for layer in self._layers:
                layer.begin()
                if layer.router is not None:
                    stack.callback(layer.router.register_forward_hook(layer.count).remove)
            yield

    def facts(self) -> dict[str, Any]:
        """Once the optimizer has stepped."""
        if not self._layers:
            return {}
        return {"experts": [layer.facts(self._ranks) for layer in self._layers]}
