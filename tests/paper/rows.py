"""Every row of the paper's result tables by its name in the grammar, run on a small task.

`rows.csv` has the rows as the paper prints them: table, row, column (where that names a part of the method) and method.
`frozen.csv` has what each method scores here. `python -m tests.paper.rows` writes it anew, for when a number is meant
to change. The pretrained networks have random weights in the true formats; CHARM, whose weights are not public, is an
exported program of its width. Models are asked over the wire, through the profiles that the package ships.
"""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

import readbench
from readbench.benchmark.protocol import Composition, Task, load_task
from tests.engine.encoders.checkpoints import write_chronos, write_mantis, write_program, write_tirex
from tests.engine.llm.server import KEYS, Answered, Asked, serving, write_profiles

HERE = Path(__file__).parent
ROWS, FROZEN = HERE / "rows.csv", HERE / "frozen.csv"
LEVELS = (0, 20)
ASKED = 3
"""Queries about which models are asked to rerank."""
MODELS = {"claude": "bedrock", "chatts": "chatts-http", "toto": "toto-http"}
NETWORKS: dict[str, Callable[[Path], Path]] = {
    "paris-noah/MantisV2": write_mantis,
    "amazon/chronos-2": write_chronos,
    "NX-AI/TiRex": write_tirex,
}


def read_rows() -> list[dict[str, str]]:
    """The rows of the paper's tables."""
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def methods() -> list[str]:
    """Each method once, in the paper's order."""
    return list(dict.fromkeys(row["method"] for row in read_rows()))


def read_frozen() -> dict[str, list[float]]:
    """Method -> NDCG@10 at each level; of a method that asks a model at the first, which is all the paper has."""
    with FROZEN.open(newline="") as file:
        return {
            row["method"]: [float(row[f"rho_{rho}"]) for rho in LEVELS if row[f"rho_{rho}"]]
            for row in csv.DictReader(file)
        }


@lru_cache(maxsize=1)
def task() -> Task:
    """Few windows of a simulated plant, more of them normal at the second level."""
    return load_task("sim_tanks(runs=60)", settings=Composition(corpus_cap=40, query_cap=12, rho=LEVELS))


@lru_cache(maxsize=1)
def small_task() -> Task:
    """Windows of two channels, for methods that draw each."""
    return load_task("sim_ecg(runs=24)", settings=Composition(corpus_cap=40, query_cap=12, rho=(0,)))


def write_networks(root: Path, names: Sequence[str]) -> None:
    """Weights where `READBENCH_MODELS=root` finds them."""
    for name in names:
        NETWORKS[name](root / name)


def charm(root: Path, method: str) -> str:
    """A method with a file in place of CHARM's weights."""
    folder = root / "charm"
    if not folder.is_dir():
        write_program(folder, name="charm")
    return re.sub(r"^charm\b", f"charm(weights={folder})", method)


def measure(method: str) -> list[float]:
    """NDCG@10 at each level; models are asked to rerank for a few queries only."""
    used = small_task() if "model=" in method else task()
    if "llm(" in method:
        used = replace(used, queries=used.queries[:ASKED])
    return list(readbench.evaluate(method, used, metrics="NDCG@10")["NDCG@10"].values())


@contextmanager
def models() -> Iterator[None]:
    """A server that stands for all models, asked as the package's profiles of the paper say."""
    with serving(answer) as loopback, pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        patch.setenv("NO_PROXY", "127.0.0.1")
        profiles = {
            name: {"like": f"paper-{name}", "base_url": loopback.base(provider), "backoff_s": 0, "max_series": 1000}
            for name, provider in MODELS.items()
        }
        patch.setenv("READBENCH_LLM", str(write_profiles(Path(folder) / "llm.toml", profiles)))
        yield


def answer(asked: Asked) -> Answered:
    """The best candidates last in a list; else a number that follows from the class that a candidate or example has."""
    if "ranked_ids" in asked.text:
        ids = re.findall(r"^CANDIDATE (sample_\d+)", asked.text, re.MULTILINE)
        return Answered(json.dumps({"ranked_ids": ids[::-1]}))
    if options := re.findall(r'^(\d+): (".*")$', asked.text, re.MULTILINE):
        return Answered(json.dumps({"scores": {number: zlib.crc32(name.encode()) % 101 for number, name in options}}))
    (name,) = re.findall(r"drawn from the class: (.*)\. This", asked.text)
    number = zlib.crc32(name.encode()) % 101
    if "similarity" in asked.text and "match" not in asked.text.partition("Respond")[2]:
        return Answered(json.dumps({"similarity": number}))
    return Answered(json.dumps({"match": "yes", "confidence": number}))


def freeze() -> None:
    """Write what every method scores now."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        os.environ |= {"READBENCH_CACHE": str(root / "cache"), "READBENCH_MODELS": str(root)}
        write_networks(root, list(NETWORKS))
        with models(), FROZEN.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("method", *(f"rho_{rho}" for rho in LEVELS)))
            for method in methods():
                scores = measure(charm(root, method))
                writer.writerow((method, *(f"{value:.4f}" for value in scores), *[""] * (len(LEVELS) - len(scores))))


if __name__ == "__main__":
    freeze()
