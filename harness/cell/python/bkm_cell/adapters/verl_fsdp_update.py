# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""verl's update on a roll-out (PPO) with its FSDP engine: of the policy, or of the critic.

The PPO trainer's own steps `_update_actor` and `_update_critic` run, on the workers that it makes. What
is not there is what surrounds them: Ray, which carries the calls, and the roll-out, whose tensors come
from the probe.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from bkm_cell.adapters.base import hf_tensors, import_all, transformers_module
from bkm_cell.adapters.trainer import EditDocument, ReportedStep, TrainerAdapter
from bkm_cell.adapters.verl_fsdp import FP32, schedule_of
from bkm_cell.adapters.verl_trainer import composed, in_section, of_hydra, of_optimizer, overrides_of
from bkm_cell.probe import Batch, Rollout
from bkm_cell.witnesses.named_tensors import NamedTensors

_ACTOR, _CRITIC = "actor_rollout_ref.actor", "critic"
# Before 0.8.0 the trainer runs workers without an engine unless it is told not to.
_LEGACY = "trainer.use_legacy_worker_impl"
_OLDER_CRITIC = "critic.model.fsdp_config"
# What says what is trained, and how.
_CHANGING = tuple(
    f"{section}.{name}"
    for section in (_ACTOR, _CRITIC)
    for name in ("clip", "loss", "policy_loss", "entropy_c", "use_kl", "optim", "ppo_epochs")
)


class _Called:
    """What Ray returns of a call that does not block."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def get(self) -> Any:
        return self._result


class _OneWorker:
    """A group of one critic, called in this process."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def train_mini_batch(self, data: Any) -> _Called:
        return _Called(self._worker.train_mini_batch(data))


