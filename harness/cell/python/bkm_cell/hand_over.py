# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The rungs after training, if the probe asks: what an engine gives to others, and to itself."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

import torch

from bkm_cell.adapters.base import Adapter, log_probs_of
from bkm_cell.probe import Batch, Probe
from bkm_cell.ranks.gather import Rank
from bkm_cell.ranks.share import Share
from bkm_cell.report import Report
from bkm_cell.tensor_file import dtype_name, save_file
from bkm_cell.witnesses.load import norm
from bkm_cell.witnesses.named_tensors import Tensors, gathered
from bkm_cell.witnesses.numbers import StepNumbers
from bkm_cell.witnesses.vocabulary import WithoutPadding

_STEPS_TRAINED = 1  # when weights are exported and a checkpoint is saved
_EXPORT = "exported"
_TYPES = (torch.float32, torch.bfloat16)
_CHECKPOINT = os.path.join("checkpoints", f"global_step_{_STEPS_TRAINED}")


def probe_tensors(adapter: Adapter, probe: Probe, rank: Rank | None) -> WithoutPadding:
    """The model's tensors as the probe's file has them."""
    tensors = adapter.tensors()
    if rank is not None:
        tensors.gather = rank.gather.whole
    return WithoutPadding(tensors, probe.shapes, probe.hf_config["vocab_size"])


def report_export(
    probe: Probe,
    report: Report,
    path: str,
    weights: Tensors,
    folder: Callable[[], str],
    batch: Batch,
) -> None:
    """What exported weights are, and what transformers computes with them of the batch that comes after
    the export. `path`: of the tensors that are kept. `folder`: gives the Hugging Face folder that holds
    the weights, if they can be in one."""
    facts: dict[str, Any] = {
        "weights": {
            name: {"dtype": dtype_name(value), "shape": list(value.shape), "norm": norm(value)}
            for name, value in weights.items()
        },
    }
    places = probe.places
    seen = {
        f"sample/{name}": value.flatten()[places[name]].float()
        for name, value in weights.items()
        if name in places and int(places[name].max()) < value.numel()
    }

    def tell() -> None:
        save_file(seen, path)
        report.set(export={"tensors": report.written(path), **facts})

    tell()
    if not weights or any(value.dtype not in _TYPES for value in weights.values()):
        return  # the types are reported, and are not what a folder of HF's has
    model, loading = importlib.import_module("transformers").AutoModelForCausalLM.from_pretrained(
        folder(), attn_implementation="eager", torch_dtype=torch.float32, output_loading_info=True
    )
    facts["missing"] = sorted(map(str, loading["missing_keys"]))
    facts["unexpected"] = sorted(map(str, loading["unexpected_keys"]))
    seen["log_probs"] = _log_probs(probe, model, batch)
    tell()


def _log_probs(probe: Probe, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Each document is alone, so no mask is needed."""
    model.eval()
    with torch.no_grad():
        logits = [
            model(input_ids=document[None], use_cache=False).logits[0]
            for document in batch.input_ids.split(batch.lengths)
        ]
    vocabulary = probe.hf_config["vocab_size"]
    return log_probs_of(torch.cat(logits), batch.input_ids, vocabulary, probe.temperature)


class HandOver:
    """Exports weights and saves a checkpoint after the first step; uses both after the last.

    So the later steps show whether exporting or saving disturbs training. An exception after the
    first step is raised again in its own stage, at the end: it hides nothing of the training.
    """

    def __init__(
        self,
        probe: Probe,
        adapter: Adapter,
        report: Report,
        folder: str,
        share: Share,
        rank: Rank | None,
    ) -> None:
        self._probe = probe
        self._adapter = adapter
        self._report = report
        self._folder = folder  # of the tensor files
        # One rank exports for all: its file needs no merging.
        self._export_file = os.path.join(
            folder if rank is None else os.path.dirname(folder), "export.safetensors"
        )
        self._share = share
        self._rank = rank
        self._weights: Tensors = {}
        self._raised: dict[str, Exception] = {}

    def after_step(self, step: int) -> None:
        if step + 1 != _STEPS_TRAINED:
            return
        if self._probe.export_weights:
            self._try("export", self._export)
        if self._probe.resume_checkpoint:
            self._try("resume", self._save)

    def after_training(self) -> None:
        if self._probe.export_weights:
            self._report.stage("export")
            self._raise_of("export")
            if self._rank is None or self._rank.number == 0:
                self._read_export()
        if self._probe.resume_checkpoint:
            self._report.stage("resume")
            self._raise_of("resume")
            self._continue()

    def _try(self, stage: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self._raised[stage] = error

    def _raise_of(self, stage: str) -> None:
        if stage in self._raised:
            raise self._raised[stage]

    def _export(self) -> None:
        with torch.no_grad():
            self._weights = {
                name: gathered(value).cpu().clone() for name, value in self._adapter.exported()
            }

    def _read_export(self) -> None:
        batch = self._probe.batches[_STEPS_TRAINED]
        given = (self._export_file, self._weights, self._written_export, batch)
        report_export(self._probe, self._report, *given)
        shutil.rmtree(_EXPORT, ignore_errors=True)

    def _written_export(self) -> str:
        """The folder that somebody makes of the weights."""
        folder = os.path.abspath(_EXPORT)
        os.makedirs(folder)
        config = {k: v for k, v in self._probe.hf_config.items() if k != "quantization_config"}
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(config, file)
        # transformers refuses a file that does not say by what it was written.
        save_file(self._weights, os.path.join(folder, "model.safetensors"), {"format": "pt"})
        return folder

    def _save(self) -> None:
        folder = os.path.abspath(_CHECKPOINT)
        self._adapter.save_checkpoint(folder)
        files = sum(len(files) for _, _, files in os.walk(os.path.dirname(folder)))
        self._report.set(checkpoint_files=files)

    def _continue(self) -> None:
        folder = os.path.abspath(_CHECKPOINT)
        fresh = self._adapter.resumed(folder)
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)  # verl may have removed it
        with StepNumbers(
            self._probe,
            probe_tensors(fresh, self._probe, self._rank),
            self._folder,
            self._report,
            resumed=True,
        ) as numbers:
            for step in range(_STEPS_TRAINED, len(self._probe.batches)):
                start = time.monotonic()
                if self._rank is not None:
                    self._rank.gather.when = f"resumed step {step + 1}"
                batch = self._probe.batches[step]
                outcome = fresh.train_step(self._share.of(batch))
                facts = {"loss": outcome.loss, "grad_norm": outcome.grad_norm}
                numbers.finish(
                    step,
                    facts,
                    self._share.whole(batch, outcome.log_probs),
                    time.monotonic() - start,
                    self._share.beside(batch),
                )
