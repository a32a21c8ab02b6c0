# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads which query attends to which key out of the kernel that runs.

An attention's output is P v, where P holds its probabilities. The same call with basis vectors as v
returns the columns of P; a key that is hidden from a query gives a zero, whatever hides it. The
mask, its type and its owner need not be known.

One feature of v shows one key. Each head of v shows different keys, so one or two calls are enough.
Each head also carries its own number in a few more features: which head of the output comes from
which head of v is read, not assumed.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from bkm_cell.older_torch import DTensor, local_part
from bkm_cell.tensor_file import tensor_bytes
from bkm_cell.witnesses.rows import Part, Rows, Unreadable

Call = Callable[[torch.Tensor, torch.Tensor], Any]  # takes query and value; the rest is unchanged
# Takes a module, a function that repeats a call of it, and the arguments of that function.
Called = Callable[
    [torch.nn.Module, Callable[..., Any], tuple[Any, ...], dict[str, Any]], None
]

# Queries are zeros, so all keys that a query sees have the same probability: at least 1 / keys (a
# little less with an attention sink). A masked key has 0, or on a GPU less than this threshold.
SEEN = 1e-6
# The range of the probabilities that a kernel returns in bf16.
_BELOW_ZERO, _ABOVE_ONE = -1e-6, 1.02
_BASE = 8  # base of a head's number; its digits, as eighths, are exact in bf16


