# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""How the ranks of a cell share the batch and the model (harness/model/layout.h)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The degree of each kind of parallelism."""

    dp_replicate: int = 1
    dp_shard: int = 1
    tp: int = 1
    cp: int = 1
    pp: int = 1
    ep: int = 1
    ulysses: int = 1

    @classmethod
    def parse(cls, text: str) -> Layout:
        """`dp_shard=2+tp=2`, as the runner writes it; empty or `1` for one rank."""
        if text in ("", "1"):
            return cls()
        pairs = (part.split("=") for part in text.split("+"))
        return cls(**{name: int(degree) for name, degree in pairs})

    @property
    def shards(self) -> int:
        """Expert ranks are data-parallel ranks, too."""
        return self.ep if self.dp_shard == self.cp == 1 else self.dp_shard

    @property
    def data_ranks(self) -> int:
        return self.dp_replicate * self.shards

    @property
    def gradient_ranks(self) -> int:
        """Over how many ranks gradients are reduced: those with parts of a row share parameters, too."""
        return self.data_ranks * self.cp

    @property
    def sequence_ranks(self) -> int:
        return self.cp * self.ulysses

    @property
    def ranks(self) -> int:
        return self.data_ranks * self.sequence_ranks * self.tp * self.pp

    def data_rank(self, rank: int) -> int:
        """torchtitan's and verl's order: pipeline stages outermost, then data-parallel ranks; those
        that share a sequence or a tensor are neighbours."""
        return rank // (self.sequence_ranks * self.tp) % self.data_ranks
