# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The part of each batch that a rank gets, and its answers in terms of the whole batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bkm_cell.probe import Batch
from bkm_cell.tensor_file import tensor_bytes
from bkm_cell.witnesses.attended import Attended
from bkm_cell.witnesses.named_tensors import Tensors


@dataclass(frozen=True)
class Share:
    """Documents are dealt in order: each data-parallel rank gets neighbours, the first ones more."""

    data_rank: int = 0
    data_ranks: int = 1
    is_one_of_several: bool = False  # other ranks run beside this one

    def documents(self, batch: Batch) -> range:
        each, more = divmod(len(batch.lengths), self.data_ranks)
        first = self.data_rank * each + min(self.data_rank, more)
        return range(first, first + each + (self.data_rank < more))

    def tokens(self, batch: Batch) -> slice:
        """The flat positions of this rank's documents."""
        mine = self.documents(batch)
        begin = sum(batch.lengths[: mine.start])
        return slice(begin, begin + sum(batch.lengths[mine.start : mine.stop]))

    def of(self, batch: Batch) -> Batch:
        if self.data_ranks == 1:
            return batch
        mine, tokens = self.documents(batch), self.tokens(batch)
        return replace(
            batch,
            input_ids=batch.input_ids[tokens],
            loss_mask=batch.loss_mask[tokens],
            lengths=batch.lengths[mine.start : mine.stop],
            documents_of_all=len(batch.lengths),
            tokens_that_count=int(batch.loss_mask.sum()),
        )

    def whole(self, batch: Batch, values: torch.Tensor | None) -> torch.Tensor | None:
        """[T] of the whole batch; 0 where other ranks' documents are."""
        if self.data_ranks == 1 or values is None:
            return values
        spread = values.new_zeros(len(batch.input_ids))
        spread[self.tokens(batch)] = values
        return spread

    def beside(self, batch: Batch) -> Tensors:
        """What goes beside a rank's log-probs: `owned`, uint8[T], 1 at this rank's documents."""
        if not self.is_one_of_several:
            return {}
        owned = torch.zeros(len(batch.input_ids), dtype=torch.uint8)
        owned[self.tokens(batch)] = 1
        return {"owned": owned}

    def whole_relations(self, batch: Batch, attended: Attended) -> None:
        """Makes relations of this rank's tokens relations of the whole batch."""
        if self.data_ranks == 1:
            return
        tokens = self.tokens(batch)
        size = len(batch.input_ids)

        def spread(relation: torch.Tensor) -> torch.Tensor:
            whole = torch.zeros(size, size, dtype=torch.uint8)
            whole[tokens, tokens] = relation
            return whole

        change_relations(attended, spread)


def change_relations(
    attended: Attended, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Puts what `change` makes of each relation in its place."""
    digests: dict[str, str] = {}
    relations: dict[str, torch.Tensor] = {}
    for digest, relation in attended.relations.items():
        changed = change(relation)
        digests[digest] = digest_of(changed)
        relations[digests[digest]] = changed
    attended.relations = relations
    attended.layers = [
        {**layer, "relation": digests[layer["relation"]]} for layer in attended.layers
    ]


def digest_of(relation: torch.Tensor) -> str:
    return hashlib.sha256(tensor_bytes(relation)).hexdigest()[:16]
