# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Compares the reference's golden with HF transformers in fp64: every step's loss, log-probs, gradients and norms.

  python validate_against_transformers.py PROBE_DIR GOLDEN.safetensors

Run by hand, in any environment with torch, transformers and safetensors, after a change to the reference. Documents
go through the model one at a time, so no mask is involved. transformers casts norms, softmax and rotary angles to
fp32 even in an fp64 model; --exact undoes that (Python patches of the module) and must agree much better.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.models.qwen3 import modeling_qwen3 as qwen3


def undo_casts_to_fp32() -> None:
    """Replaces the three functions of transformers' Qwen3 that compute in fp32 whatever the model's dtype."""

    def rms_norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    def rotary(self, x, position_ids):
        dim = self.config.head_dim
        theta = self.config.rope_parameters["rope_theta"]
        exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
        angles = position_ids[..., None].double() * theta**-exponents
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    def attention(module, query, key, value, attention_mask, scaling, **_):
        key, value = (x.repeat_interleave(module.num_key_value_groups, 1) for x in (key, value))
        future = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool).triu(1)
        scores = (query @ key.transpose(2, 3) * scaling).masked_fill(future, float("-inf"))
        return (scores.softmax(-1) @ value).transpose(1, 2), None

    qwen3.Qwen3RMSNorm.forward = rms_norm
    qwen3.Qwen3RotaryEmbedding.forward = rotary
    qwen3.eager_attention_forward = attention


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", type=Path)
    parser.add_argument("golden", type=Path)
    parser.add_argument("--exact", action="store_true", help="undo transformers' casts to fp32")
    arguments = parser.parse_args()
    if arguments.exact:
        undo_casts_to_fp32()
    settings = json.loads((arguments.probe / "probe.json").read_text())["numerics"]
    optimizer_settings = settings["optimizer"]
    golden = load_file(arguments.golden)
    batches = load_file(arguments.probe / "batch.safetensors")
    places = load_file(arguments.probe / "places.safetensors")
    model = AutoModelForCausalLM.from_pretrained(
        arguments.probe / "model", dtype=torch.float64, attn_implementation="eager"
    )
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=optimizer_settings["learning_rate"],
        betas=(optimizer_settings["beta1"], optimizer_settings["beta2"]),
        eps=optimizer_settings["epsilon"],
        weight_decay=optimizer_settings["weight_decay"],
    )
    for step in range(settings["steps"]):
        batch = {name: batches[f"step{step}/{name}"] for name in ("input_ids", "loss_mask", "document_lengths")}
        lengths = batch["document_lengths"].tolist()
        documents = list(zip(batch["input_ids"].split(lengths), batch["loss_mask"].split(lengths)))
        loss, log_probs = 0, []
        for ids, mask in documents:
            scores = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
            of_labels = scores.gather(1, ids[1:, None])[:, 0]
            loss = loss - (of_labels * mask[1:]).sum() / batch["loss_mask"].sum()
            log_probs += [of_labels.detach(), torch.zeros(1, dtype=torch.float64)]
        loss.backward()
        norms = {name: parameter.norm().item() for name, parameter in model.named_parameters()}
        total = torch.nn.utils.clip_grad_norm_(model.parameters(), optimizer_settings["clip_norm"])

        worst = {"gradient": 0.0, "gradient norm": 0.0, "parameter norm": 0.0}
        for name, parameter in model.named_parameters():
            expected = golden[f"step{step}/grad/{name}"]
            seen = parameter.grad.flatten()[places[name]]
            norm = golden[f"step{step}/grad_norm/{name}"].item()
            size = golden[f"step{step}/param_norm/{name}"].item()
            gaps = {
                "gradient": ((seen - expected).norm() / expected.norm()).item(),
                "gradient norm": abs(parameter.grad.norm().item() / norm - 1),
                "parameter norm": abs(norms[name] / size - 1),
            }
            worst = {what: max(worst[what], gap) for what, gap in gaps.items()}
        gap = (torch.cat(log_probs) - golden[f"step{step}/log_probs"]).abs()
        print(
            f"step {step}: loss {abs(loss.item() - golden[f'step{step}/loss'].item()):.1e}"
            f" log-probs mean {gap.mean():.1e} max {gap.max():.1e}"
            f" total norm {abs(total.item() / golden[f'step{step}/total_norm'].item() - 1):.1e}"
            + "".join(f" {what} {value:.1e}" for what, value in worst.items())
        )
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
