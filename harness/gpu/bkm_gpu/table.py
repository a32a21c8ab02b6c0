# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""The comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def _line(values: Iterable[Any]) -> str:
    return "| " + " | ".join(str(v).replace("|", "\\|").replace("\n", " ") for v in values) + " |\n"


def _table(head: list[str], rows: Iterable[Iterable[Any]]) -> str:
    return _line(head) + _line("---" for _ in head) + "".join(map(_line, rows)) + "\n"


def _number(value: Any) -> str:
    return "not finite" if value is None else f"{value:.2e}"


def _apart(found: Mapping[str, Any]) -> str:
    """One comparison in a few words."""
    if not found["steps"]:
        return "nothing to compare"
    if found["bit_equal"]:
        return "every bit equal"
    log_probs, gradient = _number(found["log_probs"]), _number(found["gradient"])
    return f"log-probs {log_probs}, gradient {gradient}"


def _verdict(found: Mapping[str, Any]) -> str:
    if not found.get("verdict"):
        return "not judged"
    why = found.get("reason")
    return f"{found['verdict']} at {found.get('stage')}, {why}" if why else str(found["verdict"])


def _names(cell: Mapping[str, Any]) -> list[Any]:
    return [cell["library"], cell["model"], cell["attention"], cell["precision"]]


_CELL = ["library", "model", "attention", "precision"]


def _machine(whole: Mapping[str, Any]) -> str:
    facts = whole["machine"]
    device = facts["devices"][0]["name"] if facts["devices"] else f"CPU ({facts['machine']})"
    lines = [
        ("device", device),
        ("driver", facts.get("driver", "none")),
        ("torch", facts["torch"]),
        ("CUDA of torch, cuDNN", f"{facts.get('torch_cuda')}, {facts.get('cudnn')}"),
        ("triton", facts.get("triton")),
        ("transformers", facts.get("transformers")),
        ("Python", facts["python"]),
        ("kernel", facts["kernel"]),
        ("date", whole["date"]),
        ("sandbox", whole["sandbox"]),
        ("pack", whole["pack_sha256"][:16]),
    ]
    return _table(["machine", ""], lines)


def _cells(whole: Mapping[str, Any]) -> str:
    rows = []
    for cell in whole["cells"]:
        again = "; ".join(map(_apart, cell["same_again"])) or "not run again"
        against = cell["against_cpu"]
        mask = {True: "the same", False: "**differs**", None: "not seen"}[against["same_attention"]]
        verdicts = [_verdict(cell["verdict"]), _verdict(cell["verdict_on_cpu"])]
        rows.append([*_names(cell), cell["ending"], *verdicts, again, _apart(against), mask])
    head = [*_CELL, "ending", "verdict", "on the CPU", "same run again", "against the CPU", "who attends to whom"]
    return _table(head, rows)


def _times(whole: Mapping[str, Any]) -> str:
    rows = []
    for cell in whole["cells"]:
        measures = cell["measures"] or {}
        if "median_s" not in measures:
            continue
        memory = measures.get("memory", {})
        mib = memory.get("peak_allocated_mib", memory.get("peak_resident_mib", "?"))
        seconds = measures["step_seconds"]
        spread = f"{1000 * min(seconds):.2f} to {1000 * max(seconds):.2f}"
        rows.append([*_names(cell), f"{1000 * measures['median_s']:.2f}", spread, measures["tokens"], mib])
    if not rows:
        return "No cell was timed.\n\n"
    return _table([*_CELL, "step, ms (median)", "range", "tokens", "peak memory, MiB"], rows)


def _kernel_lines(cell: Mapping[str, Any]) -> list[list[Any]]:
    """One line for each set of layers that run the same kernels in a phase."""
    found = ((cell["measures"] or {}).get("kernels") or {}).get("layers", [])
    alike: dict[tuple[str, tuple[tuple[str, int], ...]], list[int]] = {}
    for entry in found:
        kernels = tuple(sorted(entry["kernels"].items()))
        alike.setdefault((entry["phase"], kernels), []).append(entry["layer"])
    lines = []
    for (phase, kernels), layers in sorted(alike.items(), key=lambda one: (one[0][0] == "backward", one[1])):
        names = ", ".join(f"`{name[:120]}` x{count}" for name, count in kernels)
        lines.append([*_names(cell), phase, " ".join(map(str, layers)), names])
    return lines


def _kernels(whole: Mapping[str, Any]) -> str:
    lines = [line for cell in whole["cells"] for line in _kernel_lines(cell)]
    if not lines:
        return "No kernel was seen.\n\n"
    return _table([*_CELL, "phase", "layers", "kernels"], lines)


def _attentions(whole: Mapping[str, Any]) -> str:
    rows = [
        [pair["library"], pair["model"], pair["precision"], " and ".join(pair["attentions"]), _apart(pair)]
        for pair in whole["attentions"]
    ]
    return _table(["library", "model", "precision", "attentions", "largest difference"], rows)


def _probes(whole: Mapping[str, Any]) -> str:
    found = whole["attention_probes"]
    if "probes" not in found:
        return f"The probes of the kernels gave no answer: {found.get('error')}\n\n"
    said = {True: "yes", False: "**no**", None: "nothing is promised"}
    rows = [[p["probe"], said[p.get("as_documented")], p["seen"]] for p in found["probes"]]
    return _table(["probe", "as documented", "seen"], rows)


def markdown(whole: Mapping[str, Any]) -> str:
    text = f"# Control cells on {whole['device_name']}, {whole['date']}\n\n"
    if whole["device"] != "cuda":
        text += "**These are results of a CPU. They test `ci/gpu`, and say nothing about a GPU.**\n\n"
    text += _machine(whole)
    text += "## Cells\nVerdicts are by the golden and by floors that were measured on a CPU. Differences are "
    text += "the largest of all steps: of a log-prob in nats, of a tensor's sampled gradient relative to "
    text += "its norm.\n\n"
    text += _cells(whole)
    if whole["not_run"]:
        text += "Not run, because the time was up: " + "; ".join(whole["not_run"]) + ".\n\n"
    failed = [cell for cell in whole["cells"] if cell["exception"]]
    text += "".join(f"- {' '.join(map(str, _names(c)))}: {c['exception']}\n" for c in failed)
    text += "\n" if failed else ""
    text += "## One attention against another\n" + _attentions(whole)
    text += "## Times and memory\nTraining steps without witnesses; the device is idle before and after "
    text += "each.\n\n" + _times(whole)
    text += "## Kernels of each layer's attention\n" + _kernels(whole)
    text += "## What the kernels do with their arguments\n" + _probes(whole)
    return text.rstrip("\n") + "\n"
