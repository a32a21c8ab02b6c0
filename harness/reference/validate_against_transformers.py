# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Compares a golden of the reference with HF transformers in fp64.

  python validate_against_transformers.py PROBE_DIR GOLDEN.safetensors [--exact]

Every step's loss, all log-probs, gradients and norms; prints one JSON line per step with the largest
difference of each. Documents go through the model one at a time, so packing is not involved; sliding
windows are those of transformers, which casts norms, softmax, rotary angles and routers to fp32
even in an fp64 model. --exact turns every such request into one for fp64 and must agree much better.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode


class Arithmetic(TorchFunctionMode):
    """Changes what transformers' models compute, without touching their code.

    exact: requests for fp32 get fp64. softmax_router: sigmoid becomes softmax; the only sigmoid in
    DeepseekV3 scores its experts, and torchtitan's flavor of it scores them by softmax.
    """

    def __init__(self, exact: bool, softmax_router: bool) -> None:
        super().__init__()
        self._exact = exact
        self._softmax_router = softmax_router

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._softmax_router and func in (torch.sigmoid, torch.Tensor.sigmoid):
            return args[0].softmax(-1)
        if self._exact:
            if func is torch.Tensor.float:
                return args[0].double()
            args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
            kwargs = {
                name: torch.float64 if value is torch.float32 else value
                for name, value in kwargs.items()
            }
        return func(*args, **kwargs)


def load_model(folder: Path, config: Any, is_critic: bool, is_flavor: bool) -> torch.nn.Module:
    asked = {"dtype": torch.float64, "attn_implementation": "eager"}
    if hasattr(transformers.PreTrainedModel, "get_correct_experts_implementation"):
        asked["experts_implementation"] = "eager"  # others take bf16 only
    kind = (
        transformers.AutoModelForTokenClassification
        if is_critic
        else transformers.AutoModelForCausalLM
    )
    if hasattr(config, "quantization_config"):
        asked["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    model = kind.from_pretrained(folder, **asked)
    for parameter in model.parameters():  # bf16 where it was dequantized
        parameter.data = parameter.data.double()
    in_file = model.state_dict().keys()
    for name, buffer in model.named_buffers():
        if name in in_file:
            buffer.data = buffer.data.double()
    for name, module in model.named_modules() if is_flavor else ():
        if name.endswith("kv_a_layernorm"):  # DeepseekV3's is 1e-6, whatever its configuration
            module.variance_epsilon = config.rms_norm_eps
    return model


def canonical(name: str, tensor: torch.Tensor, places: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensor, or the parts of it that a model file has under names of their own."""
    if name in places:
        yield name, tensor
        return
    prefix, _, matrix = name.rpartition(".")
    for expert, weights in enumerate(tensor):  # transformers 5 stacks all experts
        if matrix == "gate_up_proj":
            for part, rows in zip(("gate_proj", "up_proj"), weights.chunk(2), strict=True):
                yield f"{prefix}.{expert}.{part}.weight", rows
        else:
            yield f"{prefix}.{expert}.{matrix}.weight", weights


def relative(difference: float, size: float) -> float:
    """An expert that no token uses has a gradient of zero on both sides; NaN is never close."""
    if size == 0 and difference == 0:
        return 0.0
    ratio = difference / size if size else math.inf
    return ratio if math.isfinite(ratio) else sys.float_info.max


def gap(seen: float, golden: torch.Tensor) -> float:
    return relative(abs(seen - golden.item()), abs(golden.item()))


def run_step(
    model: torch.nn.Module, batch: dict[str, torch.Tensor], is_critic: bool
) -> tuple[float, torch.Tensor]:
    """The loss, after its backward, and all log-probs; of a critic, its values."""
    lengths = batch["document_lengths"].tolist()
    counted, loss, log_probs = batch["loss_mask"].sum(), 0.0, []
    for ids, mask in zip(
        batch["input_ids"].split(lengths), batch["loss_mask"].split(lengths), strict=True
    ):
        logits = model(input_ids=ids[None], use_cache=False).logits[0]
        if is_critic:
            values = logits[:, 0]
            part = ((values - 1).square() * mask).sum() / (2 * counted)
            log_probs.append(values.detach())
        else:
            of_labels = logits[:-1].log_softmax(-1).gather(1, ids[1:, None])[:, 0]
            part = -(of_labels * mask[1:]).sum() / counted
            log_probs += [of_labels.detach(), torch.zeros(1, dtype=torch.float64)]
        part.backward()
        loss += part.item()
    return loss, torch.cat(log_probs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("probe", type=Path)
    parser.add_argument("golden", type=Path)
    parser.add_argument("--exact", action="store_true", help="undo transformers' casts to fp32")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = json.loads((arguments.probe / "probe.json").read_text())["numerics"]
    chosen = settings["optimizer"]
    is_critic = settings.get("head") == "value"
    folder = arguments.probe / "model"
    golden = load_file(arguments.golden)
    batches = load_file(arguments.probe / "batch.safetensors")
    places = load_file(arguments.probe / "places.safetensors")
    config = transformers.AutoConfig.from_pretrained(folder)
    is_flavor = settings["model"] == "deepseek_v3"  # torchtitan's
    arithmetic = Arithmetic(arguments.exact, is_flavor)
    with arithmetic:  # rotary tables are made with the model
        model = load_model(folder, config, is_critic, is_flavor)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=chosen["learning_rate"],
        betas=(chosen["beta1"], chosen["beta2"]),
        eps=chosen["epsilon"],
        weight_decay=chosen["weight_decay"],
    )
    for step in range(settings["steps"]):
        key = f"step{step}/"
        batch = {
            name: batches[key + name] for name in ("input_ids", "loss_mask", "document_lengths")
        }
        with arithmetic:
            loss, log_probs = run_step(model, batch, is_critic)
        sizes = {}
        for name, parameter in model.named_parameters():
            for part, value in canonical(name, parameter.detach(), places):
                sizes[part] = value.norm().item()
        total = torch.nn.utils.clip_grad_norm_(model.parameters(), chosen["clip_norm"])
        worst = {"gradient": 0.0, "gradient_norm": 0.0, "parameter_norm": 0.0}
        seen = set()
        for name, parameter in model.named_parameters():
            for part, gradient in canonical(name, parameter.grad, places):
                seen.add(part)
                expected = golden[f"{key}grad/{part}"]
                sampled = gradient.flatten()[places[part]]
                gaps = {
                    "gradient": relative(
                        (sampled - expected).norm().item(), expected.norm().item()
                    ),
                    "gradient_norm": gap(gradient.norm().item(), golden[f"{key}grad_norm/{part}"]),
                    "parameter_norm": gap(sizes[part], golden[f"{key}param_norm/{part}"]),
                }
                worst = {what: max(worst[what], value) for what, value in gaps.items()}
        assert seen == places.keys(), f"not in both: {sorted(seen ^ places.keys())[:5]}"
        differences = (log_probs - golden[key + "log_probs"]).abs()
        result = {
            "transformers": transformers.__version__,
            "step": step,
            "loss": abs(loss - golden[key + "loss"].item()),
            "log_probs_mean": differences.mean().item(),
            "log_probs_max": differences.max().item(),
            "total_norm": gap(total.item(), golden[key + "total_norm"]),
            **worst,
        }
        print(json.dumps(result), flush=True)
        optimizer.step()
        optimizer.zero_grad()
    return 0


if __name__ == "__main__":
    sys.exit(main())
