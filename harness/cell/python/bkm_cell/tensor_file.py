# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads and writes safetensors files (https://github.com/huggingface/safetensors#format).

Uses torch alone: the harness must not depend on a package of the subjects.
"""

from __future__ import annotations

import ctypes
import json
import struct
from typing import Any

import torch

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The elements' bytes in row-major order. Does not use numpy: a runtime may lack it."""
    tensor = tensor.detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def shapes(path: str) -> dict[str, tuple[int, ...]]:
    """Of all tensors of the file; reads none of them."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return {name: tuple(entry["shape"]) for name, entry in header.items()}


def load_file(path: str, device: str = "cpu") -> dict[str, torch.Tensor]:
    """All tensors of the file, on `device`."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = _DTYPES[entry["dtype"]]
        flat = (
            torch.frombuffer(memoryview(data)[begin:end], dtype=dtype)
            if end > begin
            else torch.empty(0, dtype=dtype)
        )
        tensors[name] = flat.reshape(entry["shape"]).clone().to(device)
    return tensors


def dtype_name(tensor: torch.Tensor) -> str:
    """Without the name of its package: "float32"."""
    return str(tensor.dtype).removeprefix("torch.")


def save_file(
    tensors: dict[str, torch.Tensor], path: str, metadata: dict[str, str] | None = None
) -> None:
    """Writes contiguous copies of the tensors, in their order."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    blobs = []
    offset = 0
    for name, tensor in tensors.items():
        blob = tensor_bytes(tensor)
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.writelines(blobs)
