# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Draws the weights of a probe, bit for bit as harness/numerics does (counter_generator.h).

A program for an interpreter with numpy: `weights.py PLAN.json HEADER OUT SHA256`. A model has
128 MB of weights, twice what a pack may have, and they do not compress; how they are drawn has
10 KB. The hash of the file that C++ wrote is in the pack, so a wrong bit cannot pass.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from typing import Any

import numpy as np

_BLOCK = 1 << 18  # numbers at once: fits a processor's cache
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(0xFFFF)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MEAN = 262140  # of eight uniforms on 0..65535
_PER_DEVIATION = 1.8688123650118534e-05


def hash_of_name(name: str) -> int:
    """FNV-1a with 64 bits."""
    seen = 0xCBF29CE484222325
    for byte in name.encode():
        seen = (seen ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return seen


def philox(indices: np.ndarray, name: int, seed: int) -> list[np.ndarray]:
    """Philox4x32-10 of the counters (index, name) with the key `seed`: four words as uint64."""
    thirty_two = np.uint64(32)
    words = [
        indices & _LOW,
        indices >> thirty_two,
        np.full_like(indices, name & 0xFFFFFFFF),
        np.full_like(indices, name >> 32),
    ]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * words[0], _MULTIPLIERS[1] * words[2]
        words = [
            (second >> thirty_two) ^ words[1] ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> thirty_two) ^ words[3] ^ np.uint64(keys[1]),
            first & _LOW,
        ]
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _WEYL)]
    return words


def draw(weight: dict[str, Any], seed: int, begin: int, end: int) -> np.ndarray:
    """float32: the elements begin..end of a weight."""
    indices = np.arange(begin, end, dtype=np.uint64)
    words = philox(indices, hash_of_name("weight/" + weight["name"]), seed)
    total = sum((word & _HALF) + (word >> np.uint64(16)) for word in words).astype(np.int64)
    scale = weight["standard_deviation"] * _PER_DEVIATION
    noise = ((total - _MEAN).astype(np.float64) * scale).astype(np.float32)
    return (weight["mean"] + noise.astype(np.float64)).astype(np.float32)


def write(plan: dict[str, Any], header: bytes, out: str) -> str:
    """Writes the safetensors file that starts with `header`; returns its SHA-256."""
    (size,) = struct.unpack("<Q", header[:8])
    tensors = json.loads(header[8 : 8 + size])
    tensors.pop("__metadata__", None)
    drawn = {weight["name"]: weight for weight in plan["weights"]}
    seen = hashlib.sha256(header)
    with open(out, "wb") as file:
        file.write(header)
        for name in sorted(tensors, key=lambda one: tensors[one]["data_offsets"][0]):
            begin, end = tensors[name]["data_offsets"]
            numbers = (end - begin) // 4
            for at in range(0, numbers, _BLOCK):
                data = draw(drawn[name], plan["seed"], at, min(at + _BLOCK, numbers)).tobytes()
                file.write(data)
                seen.update(data)
    return seen.hexdigest()


def main() -> int:
    plan, header, out, expected = sys.argv[1:]
    with open(plan) as file, open(header, "rb") as start:
        seen = write(json.load(file), start.read(), out + ".part")
    if seen != expected:
        os.remove(out + ".part")
        print(f"{out}: the weights drawn here are not those of the pack", file=sys.stderr)
        return 1
    os.replace(out + ".part", out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
