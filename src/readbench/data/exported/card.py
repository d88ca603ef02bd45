"""The dataset card: what a stranger must know before using an exported task."""

from __future__ import annotations

import json
from typing import Any

import readbench
from readbench.data.task import Task

HUB_LICENCES = {
    "Apache-2.0": "apache-2.0",
    "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0",
    "CC-BY-SA-4.0": "cc-by-sa-4.0",
    "CC-BY-4.0": "cc-by-4.0",
    "CC0-1.0": "cc0-1.0",
    "GPL-3.0": "gpl-3.0",
    "MIT": "mit",
    "ODC-By-1.0": "odc-by",
}
"""Names of licences on the Hugging Face Hub."""


def card(task: Task, configs: list[dict[str, Any]], *, private: bool) -> str:
    """The text of README.md: facts for programs on top, then for people."""
    info = task.info
    warning = "\n**Private copy.** It is not established that these data may be passed on.\n" if private else ""
    simulated = " All values are simulated." if info.simulated else ""
    facts = "\n".join(f"| {name} | {text} |" for name, text in _facts(task).items())
    levels = ",".join(map(str, sorted(task.levels)))
    return f"""---
{_front(task, configs)}
---

# {info.title}: a retrieval task of READ-Bench
{warning}
Given a new fault (a query), find windows with the same fault in a corpus of resolved ones, polluted with normal windows
to several degrees.

{info.description}{simulated}

| | |
|---|---|
{facts}

## Licence, attribution, citation

* Licence: {info.licence}.
* Please cite: {info.citation}.
* Original data: {info.url or "made by readbench"}.
* Changes: recordings were cleaned, cut into windows and divided as above.

## Use

`readbench data import NAME FOLDER` makes it a dataset again. At `--rho {levels}` it has the fingerprint above, and
every method the same scores.
"""


def _facts(task: Task) -> dict[str, str]:
    info, protocol = task.info, task.info.protocol
    name, seed = task.origin or (info.name, task.seed)
    asked = sorted(set(task.queries.labels.tolist()))
    cut = f"{protocol.length or 'native length'}, stride {protocol.stride or protocol.length or 'none'}"
    return {
        "dataset, split seed": f"`{name}`, {seed}",
        "corpus": ", ".join(f"{len(items)} (ρ = {rho} %)" for rho, items in sorted(task.levels.items())),
        "queries": str(len(task.queries)),
        "normals outside the corpus": str(len(task.normals)),
        "classes of the queries": ", ".join(info.classes[label] for label in asked),
        "steps of a window": cut,
        "labelled by": protocol.label_rule,
        "split unit": info.split_unit,
        "fingerprint": f"`{task.fingerprint()}`",
        "made by": f"readbench {readbench.__version__}",
    }


def _front(task: Task, configs: list[dict[str, Any]]) -> str:
    """YAML; strings and lists are written as JSON, which YAML reads."""
    licence = next((hub for name, hub in HUB_LICENCES.items() if task.info.licence.startswith(name)), "other")
    lines = [f"license: {licence}"]
    if licence == "other":
        lines.append(f"license_name: {json.dumps(task.info.licence)}")
    lines += [
        f"pretty_name: {json.dumps(f'READ-Bench {task.info.title}', ensure_ascii=False)}",
        'tags: ["time-series", "retrieval", "fault-diagnosis"]',
    ]
    if configs:
        lines += ["configs:", *(f"- {json.dumps(config)}" for config in configs)]
    return "\n".join(lines)
