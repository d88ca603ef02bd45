"""What a person meets sooner or later: places that cannot be written, disks that are full, files that are damaged.

Each row of the table is a command in such a situation. It must end with one sentence that names what is wrong, with the
exit code for it, without a traceback and without half of anything left behind.

"Full" is a limit on the size of files, "unwritable" a file where a folder is needed or a folder of the kernel's: these
hold for the administrator, too, whom permissions do not stop.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from readbench.cli import main
from tests.benchmark.exchange.test_divided import archive, arrays

resource = pytest.importorskip("resource", reason="limits on the size of files are those of POSIX")

Change = Callable[[Path], None]
EXPECTED_KINDS = 40
QUICK = "--datasets sim_ecg --methods random --methods stats --rho 0 --seed 0"
COLUMNS = "--time t --label fault --group run --window 16"


@dataclass(frozen=True)
class BadSituation:
    """A command that cannot do what it is asked.

    Args:
        command: what is typed, in a folder with `run`, `plant`, `file` (a text), `new.csv`, `pumps.csv` and `sent`.
        says: words of the error.
        code: 1 where something failed, 2 where the command was wrong.
        damage: done to the folder before.
        full: most bytes of any file, as where the disk is full.
        gone: must not be there afterwards.
    """

    command: str
    says: str
    code: int = 1
    damage: Change | None = None
    full: int | None = None
    gone: str = ""

    @property
    def name(self) -> str:
        return f"{self.command}, {self.says}"


def cut(name: str, keep: float = 0.5) -> Change:
    """Cuts a file, or the first file of a pattern, off."""

    def damage(folder: Path) -> None:
        path = min(folder.glob(name))
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])

    return damage


def garble(name: str) -> Change:
    """Overwrites all files of a pattern with something else."""

    def damage(folder: Path) -> None:
        found = sorted(folder.glob(name))
        assert found
        for path in found:
            path.write_bytes(b"this is not what was here" * 4)

    return damage


def scribble(name: str) -> Change:
    """Writes a file that is none of its kind."""

    def damage(folder: Path) -> None:
        (folder / name).write_text("this is no ( table")

    return damage


def blocked(folder: Path) -> None:
    """Puts a file where imported data belong."""
    (folder / "imported").write_text("")


def one_fault(folder: Path) -> None:
    """A table of one short recording with one fault: nothing can be held out."""
    rows = [f"{step},leak,one,{step % 7}" for step in range(64)]
    (folder / "flat.csv").write_text("\n".join(["t,fault,run,flow", *rows]))


def fail_cells(folder: Path) -> None:  # noqa: ARG001 - the command is typed there
    """Makes a run of which no cell could be computed, as forgetting READBENCH_DATA gives."""
    with pytest.raises(SystemExit):
        type_command("run --datasets skab --methods random --rho 0 --seed 0 --out failed")


def no_object(folder: Path) -> None:
    """What a run says of itself is valid JSON, and nothing."""
    (folder / "run" / "run.json").write_text("null")


def no_plan(folder: Path) -> None:
    """A plan that is none."""
    (folder / "run" / "run.json").write_text('{"plan": 3, "datasets": {}, "methods": {}, "notes": {}, "sizes": {}}')


def no_seconds(folder: Path) -> None:
    """What methods cost, without the cost."""
    (folder / "run" / "costs.csv").write_text("method,task\nrandom,a task\n")


def leaving(folder: Path) -> None:
    """A plug-in that ends the program, as scripts do."""
    (folder / "leaving.py").write_text("import sys\nsys.exit(0)")


def without_numbers(folder: Path) -> None:
    """A recording of words, one without a row, one of infinite readings, and one too large for single precision."""
    infinite, large = ([f"{step},{each},-{each}" for step in range(40)] for each in ("inf", "1e300"))
    for name, lines in (("words", ["1,x,y"]), ("head", []), ("infinite", infinite), ("large", large)):
        (folder / f"{name}.csv").write_text("\n".join(["t,pressure,flow", *lines, ""]))


def old_names(folder: Path) -> None:
    """Names in the letters of an older system, as an archive unpacks them."""
    try:
        (folder / "new.csv").rename(folder / "n\udce4w.csv")
        (folder / "plant").rename(folder / "pl\udce4nt")
    except OSError:  # macOS and Windows
        pytest.skip("this system has no names but UTF-8")


FOLDER, FULL = "There is a file where a folder is needed", "larger than this system allows"
SITUATIONS = [
    # Places that cannot be written.
    BadSituation(f"run {QUICK} --out file", FOLDER),
    BadSituation(f"run {QUICK} --out file/run", FOLDER),
    BadSituation(f"run {QUICK} --out /proc/run", "/proc/run"),
    BadSituation("run --merge run --out file/x", FOLDER),
    BadSituation("report run --out file", FOLDER),
    BadSituation("report run --out /proc/report", "/proc/report"),
    BadSituation("report run --picture file/p.svg", FOLDER),
    BadSituation("report run --picture run", "This is a folder"),
    BadSituation("compare run --methods random --methods stats --out file", FOLDER),
    BadSituation("report run --trec file", FOLDER),
    BadSituation("report run --trec /proc/trec", "/proc/trec"),
    BadSituation("submit run --out file/x.readbench.zip", FOLDER),
    BadSituation("submit run --out run", "This is a folder"),
    BadSituation("submit run --out /dev/null", "no file"),
    BadSituation("leaderboard sent --out file", FOLDER),
    BadSituation("leaderboard nowhere", "There is no folder nowhere", 2),
    BadSituation("study opinions --datasets sim_ecg --methods rocket(features=504)+verdict --out file", FOLDER),
    BadSituation("study active --datasets sim_ecg --seeds 0 --methods rocket(features=504)+verdict --out file", FOLDER),
    BadSituation("study assets --datasets sim_tanks --methods random --out file", FOLDER),
    BadSituation("study compound --methods random --out file", FOLDER),
    BadSituation("study ucr --methods random --out file", FOLDER),
    BadSituation("data verify sent/task.npz --out file/a.md", FOLDER),
    BadSituation("data export sim_ecg --out file", "file"),
    BadSituation("data export sim_ecg --out file/x", FOLDER),
    BadSituation("data describe sim_ecg --figure file/x.png", FOLDER),
    BadSituation("data describe sim_ecg --figure x.xyz", "ends with .png, .svg or .pdf", 2),
    BadSituation(f"data import pumps pumps.csv {COLUMNS}", FOLDER, damage=blocked),
    BadSituation("cases init file", FOLDER),
    BadSituation("cases init file/x", FOLDER),
    BadSituation("cases init /proc/plant", "/proc/plant"),
    BadSituation("cases init file --demo --datasets sim_ecg", FOLDER),
    BadSituation("cases init demo --demo --datasets sim_ecg --new file", "file", gone="demo"),
    BadSituation("cases export plant file/x.parquet", FOLDER),
    BadSituation("cases export plant sent", "This is a folder"),
    BadSituation("cases explain plant new.csv w1 --figure x.xyz", "ends with .png, .svg or .pdf", 2),
    BadSituation("cases explain plant new.csv w1 --figure file/x.png", FOLDER),
    BadSituation("cases key plant me --keys file/keys", FOLDER),
    # Full disks.
    BadSituation(f"run {QUICK} --out fresh", FULL, full=2000),
    BadSituation("report run", FULL, full=2000),
    BadSituation("report run --trec trec", FULL, full=200),
    BadSituation("submit run --out x.readbench.zip", FULL, full=200, gone="x.readbench.zip"),
    BadSituation("leaderboard sent", FULL, full=200),
    BadSituation("data export sim_ecg --out ecg", FULL, full=20_000, gone="ecg"),
    BadSituation("cases init fresh", "too large", full=300, gone="fresh"),
    BadSituation("cases init demo --demo --datasets sim_ecg", "too large", full=20_000, gone="demo"),
    BadSituation("cases export plant x.parquet", FULL, full=200, gone="x.parquet"),
    BadSituation("cases add plant new.csv --time t --label leak", "too large", full=100),
    BadSituation(f"data import pumps pumps.csv {COLUMNS}", FULL, full=500, gone="imported/pumps"),
    # Damaged files.
    BadSituation("report run", "is not a run folder", damage=cut("run/run.json")),
    BadSituation("report run", "scores.csv", damage=cut("run/scores.csv", 0)),
    BadSituation("report run", "costs.csv is damaged", damage=no_seconds),
    BadSituation("report run", "is damaged", 0, damage=cut("run/rankings/*.parquet")),
    BadSituation("report run", "per_query", damage=cut("run/per_query.parquet")),
    BadSituation("report run --trec trec", "cells", damage=cut("run/cells/*/*/*/*.parquet")),
    BadSituation("submit run", "cells", damage=cut("run/cells/*/*/*/*.parquet")),
    BadSituation("leaderboard sent", "No submission", damage=garble("sent/*.zip")),
    BadSituation("report failed", "No cell", damage=fail_cells),
    BadSituation("report failed", "READBENCH_DATA", damage=fail_cells),
    BadSituation("cases search plant new.csv --time t", "damaged", damage=garble("plant/windows.lance/data/*.lance")),
    BadSituation("cases list plant", "damaged", damage=garble("plant/journal.lance/data/*.lance")),
    BadSituation("cases import plant file", "file"),
    BadSituation("cases import plant backup.parquet", "backup.parquet", damage=garble("backup.parquet")),
    BadSituation("cases search plant new.csv --time t", "new.csv", damage=cut("new.csv", 0)),
    BadSituation("cases search plant new.xlsx", "new.xlsx", damage=scribble("new.xlsx")),
    BadSituation("cases search run new.csv --time t", "no case library", 2),
    BadSituation("data verify sent/task.npz", "task.npz", 2, damage=cut("sent/task.npz")),
    BadSituation("data import pumps sent/task.npz", "task.npz", damage=cut("sent/task.npz")),
    BadSituation("report run", "does not tell of a run", damage=no_object),
    BadSituation("run --merge run --out merged", "does not tell of a run", damage=no_object, gone="merged"),
    BadSituation("compare run run", "does not tell of a run", damage=no_plan),
    BadSituation("cases search plant words.csv --time t", "no column with numbers", damage=without_numbers),
    BadSituation("cases search plant head.csv --time t", "no rows", damage=without_numbers),
    BadSituation("cases search plant infinite.csv --time t", "infinite or 1e+30 and more", damage=without_numbers),
    BadSituation("cases search plant large.csv --time t", "infinite or 1e+30 and more", damage=without_numbers),
    # Names that are no text.
    BadSituation("cases list pl\udce4nt", "pl\\udce4nt': This name is not UTF-8", damage=old_names),
    BadSituation("cases init n\udce4w", "This name is not UTF-8"),
    BadSituation("cases export plant n\udce4w.parquet", "This name is not UTF-8"),
    BadSituation("data import pumps n\udce4w.csv --time t", "This name is not UTF-8", damage=old_names),
    # What cannot be meant.
    BadSituation("run --datasets sim_ecg --methods random --seed -1", "--seed", 2),
    BadSituation("run --datasets sim_ecg --methods random --seeds 0,-1", "takes numbers from 0 to 4294967295", 2),
    BadSituation(f"run --datasets sim_ecg --methods random --seed {10**20}", "--seed", 2),
    BadSituation(f"run --datasets sim_ecg --methods random --seeds 0,{10**20}", "from 0 to 4294967295", 2),
    BadSituation(f"data describe sim_ecg --seed {10**20}", "--seed", 2),
    BadSituation("data describe sim_ecg --seed -1", "--seed", 2),
    BadSituation("cases list plant --as-of -1", "--as-of", 2),
    BadSituation(f"cases report plant nosuch --as-of {10**20}", "Unknown case", 2),
    BadSituation(f"cases search plant nosuch -k {10**20}", "Unknown case", 2),
    BadSituation(f"data import pumps pumps.csv {COLUMNS} --stride {10**20}", "--stride", 2),
    BadSituation(f"data import pumps pumps.csv {COLUMNS}000000000000000000000", "--window", 2),
    BadSituation("submit run --rows run", "run holds a run", 2, gone="run/lists"),
    BadSituation("leaderboard sent --check --published run", "holds no published rows", 2),
    BadSituation("run --methods mine --plugin leaving.py", "could not be loaded: SystemExit", 2, damage=leaving),
    BadSituation("study opinions --datasets sim_ecg --seeds -1", "takes numbers from 0 to 4294967295", 2),
    BadSituation("run --methods mine --plugin nowhere.py", "There is no plug-in nowhere.py", 2),
    BadSituation("run --methods mine --plugin file", "cannot be a plug-in", 2),
    BadSituation("run --methods mine --plugin bad.py", "SyntaxError", 2, damage=scribble("bad.py")),
    BadSituation(f"run {QUICK} --out fresh --rho 200", "from 0 to 99", 2),
    BadSituation("cache --prune --most much", "A size is a number with a unit", 2),
    BadSituation("cases serve plant --port 99999", "--port", 2),
    BadSituation(f"data import pumps flat.csv {COLUMNS}", "no task", damage=one_fault),
]


def type_command(command: str) -> None:
    sys.argv = ["readbench", *command.split()]
    main()


@contextmanager
def small_files(most: int | None) -> Iterator[None]:
    """No file may become larger than this, as on a disk that is full; `None` for no limit."""
    if most is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A folder with one of everything, all of it in order."""
    pytest.importorskip("lancedb", reason="needs lancedb: pip install 'readbench[cases]'")
    from tests.cases.samples import CHANNELS, filled, window  # noqa: PLC0415 - needs lancedb

    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", sys.argv)
        patch.delenv("READBENCH_DATA", raising=False)
        patch.setenv("READBENCH_CACHE", str(shared_cache))
        for command in (f"run {QUICK} --out run", "submit run --name one --out sent/one.readbench.zip"):
            with pytest.raises(SystemExit) as ended:
                type_command(command)
            assert ended.value.code == 0
        filled(folder / "plant")
        with pytest.raises(SystemExit):
            type_command("cases export plant backup.parquet")
    (folder / "file").write_text("a note")
    archive(folder / "sent" / "task.npz", arrays())
    values = window("leak", np.random.default_rng(1))
    rows = np.column_stack([np.arange(values.shape[1]), values.T])
    np.savetxt(folder / "new.csv", rows, delimiter=",", header=",".join(("t", *CHANNELS)), comments="")
    lines = [
        f"{step},{fault},{run},{(step * (2 + run)) % 11}"
        for run, fault in enumerate(("leak", "leak", "leak", "stuck", "stuck", "stuck", "normal", "normal"))
        for step in range(32)
    ]
    (folder / "pumps.csv").write_text("\n".join(["t,fault,run,flow", *lines]))
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, where commands are typed."""
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.delenv("READBENCH_DATA", raising=False)
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path / "imported"))
    return tmp_path


def test_the_table_is_long() -> None:
    assert len({own.name for own in SITUATIONS}) == len(SITUATIONS) >= EXPECTED_KINDS


@pytest.mark.parametrize(("command", "letters"), [("report run", "cp1252"), ("list methods", "ascii")])
def test_letters_that_a_terminal_lacks_are_question_marks(command: str, letters: str, folder: Path) -> None:
    typed = [sys.executable, "-m", "readbench", *command.split()]
    done = subprocess.run(
        typed, cwd=folder, env=os.environ | {"PYTHONIOENCODING": letters}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("own", SITUATIONS, ids=lambda own: own.name)
def test_a_bad_situation_is_one_sentence(own: BadSituation, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if own.damage:
        own.damage(folder)
    capfd.readouterr()
    with small_files(own.full), pytest.raises(SystemExit) as ended:
        type_command(own.command)
    said = capfd.readouterr()
    assert ended.value.code == own.code, said
    assert own.says in " ".join(said.err.replace("│", " ").split()), said
    assert "Traceback" not in said.err + said.out
    assert not (own.gone and (folder / own.gone).exists())
    left = [path for path in folder.rglob("*.partial") if path.name != "windows.partial"]
    assert not left
