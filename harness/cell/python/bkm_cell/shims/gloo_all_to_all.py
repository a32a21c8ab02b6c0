# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""gloo exchanges lists of tensors of one size only: all_to_all goes through all_to_all_single, which
takes other sizes there, too.

Experts get different numbers of tokens, so the lists that expert parallelism exchanges are uneven.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from bkm_cell.shims import acts

NAME = "gloo-all-to-all"


class _Exchange:
    """What async_op returns: the outputs are filled when it is waited for."""

    def __init__(self, work: Any, received: torch.Tensor, outputs: list[torch.Tensor]) -> None:
        self._work = work
        self._received = received
        self._outputs = outputs

    def wait(self, *arguments: Any, **named: Any) -> bool:
        if self._work is not None:
            self._work.wait(*arguments, **named)
        parts = self._received.split([output.numel() for output in self._outputs])
        for part, output in zip(parts, self._outputs, strict=True):
            output.copy_(part.view_as(output))
        return True


def _all_to_all(
    output_tensor_list: list[torch.Tensor],
    input_tensor_list: list[torch.Tensor],
    group: Any = None,
    async_op: bool = False,
) -> _Exchange | None:
    acts.acted(NAME)
    given = torch.cat([tensor.reshape(-1) for tensor in input_tensor_list])
    received = given.new_empty(sum(tensor.numel() for tensor in output_tensor_list))
    work = distributed_c10d.all_to_all_single(
        received,
        given,
        [tensor.numel() for tensor in output_tensor_list],
        [tensor.numel() for tensor in input_tensor_list],
        group,
        async_op,
    )
    exchange = _Exchange(work, received, output_tensor_list)
    if async_op:
        return exchange
    exchange.wait()
    return None


def apply() -> None:
    distributed_c10d.all_to_all = dist.all_to_all = _all_to_all
