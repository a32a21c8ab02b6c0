# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A model's parameters and gradients with HF's names and layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.distributed.tensor import DTensor

Tensors = dict[str, torch.Tensor]

_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


def plain_name(name: str) -> str:
    """A module's or parameter's name without what compile, checkpointing and FSDP1 add to it."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def gathered(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@contextmanager
def _gradients_in_place(modules: list[torch.nn.Module]) -> Iterator[None]:
    """In this context each parameter slot holds the gradient (zeros if there is none).

    So the code that changes a module's state dict (splits a fused weight, renames) also applies to
    the gradients.
    """
    slots = [
        (module, name, p)
        for top in modules
        for module in top.modules()
        for name, p in module._parameters.items()
    ]
    slots = [slot for slot in slots if slot[2] is not None]
    try:
        for module, name, parameter in slots:
            gradient = parameter.grad
            module._parameters[name] = torch.zeros_like(parameter) if gradient is None else gradient
        yield
    finally:
        for module, name, parameter in slots:
            module._parameters[name] = parameter


class NamedTensors:
    """`to_hf`: the library's own mapping from its state dict to HF's; None if names are HF's."""

    def __init__(
        self, modules: list[torch.nn.Module], to_hf: Callable[[Tensors], Tensors] | None
    ) -> None:
        self._modules = modules
        self._to_hf = to_hf

    def parameters(self) -> Tensors:
        names = {
            plain_name(name) for module in self._modules for name, _ in module.named_parameters()
        }
        state: Tensors = {}
        for module in self._modules:
            state.update((plain_name(name), value) for name, value in module.state_dict().items())
        if self._to_hf is not None:
            return self._to_hf({name: gathered(value) for name, value in state.items()})
        # A tied tensor has two names in a state dict and one among the parameters.
        return {name: gathered(value) for name, value in state.items() if name in names}

    def numel(self) -> int:
        """Over everything that the modules hold, without gathering anything."""
        return sum(p.numel() for module in self._modules for p in module.parameters())

    def held(self) -> Tensors:
        """Everything that the modules hold, under their own names; a tied tensor once."""
        return {
            plain_name(name): gathered(value)
            for module in self._modules
            for name, value in module.named_parameters()
        }

    def gradients(self) -> Tensors:
        for module in self._modules:
            module.state_dict()  # FSDP2 returns to its sharded parameters here, before the swap
        with _gradients_in_place(self._modules):
            return self.parameters()
