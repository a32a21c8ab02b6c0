# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records what each layer's attention dispatches with gradients, and what its backward will run.

It watches the training forward itself, because the choice of a kernel may depend on whether
gradients are needed. It reads the backward from the call's graph, between output and inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from bkm_cell.witnesses.layers import attention_layers, hf_attention, layer_index
from bkm_cell.witnesses.ops import dispatched, is_telling

MAX_NODES = 10_000  # in the graph of one call; an attention has fewer


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


def autograd_nodes(output: Any, inputs: Any) -> list[str]:
    """The nodes between a call's output and its inputs whose names identify an attention."""
    ends = {tensor.grad_fn for tensor in _tensors(inputs) if tensor.grad_fn is not None}
    waiting = [tensor.grad_fn for tensor in _tensors(output) if tensor.grad_fn is not None]
    seen = set(ends)
    names = set()
    while waiting and len(seen) < MAX_NODES:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        names.add(node.name())
        waiting.extend(following for following, _ in node.next_functions if following is not None)
    return sorted(name for name in names if is_telling(name))


class AttentionKernels:
    """Watches each layer's first attention call with gradients."""

    def __init__(self, modules: list[torch.nn.Module]) -> None:
        self._modules = modules
        self._layers: dict[int, dict[str, Any]] = {}

    def facts(self) -> list[dict[str, Any]]:
        return [self._layers[layer] for layer in sorted(self._layers)]

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, module in attention_layers(self._modules):
                if not name.endswith("self_attn"):
                    self._watch(stack, layer_index(name), module)
            stack.enter_context(hf_attention(self._modules, self._watched))
            yield

    def _is_new(self, layer: int) -> bool:
        return torch.is_grad_enabled() and layer not in self._layers

    def _keep(self, layer: int, ops: set[str], output: Any, inputs: Any) -> None:
        nodes = autograd_nodes(output, inputs)
        self._layers[layer] = {"layer": layer, "forward": sorted(ops), "backward": nodes}

    def _watch(self, stack: ExitStack, layer: int, module: torch.nn.Module) -> None:
        recording: list[tuple[ExitStack, set[str]]] = []

        def before(*_: Any) -> None:
            if self._is_new(layer) and not recording:
                ops: set[str] = set()
                recorder = ExitStack()
                recorder.enter_context(dispatched(ops))
                recording.append((recorder, ops))

        def after(_: Any, arguments: Any, named: Any, output: Any) -> None:
            if recording:
                recorder, ops = recording.pop()
                recorder.close()
                self._keep(layer, ops, output, (arguments, named))

        stack.callback(lambda: recording and recording.pop()[0].close())
        stack.callback(module.register_forward_pre_hook(before).remove)
        stack.callback(module.register_forward_hook(after, with_kwargs=True, prepend=True).remove)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            layer = getattr(module, "layer_idx", len(self._layers))
            if not self._is_new(layer):
                return function(module, *arguments, **named)
            ops: set[str] = set()
            with dispatched(ops):
                output = function(module, *arguments, **named)
            self._keep(layer, ops, output, (arguments, named))
            return output

        return call
