# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The interface between the ladder (bkm_cell.sft) and an adapter."""

from __future__ import annotations

import abc
import contextlib
import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from bkm_cell.older_torch import DTensor
from bkm_cell.probe import Batch, Probe
from bkm_cell.witnesses.named_tensors import NamedTensors, Tensors, names_beside
from bkm_cell.witnesses.own_imports import folders_of

# HF model type to torchtitan package, where the names differ.
_TORCHTITAN_PACKAGES = {"llama": "llama3", "qwen2": "qwen3", "qwen3_moe": "qwen3"}


@dataclass
class StepOutcome:
    """What the engine itself reported about one training step."""

    loss: float | None = None
    grad_norm: float | None = None
    log_probs: torch.Tensor | None = None  # [T], in the batch's order
    facts: dict[str, Any] = field(default_factory=dict)


class Adapter(abc.ABC):
    """Drives one engine, or a library alone. The ladder calls the methods in this order."""

    def __init__(self, probe: Probe, attention: str) -> None:
        self.probe = probe
        self.attention = attention  # as the subject is asked for it

    makes_optimizer = True  # the subject does, with whatever hooks belong to it

    @abc.abstractmethod
    def import_modules(self) -> None:
        """Imports every module of the subjects that is needed; creates no object."""

    @abc.abstractmethod
    def construct(self) -> None:
        """Configures, builds and initialises the engine; it reads the weights meanwhile."""

    @abc.abstractmethod
    def modules(self) -> list[torch.nn.Module]:
        """The model's parts."""

    @abc.abstractmethod
    def tensors(self) -> NamedTensors: ...

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """How the API was used: the engine class and what was asked for."""

    def sharding(self) -> str:
        """By what it was asked to shard: "fsdp1" or "fsdp2"; empty if that is left to the engine."""
        return ""

    @abc.abstractmethod
    def configured(self) -> str | None:
        """The attention that the built model's own configuration names."""

    def evaluating(self) -> contextlib.AbstractContextManager[Any]:
        """The context in which evaluate() is called."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def evaluate(self, batch: Batch) -> torch.Tensor:
        """Log-probs [T] of a forward pass that trains nothing."""

    def entropy(self, batch: Batch) -> torch.Tensor | None:
        """The entropy [T] of a forward pass that trains nothing; called only if the probe asks."""
        raise NotImplementedError

    @abc.abstractmethod
    def train_step(self, batch: Batch) -> StepOutcome: ...

    def data_rank(self, rank: int) -> tuple[int, int]:
        """Which part of each batch is given to this rank (from 0), and into how many parts a batch
        is dealt. Called after construct()."""
        return self.probe.layout.data_rank(rank), self.probe.layout.data_ranks

    def fresh(self, probe: Probe) -> Adapter:
        """Another engine of the same kind, constructed for this probe."""
        other = type(self)(probe, self.attention)
        other.import_modules()
        other.construct()
        return other

    # What follows is called only if the probe asks, which the planner allows to engines that have it.

    def exported(self) -> Iterable[tuple[str, torch.Tensor]]:
        """The parameters as they are given away, under the names of HF's files."""
        raise NotImplementedError

    def save_checkpoint(self, folder: str) -> None:
        """`folder` ends in `global_step_N`, where N is the number of steps that were trained."""
        raise NotImplementedError

    def resumed(self, folder: str) -> Adapter:
        """A fresh engine that loaded the checkpoint in `folder`."""
        raise NotImplementedError


