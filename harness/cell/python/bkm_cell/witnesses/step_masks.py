# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads who attends to whom in each layer of a training step.

A library may keep masks, block tables or positions from one step to the next. So the calls of each
step's own forward are kept, and repeated just before the step's first backward: then the forward is
over, with its checkpoints and dispatch modes, and what the library keeps is still this step's.
A reentrant checkpoint runs a layer without gradients first: then that call is the layer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from bkm_cell.witnesses.attended import Attended, Called, watch_calls
from bkm_cell.witnesses.layers import entrances, hf_attention, inner_attentions, numbered


@dataclass
class _Call:
    layer: int
    function: Callable[..., Any]
    arguments: Any
    named: Any
    autocast: AbstractContextManager[Any]
    module: torch.nn.Module
    parameters: dict[str, torch.Tensor]  # the module's own, as it saw them

    def as_it_was(self) -> AbstractContextManager[None]:
        return _with_attributes(self.module, self.parameters)


@contextmanager
def _with_attributes(module: torch.nn.Module, values: dict[str, torch.Tensor]) -> Iterator[None]:
    """An instance's own attributes come before its parameters."""
    before = {name: module.__dict__[name] for name in values if name in module.__dict__}
    module.__dict__.update(values)
    try:
        yield
    finally:
        for name in values:
            module.__dict__.pop(name, None)  # the call may have removed it
        module.__dict__.update(before)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (tuple, list):
        return type(value)(_detached(item) for item in value)
    if type(value) is dict:
        return {key: _detached(item) for key, item in value.items()}
    return value


class StepMasks:
    """Watches the training forward of one step, which must have one micro-batch."""

    def __init__(
        self,
        modules: list[torch.nn.Module],
        attended: Attended,
        own_calls: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """`own_calls`: around the repeated calls, so that another witness does not count them."""
        self._modules = modules
        self._attended = attended
        self._own_calls = own_calls
        self._calls: list[_Call] = []
        # Those without gradients: a reentrant checkpoint's first forward.
        self._quiet_calls: list[_Call] = []
        self._open = True

    @contextmanager
    def watching(self) -> Iterator[None]:
        backward = torch.autograd.backward

        def watched(*arguments: Any, **named: Any) -> None:
            self._read()
            backward(*arguments, **named)

        with ExitStack() as stack:
            for layer, module in numbered(inner_attentions(self._modules)):
                watch_calls(stack, module, self._after(layer))
            for module in entrances(self._modules):
                handle = module.register_forward_pre_hook(self._enter, with_kwargs=True)
                stack.callback(handle.remove)
            stack.enter_context(hf_attention(self._modules, self._watched))
            torch.autograd.backward = watched
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield

    def _keep(
        self,
        layer: int,
        module: torch.nn.Module,
        function: Callable[..., Any],
        arguments: Any,
        named: Any,
    ) -> None:
        if not self._open:
            return
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        device = tensors[0].device.type if tensors else "cpu"
        autocast = torch.autocast(
            device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
        )
        calls = self._calls if torch.is_grad_enabled() else self._quiet_calls
        # FSDP gives a module whole parameters for its forward only. gpt_oss's sinks are such.
        own = {
            name: parameter.detach().clone()
            for name, parameter in module.named_parameters(recurse=False)
            if name not in module.__dict__
        }
        calls.append(
            _Call(layer, function, _detached(arguments), _detached(named), autocast, module, own)
        )

    def _enter(self, _: Any, arguments: Any, named: Any) -> None:
        if self._open:
            self._attended.entered(arguments, named)

    def _after(self, layer: int) -> Called:
        return lambda module, repeat, arguments, named: self._keep(
            layer, module, repeat, arguments, named
        )

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            layer = getattr(module, "layer_idx", -1)
            self._keep(layer, module, partial(function, module), arguments, named)
            return function(module, *arguments, **named)

        return call

    def _read(self) -> None:
        self._open = False  # a checkpoint calls the layers again in the backward
        trained = {call.layer for call in self._calls}
        calls = self._calls + [call for call in self._quiet_calls if call.layer not in trained]
        self._calls, self._quiet_calls = [], []
        for call in calls:
            with call.autocast, self._own_calls(), call.as_it_was():
                self._attended.read(call.layer, call.function, call.arguments, call.named)
