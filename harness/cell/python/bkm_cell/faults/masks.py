# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Wrong masks reach the layers, in the form that the backend takes."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection
from contextlib import contextmanager
from typing import Any

import torch

from bkm_cell.faults import flash_arguments
from bkm_cell.faults.attention_calls import AttentionCall, around_attention
from bkm_cell.faults.registry import Phase, fault, register
from bkm_cell.faults.site import Site
from bkm_cell.older_torch import BlockMask, flex

Lengths = list[int]
Relation = Callable[[Site, Lengths], torch.Tensor]  # bool[T,T]: the query (row) sees the key
Bounds = Callable[[Site, Lengths], Lengths]  # lengths of segments, causal inside each


def document_ids(lengths: Lengths) -> torch.Tensor:
    return torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))


def same_document(lengths: Lengths) -> torch.Tensor:
    ids = document_ids(lengths)
    return ids[:, None] == ids[None, :]


def causal_in_documents(lengths: Lengths) -> torch.Tensor:
    return same_document(lengths).tril()


def distance(lengths: Lengths) -> torch.Tensor:
    """How many tokens the key precedes the query by."""
    at = torch.arange(sum(lengths))
    return at[:, None] - at[None, :]


class Rewriter:
    """Expresses another relation in the form of the mask that came."""

    def __init__(self, site: Site, relation: Relation, bounds: Bounds | None) -> None:
        self._site = site
        self._relation = relation
        self._bounds = bounds
        self._made: dict[tuple[Any, ...], Any] = {}

    def __call__(self, mask: Any) -> Any:
        lengths = self._site.documents()
        key = (type(mask), getattr(mask, "dtype", None), *lengths)
        key += tuple(_previous(self._site, lengths))
        if key not in self._made:
            self._made[key] = self._rewritten(mask, lengths)
        return self._made[key]

    def _rewritten(self, mask: Any, lengths: Lengths) -> Any:
        if isinstance(mask, tuple) and hasattr(mask, "cu_seq_q"):
            return self._varlen(mask, lengths)
        relation = self._relation(self._site, lengths)
        if isinstance(mask, BlockMask):
            return _block_mask(mask, relation)
        if isinstance(mask, torch.Tensor) and mask.dim() == 4:
            relation = _padded(relation, *mask.shape[-2:]).to(mask.device)
            if mask.dtype == torch.bool:
                return relation.expand(mask.shape)
            least = torch.finfo(mask.dtype).min
            return torch.where(relation, 0.0, least).to(mask.dtype).expand(mask.shape)
        raise self._site.cannot(f"a mask of type {type(mask).__name__} cannot express the relation")

    def _varlen(self, mask: Any, lengths: Lengths) -> Any:
        if self._bounds is None:
            raise self._site.cannot("cumulative lengths cannot express the relation")
        segments = self._bounds(self._site, lengths)
        bounds = torch.tensor([0, *segments]).cumsum(0).to(mask.cu_seq_q)
        changed = {"cu_seq_q": bounds, "cu_seq_k": bounds}
        changed |= {"max_q": max(segments), "max_k": max(segments)}
        return mask._replace(**changed)


def _padded(relation: torch.Tensor, queries: int, keys: int) -> torch.Tensor:
    whole = torch.eye(max(queries, keys), dtype=torch.bool)[:queries, :keys].clone()
    length = relation.shape[0]
    whole[:length, :length] = relation
    return whole


def _block_mask(mask: BlockMask, relation: torch.Tensor) -> BlockMask:
    queries, keys = mask.seq_lengths
    device = mask.kv_num_blocks.device
    whole = _padded(relation, queries, keys).to(device)
    return flex.create_block_mask(
        lambda b, h, q, k: whole[q, k],
        mask.kv_num_blocks.shape[0],
        None,
        queries,
        keys,
        device=str(device),
        BLOCK_SIZE=mask.BLOCK_SIZE,
    )


@contextmanager
def _varlen_window(site: Site, call: AttentionCall, window: tuple[int, int]):
    """In this context the packed kernel gets this window, under the name that this torch has.

    torchtitan calls the name in its module, or a class attribute that holds it compiled.
    """
    kind = type(call.module)
    names = kind.forward.__globals__
    kernel = names["varlen_attn"]

    def around(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **named: Any) -> Any:
            if "window_size" in named:
                named["window_size"] = window
            elif "is_causal" in named and window == (-1, -1):
                named["is_causal"] = False
            else:
                raise TypeError("varlen_attn is asked for no window")
            site.act()
            return kernel(*arguments, **named)

        return asked

    compiled = {
        name: value
        for name, value in vars(kind).items()
        if callable(value) and inspect.unwrap(value) is kernel
    }
    names["varlen_attn"] = around(kernel)
    for name, value in compiled.items():
        setattr(kind, name, around(value))
    try:
        yield
    finally:
        names["varlen_attn"] = kernel
        for name, value in compiled.items():
            setattr(kind, name, value)


