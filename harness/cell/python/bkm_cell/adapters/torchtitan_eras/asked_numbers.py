# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Writes numbers of a HF config into the configuration of a flavor.

A flavor has numbers of its own. A probe that asks for another number is a question to the engine
that reads the HF config; the control must compute what the engine should compute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

# The fields in which configurations of any era keep a number. Sizes of several tensors are not
# here: the library derives them from each other in ways that change with the era.
_FIELDS = {
    "num_experts_per_tok": ("top_k",),
    "num_key_value_heads": ("n_kv_heads",),
    "rms_norm_eps": ("eps", "norm_eps"),
    "rope_theta": ("theta", "rope_theta"),
    "tie_word_embeddings": ("enable_weight_tying",),
}
# The flavor is chosen or cut by these.
_FITTED = ("hidden_size", "num_hidden_layers", "vocab_size")


def ask_for_numbers(config: Any, numbers: Mapping[str, Any]) -> None:
    for name, value in numbers.items():
        if name in _FITTED:
            continue
        if name == "intermediate_size":
            found = _set_feed_forward(config, value)
        else:
            found = _set_fields(config, _FIELDS.get(name, ()), value)
        if not found:
            raise LookupError(
                f"{type(config).__qualname__} has no field for {name}: the control cannot ask this "
                "version for it"
            )


def _set_fields(config: Any, fields: tuple[str, ...], value: Any) -> bool:
    found = False
    for part in _parts(config, set()):
        # A projection of keys and values has the number in its shape too.
        if hasattr(part, "qkv_linear") and "n_kv_heads" in fields:
            return False
        for field in fields:
            if hasattr(part, field):
                setattr(part, field, value)
                found = True
    return found


def _set_feed_forward(config: Any, size: int) -> bool:
    """In each dense layer; a flat configuration has one field."""
    if hasattr(config, "hidden_dim"):
        config.hidden_dim = size
        return True
    found = False
    for layer in _parts(config, set()):
        dense = getattr(layer, "feed_forward", None)
        if all(hasattr(getattr(dense, name, None), "out_features") for name in ("w1", "w2", "w3")):
            dense.w1.out_features = dense.w3.out_features = dense.w2.in_features = size
            found = True
    return found


def _parts(part: Any, seen: set[int]) -> Iterator[Any]:
    """All configurations in a configuration, each once."""
    if id(part) in seen or isinstance(part, (str, type)):
        return
    seen.add(id(part))
    if isinstance(part, (list, tuple)):
        children: list[Any] = list(part)
    elif isinstance(part, Mapping):
        children = list(part.values())
    elif dataclasses.is_dataclass(part):
        yield part
        children = [getattr(part, field.name, None) for field in dataclasses.fields(part)]
    else:
        return
    for child in children:
        yield from _parts(child, seen)
