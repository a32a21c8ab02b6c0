# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What the ranks saw, as one observation.

Each rank reports in terms of the whole batch: log-probs, relations and reached positions cover all
documents, with nothing at those of other ranks. Gradients and parameters are those that the first
rank assembled (`gather.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch

from bkm_cell.ranks.gather import largest_difference
from bkm_cell.ranks.share import digest_of
from bkm_cell.report import Report
from bkm_cell.tensor_file import load_file, save_file

Facts = dict[str, Any]
Tensors = dict[str, torch.Tensor]

MOST_DIFFERENCES = 20
_BATCH = "batch/"  # of a step that a trainer made
_OUTSIDE, _RESIDUAL = f"{_BATCH}outside", f"{_BATCH}residual"
_OF_EACH_RANK = ("data_rank", "data_ranks", "documents", "collectives", "part")
_FORWARDS = {"forward_only": "forward", "forward_in_fp32": "forward in fp32"}  # by their fact
_OF_ATTENTION = (
    *("layers", "called", "ops", "kernels"),
    *("gpu_reads", "gpu_differences", "kernel_calls"),
)


def merge_facts(into: Facts, more: Facts) -> None:
    """As the worker merges a cell's facts: objects key by key, anything else is replaced."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge_facts(into[key], value)
        else:
            into[key] = value


class Merge:
    """Takes the events of all ranks; passes on what stands for the cell."""

    def __init__(self, ranks: int, folder: str, report: Report) -> None:
        """`folder`: the cell's; each rank's tensors lie in tensors/rankN below it."""
        self._ranks = ranks
        self._folder = folder
        self._report = report
        self._facts: list[Facts] = [{} for _ in range(ranks)]
        self._steps: dict[tuple[str, int], dict[int, Facts]] = {}
        self._told: set[str] = set()
        self._warnings: set[str] = set()
        self._differences: list[Facts] = []

    def facts(self, rank: int) -> Facts:
        return self._facts[rank]

    def set(self, rank: int, facts: Facts) -> None:
        merge_facts(self._facts[rank], facts)
        if rank == 0:
            self._report.set(**self._of_one_rank(facts))
        for name in _FORWARDS:
            if name in facts:
                self._merge_forwards(name)
        if "mask" in facts:
            self._merge_masks()

    def append(self, rank: int, facts: Facts) -> None:
        for name, value in facts.items():
            if name in ("steps", "resumed"):
                self._add_step(name, rank, value)
            elif name == "rank_differences":
                self._differ(value["when"], value["name"], value["rank"], value["largest"])
            elif name == "warnings":
                if value not in self._warnings:
                    self._warnings.add(value)
                    self._report.append(warnings=value)
            elif rank == 0:
                self._report.append(**{name: value})

    def of_rank(self, rank: int) -> Facts:
        """What a rank saw that is not in the merged observation."""
        mine = self._facts[rank]
        facts = {key: mine[key] for key in _OF_EACH_RANK if key in mine}
        if rank > 0:
            facts["backend"] = {
                key: value
                for key, value in (mine.get("backend") or {}).items()
                if key in _OF_ATTENTION
            }
            if ran := (mine.get("adapter") or {}).get("precision_ran"):
                facts["precision_ran"] = ran
        return facts

    def differences(self) -> list[Facts]:
        return self._differences

    def _of_one_rank(self, facts: Facts) -> Facts:
        """Without what is merged, or told for each rank."""
        kept = {
            key: value
            for key, value in facts.items()
            if key not in (*_FORWARDS, *_OF_EACH_RANK)
        }
        for value in kept.values():
            name = value.get("tensors") if isinstance(value, dict) else None
            if name is not None and os.path.dirname(name) != "tensors":
                raise RuntimeError(f"bkm reports {name} and merges it nowhere")
        if "mask" in kept:
            merged = ("reach", "reaches", "attended", "attended_error")
            kept["mask"] = {k: v for k, v in kept["mask"].items() if k not in merged}
        return kept

    def _of_all(self, *path: str) -> list[Any] | None:
        """The value of each rank; None as long as one has none."""
        values = []
        for facts in self._facts:
            value: Any = facts
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if value is None:
                return None
            values.append(value)
        return values

    def _once(self, name: str) -> bool:
        is_new = name not in self._told
        self._told.add(name)
        return is_new

    def _files(self, files: Iterable[str]) -> list[Tensors]:
        """Reads each rank's tensors and removes the files."""
        read = []
        for rank, file in enumerate(files):
            path = os.path.join(self._folder, "tensors", f"rank{rank}", os.path.basename(file))
            read.append(load_file(path))
            os.remove(path)
        return read

    def _save(self, tensors: Tensors, file: str) -> str:
        """Returns the name by which facts call it."""
        path = os.path.join(self._folder, "tensors", file)
        save_file(tensors, path)
        return self._report.written(path)

    def _merge_forwards(self, forward: str) -> None:
        files = self._of_all(forward, "tensors")
        if files is None or not self._once(forward):
            return
        read = self._files(files)
        names = [
            name for name in ("log_probs", "entropy") if all(name in tensors for tensors in read)
        ]
        merged = {name: self._of_tokens(name, read, _FORWARDS[forward]) for name in names}
        file = self._save(merged, f"{forward}.safetensors")
        types = {f"{name}_dtype": self._facts[0][forward][f"{name}_dtype"] for name in names}
        self._report.set(**{forward: {"tensors": file, **types}})

    def _merge_masks(self) -> None:
        reaches = self._of_all("mask", "reach")
        if reaches is not None and self._once("reach"):
            self._report.set(mask={"reach": _reached(reaches)})
        more = self._of_all("mask", "reaches")
        if more is not None and self._once(f"reaches {min(map(len, more))}"):
            self._report.set(mask={"reaches": [_reached(list(one)) for one in zip(*more)]})
        errors = [
            f"rank {rank}: {error}"
            for rank, facts in enumerate(self._facts)
            if (error := (facts.get("mask") or {}).get("attended_error"))
        ]
        if errors:
            if self._once("attended_error"):
                self._report.set(mask={"attended_error": errors[0][:500]})
            return
        layers = self._of_all("mask", "attended")
        if layers is not None and self._once("attended"):
            tensors = self._files(["attended.safetensors"] * self._ranks)
            merged, relations = _seen_by_any(layers, tensors, prefix="")
            self._save(relations, "attended.safetensors")
            self._report.set(mask={"attended": merged})

    def _of_tokens(self, name: str, read: list[Tensors], when: str) -> torch.Tensor:
        """[T] of the whole batch. Ranks that share documents must have computed the same."""
        first = read[0]
        merged, owner = first[name].clone(), first["owned"].to(torch.int16) - 1
        for rank, tensors in enumerate(read):
            mine = tensors["owned"].bool()
            fresh = mine & (owner == -1)
            merged[fresh] = tensors[name][fresh]
            shared = mine & ~fresh
            owner[fresh] = rank
            if rank == 0:
                continue
            self._compare(when, name, rank, merged[shared], tensors[name][shared])
        return merged

    def _compare(
        self, when: str, name: str, rank: int, one: torch.Tensor, other: torch.Tensor
    ) -> None:
        """Notes a difference between this rank's tensor and that of an earlier rank."""
        if one.shape != other.shape:
            self._differ(when, name, rank)
        elif (largest := largest_difference(one, other)) is not None:
            self._differ(when, name, rank, largest)

    def _differ(self, when: str, name: str, rank: int, largest: float | None = None) -> None:
        """`largest`: None for another shape, or a tensor that not all ranks have."""
        if len(self._differences) < MOST_DIFFERENCES:
            difference = {"when": when, "name": name, "rank": rank, "largest": largest}
            self._differences.append(difference)

    def _add_step(self, name: str, rank: int, facts: Facts) -> None:
        step = int(facts["step"])
        arrived = self._steps.setdefault((name, step), {})
        arrived[rank] = facts
        if len(arrived) == self._ranks:
            ordered = [arrived[each] for each in range(self._ranks)]
            self._report.append(**{name: self._merged_step(name, step, ordered)})

    def _merged_step(self, name: str, step: int, ranks: list[Facts]) -> Facts:
        when = f"{'step' if name == 'steps' else 'resumed step'} {step + 1}"
        file = os.path.basename(ranks[0]["tensors"])
        read = self._files(facts["tensors"] for facts in ranks)
        merged = dict(ranks[0])
        tensors = {key: value for key, value in read[0].items() if _is_of_the_model(key)}
        if all("log_probs" in own for own in read):
            tensors["log_probs"] = self._of_tokens("log_probs", read, when)
        merged["loss"] = self._loss([facts.get("loss") for facts in ranks])
        reported = {rank: facts.get("grad_norm") for rank, facts in enumerate(ranks)}
        norms = {rank: norm for rank, norm in reported.items() if norm is not None}
        merged["grad_norm"] = next(iter(norms.values()), None)
        if len(set(norms.values())) > 1:
            merged["grad_norms"] = list(reported.values())
            for rank, norm in norms.items():
                if norm != merged["grad_norm"]:
                    self._differ(when, "grad_norm", rank, abs(norm - merged["grad_norm"]))
        errors = [
            f"rank {rank}: {facts['attended_error']}"
            for rank, facts in enumerate(ranks)
            if "attended_error" in facts
        ]
        merged.pop("attended", None)
        if errors:
            merged["attended_error"] = errors[0][:500]
        elif all("attended" in facts for facts in ranks):
            layers, relations = _seen_by_any(
                [facts["attended"] for facts in ranks], read, prefix="relation/"
            )
            merged["attended"] = layers
            tensors |= {f"relation/{digest}": relation for digest, relation in relations.items()}
        if all("batch/input_ids" in own for own in read):
            tensors |= _batch_of_all(read)
            of_all = [facts.get("documents") for facts in ranks]
            merged.pop("documents", None)
            if None not in of_all:
                merged["documents"] = [document for own in of_all for document in own]
        merged["of_ranks"] = [
            {
                name: facts.get(name)
                for name in ("forwards", "attention_nodes", "loss", "documents")
                if name != "documents" or name in facts
            }
            for facts in ranks
        ]
        merged["tensors"] = self._save(tensors, file)
        return merged

    def _loss(self, losses: list[float | None]) -> float | None:
        """The mean over data-parallel ranks, as verl's trainer logs it: each rank multiplies its sum
        by their number. Ranks that share documents report the same; the first counts."""
        by_data_rank: dict[int, float] = {}
        for rank, loss in enumerate(losses):
            data_rank = int(self._facts[rank].get("data_rank", 0))
            if loss is not None:
                by_data_rank.setdefault(data_rank, loss)
        return sum(by_data_rank.values()) / len(by_data_rank) if by_data_rank else None


def _batch_of_all(ranks: list[Tensors]) -> Tensors:
    """What a trainer gave to each rank, one rank after another."""
    joined = {
        name: torch.cat([own[name] for own in ranks])
        for name in ranks[0]
        if name.startswith(_BATCH) and name not in (_OUTSIDE, _RESIDUAL)
    }
    joined[_OUTSIDE] = torch.stack([own[_OUTSIDE] for own in ranks]).sum(0)
    joined[_RESIDUAL] = torch.stack([own[_RESIDUAL] for own in ranks]).amax(0)
    return joined


def _is_of_the_model(key: str) -> bool:
    """Whether a tensor of a step's file stands for all ranks."""
    return key not in ("log_probs", "owned") and not key.startswith(("relation/", _BATCH))


def _reached(ranks: list[Facts]) -> Facts:
    """The positions that moved on any rank."""
    moved: dict[int, float] = {}
    for reach in ranks:
        for position, largest in zip(reach["moved"], reach["largest"], strict=True):
            value = float("nan") if largest is None else largest
            moved[position] = max(moved.get(position, 0.0), value)
    places = sorted(moved)
    return {
        "position": ranks[0]["position"],
        "moved": places,
        "largest": [moved[place] for place in places],
    }


def _seen_by_any(
    layers: list[list[Facts]], tensors: list[Tensors], prefix: str
) -> tuple[list[Facts], Tensors]:
    """Per layer: a query attends to a key if it does on any rank. Ranks may have other layers."""
    of_layer: dict[int, torch.Tensor] = {}
    for own, read in zip(layers, tensors, strict=True):
        for call in own:
            relation = read[prefix + call["relation"]]
            seen = of_layer.get(call["layer"])
            of_layer[call["layer"]] = relation if seen is None else seen | relation
    relations: Tensors = {}
    merged = []
    for layer, relation in sorted(of_layer.items()):
        digest = digest_of(relation)
        relations[digest] = relation
        merged.append({"layer": layer, "relation": digest})
    return merged, relations