def import_all(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(name)


def find_module(name: str, *defines: str) -> ModuleType:
    """Imports a module from where this version keeps it: `name`, or the only module of the package
    that is called like it and defines one of `defines`."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):  # it is there, and lacks something
            raise
        top, leaf = name.split(".")[0], name.rpartition(".")[2]
        found = [
            other
            for root in folders_of(top)
            for other in _modules_called(root, top, leaf)
            if _defines(other[1], defines)
        ]
        if len(found) != 1:
            raise
        return importlib.import_module(found[0][0])


def _modules_called(root: str, top: str, leaf: str) -> Iterable[tuple[str, str]]:
    """(name, file) of the modules and packages of that last name."""
    for folder, _, files in os.walk(root):
        package = ".".join([top, *os.path.relpath(folder, root).split(os.sep)]).removesuffix("..")
        if f"{leaf}.py" in files:
            yield f"{package}.{leaf}", os.path.join(folder, f"{leaf}.py")
        if os.path.basename(folder) == leaf and "__init__.py" in files:
            yield package, os.path.join(folder, "__init__.py")


def _defines(file: str, names: Collection[str]) -> bool:
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    return any(re.search(rf"^(?:def|class) {re.escape(name)}\b", text, re.M) for name in names)


def import_if_there(name: str) -> None:
    """Imports a module that a subject imports by a computed name, if this version has it."""
    try:
        found = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return
    if found:
        importlib.import_module(name)


def torchtitan_package(model_type: str) -> str:
    return f"torchtitan.models.{_TORCHTITAN_PACKAGES.get(model_type, model_type)}"


def transformers_module(model_type: str) -> str:
    return f"transformers.models.{model_type}.modeling_{model_type}"


def hf_names(
    model: torch.nn.Module, known: Collection[str]
) -> Callable[[Tensors], Tensors] | None:
    """Maps a model's tensors to the names of transformers' files; None if the names are the same.

    `known`: the names of the file. From version 5 on, transformers keeps the experts of a layer in
    one tensor in the module.
    """
    if not getattr(model, "_weight_conversions", None):
        return None
    loading = importlib.import_module("transformers.core_model_loading")
    beside = names_beside([model], known)

    def in_file(state: Tensors) -> Tensors:
        # What was dequantised while loading would get its names of the quantised file.
        kept = {name: value for name, value in state.items() if name in known}
        others = {n: v for n, v in state.items() if n not in known and n not in beside}
        return kept | loading.revert_weight_conversion(model, others) if others else kept

    return in_file


def hf_tensors(
    probe: Probe,
    modules: list[torch.nn.Module],
    whole: Callable[[Tensors], Tensors] | None = None,
) -> NamedTensors:
    """Of an engine that trains the HF model as it is. `whole`: gathers what ranks hold parts of."""
    known = probe.places.keys()
    return NamedTensors(modules, hf_names(modules[0], probe.buffer_names | known), known, whole)


def accepted(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The options whose names are in `names`."""
    known = set(names)
    return {name: value for name, value in options.items() if name in known}


class WrongShape(Exception):
    """What the subject returned cannot be what the probe asked for. This blames the subject."""


def checked_logits(logits: torch.Tensor, tokens: int, vocabulary: int) -> torch.Tensor:
    """The whole logits [T, vocabulary] in fp32. An engine may pad the vocabulary: there may be more."""
    if isinstance(logits, DTensor):  # tensor-parallel ranks hold a part of the vocabulary
        logits = logits.full_tensor()
    shape = tuple(logits.shape)
    if len(shape) != 2 or shape[0] != tokens or shape[1] < vocabulary:
        raise WrongShape(
            f"the model returned a tensor of shape {shape} for {tokens} tokens and a "
            f"vocabulary of {vocabulary}: these are no logits"
        )
    return logits.float()


def log_probs_of(
    logits: torch.Tensor,
    input_ids: torch.Tensor,
    vocabulary: int,
    temperature: float = 1.0,
    labels: torch.Tensor | None = None,
) -> torch.Tensor:
    """At flat position t, the fp32 log-prob of labels[t], or of token t+1. The last position's label is
    token 0."""
    logits = checked_logits(logits, len(input_ids), vocabulary) / temperature
    if labels is None:
        labels = torch.roll(input_ids, -1)
    return torch.log_softmax(logits, -1).gather(-1, labels[:, None]).squeeze(-1)


def entropy_of(
    logits: torch.Tensor, tokens: int, vocabulary: int, temperature: float = 1.0
) -> torch.Tensor:
    """The fp32 entropy of each token's distribution, in nats."""
    log_probs = torch.log_softmax(checked_logits(logits, tokens, vocabulary) / temperature, -1)
    return -(log_probs.exp() * log_probs).sum(-1)


def sft_loss(log_probs: torch.Tensor, loss_mask: torch.Tensor, tokens: int) -> torch.Tensor:
    """verl's SFT loss (workers/utils/losses.py) on one data-parallel rank.

    `tokens`: how many tokens of the whole batch count.
    """
    weights = torch.roll(loss_mask, -1)
    return -(log_probs * weights).sum() / tokens
