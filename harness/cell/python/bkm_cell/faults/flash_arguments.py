# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""flash_attn's functions are called with other arguments than the model's code gave.

The change is made where whoever calls them has them from, above the witness of their arguments: as
if the Python around the kernel had given them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from bkm_cell.faults.attention_calls import AttentionCall, around_attention
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site
from bkm_cell.shims.after_import import after_import
from bkm_cell.witnesses.flash_calls import FUNCTIONS

Change = Callable[[dict[str, Any]], None]  # of a call's arguments, by name

ATTENTION = "flash_attention_2"

_CHANGES: list[Change] = []


def open_calls() -> None:
    """Lets faults change the calls of whoever imports the functions from now on."""
    after_import("flash_attn", _open)


def _open(package: ModuleType) -> None:
    for name in FUNCTIONS:
        setattr(package, name, _opened(getattr(package, name)))


def _opened(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not _CHANGES:
            return function(*arguments, **named)
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        for change in _CHANGES:
            change(bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return call


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """In this context the functions are called with changed arguments."""
    _CHANGES.append(change)
    try:
        yield
    finally:
        _CHANGES.remove(change)


def plant(site: Site, change: Callable[[AttentionCall, dict[str, Any]], None]) -> None:
    """`change` of each layer's call of flash_attn."""

    def wrap(call: AttentionCall) -> torch.Tensor:
        with changed(functools.partial(change, call)):
            return call.run()

    around_attention(site, wrap)


def borders(site: Site, given: dict[str, Any]) -> list[int]:
    """The lengths of a call's sequences."""
    if "cu_seqlens_q" not in given:
        raise site.cannot("flash_attn was called without borders")
    return given["cu_seqlens_q"].diff().tolist()


def set_borders(given: dict[str, Any], lengths: list[int]) -> None:
    ends = torch.tensor([0, *lengths]).cumsum(0).to(given["cu_seqlens_q"])
    given |= {"cu_seqlens_q": ends, "cu_seqlens_k": ends}
    given |= {"max_seqlen_q": max(lengths), "max_seqlen_k": max(lengths)}


@fault("flash-border-lost")
def flash_border_lost(site: Site) -> None:
    """The second border is missing: two documents are one sequence."""

    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        first, second, *rest = borders(site, given)
        set_borders(given, [first + second, *rest])
        site.act()

    plant(site, change)


@fault("flash-borders-of-other-micro-batch")
def flash_borders_of_other_micro_batch(site: Site) -> None:
    """A micro-batch gets the borders of an earlier one with as many tokens."""
    before: dict[int, list[int]] = {}

    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        own = borders(site, given)
        first = before.setdefault(sum(own), own)
        if first != own:
            set_borders(given, first)
            site.act()

    plant(site, change)


@fault("flash-softcap-dropped")
def flash_softcap_dropped(site: Site) -> None:
    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        if not given["softcap"]:
            raise site.cannot("the model has no softcap")
        given["softcap"] = 0.0
        site.act()

    plant(site, change)


@fault("flash-scale-dropped")
def flash_scale_dropped(site: Site) -> None:
    """The kernel takes its default, head_dim**-0.5."""

    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        if given["softmax_scale"] in (None, given["q"].shape[-1] ** -0.5):
            raise site.cannot("the model's scale is the kernel's default")
        given["softmax_scale"] = None
        site.act()

    plant(site, change)


@fault("flash-max-too-small")
def flash_max_too_small(site: Site) -> None:
    """The kernel is told one token less than the longest sequence has: it leaves that token out."""

    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        if "max_seqlen_q" not in given:
            raise site.cannot("flash_attn was called without borders")
        given["max_seqlen_q"] -= 1
        site.act()

    plant(site, change)


@fault("flash-borders-of-64-bits")
def flash_borders_of_64_bits(site: Site) -> None:
    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        borders(site, given)
        site.act()
        given |= {name: given[name].long() for name in ("cu_seqlens_q", "cu_seqlens_k")}

    plant(site, change)


@fault("flash-borders-of-own-part")
def flash_borders_of_own_part(site: Site) -> None:
    """A rank gathers the whole row (Ulysses) and gives the borders of its own part: the other
    part's tokens are one sequence."""

    def change(_: AttentionCall, given: dict[str, Any]) -> None:
        lengths = borders(site, given)
        own, tokens = [], sum(lengths) // 2
        for length in lengths:
            own.append(min(length, tokens - sum(own)))
            if sum(own) == tokens:
                break
        set_borders(given, [*own, sum(lengths) - tokens])
        site.act()

    plant(site, change)