class Adapter(TrainerAdapter):
    entry = "verl.trainer.ppo.ray_trainer"

    def import_modules(self) -> None:
        model = transformers_module(self.probe.hf_config["model_type"])
        import_all([self.entry, "verl.workers.engine_workers", "verl.workers.utils.losses", model])
        self._trainer = importlib.import_module(self.entry)
        self._workers = importlib.import_module("verl.workers.engine_workers")
        self._losses = importlib.import_module("verl.workers.utils.losses")

    @property
    def _is_critic(self) -> bool:
        return self.probe.head == "value"

    def run(self) -> None:
        os.environ["DIST_INIT_METHOD"] = f"file://{os.path.abspath('rendezvous')}"
        shipped = composed("ppo_trainer", [])
        own = self._asked(shipped)
        options = self.probe.engine_options
        self._arguments = [*own, *overrides_of(options, lambda: shipped, own, _CHANGING)]
        config = composed("ppo_trainer", self._arguments)
        self._metrics: list[dict[str, Any]] = []
        trainer = object.__new__(self._trainer.RayPPOTrainer)  # __init__ asks Ray for its resources
        trainer.config, trainer.distillation_config = config, config.get("distillation")
        trainer.use_legacy_worker_impl = config.trainer.get("use_legacy_worker_impl")
        if self._is_critic:
            trainer.critic_wg = _OneWorker(self._critic(config))
            update = trainer._update_critic
        else:
            trainer.actor_rollout_wg = self._actor(config)
            update = trainer._update_actor
        for _ in self.probe.batches:
            batch = self._rollout()
            batch.meta_info["temperature"] = config.actor_rollout_ref.rollout.temperature  # as fit does
            self._metrics.append(update(batch).meta_info["metrics"])

    def _actor(self, config: Any) -> Any:
        worker = self._workers.ActorRolloutRefWorker(config=config.actor_rollout_ref, role="actor")
        worker.init_model()
        return worker

    def _critic(self, config: Any) -> Any:
        """As RayPPOTrainer.init_workers makes it."""
        as_class = importlib.import_module("verl.utils.config").omega_conf_to_dataclass
        asked = as_class(config.critic)
        of_model = getattr(asked.model, "fsdp_config", None)  # before 0.8.0
        engine = asked.engine if of_model is None else of_model
        engine.infer_max_token_len_per_gpu = asked.ppo_infer_max_token_len_per_gpu
        engine.max_token_len_per_gpu = asked.ppo_max_token_len_per_gpu
        worker = self._workers.TrainingWorker(
            self._workers.TrainingWorkerConfig(
                model_type="value_model",
                model_config=getattr(asked, "model_config", None) or asked.model,
                engine_config=engine,
                optimizer_config=asked.optim,
                checkpoint_config=asked.checkpoint,
            )
        )
        worker.reset()
        worker.set_loss_fn(partial(self._losses.value_loss, config=asked))
        return worker

    def _asked(self, shipped: Any) -> list[str]:
        """What the probe asks, in the configuration of the PPO trainer."""
        probe = self.probe
        engine = f"{_ACTOR}.fsdp_config"
        if self._is_critic:
            engine = "critic.fsdp" if "fsdp" in shipped.critic else _OLDER_CRITIC
        ppo = probe.ppo
        section = _CRITIC if self._is_critic else _ACTOR
        model = "critic.model" if self._is_critic else "actor_rollout_ref.model"
        documents, tokens = len(probe.kept.lengths), sum(probe.kept.lengths)
        clips = (
            {"cliprange_value": ppo["clip_value"]}
            if self._is_critic
            else {
                "clip_ratio_low": ppo["clip_low"],
                "clip_ratio_high": ppo["clip_high"],
                "clip_ratio_c": ppo["clip_dual"],
            }
        )
        of_training = {
            "loss_agg_mode": "token-mean",
            "ppo_epochs": 1,
            "ppo_mini_batch_size": documents,
            **self._cut(documents, tokens),
            **clips,
            **in_section(
                "optim",
                {
                    **of_optimizer(probe),
                    "total_training_steps": len(probe.batches),
                    **schedule_of(probe),
                },
            ),
        }
        precision = {}
        if probe.precision == "fp32":
            precision[f"++{engine}.mixed_precision"] = of_hydra(FP32)
        options = {
            "actor_rollout_ref.model.path": probe.model_dir,
            f"{model}.path": probe.model_dir,
            f"++{model}.override_config.attn_implementation": self.attention,
            "actor_rollout_ref.rollout.name": "vllm",  # it has to have a name, and is never made
            "actor_rollout_ref.rollout.n": 1,
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": documents,
            f"{model}.use_remove_padding": not probe.is_padded,
            **({_LEGACY: "disable"} if "use_legacy_worker_impl" in shipped.trainer else {}),
            **in_section(section, of_training),
            f"++{section}.optim.override_optimizer_config.eps": probe.optimizer["epsilon"],
            # Before 0.8.0 the trainer makes critics by FSDP1 alone.
            **({} if engine == _OLDER_CRITIC else {f"{section}.strategy": "fsdp2"}),
            **precision,
        }
        return [f"{name}={value}" for name, value in options.items()]

    def _cut(self, documents: int, tokens: int) -> dict[str, Any]:
        parts = self.probe.micro_batches
        if documents % parts == 0:
            return {"use_dynamic_bsz": False, "ppo_micro_batch_size_per_gpu": documents // parts}
        longest = max(self.probe.kept.lengths)
        return {"use_dynamic_bsz": True, "ppo_max_token_len_per_gpu": max(longest, -(-tokens // parts))}

    def _rollout(self) -> Any:
        of_old, of_credit = ("values", "returns") if self._is_critic else ("old_log_probs", "advantages")
        rows = padded_rollout(self.probe.kept, self.probe.rollout, self.probe.pad_token_id)
        tensors = {{"old": of_old, "credit": of_credit}.get(name, name): x for name, x in rows.items()}
        return self._trainer.DataProto.from_single_dict(tensors)

    def checkpoint(self, step: int) -> str:
        raise NotImplementedError("an update saves none")

    def edit_rollout(self, edit: Callable[[Any], None]) -> None:
        """Changes the padded rows where the trainer takes the padding away."""
        inner = self._trainer.left_right_2_no_padding

        def edited(data: Any) -> Any:
            edit(data)
            return inner(data)

        self._trainer.left_right_2_no_padding = edited

    def edit_documents(self, edit: EditDocument) -> None:
        """Their lengths stay: other tensors of the roll-out have them, too."""

        def each(data: Any) -> None:
            begin = data["input_ids"].shape[1] - data["response_mask"].shape[1]
            for row, mask in enumerate(data["attention_mask"].bool()):
                counts = torch.zeros_like(data["input_ids"][row])
                counts[begin:] = data["response_mask"][row]
                data["input_ids"][row][mask], counts[mask] = edit(data["input_ids"][row][mask], counts[mask])
                data["response_mask"][row] = counts[begin:]

        self.edit_rollout(each)

    def around_loss(self, wrap: Callable[..., Any]) -> None:
        """Replaces the loss of the workers by wrap(loss, config, model_output, data=...)."""
        name = "value_loss" if self._is_critic else "ppo_loss"
        inner = getattr(self._losses, name)

        def wrapped(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> Any:
            return wrap(inner, config, model_output, data=data, dp_group=dp_group)

        for home in (self._losses, self._workers):
            if hasattr(home, name):
                setattr(home, name, wrapped)

    def scale_loss(self, factor: Callable[[int, int], float]) -> None:
        def scaled(loss: Any, *arguments: Any, data: Any, **named: Any) -> Any:
            tokens = data["input_ids"].values().numel()
            result, metrics = loss(*arguments, data=data, **named)
            return result * factor(int(data["response_mask"].sum()), tokens), metrics

        self.around_loss(scaled)

    def sharding(self) -> str:
        is_asked = any(each.endswith(".strategy=fsdp2") for each in self._arguments)
        return "fsdp2" if is_asked else ""

    def tensors(self) -> NamedTensors:
        return hf_tensors(self.probe, self.modules())

    def configured(self) -> str | None:
        return self.modules()[0].config._attn_implementation

    def reported(self) -> list[ReportedStep]:
        of = "critic" if self._is_critic else "actor"
        return [
            ReportedStep(_first(step[f"{of}/loss"]), _first(step[f"{of}/grad_norm"]))
            for step in self._metrics
        ]


def padded_rollout(kept: Batch, rollout: Rollout, pad: int) -> dict[str, torch.Tensor]:
    """A row for each document, prompts padded on the left and answers on the right, as a roll-out comes.

    An answer begins where a document first counts, or with its last token.
    """
    columns = (kept.input_ids, kept.loss_mask, rollout.old, rollout.credit)
    tokens, counts, old, credit = (column.split(kept.lengths) for column in columns)
    prompts = [_prompt(each) for each in counts]
    left = max(prompts)
    right = max(length - prompt for length, prompt in zip(kept.lengths, prompts))

    def rows(documents: Sequence[torch.Tensor], value: int = 0) -> torch.Tensor:
        return torch.stack(
            [
                torch.nn.functional.pad(
                    each, (left - prompt, right - (len(each) - prompt)), value=value
                )
                for each, prompt in zip(documents, prompts)
            ]
        )

    ids = rows(tokens, pad)
    attention = rows([torch.ones_like(each) for each in tokens])
    return {
        "prompts": ids[:, :left],
        "responses": ids[:, left:],
        "input_ids": ids,
        "attention_mask": attention,
        "position_ids": (attention.cumsum(1) - 1).clamp(min=0),
        "response_mask": rows(counts)[:, left:],
        "old": rows(old)[:, left:],
        "credit": rows(credit)[:, left:],
    }


def _prompt(counts: torch.Tensor) -> int:
    counted = counts.nonzero().flatten()
    return int(counted[0]) if len(counted) else len(counts) - 1


def _first(value: Any) -> float:
    """Of one mini-batch."""
    return float(value[0] if isinstance(value, list) else value)
