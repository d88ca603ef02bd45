"""Write the golden and packed files: what the package in use says, and the files it leaves behind.

```
python -m tests.frozen.make FOLDER      # FOLDER/golden, FOLDER/packed; move them here to freeze another state
```

The files beside this module were written by version 0.1 before its modules were moved, those of the run on real data
and of the report before the package was made smaller. They are not to be written
anew where a change of numbers was not meant; a change that was meant goes into `EXCEPTIONS` of `test_frozen.py` first.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.frozen import recipes
from tests.frozen.recipes import environment, keyed, pack, readbench

CHANNELS = ("flow", "pressure", "heat")
STEPS = 32
FAULTS = ("leak", "jam", "drift", "surge")
RARE = "crack"
"""A type that one case has, so that the estimate of types nobody has seen has something to go by."""
OPEN = range(92, 100)
"""Cases that nobody resolved."""
MISLABELLED = {20: "jam", 41: "leak", 62: "surge"}


def main(target: Path) -> None:
    """Write everything into a folder."""
    golden, packed = target / "golden", target / "packed"
    for folder in (golden, packed):
        folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        with environment(READBENCH_CACHE=work / "cache", READBENCH_IMPORTED=work / "imported"):
            freeze_runs(work, golden)
            freeze_real_run(work, golden)
            freeze_report(work, packed)
            freeze_library(work, golden, packed)
            freeze_imported(work, golden, packed)
            freeze_plugin(work, golden)
        with environment(READBENCH_CACHE=work / "tiny-cache", READBENCH_IMPORTED=work / "none"):
            freeze_tiny_run(work, golden, packed)


def freeze_runs(work: Path, golden: Path) -> None:
    """Scores, rankings and opinions of every family of methods."""
    for name in recipes.RUNS:
        folder = work / f"run-{name}"
        recipes.run(folder, name)
        keep_run(folder, golden, name)


def freeze_real_run(work: Path, golden: Path) -> None:
    """A run on real data, where READBENCH_DATA names it."""
    readbench("run", *recipes.REAL_RUN, "--out", work / "real")
    keep_run(work / "real", golden, "real")


def freeze_report(work: Path, packed: Path) -> None:
    """What a report reads of two runs, and its tables."""
    runs = work / "reported"
    for name, options in recipes.REPORTED.items():
        readbench("run", "--datasets", recipes.DATASETS, *options, "--out", work / name)
        (runs / name).mkdir(parents=True)
        for file in recipes.REPORT_READS:
            shutil.copy(work / name / file, runs / name)
    pack(runs, packed / "reported.tar.xz")
    for name, content in recipes.report(runs).items():
        path = work / "report" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    pack(work / "report", packed / "report.tar.xz")


def keep_run(folder: Path, golden: Path, name: str) -> None:
    """What is kept of a run."""
    recipes.write_scores(folder / "scores.csv", golden / f"{name}.csv")
    content = {
        "tasks": recipes.read_tasks(folder),
        "rankings": keyed(recipes.read_rankings(folder)),
        "opinions": keyed(recipes.read_opinions(folder)),
    }
    write_json(golden / f"{name}.json", content)


def freeze_library(work: Path, golden: Path, packed: Path) -> None:
    """Two libraries of the same hundred cases, one of them with gaps; their answers, and the second one itself."""
    inputs = work / "inputs"
    write_inputs(inputs)
    for name, windows in (("whole", recipes.WHOLE), ("gaps", (*recipes.WHOLE, *recipes.GAPPY))):
        library = work / name
        recipes.make_library(library, inputs, f"cases-{name}.csv")
        if name == "gaps":
            readbench("cases", "optimise", library, "--warm", "--method", "sonde")
            readbench("cases", "export", library, inputs / "exported.parquet")
            pack(library, packed / "library.tar.xz")
        write_json(golden / f"library-{name}.json", recipes.ask(library, inputs, windows) | recipes.ask_about(library))
    pack(inputs, packed / "inputs.tar.xz")


def freeze_imported(work: Path, golden: Path, packed: Path) -> None:
    """A dataset imported from a table, and one from a task that is divided already."""
    tables = work / "tables"
    tables.mkdir()
    write_pumps(tables / "pumps.csv")
    write_divided(tables / "task.npz")
    readbench("data", "import", recipes.OWN, tables / "pumps.csv", *recipes.OWN_COLUMNS)
    readbench("data", "import", recipes.DIVIDED, tables / "task.npz")
    readbench("run", *recipes.OWN_RUN, "--out", work / "own")
    keep_run(work / "own", golden, "imported")
    pack(tables, packed / "tables.tar.xz")
    pack(work / "imported", packed / "imported.tar.xz")


def freeze_plugin(work: Path, golden: Path) -> None:
    """What a plug-in and the README's Python gave."""
    site = recipes.install_plugin(work / "site")
    command = [sys.executable, "-m", "readbench", "run", *recipes.PLUGGED_RUN, "--out", str(work / "plugged")]
    subprocess.run(command, env=recipes.with_site(site), check=True, stdout=subprocess.DEVNULL)
    keep_run(work / "plugged", golden, "plugin")
    script = [sys.executable, str(site / "front_page.py"), os.environ["READBENCH_CACHE"]]
    printed = subprocess.run(script, check=True, capture_output=True, text=True)
    write_json(golden / "front-page.json", json.loads(printed.stdout))


