# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The place of one fault in one cell, found by the names that all engines share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.faults.registry import CannotPlant
from bkm_cell.witnesses.plain_name import plain_name

_POSITIONS = ("positions", "position_ids")


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's own storage; with one rank, the local part of a DTensor is all of it."""
    tensor = tensor.detach()
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def lengths_of(positions: torch.Tensor) -> list[int]:
    """The lengths of packed documents, from positions that begin anew in each."""
    starts = (positions.flatten() == 0).nonzero().flatten().tolist()
    ends = [*starts[1:], positions.numel()]
    return [end - start for start, end in zip(starts, ends, strict=True)]


class Site:
    def __init__(self, fault: str, adapter: Any, library: str) -> None:
        self.fault = fault
        self.adapter = adapter
        self.library = library
        self.acted = 0  # how often the fault acted
        self.lengths: list[int] = []  # document lengths in the current forward pass
        # Those of the last other batch with as many tokens, by this number.
        self.previous_lengths: dict[int, list[int]] = {}

    def act(self) -> None:
        self.acted += 1

    @property
    def hf_config(self) -> dict[str, Any]:
        return self.adapter.probe.hf_config

    @property
    def layers(self) -> int:
        return int(self.hf_config["num_hidden_layers"])

    @property
    def middle_layer(self) -> int:
        return self.layers // 2

    def cannot(self, why: str) -> CannotPlant:
        return CannotPlant(f"{self.fault}: {why}")

    def modules(self, *names: str) -> list[tuple[str, torch.nn.Module]]:
        """(full name, module) for modules whose last name part is one of these; at least one."""
        found = [
            (plain_name(name), module)
            for top in self.adapter.modules()
            for name, module in top.named_modules()
            if plain_name(name).split(".")[-1] in names
        ]
        if not found:
            raise self.cannot(f"the model has no module named {' or '.join(names)}")
        return found

    def parameters(self, pattern: str) -> list[tuple[str, torch.nn.Parameter]]:
        """(full name, parameter) for parameters whose name matches the pattern; at least one."""
        found = [
            (plain_name(name), parameter)
            for top in self.adapter.modules()
            for name, parameter in top.named_parameters()
            if re.search(pattern, plain_name(name))
        ]
        if not found:
            raise self.cannot(f"no parameter's name has {pattern}")
        return found

    def watch_documents(self) -> None:
        """Keeps `lengths` up to date, from the positions that the model is given."""

        def enter(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            found = next((named[name] for name in _POSITIONS if named.get(name) is not None), None)
            if found is None or found.shape[0] != 1:
                self.lengths = []
                return
            lengths = lengths_of(found)
            if lengths != self.lengths:
                self.previous_lengths[sum(self.lengths)] = self.lengths
            self.lengths = lengths

        for module in self.adapter.modules():
            module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)

    def documents(self) -> list[int]:
        if not self.lengths:
            raise self.cannot("the model was not given the positions of one packed row")
        return self.lengths

    def around(self, owner: Any, name: str, wrap: Callable[..., Any]) -> None:
        """Replaces `owner.name` by a call of wrap(original, ...)."""
        original = getattr(owner, name, None)
        if original is None:
            raise self.cannot(f"{owner} has no {name}")
        setattr(owner, name, lambda *arguments, **named: wrap(original, *arguments, **named))
