# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records what each layer's attention dispatches with gradients, and what its backward will run.

It watches the training forwards themselves, because the choice of a kernel may depend on whether
gradients are needed. It reads a layer's backward from the call's graph, between output and inputs.
The graph of the loss shows what its gradients really pass through: a layer's attention may be called
and its output dropped. It also shows the type of every matrix product of the step, in any part of the
model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from bkm_cell.witnesses.layers import hf_attention, inner_attentions, numbered
from bkm_cell.witnesses.ops import dispatched, is_telling

_PRODUCT = re.compile(r"(mm|matmul|linear)backward\d*$", re.IGNORECASE)

PRECISIONS = {torch.bfloat16: "bf16", torch.float32: "fp32"}
# The one node of a call of a compiled function; its backward is derived from what its forward traced.
_COMPILED = "CompiledFunctionBackward"

MAX_NODES = 10_000  # in the graph of one call; an attention has fewer
MAX_NODES_OF_A_LOSS = 2_000_000


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


def _nodes(starts: Iterable[Any], ends: Iterable[Any], most: int) -> Iterator[Any]:
    """The nodes between these tensors' nodes."""
    seen = {tensor.grad_fn for tensor in ends if tensor.grad_fn is not None}
    waiting = [tensor.grad_fn for tensor in starts if tensor.grad_fn is not None]
    while waiting and len(seen) < most:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(following for following, _ in node.next_functions if following is not None)


def autograd_nodes(output: Any, inputs: Any) -> list[str]:
    """The nodes between a call's output and its inputs that identify an attention or are compiled."""
    return sorted(_by_name(output, inputs))


def _by_name(output: Any, inputs: Any) -> dict[str, Any]:
    """One node of each name that autograd_nodes() gives."""
    nodes = {node.name(): node for node in _nodes(_tensors(output), _tensors(inputs), MAX_NODES)}
    return {name: node for name, node in nodes.items() if is_telling(name) or name == _COMPILED}


class LossGraphs:
    """What the backward passes of a step go through.

    `attention`: how many nodes of each name that identifies an attention; of compiled nodes, whose
    name tells nothing, only those that are `of_attention`. `products`: how many matrix products of
    each type; a product has the type of its operands. A compiled function hides its products.
    """

    def __init__(self, of_attention: Callable[[Any], bool] = lambda _: False) -> None:
        self._of_attention = of_attention
        self.attention: Counter[str] = Counter()
        self.products: Counter[str] = Counter()

    def add(self, roots: Any) -> None:
        for node in _nodes(_tensors(roots), [], MAX_NODES_OF_A_LOSS):
            name = node.name()
            if is_telling(name) or (name == _COMPILED and self._of_attention(node)):
                self.attention[name] += 1
            if _PRODUCT.search(name) and (outputs := getattr(node, "_input_metadata", None)):
                self.products[_name(outputs[0].dtype)] += 1

    def facts(self) -> dict[str, dict[str, int]]:
        return {"attention_nodes": dict(self.attention), "products": dict(self.products)}


def _name(dtype: torch.dtype) -> str:
    return PRECISIONS.get(dtype, str(dtype).removeprefix("torch."))


def precision_of(inputs: Any) -> str:
    """The type that a call computes in: that of the active autocast, else its first tensor's."""
    first = next(_tensors(inputs), None)
    if first is None:
        return ""
    device = first.device.type
    autocast = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if autocast else first.dtype
    return _name(dtype)


class AttentionKernels:
    """Watches each layer's attention calls with gradients, and how many there are in each step."""

    def __init__(self, modules: list[torch.nn.Module], steps: int) -> None:
        self._modules = modules
        self._steps = steps
        self._step = 0
        self._compiled: set[Any] = set()  # a node of each compiled call in this step
        # (layer, precision, ops, nodes) -> calls per step
        self._calls: dict[tuple[int, str, tuple[str, ...], tuple[str, ...]], list[int]] = {}

    def facts(self) -> list[dict[str, Any]]:
        return [
            {
                "layer": layer,
                "precision": precision,
                "forward": list(ops),
                "backward": list(nodes),
                "calls": calls,
            }
            for (layer, precision, ops, nodes), calls in sorted(self._calls.items())
        ]

    @contextmanager
    def watching(self, step: int) -> Iterator[None]:
        self._step = step
        self._compiled.clear()
        with ExitStack() as stack:
            for layer, module in numbered(inner_attentions(self._modules)):
                self._watch(stack, layer, module)
            stack.enter_context(hf_attention(self._modules, self._watched))
            yield

    def is_compiled_call(self, node: Any) -> bool:
        """Whether this node is that of an attention call of the current step."""
        return node in self._compiled

    def _keep(self, layer: int, ops: set[str], output: Any, inputs: Any) -> None:
        nodes = _by_name(output, inputs)
        if _COMPILED in nodes:
            self._compiled.add(nodes[_COMPILED])
        key = (layer, precision_of(inputs), tuple(sorted(ops)), tuple(sorted(nodes)))
        self._calls.setdefault(key, [0] * self._steps)[self._step] += 1

    def _watch(self, stack: ExitStack, layer: int, module: torch.nn.Module) -> None:
        recording: list[tuple[ExitStack, set[str]]] = []

        def before(*_: Any) -> None:
            if torch.is_grad_enabled() and not recording:
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
            if not torch.is_grad_enabled():
                return function(module, *arguments, **named)
            ops: set[str] = set()
            with dispatched(ops):
                output = function(module, *arguments, **named)
            self._keep(getattr(module, "layer_idx", -1), ops, output, (arguments, named))
            return output

        return call