def freeze_tiny_run(work: Path, golden: Path, packed: Path) -> None:
    """A run folder, its submission, its cache and two studies."""
    folder = work / "tiny"
    readbench("run", *recipes.TINY_RUN, "--out", folder)
    keep_run(folder, golden, "tiny")
    submission = ("--name", "frozen", "--authors", "A. Author", "--trained-on", "none")
    readbench("submit", folder, *submission, "--out", packed / recipes.SUBMISSION)
    pack(folder, packed / "run.tar.xz")
    pack(work / "tiny-cache", packed / "cache.tar.xz")
    for study in recipes.STUDIES:
        readbench("study", study, *recipes.STUDIED, "--out", work / study)
        for figure in (*(work / study).glob("*.png"), *(work / study).glob("*.svg")):
            figure.unlink()
        shutil.copytree(work / study, golden / study)


def write_json(path: Path, content: Any) -> None:  # noqa: ANN401 - any JSON
    """JSON, one entry of the second level a line."""
    text = ",\n".join(f"{json.dumps(name)}: {_lines(value)}" for name, value in content.items())
    path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def _lines(value: Any) -> str:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(own)}" for name, own in value.items()) + "\n}"


# What the library is made of


def write_inputs(folder: Path) -> None:
    """Tables of normal operation, of a hundred cases whole and with gaps, and of new windows."""
    folder.mkdir()
    rng = np.random.default_rng(22)
    for asset, count in (("1", 12), ("2", 12), ("", 8)):
        quiet = np.concatenate([signal(rng, "") for _ in range(count)], axis=1)
        write_table(folder / f"normals{asset}.csv", rows_of(quiet))
    whole = [signal(rng, fault_of(case)) for case in range(100)]
    holed = [with_gaps(values, case) if case % 3 == 0 else values for case, values in enumerate(whole)]
    for name, cases in (("whole", whole), ("gaps", holed)):
        rows = (row for case, values in enumerate(cases) for row in case_rows(case, values))
        write_table(folder / f"cases-{name}.csv", rows)
    for number, window in enumerate(recipes.WHOLE):
        write_table(folder / f"{window}.csv", rows_of(signal(rng, (*FAULTS, RARE, "new")[number])))
    for number, window in enumerate(recipes.GAPPY):
        write_table(folder / f"{window}.csv", rows_of(with_gaps(signal(rng, FAULTS[number]), 3 * number)))


def fault_of(case: int) -> str:
    """The truth of a case."""
    return RARE if case == 91 else FAULTS[case % len(FAULTS)]


