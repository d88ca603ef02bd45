"""`python -m research.speed.kills`: a library is killed at random moments of its work; nothing answered may be lost.

Each round a process adds cases, labels them, imports a backup and merges files, while its threads search and learn in
the background. It reports every call that it begins and ends, and is killed with SIGKILL at a random moment. The
library is then opened as it was left. What was reported as done must be there; the call in flight is there whole or not
at all; the journal is in order; and `readbench cases check` finds no damage.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from readbench.cases import Library, _learning, check_library, export_library, import_library
from research.speed.library import synthetic

ROUNDS, CALL, SHAPE = 100, 5, (3, 32)
LONGEST_S = 2.0
METHOD = "rocket(features=504)+verdict"
LABELS = ("worn", "leak", "stuck")


def main() -> None:
    """Kill and check, or be the process that is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs=3, metavar=("LIBRARY", "BACKUP", "ROUND"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(Path(given.work[0]), Path(given.work[1]), int(given.work[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for told in kill_rounds(Path(folder), given.rounds, given.seed):
            sys.stdout.write(f"{told}\n")


def work(where: Path, backup: Path, number: int) -> None:
    """Change a library until killed, while threads search and learn; a line when a call begins and one when it ends."""
    _learning.QUICK_S = -1.0  # everything is learned in the background
    library = Library.open(where, background=True)
    asked = next(synthetic(4, SHAPE, seed=3))
    library.search(asked[:1], method=METHOD)
    threading.Thread(target=_search, args=(library, asked), daemon=True).start()
    names = [case.id for case in library.cases()][-50:]
    rng = np.random.default_rng(number)
    _say({"ready": True})
    for step in range(10_000):
        kind = ("add", "label", "label", "import", "optimise")[step % 5]
        if kind == "add":
            block = next(synthetic(CALL, SHAPE, seed=1000 * number + 10 + step))
            own = block.ids.tolist()
            _call({"add": own}, partial(library.add, block))
            names += own
        elif kind == "label":
            name, label = str(rng.choice(names)), str(rng.choice(LABELS))
            _call({"label": name, "as": label}, partial(library.label, name, label))
        elif kind == "import" and step < 5:
            _call({"import": str(backup)}, lambda: import_library(library, backup))
        elif kind == "optimise":
            _call({"optimise": True}, lambda: _optimise(library))


def _optimise(library: Library) -> None:
    with library.store.writing():
        library.store.optimise()


def _search(library: Library, asked: Any) -> None:  # noqa: ANN401 - windows
    while True:
        for window in asked.blocks(1):
            library.search(window, method=METHOD)


def _call(told: dict[str, Any], call: Callable[[], object]) -> None:
    _say({"begins": told})
    call()
    _say({"done": told})


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


@dataclass
class _Promised:
    """What a library said that it has done.

    Args:
        cases: names.
        labels: by name.
        whole: names that came in one call, which are there together or not at all.
    """

    cases: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    whole: list[set[str]] = field(default_factory=list)

    def note(self, lines: list[dict[str, Any]], backups: dict[str, set[str]]) -> dict[str, Any]:
        """Take in what a process reported; returns the call in flight."""
        flying: dict[str, Any] = {}
        for line in lines:
            told = line.get("begins") or line.get("done") or {}
            if "begins" in line:
                flying = told
                names = backups.get(told.get("import", ""), set(told.get("add", ())))
                self.whole += [names] if names else []
            if "done" in line:
                flying = {}
                self.cases |= backups.get(told.get("import", ""), set(told.get("add", ())))
                if "label" in told:
                    self.labels[told["label"]] = told["as"]
        return flying

    def find_loss(self, library: Library, flying: dict[str, Any]) -> str:
        """What a library has lost; "" where nothing."""
        known = {case.id: case for case in library.cases()}
        if missing := self.cases - set(known):
            return f"{len(missing)} cases that were reported are gone: {sorted(missing)[:3]}"
        for name, label in self.labels.items():
            admitted = {label, flying["as"]} if flying.get("label") == name else {label}
            if known[name].label not in admitted:
                return f"{name} was labelled {label!r} and is {known[name].label!r}"
        if flying.get("label") in known:
            self.labels[flying["label"]] = known[flying["label"]].label or ""
            if not self.labels[flying["label"]]:
                del self.labels[flying["label"]]
        for names in self.whole:
            if names & set(known) and not names <= set(known):
                return f"a call is there in part: {sorted(names & set(known))[:3]}"
        self.cases |= set(known)
        return _find_disorder(library)


def _find_disorder(library: Library) -> str:
    """What is out of order in a journal, or damaged; "" where nothing."""
    rows = library.store.journal().sort_by("step").select(["step", "change", "stamp"]).to_pydict()
    if rows["step"] != list(range(len(rows["step"]))):
        return "the steps of the journal have gaps"
    if sorted(rows["change"]) != rows["change"] or sorted(rows["stamp"]) != rows["stamp"]:
        return "the changes of the journal are not in order"
    library.snapshot().windows(range(len(library))).require_finite()
    found = check_library(library.store.where).findings
    return f"check finds: {found[0]}" if found else ""


def kill_rounds(folder: Path, rounds: int, seed: int = 0) -> Iterator[str]:
    """Kill again and again, and say what happened; raises at the first loss.

    Args:
        folder: empty; the library and backups are made there.
        rounds: kills.
        seed: of the moments.
    """
    where = folder / "library"
    first = Library.create(where)
    first.add_normals(next(synthetic(12, SHAPE, seed=1, fault=False)))
    first.add(next(synthetic(30, SHAPE, seed=2)))
    rng, promised, backups = np.random.default_rng(seed), _Promised(), dict[str, set[str]]()
    for number in range(1, rounds + 1):
        backup = folder / f"{number}.parquet"
        backups[str(backup)] = _make_backup(folder / f"made-{number}", backup, number)
        moment = float(rng.uniform(0, LONGEST_S))
        lines = _killed(where, backup, number, moment)
        flying = promised.note(lines, backups)
        library = Library.open(where)
        if loss := promised.find_loss(library, flying):
            raise RuntimeError(f"Round {number}, killed after {moment:.2f} s during {flying or 'nothing'}: {loss}.")
        done = sum("done" in line for line in lines)
        yield f"{number}: killed after {moment:.2f} s, {done} calls done, during {next(iter(flying), 'none')}"


def _make_backup(where: Path, path: Path, number: int) -> set[str]:
    """A file with a few cases of names of their own."""
    library = Library.create(where)
    block = next(synthetic(CALL, SHAPE, seed=500_000 + number))
    library.add(block)
    export_library(library, path)
    return set(block.ids.tolist())


def _killed(where: Path, backup: Path, number: int, moment: float) -> list[dict[str, Any]]:
    """What a process reported before it was killed, some seconds after it began to work."""
    command = [sys.executable, "-m", "research.speed.kills", "--work", str(where), str(backup), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - ourselves
        if process.stdout is None:
            raise RuntimeError("the process has no output")
        if b"ready" not in process.stdout.readline():
            raise RuntimeError("the process did not begin")
        time.sleep(moment)
        process.kill()
        whole = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    return [json.loads(line) for line in whole]


if __name__ == "__main__":
    main()
