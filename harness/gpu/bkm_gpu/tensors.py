# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads the safetensors files of cells without numpy, and measures how far two of them are apart."""

from __future__ import annotations

import array
import json
import math
import struct
import sys
from collections.abc import Mapping
from typing import Any

from bkm_gpu.problem import Problem

_CODES = {"F32": "f", "F64": "d", "U8": "B", "I32": "i", "I64": "q"}
Tensors = dict[str, "array.array[Any]"]


def parse(data: bytes, name: str) -> Tensors:
    try:
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        found = {}
        for tensor, entry in header.items():
            begin, end = entry["data_offsets"]
            values = array.array(_CODES[entry["dtype"]])
            values.frombytes(data[8 + size + begin : 8 + size + end])
            if sys.byteorder != "little":
                values.byteswap()
            found[tensor] = values
        return found
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Problem(f"{name}: not a tensor file ({error}); copy the results again") from error


def largest_difference(first: Any, second: Any) -> float:
    """Infinite if one has another length, or NaN where the other has none."""
    if len(first) != len(second):
        return math.inf
    largest = 0.0
    for a, b in zip(first, second):
        if a != b and not (math.isnan(a) and math.isnan(b)):
            difference = abs(a - b)
            largest = max(largest, math.inf if math.isnan(difference) else difference)
    return largest


def relative_distance(first: Any, second: Any) -> float:
    """||first - second|| / ||second||; infinite if they cannot be compared."""
    if len(first) != len(second):
        return math.inf
    apart = math.fsum((a - b) ** 2 for a, b in zip(first, second))
    size = math.fsum(b * b for b in second)
    if math.isnan(apart) or math.isnan(size):
        return math.inf
    if size == 0:
        return 0.0 if apart == 0 else math.inf
    return math.sqrt(apart / size)


def worst_gradient(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float, str]:
    """The largest relative distance of a tensor's sampled gradients, and the tensor's name."""
    names = [name for name in second if name.startswith("grad/")]
    worst = (0.0, "")
    for name in names:
        apart = relative_distance(first[name], second[name]) if name in first else math.inf
        worst = max(worst, (apart, name.removeprefix("grad/")))
    return worst