def first_arguments(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[list[str | int], list[Any]]:
    """The place (position or keyword) and value of a call's first three parameters: q, k, v."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    places: list[str | int] = []
    values: list[Any] = []
    for index in range(3):
        if index < len(arguments):
            places.append(index)
            values.append(arguments[index])
        elif index < len(names) and names[index] in named:
            places.append(names[index])
            values.append(named[names[index]])
    if len(values) < 3 or not all(isinstance(value, torch.Tensor) for value in values):
        raise Unreadable("its first three arguments are not the tensors q, k and v")
    return places, values


def watch_calls(stack: ExitStack, module: torch.nn.Module, called: Called) -> None:
    """After each call of an attention module, passes on how to repeat the call.

    A pre-hook of the module may gather the keys of all ranks. Then the repeated call must run the
    hooks, so that each rank marks its own keys before they are gathered. If no pre-hook gathers, the
    repeated call is the module's forward alone.
    """
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    @functools.wraps(module.forward)  # for the names of its parameters
    def with_hooks(*arguments: Any, **named: Any) -> Any:
        return torch.nn.Module.__call__(module, *arguments, **named)

    def before(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        given[:] = [(arguments, dict(named))]

    def after(_: Any, arguments: tuple[Any, ...], named: dict[str, Any], __: Any) -> None:
        own, own_named = given.pop()
        if _value_shape(module, own, own_named) == _value_shape(module, arguments, named):
            called(module, module.forward, arguments, named)
        else:
            called(module, with_hooks, own, own_named)

    for hook in (
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True),
    ):
        stack.callback(hook.remove)


def _value_shape(
    module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> torch.Size | None:
    """Of this rank's v."""
    try:
        _, (_, _, value) = first_arguments(module.forward, arguments, named)
    except Unreadable:
        return None
    return local_part(value).shape


def replaying(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Call, torch.Tensor, torch.Tensor]:
    """A repeatable call of `function` with another query and value, and the original two."""
    places, (query, _, value) = first_arguments(function, arguments, named)

    def again(other_query: torch.Tensor, other_value: torch.Tensor) -> Any:
        given, keywords = list(arguments), dict(named)
        for place, tensor in (
            (places[0], _as(query, other_query)),
            (places[2], _as(value, other_value)),
        ):
            if isinstance(place, int):
                given[place] = tensor
            else:
                keywords[place] = tensor
        return function(*given, **keywords)

    return again, local_part(query), local_part(value)


def _as(original: torch.Tensor, local: torch.Tensor) -> torch.Tensor:
    """This rank's part in the form of the original."""
    if not isinstance(original, DTensor):
        return local
    return DTensor.from_local(
        local, original.device_mesh, original.placements, run_check=False
    )


def _output(result: Any) -> torch.Tensor:
    while isinstance(result, (tuple, list)) and result:  # weights or log-sum-exp may follow
        result = result[0]
    if not isinstance(result, torch.Tensor):
        raise Unreadable(f"it returns {type(result).__name__}, not a tensor")
    return local_part(result)


def _heads(output: torch.Tensor, rows: Rows, width: int) -> list[torch.Tensor]:
    """One call's output as float32[tokens of a row, rows * heads, width], for each axis that may be that
    of tokens."""
    if output.shape[-1] != width and output.shape[-1] % width == 0:  # the heads are concatenated
        output = output.unflatten(-1, (-1, width))
    if output.shape[-1] != width:
        raise Unreadable(f"output of shape {tuple(output.shape)} lacks v's {width} features")
    axes = rows.axes(output.shape, "output")
    return [output.movedim(axis, 0).flatten(1, -2).float() for axis in axes]


@dataclass(frozen=True)
class _Layout:
    """The use of v's features: [mass, digits of the head's number..., keys...]."""

    heads: int  # over all rows
    width: int
    places: torch.Tensor  # int64[tokens of a row]: the key that each token is; -1 if it is none
    length: int  # keys of a row
    rows: int

    @property
    def digits(self) -> int:
        return max(1, math.ceil(math.log(self.heads, _BASE) - 1e-9))

    @property
    def keys(self) -> int:
        """The number of keys that one head shows."""
        return self.width - 1 - self.digits

    @property
    def blocks(self) -> int:
        return math.ceil(self.length / self.keys)

    @property
    def heads_of_a_row(self) -> int:
        return self.heads // self.rows

    def span(self, first: int, head: int) -> tuple[int, int]:
        """The begin and count of the keys that a head shows."""
        begin = (first + head % self.heads_of_a_row) % self.blocks * self.keys
        return begin, min(self.keys, self.length - begin)

    def basis(self, first: int) -> torch.Tensor:
        """[heads, tokens of a row, width]: a row's head h shows the keys of block first + h."""
        basis = torch.zeros(self.heads, len(self.places), self.width)
        basis[..., 0] = 1
        for head in range(self.heads):
            for digit in range(self.digits):
                basis[head, :, 1 + digit] = head // _BASE**digit % _BASE / _BASE
            begin, count = self.span(first, head)
            tokens = ((self.places >= begin) & (self.places < begin + count)).nonzero()[:, 0]
            basis[head, tokens, 1 + self.digits + self.places[tokens] - begin] = 1
        return basis

    def head_of_v(self, rows: torch.Tensor) -> list[int]:
        """For each head of the output [T, heads, width], the head of v that it comes from."""
        mass = rows[..., :1]
        if not bool((mass > SEEN).any(0).all()):
            raise Unreadable("a head of its output does not see any key")
        shown = rows[..., 1 : 1 + self.digits] / mass.clamp(min=SEEN) * _BASE
        numbers = shown.round()
        is_sure = (shown - numbers).abs() < 0.25
        if not bool((is_sure | (mass <= SEEN)).all()):
            raise Unreadable("its output does not keep the features of v in their places")
        place = torch.tensor([_BASE**digit for digit in range(self.digits)])
        heads = (numbers * place.to(numbers)).sum(-1).long()  # [T, heads]
        is_seen = mass[..., 0] > SEEN
        of_column = torch.where(is_seen, heads, -1).amax(0)
        # All queries of a head show the same one.
        if int(of_column.max()) >= self.heads or bool((is_seen & (heads != of_column)).any()):
            raise Unreadable("its output does not keep the features of v in their places")
        return of_column.tolist()


def probabilities(call: Call, query: torch.Tensor, value: torch.Tensor, rows: Rows) -> torch.Tensor:
    """float32[T,T]: a query's (row's) probability of a key, in a head that shows the key.

    T counts the tokens of the documents, one document after the other, without padding.
    """
    readings: list[torch.Tensor] = []
    why: Unreadable | None = None
    for axis in rows.axes(value.shape, "v"):
        tokens = value.shape[axis]
        try:
            readings += _shown(call, query, value, rows, torch.arange(tokens), tokens, axis)
        except Unreadable as error:
            why = why or error
    return rows.flat(_only(readings, why))


def _only(readings: list[torch.Tensor], why: Unreadable | None) -> torch.Tensor:
    """The one thing that was read; taken along another axis than that of tokens, an output is not made
    of what was marked."""
    if not readings:
        raise why or Unreadable("nothing was read")
    if any(not torch.equal(readings[0], other) for other in readings[1:]):
        raise Unreadable("it has as many heads as tokens, and could be read in two ways")
    return readings[0]


def part_probabilities(
    call: Call, query: torch.Tensor, value: torch.Tensor, part: Part, tokens: int
) -> torch.Tensor:
    """float32[T,T], T = `tokens`: the same for a rank that is given a part of the packed row; 0 for
    queries that are not its own.

    Each rank marks its own keys by their places in the whole row. An attention that gathers the keys
    of all parts therefore shows them all, whatever order it has them in. All ranks read at the same
    time, and make all of their calls before one of them finds a fault in what it sees.
    """
    is_own = part.places >= 0
    rows = Rows([int(is_own.sum())], [(0, 0)], 1, part.length)
    axes = rows.axes(value.shape, "v")
    if len(axes) > 1:  # all ranks make the same calls: they cannot try
        raise Unreadable(f"v of shape {tuple(value.shape)} has as many heads as tokens")
    shown = _shown(call, query, value, rows, part.places, tokens, axes[0])
    (own,) = _only(shown, None)
    seen = own.new_zeros(tokens, tokens)
    seen[part.places[is_own]] = own[is_own]
    return seen


def _shown(
    call: Call,
    query: torch.Tensor,
    value: torch.Tensor,
    rows: Rows,
    places: torch.Tensor,
    keys: int,
    key_axis: int,
) -> list[torch.Tensor]:
    """float32[rows, tokens of a row, keys], at least one: for each axis of the output that may be that of
    tokens and can be read so. `places`: see _Layout; `key_axis`: that of tokens in `value`. Makes all
    calls before looking at what one of them returns."""
    shape = value.movedim(key_axis, -2).shape  # [..., tokens, width]
    layout = _Layout(math.prod(shape[:-2]), shape[-1], places, keys, rows.count)
    if layout.keys < 1:
        raise Unreadable(f"v of shape {tuple(value.shape)} has too few features")
    still = torch.zeros_like(query)
    firsts = range(0, layout.blocks, layout.heads_of_a_row)
    bases = (layout.basis(first).reshape(shape).movedim(-2, key_axis) for first in firsts)
    outputs = [_output(call(still, torch.zeros_like(value).copy_(basis))) for basis in bases]
    by_axis = zip(*(_heads(output, rows, layout.width) for output in outputs), strict=True)
    found: list[torch.Tensor] = []
    why: Unreadable | None = None
    for shown in by_axis:
        seen = torch.full((rows.count, shape[-2], keys), -1.0, device=value.device)
        try:
            for first, one in zip(firsts, shown, strict=True):
                _note(one, first, layout, rows, seen)
            if bool((seen < 0).any()):
                raise Unreadable("some heads of v are in no head of its output")
        except Unreadable as error:
            why = why or error
        else:
            found.append(seen)
    if why is not None and not found:
        raise why
    return found


def _note(
    shown: torch.Tensor, first: int, layout: _Layout, rows: Rows, seen: torch.Tensor
) -> None:
    """Takes over into `seen` what one output shows (see _heads)."""
    if rows.count * len(layout.places) > sum(rows.lengths):
        # Padding may attend to anything, with NaN too.
        shown = shown.nan_to_num(0)
    if not bool(((shown >= _BELOW_ZERO) & (shown <= _ABOVE_ONE)).all()):
        raise Unreadable("its output with basis vectors for v is not made of probabilities")
    for column, head in enumerate(layout.head_of_v(shown)):
        begin, count = layout.span(first, head)
        part = seen[head // layout.heads_of_a_row, :, begin : begin + count]
        part.copy_(torch.maximum(part, shown[:, column, 1 + layout.digits :][:, :count]))


class Attended:
    """Collects the relations of one forward. Layers with the same relation share one copy."""

    def __init__(
        self,
        lengths: list[int],
        is_padded: bool = False,
        input_ids: torch.Tensor | None = None,
        parts: int = 1,
    ) -> None:
        """`input_ids`: the documents, to find them in what the model is given. `parts`: how many
        ranks are given a part of the row each."""
        self._documents = None if input_ids is None else list(input_ids.split(lengths))
        self._is_padded = is_padded
        self._rows = Rows.as_asked(lengths, is_padded)
        self._tokens = sum(lengths)
        self._parts = parts
        self._part: Part | None = None  # of a rank that is given a part of the row
        self.seconds = 0.0
        self.layers: list[dict[str, Any]] = []
        self.relations: dict[str, torch.Tensor] = {}  # digest -> uint8[T,T]
        self.error: str | None = None

    def entered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Notes what the model or one of its embeddings is given. If the documents are not found
        there, the layout that was asked for is assumed."""
        if self._documents is None:
            return
        found = Rows.found(self._documents, arguments, named, self._is_padded)
        # The model's own arguments have positions, too, which tell short documents apart.
        if found is not None and found.shape != self._rows.shape:
            self._rows = found
        if self._part is None and (found is None or self._parts > 1):
            part = Part.found(self._documents, arguments, named)
            if part is not None and (self._parts > 1 or not part.is_padding):
                self._part = part

    def _seen(self, call: Call, query: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """uint8[T,T]; a rank with a part of the row may have all of it in its attention."""
        part, sizes = self._part, value.shape[:-1]
        if part is not None and self._parts > 1:
            whole = part.length * self._parts
        else:
            whole = self._tokens
        if part is not None and part.length in sizes and whole not in sizes:
            shown = part_probabilities(call, query, value, part, self._tokens)
        else:
            shown = probabilities(call, query, value, self._rows)
        return (shown > SEEN).to(torch.uint8).cpu()

    def read(
        self,
        layer: int,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        """Never raises: the subject's forward goes on, and the reason of a failure is reported.

        A rank with a part of a row goes on reading after a failure, as other ranks wait for it.
        """
        if self.error is not None and self._part is None:
            return
        start = time.monotonic()
        devices = [t.device for t in arguments if isinstance(t, torch.Tensor) and t.is_cuda]
        try:
            with torch.no_grad(), torch.random.fork_rng(devices[:1]):
                call, query, value = replaying(function, arguments, named)
                seen = self._seen(call, query, value)
        except Exception as error:
            if self.error is None:
                self.error = f"layer {layer}: {type(error).__name__}: {error}"[:500]
            return
        finally:
            self.seconds += time.monotonic() - start
        self._add(layer, seen)

    def _add(self, layer: int, seen: torch.Tensor) -> None:
        digest = hashlib.sha256(tensor_bytes(seen)).hexdigest()[:16]
        self.relations[digest] = seen
        self.layers.append({"layer": layer, "relation": digest})

    @property
    def tokens_given(self) -> int | None:
        """How many of the documents' tokens this rank was given, if it is given a part of them."""
        if self._part is None:
            return None
        return len(self._part.places[self._part.places >= 0].unique())

    def stored(self) -> dict[str, torch.Tensor]:
        """The relations under their names in a step's file."""
        return {f"relation/{digest}": relation for digest, relation in self.relations.items()}

    def facts(self) -> dict[str, Any]:
        if self.error is not None:
            return {"attended_error": self.error}
        return {"attended": self.layers} if self.layers else {}


class AttendedOfParts(Attended):
    """Of several forwards, each with documents of its own: one after another, as in one batch."""

    def __init__(self) -> None:
        super().__init__([])
        self._forwards: list[Attended] = []

    def begin(self, forward: Attended) -> None:
        """From now on its documents are given to the model."""
        self._forwards.append(forward)

    def entered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._forwards[-1].entered(arguments, named)

    def read(self, layer: int, function: Callable[..., Any], *more: Any) -> None:
        self._forwards[-1].read(layer, function, *more)

    def end(self) -> None:
        """Puts the relations together; a layer that was not read in each forward is left out."""
        self.seconds = sum(each.seconds for each in self._forwards)
        self.error = next((each.error for each in self._forwards if each.error), None)
        calls = [[call["layer"] for call in each.layers] for each in self._forwards]
        for at, layer in enumerate(calls[0] if calls else []):
            if all(of[at : at + 1] == [layer] for of in calls):
                own = [each.relations[each.layers[at]["relation"]] for each in self._forwards]
                self._add(layer, torch.block_diag(*own))
