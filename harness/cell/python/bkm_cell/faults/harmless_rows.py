# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Harmless variations of the row that a model is given: padding, order, types, memory layout.

An engine arranges the documents of a batch as it likes and puts the output back in order. Each
document stays on its own, so nothing that is asked changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from bkm_cell.faults.registry import fault, register
from bkm_cell.faults.site import Site, lengths_of
from bkm_cell.probe import Batch

MULTIPLE = 128

Lengths = list[int]
# Lengths of a batch's documents -> what the row holds: (document or None for padding, tokens)
Arrange = Callable[[Lengths], list[tuple[int | None, int]]]


@dataclass(frozen=True)
class Row:
    """An arrangement of one batch."""

    source: torch.Tensor  # int64[tokens of the row]: the flat position; -1 in padding
    lengths: Lengths  # of the row's documents, of which padding is one
    back: torch.Tensor  # int64[tokens of the batch]: where each token is in the row

    @property
    def positions(self) -> torch.Tensor:
        return torch.cat([torch.arange(length) for length in self.lengths])

    def of(self, flat: torch.Tensor) -> torch.Tensor:
        """The row [tokens] of a flat tensor; padding repeats the first token."""
        return flat[self.source.clamp(min=0).to(flat.device)]


def arranged(lengths: Lengths, arrange: Arrange) -> Row:
    starts = [sum(lengths[:at]) for at in range(len(lengths))]
    parts = [part for part in arrange(lengths) if part[1] > 0]
    source = torch.cat(
        [
            torch.full((tokens,), -1) if document is None else starts[document] + torch.arange(tokens)
            for document, tokens in parts
        ]
    )
    back = torch.empty(sum(lengths), dtype=torch.long)
    real = source >= 0
    back[source[real]] = real.nonzero().flatten()
    return Row(source, [tokens for _, tokens in parts], back)


def plant_row(site: Site, arrange: Arrange) -> None:
    """The engine arranges its rows so, before the masks are made and the model is called."""
    if site.library == "transformers" and hasattr(site.adapter, "engine_module"):
        _in_fsdp_engine(site, arrange)
    elif hasattr(site.adapter, "engine_module"):
        _in_torchtitan_engine(site, arrange)
    else:
        _in_control(site, arrange)


def _in_control(site: Site, arrange: Arrange) -> None:
    def logits(original: Callable[..., Any], batch: Batch) -> torch.Tensor:
        site.act()
        row = arranged(batch.lengths, arrange)
        other = replace(
            batch,
            input_ids=row.of(batch.input_ids),
            loss_mask=row.of(batch.loss_mask),
            lengths=row.lengths,
        )
        output = original(other)
        return output[row.back.to(output.device)]

    site.around(site.adapter, "logits", logits)


def _in_torchtitan_engine(site: Site, arrange: Arrange) -> None:
    engine = site.adapter.engine
    home = sys.modules[type(engine).__mro__[0].__module__]
    rows: list[Row] = []

    def prepare(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        ids, inputs, beside, outputs = original(*arguments, **named)
        site.act()
        row = arranged(lengths_of(inputs["positions"]), arrange)
        rows.append(row)
        ids = row.of(ids[0])[None]
        inputs = {**inputs, "positions": row.positions[None].to(ids.device)}
        masks = home.get_attention_masks(
            input_batch=ids, positions=inputs["positions"], attn_type=engine.engine_config.attn_type
        )
        return ids, inputs, {**beside, "attention_masks": masks}, outputs

    def call(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        output = original(*arguments, **named)
        return output[:, rows.pop().back.to(output.device)]

    site.around(engine, "prepare_model_inputs", prepare)
    site.around(engine, "model_forward_step", call)


def _in_fsdp_engine(site: Site, arrange: Arrange) -> None:
    engine = site.adapter.engine
    rows: list[Row] = []

    def prepare(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        inputs, outputs = original(*arguments, **named)
        site.act()
        row = arranged(lengths_of(inputs["position_ids"]), arrange)
        rows.append(row)
        ids = row.of(inputs["input_ids"][0])[None]
        positions = row.positions[None].to(ids.device)
        return {**inputs, "input_ids": ids, "position_ids": positions}, outputs

    def finish(original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        output = named["output"]
        output.logits = output.logits[:, rows.pop().back.to(output.logits.device)]
        return original(*arguments, **named)

    site.around(engine, "prepare_model_inputs", prepare)
    site.around(engine, "prepare_model_outputs", finish)


def _padding(lengths: Lengths) -> int:
    return -sum(lengths) % MULTIPLE or MULTIPLE


def _in_order(lengths: Lengths) -> list[tuple[int | None, int]]:
    return list(enumerate(lengths))


def _padded(lengths: Lengths) -> list[tuple[int | None, int]]:
    return [*_in_order(lengths), (None, _padding(lengths))]


def _padded_in_front(lengths: Lengths) -> list[tuple[int | None, int]]:
    return [(None, _padding(lengths)), *_in_order(lengths)]


def _padded_between(lengths: Lengths) -> list[tuple[int | None, int]]:
    """Each document begins at a multiple of 8."""
    return [part for n, size in enumerate(lengths) for part in ((n, size), (None, -size % 8))]


def _reversed(lengths: Lengths) -> list[tuple[int | None, int]]:
    return _in_order(lengths)[::-1]


for _name, _arrange in {
    "row-padded": _padded,
    "row-padded-in-front": _padded_in_front,
    "documents-aligned": _padded_between,
    "documents-reversed": _reversed,
}.items():
    register(_name, lambda site, arrange=_arrange: plant_row(site, arrange))


@fault("positions-int32")
def positions_int32(site: Site) -> None:
    """The positions that the model is given are 32 bits wide."""

    def enter(_: Any, arguments: Any, named: dict[str, Any]) -> Any:
        for name in ("positions", "position_ids"):
            if isinstance(named.get(name), torch.Tensor):
                named = {**named, name: named[name].int()}
                site.act()
        return arguments, named

    site.adapter.modules()[0].register_forward_pre_hook(enter, with_kwargs=True)


@fault("logits-transposed")
def logits_transposed(site: Site) -> None:
    """The logits have another memory layout: the vocabulary is the outer axis."""

    def turned(logits: torch.Tensor) -> torch.Tensor:
        return logits.transpose(-1, -2).contiguous().transpose(-1, -2)

    def after(_: Any, __: Any, output: Any) -> Any:
        site.act()
        if isinstance(output, torch.Tensor):
            return turned(output)
        output.logits = turned(output.logits)
        return output

    site.adapter.modules()[0].register_forward_hook(after)


@fault("forward-without-training")
def forward_without_training(site: Site) -> None:
    """The engine calls the model once more in each step, for a figure that trains nothing."""
    model = site.adapter.modules()[0]
    inside = False

    def enter(module: Any, arguments: Any, named: dict[str, Any]) -> None:
        nonlocal inside
        if inside or not torch.is_grad_enabled():
            return
        inside = True
        site.act()
        try:
            with torch.no_grad():
                module(*arguments, **named)
        finally:
            inside = False

    model.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
