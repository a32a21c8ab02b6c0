# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Rotary positions are wrong: queries and keys are rotated once more before the attention.

Scores depend on the difference of two angles, so a rotation by the same angle at all positions, for
queries and keys, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from bkm_cell.faults.attention_calls import AttentionCall, around_attention
from bkm_cell.faults.registry import fault
from bkm_cell.faults.site import Site

Angles = Callable[[torch.Tensor], torch.Tensor]  # positions [T] -> angles [T, head_dim / 2]


def _base(site: Site) -> float:
    config = site.hf_config
    nested = config.get("rope_parameters") or {}
    return float(nested.get("rope_theta", config.get("rope_theta", 10000.0)))


def _frequencies(site: Site, base: float) -> torch.Tensor:
    rotary = _widths(site)[1]
    return base ** (-torch.arange(0, rotary, 2, dtype=torch.float64) / rotary)


def _widths(site: Site) -> tuple[int, int]:
    """The features of a head: first those without positions, then the rotary ones."""
    config = site.hf_config
    if "qk_rope_head_dim" in config:
        return int(config["qk_nope_head_dim"]), int(config["qk_rope_head_dim"])
    return 0, int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def _pairs_are_neighbours(site: Site) -> bool:
    """Whether features 2i and 2i+1 rotate together, or (as in HF) i and i + head_dim / 2."""
    if site.library == "transformers":
        return False
    kinds = {type(m).__name__ for top in site.adapter.modules() for m in top.modules()}
    if any("RoPE" in kind for kind in kinds):
        return any("Complex" in kind for kind in kinds)
    return "q_norm" not in {
        n.split(".")[-1] for t in site.adapter.modules() for n, _ in t.named_modules()
    }


def _turned(x: torch.Tensor, angles: torch.Tensor, axis: int, neighbours: bool) -> torch.Tensor:
    shape = [1] * x.dim()
    shape[axis], shape[-1] = angles.shape
    cos, sin = (of(angles).float().reshape(shape).to(x.device) for of in (torch.cos, torch.sin))
    wide = x.float()
    if neighbours:
        a, b = wide[..., 0::2], wide[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)
    a, b = wide.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)


def _plant_turn(site: Site, query: Angles | None, key: Angles | None) -> None:
    neighbours = _pairs_are_neighbours(site)
    plain, rotary = _widths(site)

    def turned(x: torch.Tensor, angles: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.cat([x[..., :plain], _turned(x[..., plain:], angles, axis, neighbours)], -1)

    def wrap(call: AttentionCall) -> torch.Tensor:
        if call.query.shape[-1] != plain + rotary:
            raise site.cannot(f"a head has {call.query.shape[-1]} features, not {plain} + {rotary}")
        positions = torch.cat([torch.arange(n) for n in site.documents()]).double()
        axis = call.sequence_axis
        changed = {}
        if query is not None:
            changed["query"] = turned(call.query, query(positions), axis)
        if key is not None:
            changed["key"] = turned(call.key, key(positions), axis)
        site.act()
        return call.run(**changed)

    around_attention(site, wrap)


def _outer(positions: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    return positions[:, None] * frequencies[None, :]


@fault("rope-wrong-base")
def rope_wrong_base(site: Site) -> None:
    """A base of 10000 instead of the model's: the missing rotation is added."""
    if _base(site) == 10000.0:
        raise site.cannot("the model's base is 10000")
    missing = _frequencies(site, 10000.0) - _frequencies(site, _base(site))
    turn = lambda positions: _outer(positions, missing)  # noqa: E731
    _plant_turn(site, turn, turn)


@fault("rope-twice")
def rope_twice(site: Site) -> None:
    frequencies = _frequencies(site, _base(site))
    turn = lambda positions: _outer(positions, frequencies)  # noqa: E731
    _plant_turn(site, turn, turn)


@fault("rope-query-shifted")
def rope_query_shifted(site: Site) -> None:
    """Queries are rotated as if they were 8 positions later than their keys."""
    frequencies = _frequencies(site, _base(site))
    turn = lambda positions: _outer(torch.full_like(positions, 8), frequencies)  # noqa: E731
    _plant_turn(site, turn, None)


@fault("rope-positions-jump")
def rope_positions_jump(site: Site) -> None:
    """From the tenth token of each document on, positions are 50 too large."""
    frequencies = _frequencies(site, _base(site))
    turn = lambda positions: _outer(50.0 * (positions >= 10), frequencies)  # noqa: E731
    _plant_turn(site, turn, turn)


@fault("rope-all-shifted")
def rope_all_shifted(site: Site) -> None:
    """All positions are 7 too large: no score changes, and no cell may turn red."""
    frequencies = _frequencies(site, _base(site))
    turn = lambda positions: _outer(torch.full_like(positions, 7), frequencies)  # noqa: E731
    _plant_turn(site, turn, turn)