def plant_relation(
    site: Site,
    relation: Relation,
    bounds: Bounds | None = None,
    window: tuple[int, int] | None = None,
    layers: Collection[int] | None = None,
) -> None:
    """`bounds` and `window` tell a packed kernel the relation; without `bounds` it cannot."""
    if site.adapter.attention == flash_arguments.ATTENTION:
        _plant_arguments(site, bounds, window, layers)
        return
    rewriter = Rewriter(site, relation, bounds)

    def wrap(call: AttentionCall) -> torch.Tensor:
        mask = rewriter(call.mask)
        if window is not None and isinstance(mask, tuple):
            with _varlen_window(site, call, window):
                return call.run(mask=mask)
        site.act()
        return call.run(mask=mask)

    around_attention(site, wrap, layers)


def _plant_arguments(
    site: Site,
    bounds: Bounds | None,
    window: tuple[int, int] | None,
    layers: Collection[int] | None,
) -> None:
    """The relation as borders and a window of flash_attn's functions."""
    if bounds is None:
        raise site.cannot("cumulative lengths cannot express the relation")

    def change(call: AttentionCall, given: dict[str, Any]) -> None:
        if layers is not None and call.layer not in layers:
            return
        lengths = flash_arguments.borders(site, given)
        changed = bounds(site, lengths)
        if changed != lengths:
            flash_arguments.set_borders(given, changed)
        if window is not None:
            given |= {"window_size": window, "causal": window[1] == 0}
        if changed != lengths or window is not None:
            site.act()

    flash_arguments.plant(site, change)


def _needs_block_table(site: Site, mask: Any) -> None:
    if not isinstance(mask, BlockMask):
        raise site.cannot(f"a mask of type {type(mask).__name__} has no block table")


def plant_mask(site: Site, change: Callable[[Any], Any]) -> None:
    """Every layer gets `change` of its mask, made once for each mask."""
    made: dict[int, tuple[Any, Any]] = {}  # the mask itself is kept, so that its id stays its own

    def wrap(call: AttentionCall) -> torch.Tensor:
        if id(call.mask) not in made:
            made[id(call.mask)] = (call.mask, change(call.mask))
        site.act()
        return call.run(mask=made[id(call.mask)][1])

    around_attention(site, wrap)


def _own(site: Site, lengths: Lengths) -> Lengths:
    return lengths


def _whole(site: Site, lengths: Lengths) -> Lengths:
    return [sum(lengths)]


def _causal_over_all(site: Site, lengths: Lengths) -> torch.Tensor:
    return distance(lengths) >= 0


def _late(site: Site, lengths: Lengths) -> Lengths:
    """Every document but the last ends one token late."""
    return [lengths[0] + 1, *lengths[1:-1], lengths[-1] - 1]


def _previous(site: Site, lengths: Lengths) -> Lengths:
    return site.previous_lengths.get(sum(lengths), lengths)


@fault("mask-non-causal")
def mask_non_causal(site: Site) -> None:
    plant_relation(site, lambda _, lengths: same_document(lengths), _own, (-1, -1))


@fault("mask-all-to-all")
def mask_all_to_all(site: Site) -> None:
    everything = lambda _, lengths: distance(lengths) == distance(lengths)  # noqa: E731
    plant_relation(site, everything, _whole, (-1, -1))


@fault("mask-none")
def mask_none(site: Site) -> None:
    """No mask arrives at all; the backend does its default."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        site.act()
        return call.run(mask=None)

    around_attention(site, wrap)


@fault("mask-documents-lost")
def mask_documents_lost(site: Site) -> None:
    plant_relation(site, _causal_over_all, _whole)


@fault("mask-ids-shifted")
def mask_ids_shifted(site: Site) -> None:
    """Document ids are one token late: a document's first token belongs to the previous one."""
    plant_relation(site, lambda s, lengths: causal_in_documents(_late(s, lengths)), _late)


@fault("mask-of-previous-batch")
def mask_of_previous_batch(site: Site) -> None:
    plant_relation(site, lambda s, lengths: causal_in_documents(_previous(s, lengths)), _previous)


