# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads from the gradient of the logits which tokens a loss trains, and with which weights.

For a loss sum_t w_t * cross_entropy(logits_t, label_t), the gradient of the logits is
w_t * (softmax(logits_t) - onehot(label_t)). So whatever computes the loss, its labels and weights
can be read without knowing it. Not for label smoothing or an entropy bonus: `residual` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Labels:
    labels: torch.Tensor  # int64[T]; -1 where nothing is trained
    weights: torch.Tensor  # float32[T]; d loss / d log-prob, negated; 0 where nothing is trained
    residual: float  # the largest |gradient - w (softmax - onehot)|, as a share of |w|


def on_gradient(logits: torch.Tensor, call: Callable[[torch.Tensor], None]) -> None:
    """Calls `call` with the gradient of the logits that a model computed.

    What it returns may be a copy in another type, as accelerate makes one under autocast; a loss that
    the model computed itself does not go through the copy.
    """
    node, place = logits.grad_fn, logits.output_nr
    while node is not None and node.name() == "ToCopyBackward0":
        node, place = node.next_functions[0]

    def backward(gradients: tuple[torch.Tensor | None, ...]) -> None:
        if gradients[place] is not None:
            call(gradients[place])

    if node is not None:
        node.register_prehook(backward)


def labels_of(gradient: torch.Tensor, logits: torch.Tensor) -> Labels:
    """Of one call's logits, [..., V] each. Where ranks hold parts of the vocabulary it does not hold.

    Of a critic's values, [..., 1], a label is 0, and its weight is by how much the loss falls with the
    value.
    """
    if logits.shape[-1] == 1:
        weights = -gradient.detach().float().flatten().cpu()
        return Labels(torch.where(weights != 0, 0, -1), weights, 0.0)
    g = gradient.detach().float().reshape(-1, gradient.shape[-1])
    z = logits.detach().float().reshape(-1, logits.shape[-1])
    largest, label = g.abs().max(-1)  # |g| is largest at the label: 1 - p is the sum of the others
    p = z.softmax(-1)
    at_label = p.gather(-1, label[:, None])[:, 0]
    is_trained = largest > 0
    weights = torch.where(is_trained, -g.gather(-1, label[:, None])[:, 0] / (1 - at_label), 0.0)
    expected = p * weights[:, None]
    expected.scatter_add_(-1, label[:, None], -weights[:, None])
    off = (g - expected).abs().amax(-1)[is_trained] / weights.abs()[is_trained]
    return Labels(
        torch.where(is_trained, label, -1).cpu(),
        weights.cpu(),
        float(off.max()) if len(off) else 0.0,
    )
