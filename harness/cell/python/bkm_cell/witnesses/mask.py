# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Records the mask of each layer's inner attention, and how far a change of one token reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch

from bkm_cell.older_torch import BlockMask, flex
from bkm_cell.tensor_file import tensor_bytes


def attended(mask: Any) -> torch.Tensor | None:
    """bool[T,T]: which query (row) attends to which key, if the mask alone says so.

    A mask of several rows, which are padded, does not say it.
    """
    if isinstance(mask, BlockMask) and mask.shape[0] == 1:
        queries, keys = mask.seq_lengths
        device = mask.kv_num_blocks.device
        return flex.create_mask(mask.mask_mod, 1, 1, queries, keys, device=str(device))[0, 0].bool()
    if isinstance(mask, tuple) and hasattr(
        mask, "cu_seq_q"
    ):  # the kernel's window makes each segment causal
        bounds = mask.cu_seq_q.tolist()
        length = bounds[-1]
        segment = torch.bucketize(torch.arange(length), torch.tensor(bounds[1:]), right=True)
        return (segment[:, None] == segment[None, :]).tril()
    if isinstance(mask, torch.Tensor) and mask.dim() == 4 and len(mask) == 1:
        matrix = mask[0, 0]
        return matrix if matrix.dtype == torch.bool else matrix == 0  # an additive mask
    return None


def _content(mask: Any) -> bytes:
    if isinstance(mask, torch.Tensor):
        header = f"{mask.dtype}{tuple(mask.shape)}".encode()
        return header + tensor_bytes(mask)
    if isinstance(mask, (tuple, list)):
        return b"".join(_content(item) for item in mask)
    if isinstance(mask, dict):
        return b"".join(str(key).encode() + _content(mask[key]) for key in sorted(mask))
    return (
        repr(mask).encode()
        if isinstance(mask, (str, int, float, bool, type(None)))
        else type(mask).__name__.encode()
    )


def describe(mask: Any) -> dict[str, Any]:
    """Type and digest; `pairs` counts the allowed pairs, if the mask alone says which they are."""
    facts: dict[str, Any] = {"type": type(mask).__name__}
    with torch.no_grad():
        matrix = attended(mask)
        if matrix is not None:
            content = tensor_bytes(matrix.to(torch.uint8))
            facts["pairs"] = int(matrix.sum())
        else:
            content = _content(mask)
    facts["digest"] = hashlib.sha256(content).hexdigest()[:16]
    return facts


def _parts(value: Any) -> Iterator[Any]:
    """The value and everything inside it that may hold a mask."""
    yield value
    if isinstance(value, dict):
        for item in value.values():
            yield from _parts(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _parts(item)


def held_masks(module: torch.nn.Module) -> list[tuple[str, BlockMask]]:
    """(holder, mask) for each mask that a module or its class keeps."""
    found = []
    for home in (type(module).__mro__, [module]):
        for holder in home:
            kind = holder if isinstance(holder, type) else type(holder)
            name = f"{kind.__module__}.{kind.__qualname__}"
            for value in list(vars(holder).values()):
                found += [(name, part) for part in _parts(value) if isinstance(part, BlockMask)]
    return found


class MaskCalls:
    """Keeps the masks that reach the inner attentions, and describes them after the forward.

    The owner of a mask is "caller" if this mask or an equal one was passed to the model, the class
    that keeps it, or else "model", which made it.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Any, Any, str | None]] = []
        self._handed: list[Any] = []

    def handed(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Notes the arguments of the model itself."""
        self._handed += [part for part in _parts([arguments, named]) if part is not None]

    def saw(self, layer: Any, mask: Any) -> None:
        self._calls.append((layer, mask, None))

    def found_held(self, holder: str | None, mask: Any) -> None:
        """Notes that the last call got no mask as an argument and used this one."""
        self._calls[-1] = (self._calls[-1][0], mask, holder)

    def facts(self, step: int) -> list[dict[str, Any]]:
        described: dict[int, dict[str, Any]] = {}
        calls = []
        for layer, mask, holder in self._calls:
            if id(mask) not in described:
                described[id(mask)] = describe(mask)
                if mask is not None:
                    described[id(mask)]["owner"] = holder or self._maker(mask, described[id(mask)])
            calls.append({"layer": str(layer), "step": step, **described[id(mask)]})
        return calls

    def _maker(self, mask: Any, facts: dict[str, Any]) -> str:
        if any(part is mask for part in self._handed):
            return "caller"
        # FSDP rebuilds the arguments that it passes on, so the object differs.
        for part in self._handed:
            if type(part) is type(mask) and describe(part)["digest"] == facts["digest"]:
                return "caller"
        return "model"


def reach(position: int, before: torch.Tensor, after: torch.Tensor) -> dict[str, Any]:
    """The flat positions whose log-prob changed in any bit, with the size of each change."""
    moved = torch.nonzero((before != after) & ~(before.isnan() & after.isnan())).flatten()
    change = (after.double() - before.double()).abs()
    return {"position": position, "moved": moved.tolist(), "largest": change[moved].tolist()}
