# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A model's parameters and gradients with HF's names and layout."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import torch

from bkm_cell.older_torch import DTensor, local_part
from bkm_cell.witnesses.flat_parameters import flat_parts, is_flat
from bkm_cell.witnesses.plain_name import plain_name

Tensors = dict[str, torch.Tensor]
# Makes whole tensors of a rank's parts, for one kind of them: "grad", "before", ...
Gather = Callable[[str, Tensors], Tensors]


def gathered(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _gathered_each(_kind: str, tensors: Tensors) -> Tensors:
    return {name: gathered(value) for name, value in tensors.items()}


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


def _in_file(name: str, known: Collection[str]) -> str | None:
    """The file's name of a tensor, perhaps without one part that a wrapping module added."""
    parts = name.split(".")
    shorter = (".".join(parts[:at] + parts[at + 1 :]) for at in range(len(parts)))
    return name if name in known else next((other for other in shorter if other in known), None)


def names_beside(modules: list[torch.nn.Module], known: Collection[str]) -> set[str]:
    """Names in a state dict that stand for no parameter of their own: buffers, and all names but
    one of a tied tensor. A name of the file (`known`) goes first."""
    names: dict[int, list[str]] = {}
    beside: set[str] = set()
    for module in modules:
        for name, value in module.named_parameters(remove_duplicate=False):
            names.setdefault(id(value), []).append(plain_name(name))
        beside.update(plain_name(n) for n, _ in module.named_buffers(remove_duplicate=False))
    for same in names.values():
        kept = next((name for name in same if _in_file(name, known)), same[0])
        beside.update(name for name in same if name != kept)
    return beside - set(known)


def _without_wrappers(state: Tensors, known: Collection[str]) -> Tensors:
    """With the names of the file, where it has no other tensor for them."""
    free = set(known) - state.keys()
    named: Tensors = {}
    for name, value in state.items():
        other = None if name in known else _in_file(name, free)
        free.discard(other or name)
        named[other or name] = value
    return named


class NamedTensors:
    """`to_hf`: the library's own mapping from its state dict to HF's; None if names are HF's.

    `known`: the names of the file's parameters. `whole`: the library's own way to gather a state dict whose
    tensors are plain parts of each rank; DTensors are gathered anyway. What a method returns may
    change with the next call; of several ranks only the first gets anything.
    """

    gather: Gather = staticmethod(_gathered_each)

    def __init__(
        self,
        modules: list[torch.nn.Module],
        to_hf: Callable[[Tensors], Tensors] | None,
        known: Collection[str] = (),
        whole: Callable[[Tensors], Tensors] | None = None,
    ) -> None:
        self._modules = modules
        self._to_hf = to_hf
        self._known = known
        self._whole = whole

    def parameters(self, kind: str, buffers: Collection[str] = ()) -> Tensors:
        """`kind`: what a difference between ranks is called. `buffers`: the names of buffers in the
        file, which are wanted, too."""
        known = {*self._known, *buffers}
        if self._is_flat:
            parts = self._flat(gradients=False)
            return self._mapped(kind, parts | self._buffers(buffers), set(), known)
        return self._parameters(kind, names_beside(self._modules, known), known)

    def _buffers(self, names: Collection[str]) -> Tensors:
        named = (item for module in self._modules for item in module.named_buffers())
        return {plain_name(name): value for name, value in named if plain_name(name) in names}

    @property
    def _is_flat(self) -> bool:
        return any(is_flat(module) for module in self._modules)

    def _flat(self, gradients: bool) -> Tensors:
        parts: Tensors = {}
        for module in self._modules:
            parts |= flat_parts(module, gradients)
        return parts

    def _parameters(self, kind: str, beside: set[str], known: Collection[str]) -> Tensors:
        state: Tensors = {}
        for module in self._modules:
            state.update((plain_name(name), value) for name, value in module.state_dict().items())
        return self._mapped(kind, state, beside, known)

    def _mapped(
        self, kind: str, state: Tensors, beside: set[str], known: Collection[str]
    ) -> Tensors:
        """A state dict of the modules, under the names of the file."""
        if self._whole is not None:
            state = self._whole(state)
        if self._to_hf is None:
            own = {name: value for name, value in state.items() if name not in beside}
            return _without_wrappers(self.gather(kind, own), known)
        whole = self.gather(kind, state)
        return self._of_file(whole, self._to_hf, known) if whole else {}

    def _of_file(
        self, whole: Tensors, to_hf: Callable[[Tensors], Tensors], known: Collection[str]
    ) -> Tensors:
        """`whole` under HF's names. Of the names that the file lacks, those of buffers and second
        names of tied tensors are left out; what is left stands for a parameter."""
        try:
            mapped = to_hf(whole)
        except LookupError:  # a mapping need not know a buffer
            buffers = {
                plain_name(name) for module in self._modules for name, _ in module.named_buffers()
            }
            if not buffers & whole.keys():
                raise
            mapped = to_hf({name: v for name, v in whole.items() if name not in buffers})
        added = mapped.keys() - set(known)
        if not self._known or not added:
            return mapped
        beside = names_beside(self._modules, ())
        named: Collection[str]
        try:
            named = to_hf({name: value for name, value in whole.items() if name not in beside})
        except LookupError:  # it needs them, and passes them on
            passed = {whole[name].data_ptr() for name in beside & whole.keys()}
            named = [name for name, value in mapped.items() if value.data_ptr() not in passed]
        return {name: v for name, v in mapped.items() if name not in added or name in named}

    def held(self) -> Tensors:
        """Everything that the modules hold, under their own names; a tied tensor once."""
        if self._is_flat:
            return self.gather("held", self._flat(gradients=False))
        held = {
            plain_name(name): value
            for module in self._modules
            for name, value in module.named_parameters()
        }
        if self._whole is not None:
            held = self._whole(held)
        return self.gather("held", held)

    def own_gradients(self) -> list[torch.Tensor]:
        """The gradients as the modules hold them: of several ranks, this one's parts."""
        found = [p.grad for module in self._modules for p in module.parameters()]
        return [local_part(g) for g in found if g is not None]

    def gradients(self) -> Tensors:
        if self._is_flat:
            return self._mapped("grad", self._flat(gradients=True), set(), self._known)
        for module in self._modules:
            module.state_dict()  # FSDP2 returns to its sharded parameters here, before the swap
        beside = names_beside(self._modules, self._known)
        with _gradients_in_place(self._modules):
            return self._parameters("grad", beside, self._known)
