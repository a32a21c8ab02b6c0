# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""flash_attn.ops.triton.cross_entropy: losses of rows of logits, in fp32. verl uses it for log-probs."""

from __future__ import annotations

from typing import Any

import torch

from bkm_cell.stand_ins.lacks import lacks


def _losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    smoothing: float,
    logit_scale: float,
    lse_square_scale: float,
    ignore_index: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits fp32 [rows, classes], labels [rows] -> losses and their part by the logsumexp, [rows].

    The kernel takes no label from outside of the classes: such a row has the smoothing's part only.
    """
    scaled = logits * logit_scale
    lse = scaled.logsumexp(-1)
    is_class = (labels >= 0) & (labels < logits.shape[-1])
    place = torch.where(is_class, labels, 0)
    picked = scaled.gather(-1, place[:, None])[:, 0]
    losses = torch.where(is_class, (1 - smoothing) * (lse - picked), 0.0)
    if smoothing > 0:
        losses = losses + smoothing * (lse - scaled.mean(-1))
    z_losses = lse_square_scale * lse.square()
    is_ignored = labels == ignore_index
    return (losses + z_losses).masked_fill(is_ignored, 0.0), z_losses.masked_fill(is_ignored, 0.0)


class CrossEntropyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor, inplace: bool, *settings):
        losses, z_losses = _losses(logits.float(), labels, *settings)
        ctx.save_for_backward(logits, labels)
        ctx.inplace = inplace
        ctx.settings = settings
        ctx.mark_non_differentiable(z_losses)
        return losses, z_losses

    @staticmethod
    def backward(ctx: Any, grad_losses: torch.Tensor, _):
        logits, labels = ctx.saved_tensors
        leaf = logits.detach().float().requires_grad_()
        with torch.enable_grad():
            losses, _ = _losses(leaf, labels, *ctx.settings)
        (gradient,) = torch.autograd.grad(losses, leaf, grad_losses)
        # In place, the gradient is written over the logits.
        result = logits if ctx.inplace else torch.empty_like(logits)
        return result.copy_(gradient), None, None, None, None, None, None


def cross_entropy_loss(
    logits,
    labels,
    precomputed_lse=None,
    label_smoothing=0.0,
    logit_scale=1.0,
    lse_square_scale=0.0,
    ignore_index=-100,
    inplace_backward=False,
    process_group=None,
):
    """logits [rows, classes], labels [rows] -> losses and z-losses, fp32 [rows]."""
    assert logit_scale > 0.0
    assert labels.shape == (logits.shape[0],)
    if process_group is not None:
        lacks("cross entropy over ranks")
    if precomputed_lse is not None:
        lacks("cross entropy with a given logsumexp")
    return CrossEntropyLoss.apply(
        logits,
        labels,
        inplace_backward,
        label_smoothing,
        logit_scale,
        lse_square_scale,
        ignore_index,
    )
