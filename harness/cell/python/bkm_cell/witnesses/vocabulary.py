# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A model may have more rows than its vocabulary has tokens: engines pad it, so that it divides.

The rows of the file come first. What a model does with the others is seen in its log-probs: they are
wrong if a token that does not exist takes part in the softmax.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch

from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors

MOST_ROWS = 1024  # no engine pads to a larger multiple

_OF_VOCABULARY = ("embed_tokens.weight", "lm_head.weight")  # in the file


class WithoutPadding:
    """A model's tensors, without the rows beyond the vocabulary.

    `shapes`: of the file's tensors. `rows`: how many rows the model has, once one was seen that has
    more than the file.
    """

    def __init__(
        self, tensors: NamedTensors, shapes: Mapping[str, tuple[int, ...]], vocabulary: int
    ) -> None:
        self._tensors = tensors
        self._shapes = {
            name: shape
            for name, shape in shapes.items()
            if name.endswith(_OF_VOCABULARY) and shape[0] == vocabulary
        }
        self._others = set(shapes.values()) - set(self._shapes.values())
        self.rows: int | None = None

    def parameters(self, kind: str, buffers: Collection[str] = ()) -> Tensors:
        return self._cut(self._tensors.parameters(kind, buffers))

    def gradients(self) -> Tensors:
        return self._cut(self._tensors.gradients())

    def own_gradients(self) -> list[torch.Tensor]:
        return self._tensors.own_gradients()

    def held(self) -> Tensors:
        """Under the model's own names: a padded tensor is known by its shape."""
        held = self._tensors.held()
        for shape in set(self._shapes.values()):
            for name, value in held.items():
                if tuple(value.shape) not in self._others:
                    held[name] = self._without(value, shape)
        return held

    def _cut(self, tensors: Tensors) -> Tensors:
        return {
            name: self._without(value, self._shapes[name]) if name in self._shapes else value
            for name, value in tensors.items()
        }

    def _without(self, value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        if value.dim() != len(shape) or tuple(value.shape[1:]) != shape[1:]:
            return value
        if not 0 < value.shape[0] - shape[0] < MOST_ROWS:
            return value
        self.rows = value.shape[0]
        return value[: shape[0]]