def signal(rng: np.random.Generator, fault: str) -> NDArray[np.float64]:
    """(C, T) readings with a fault of random strength and onset; "" is normal operation."""
    steps, start = np.arange(STEPS), rng.integers(4, 20)
    after, strength = np.clip(steps - start, 0, None), rng.uniform(0.6, 1.6)
    flow, heat = 5 + np.sin(steps / 5 + rng.uniform(0, 6)), 60 + rng.normal(0, 1)
    values = np.stack([flow, np.full(STEPS, 2.0), np.full(STEPS, heat)])
    shapes = {
        "leak": ((1, -0.05 * after), (0, 0.06 * after)),
        "jam": ((0, -2.5 * (after > 0)), (1, 0.8 * (after > 0))),
        "drift": ((2, 0.35 * after),),
        "surge": ((1, 0.7 * np.sin(after)), (0, 0.8 * np.sin(after + 1))),
        RARE: ((1, 2.0 * ((after > 0) & (after < 4))),),
        "new": ((0, 0.9 * np.cos(3 * steps)), (2, -0.5 * after)),
    }
    for channel, shape in shapes.get(fault, ()):
        values[channel] += strength * shape
    return (values + rng.normal(0, [[0.15], [0.08], [0.4]], values.shape)).round(3)


def with_gaps(values: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
    """The same with readings missing: within, at the start, at the end, or a whole channel."""
    values = values.copy()
    holes = ((0, slice(8, 14)), (1, slice(0, 5)), (2, slice(26, STEPS)), (0, slice(0, STEPS)))
    values[holes[kind // 3 % 4]] = np.nan
    values[1, 10 + kind % 7 :: 9] = np.nan
    return values


def case_rows(case: int, values: NDArray[np.float64]) -> Iterable[dict[str, object]]:
    """Rows of one case of a long list of cases."""
    label = "" if case in OPEN else MISLABELLED.get(case, fault_of(case))
    for row in rows_of(values, first=10_000.0 * case):
        yield {"case": f"case-{case:03d}", "fault": label, "asset": f"pump {1 + case % 3}", **row}


def rows_of(values: NDArray[np.float64], first: float = 0.0) -> Iterable[dict[str, object]]:
    """A row per step; a missing reading is an empty cell."""
    for step, readings in enumerate(values.T):
        cells = ("" if np.isnan(reading) else f"{reading:g}" for reading in readings)
        yield {"t": first + step, **dict(zip(CHANNELS, cells, strict=True))}


def write_table(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Rows as CSV."""
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# Tables and tasks to import


def write_pumps(path: Path) -> None:
    """Runs of four plants with a fault in their second half, and a few missing readings."""
    rng = np.random.default_rng(7)
    rows: list[dict[str, object]] = []
    for run in range(24):
        fault = ("leak", "jam")[run % 2]
        for step in range(64):
            faulty = step >= 32
            p = (
                3
                + np.sin(step / 4)
                + (0.5 * faulty if fault == "jam" else -0.03 * max(0, step - 32))
                + rng.normal(0, 0.1)
            )
            q = 8 + np.cos(step / 4) - (1.5 * faulty if fault == "jam" else 0) + rng.normal(0, 0.2)
            missing = rng.random() < 0.03
            cells = {"p": "" if missing else f"{p:.3f}", "q": f"{q:.3f}"}
            facts = {"run": f"run-{run}", "plant": f"plant-{run % 4}", "fault": fault if faulty else "normal"}
            rows.append({"t": step, **cells, **facts})
    write_table(path, rows)


def write_divided(path: Path) -> None:
    """A task whose corpus, queries and normals are given."""
    rng = np.random.default_rng(8)

    def windows(kinds: list[str]) -> NDArray[np.float32]:
        slopes = np.array([{"up": 0.2, "down": -0.2, "normal": 0.0}[kind] for kind in kinds])
        clean = slopes[:, None, None] * np.arange(16)[None, None, :]
        return (clean + rng.normal(0, 0.8, (len(kinds), 2, 16))).round(3).astype(np.float32)

    corpus, queries = ["up", "down"] * 12, ["down", "up"] * 4
    np.savez_compressed(
        path,
        channels=np.array(["flow", "heat"]),
        corpus_values=windows(corpus),
        corpus_label=np.array(corpus),
        queries_values=windows(queries),
        queries_label=np.array(queries),
        normals_values=windows(["normal"] * 12),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