@fault("varlen-max-too-small")
def varlen_max_too_small(site: Site) -> None:
    """The packed kernel is told half of the longest document's length."""

    def change(mask: Any) -> Any:
        if not (isinstance(mask, tuple) and hasattr(mask, "max_q")):
            raise site.cannot(f"a mask of type {type(mask).__name__} has no maximum")
        return mask._replace(max_q=int(mask.max_q) // 2, max_k=int(mask.max_k) // 2)

    plant_mask(site, change)


@fault("flex-block-table-stale")
def flex_block_table_stale(site: Site) -> None:
    """From the second step on, a right mask function has the previous batch's block table."""

    def change(mask: Any) -> Any:
        _needs_block_table(site, mask)
        stale = _block_mask(mask, causal_in_documents(_previous(site, site.documents())))
        stale.mask_mod = mask.mask_mod
        return stale

    plant_mask(site, change)


@fault("flex-full-block-not-full")
def flex_full_block_not_full(site: Site) -> None:
    """The table calls every block full in which the function allows some pairs only."""

    def change(mask: Any) -> Any:
        _needs_block_table(site, mask)
        return BlockMask.from_kv_blocks(
            torch.zeros_like(mask.kv_num_blocks),
            mask.kv_indices,
            mask.kv_num_blocks,
            mask.kv_indices,
            BLOCK_SIZE=mask.BLOCK_SIZE,
            mask_mod=mask.mask_mod,
            seq_lengths=mask.seq_lengths,
        )

    plant_mask(site, change)


@fault("mask-missing-on-half")
def mask_missing_on_half(site: Site) -> None:
    """The upper half of the layers sees all earlier tokens of all documents."""
    layers = range(site.layers // 2, site.layers)
    plant_relation(site, _causal_over_all, _whole, layers=layers)


@fault("mask-missing-on-one-layer")
def mask_missing_on_one_layer(site: Site) -> None:
    plant_relation(site, _causal_over_all, _whole, layers=[site.middle_layer])


@fault("mask-future-by-one")
def mask_future_by_one(site: Site) -> None:
    """A token sees the next token of its document."""

    def relation(_: Site, lengths: Lengths) -> torch.Tensor:
        return same_document(lengths) & (distance(lengths) >= -1)

    plant_relation(site, relation, _own, (-1, 1))


@fault("mask-without-self")
def mask_without_self(site: Site) -> None:
    """A token sees the earlier tokens of its document but not itself (the first sees itself)."""

    def relation(_: Site, lengths: Lengths) -> torch.Tensor:
        earlier = same_document(lengths) & (distance(lengths) > 0)
        return earlier | (torch.eye(sum(lengths), dtype=torch.bool) & ~earlier.any(1)[:, None])

    plant_relation(site, relation)


@fault("mask-boundary-leak")
def mask_boundary_leak(site: Site) -> None:
    """The first token of each document sees the last token of the previous document."""

    def relation(_: Site, lengths: Lengths) -> torch.Tensor:
        allowed = causal_in_documents(lengths)
        first = torch.tensor(lengths).cumsum(0)[:-1]
        allowed[first, first - 1] = True
        return allowed

    plant_relation(site, relation)


def _plant_windows(site: Site, windows: Callable[[int], int]) -> None:
    """In layer i a token sees windows(i) tokens including itself; 0: its whole document."""
    for layer in range(site.layers):
        window = windows(layer)

        def relation(_: Site, lengths: Lengths, window: int = window) -> torch.Tensor:
            allowed = causal_in_documents(lengths)
            return allowed & (distance(lengths) < window) if window else allowed

        plant_relation(site, relation, _own, (window - 1 if window else -1, 0), [layer])


def _windows(site: Site) -> Callable[[int], int]:
    """The model's own window of each layer, from HF's configuration."""
    width = site.hf_config.get("sliding_window")
    kinds = site.hf_config.get("layer_types")
    if not width or not kinds or "sliding_attention" not in kinds:
        raise site.cannot("the model has no sliding window")
    return lambda layer: int(width) if kinds[layer] == "sliding_attention" else 0


@fault("window-dropped")
def window_dropped(site: Site) -> None:
    _windows(site)
    _plant_windows(site, lambda layer: 0)


def _other_width(by: int) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        right = _windows(site)
        _plant_windows(site, lambda layer: right(layer) + by if right(layer) else 0)

    return plant


register("window-one-wider", _other_width(1))
register("window-one-narrower", _other_width(-1))


@fault("window-on-wrong-layers")
def window_on_wrong_layers(site: Site) -> None:
    """Layers with a window see everything; the others get the window."""
    right = _windows(site)
    width = int(site.hf_config["sliding_window"])
    _plant_windows(site, lambda layer: 0 if right(layer) else width)


@fault("drop-mask", Phase.BEFORE_CONSTRUCT)
def drop_mask(site: Site) -> None:
    """The caller builds the mask of a single document: causal over the whole batch."""
    if site.adapter.attention == flash_arguments.ATTENTION:
        flash = importlib.import_module("transformers.modeling_flash_attention_utils")
        site.around(flash, "_is_packed_sequence", lambda *_, **__: site.act())
        return
    if site.library == "transformers":
        masks = importlib.import_module("transformers.masking_utils")

        def found_none(*_: Any, **__: Any) -> None:
            site.act()

        masks.find_packed_sequence_indices = found_none
        return
    home = importlib.import_module(
        getattr(site.adapter, "engine_module", "bkm_cell.adapters.torchtitan_eras.masks")
    )
    name = "get_attention_masks" if hasattr(home, "get_attention_masks") else "packed_mask"

    def of_one_document(build: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        site.act()
        if "positions" in named:
            named["positions"] = _one_document(named["positions"])
        else:
            arguments = (*arguments[:-1], _one_document(arguments[-1]))
        return build(*arguments, **named)

    site.around(home, name, of_one_document)


def _one_document(positions: torch.Tensor) -> torch.Tensor:
    return torch.arange(positions.shape[-1], device=positions.device).expand_as(positions)
