"""What a library says of windows that are none of its own: `python -m research.odd_windows`.

Four libraries, two simulated and two real. A true window of each is made odd in many ways, and `ALWAYS` and `BUT` say
what the answer must say: the kind of its remark, and whether the window can be judged. Where nothing can be said (two
leads of an electrocardiogram exchanged, a symmetric signal backwards) the table says so. Beside it stands how often
true windows, and normal windows of recordings that the library lacks, are remarked on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Composition, load_task
from readbench.cases import UNLIKE, Answer, Library
from readbench.engine.windows import Window, WindowSet

Values = NDArray[np.floating]
SOURCES = ("sim_tanks(difficulty=0.5)", "sim_service", "skab", "mit_bih")
CASES, NORMALS, QUERIES = 300, 500, 200
PARTS = 3
"""The recordings of normal windows are in so many parts, one of which is kept out of the library, to be asked about."""
MOST_OFFERED = 0.2
"""Probability that no fault may exceed where a window cannot be judged."""
METHOD = "rocket(features=504)+verdict"


def _noise(values: Values) -> Values:
    return np.random.default_rng(0).normal(size=values.shape)


def _swap(values: Values, first: int, second: int) -> Values:
    own = values.copy()
    own[[first, second]] = own[[second, first]]
    return own


def _scale_first(values: Values, factor: float) -> Values:
    own = values.copy()
    own[0] *= factor
    return own


def _freeze(values: Values) -> Values:
    own, start = values.copy(), values.shape[1] // 4
    own[:, start:] = own[:, start : start + 1]
    return own


def _kill_last(values: Values) -> Values:
    own = values.copy()
    own[-1] = own[-1, 0]
    return own


def _lose(values: Values, share: float) -> Values:
    gone = np.random.default_rng(1).random(values.shape) < share
    return np.where(gone, np.nan, values)


def _lose_last(values: Values) -> Values:
    own = values.copy()
    own[-1, : int(0.8 * own.shape[1])] = np.nan
    return own


ODD: dict[str, Callable[[Values], Values]] = {
    "white noise": _noise,
    "all zeros": np.zeros_like,
    "constants": lambda values: np.repeat(values[:, :1], values.shape[1], axis=1),
    "ramp to millions": lambda values: np.tile(np.linspace(0, 2.5e6, values.shape[1]), (len(values), 1)),
    "three samples": lambda values: values[:, :3],
    "80 times the length": lambda values: np.tile(values, (1, 80)),
    "first and last channel swapped": lambda values: _swap(values, 0, -1),
    "all units x 1000": lambda values: values * 1000.0,
    "one unit x 1000": lambda values: _scale_first(values, 1000.0),
    "one unit / 1000": lambda values: _scale_first(values, 0.001),
    "time reversed": lambda values: values[:, ::-1],
    "frozen after a quarter": _freeze,
    "last channel dead": _kill_last,
    "clipped": lambda values: values.clip(*np.quantile(values, (0.3, 0.7), axis=1)[..., None]),
    "80 % missing": lambda values: _lose(values, 0.8),
    "most of one channel missing": _lose_last,
    "itself": lambda values: values,
}
"""Ways to make the values (C, T) of a true window odd."""
FEW, FOREIGN = "two channels", "a window of another plant"
"""Odd windows that are not made of the values alone."""


@dataclass(frozen=True)
class Expected:
    """What an answer must say: a remark of one of these kinds, or none; and whether it judges, None for either."""

    kinds: tuple[str, ...]
    judgeable: bool | None


NOTHING = Expected((), judgeable=True)
ALWAYS = {
    "white noise": Expected(("range", "roughness", "unit", "spread"), judgeable=False),
    "all zeros": Expected(("constant",), judgeable=False),
    "constants": Expected(("constant",), judgeable=False),
    "ramp to millions": Expected(("range", "unit"), judgeable=False),
    "three samples": Expected(("length",), judgeable=False),
    "80 times the length": Expected(("length",), judgeable=False),
    "first and last channel swapped": Expected(("swapped", "unit", "range"), judgeable=False),
    "all units x 1000": Expected(("unit",), judgeable=False),
    "one unit x 1000": Expected(("unit",), judgeable=False),
    "one unit / 1000": Expected(("unit",), judgeable=False),
    "time reversed": NOTHING,
    "frozen after a quarter": Expected(("frozen",), judgeable=False),
    "last channel dead": Expected(("constant",), judgeable=True),
    "clipped": Expected(("clipped", "frozen"), judgeable=False),
    "80 % missing": Expected(("missing",), judgeable=False),
    "most of one channel missing": Expected(("missing",), judgeable=True),
    "itself": NOTHING,
    FEW: Expected(("channels",), judgeable=False),
    FOREIGN: Expected(("range", "roughness", "unit", "spread", "frozen", "constant"), judgeable=False),
}
BUT: dict[str, dict[str, Expected]] = {
    "sim_tanks": {
        # A level and a command have much of their ranges in common: the oddity shows, the exchange not always.
        "first and last channel swapped": Expected(("swapped", "range"), judgeable=None),
    },
    "sim_service": {
        "one unit / 1000": NOTHING,  # true windows of other clusters lie as far outside
        "time reversed": Expected(("reversed",), judgeable=False),  # memory fills slowly and is freed at once
    },
    "mit_bih": {
        "first and last channel swapped": NOTHING,  # both leads show the same heart
        FEW: NOTHING,  # it has no more
        "last channel dead": Expected(("constant",), judgeable=False),  # half of all it has
        "most of one channel missing": Expected(("missing",), judgeable=None),  # filled, half of it shows little
    },
}
"""Where a source differs from `ALWAYS`, and why."""


@dataclass(frozen=True, eq=False)
class Site:
    """A library, and windows that it has never seen: true questions, and normal ones of other recordings."""

    name: str
    library: Library
    questions: WindowSet
    normals: WindowSet


def expect(source: str) -> dict[str, Expected]:
    """What answers of one library must say."""
    return ALWAYS | BUT.get(source.split("(", maxsplit=1)[0], {})


def build_site(
    source: str, folder: Path, cases: int = CASES, normals: int = NORMALS, queries: int = QUERIES, part: int = 0
) -> Site:
    """The library of a source's train side, without one of the `PARTS` of its normal recordings."""
    settings = Composition(corpus_cap=cases, query_cap=queries, normals_cap=normals)
    task = load_task(source, settings=settings)
    held_out = np.isin(task.normals.groups, np.unique(task.normals.groups)[part::PARTS])
    library = Library.create(folder / f"{source.split('(', maxsplit=1)[0]} {part}")
    library.add_normals(task.normals[np.flatnonzero(~held_out)])
    library.add(task.corpus_at(0))
    return Site(source, library, task.queries, task.normals[np.flatnonzero(held_out)])


def make_odd(window: Window, foreign: Window) -> Iterator[tuple[str, WindowSet]]:
    """A true window, made odd in all ways; the foreign one comes under its channels' names."""
    for name, change in ODD.items():
        yield name, _as_set(replace(window, values=change(window.values).astype(np.float32), before=None))
    yield FEW, _as_set(replace(window, values=window.values[:2], channels=window.channels[:2], before=None))
    rows = np.resize(np.arange(len(foreign.values)), len(window.channels))
    yield FOREIGN, _as_set(replace(window, values=foreign.values[rows][:, : window.values.shape[1]], before=None))


def _as_set(window: Window) -> WindowSet:
    return WindowSet.from_arrays([window.values], channels=window.channels)


def find_fault(answer: Answer, expected: Expected) -> str:
    """What an answer should have said and does not; "" where it is as it must be."""
    kinds = {remark.kind for remark in answer.plausibility}
    if bool(kinds) != bool(expected.kinds) or (expected.kinds and kinds.isdisjoint(expected.kinds)):
        return f"remarks {sorted(kinds)} instead of one of {expected.kinds}"
    if expected.judgeable is not None and answer.judgeable != expected.judgeable:
        return f"judgeable is {answer.judgeable}"
    named = [option.probability for option in answer.faults if option.label != UNLIKE]
    unlike = next(option for option in answer.faults if option.label == UNLIKE)
    if not answer.judgeable and (not unlike.possible or max(named) > 1.0 - unlike.probability or max(named) > 0.5):
        return f"a fault at {max(named):.0%}, {UNLIKE} at {unlike.probability:.0%}"
    return ""


def measure_remarks(library: Library, windows: WindowSet) -> tuple[float, float]:
    """Shares of windows that are warned of, and that are called impossible to judge."""
    odd = library.check_many(windows)
    warned = np.mean([any(remark.severity != "note" for remark in own) for own in odd])
    return float(warned), float(np.mean([not all(remark.judgeable for remark in own) for own in odd]))


def tell(text: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table, and the share of false alarms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default=METHOD, help="any method of the grammar that ends with +verdict")
    method = parser.parse_args().method
    with TemporaryDirectory() as folder:
        sites = [build_site(source, Path(folder)) for source in SOURCES]
        wrong = sum(show_site(site, sites[number - 1].questions[0], method) for number, site in enumerate(sites))
        tell(f"{wrong} answers are not as they must be")
        for site in sites:
            for what, windows in (("questions", site.questions), ("held-out normals", site.normals)):
                warned, refused = measure_remarks(site.library, windows)
                tell(f"{site.name:26} {len(windows):4} {what:17} warned {warned:.3f}, not judged {refused:.3f}")


def show_site(site: Site, foreign: Window, method: str) -> int:
    """Write what one library says of all odd windows; returns how many answers are not as they must be."""
    wrong = 0
    for name, odd in make_odd(site.questions[0], foreign):
        answer = site.library.search(odd, method=method, k=1)
        fault, top = find_fault(answer, expect(site.name)[name]), answer.faults[0]
        words = answer.plausibility[0].words if answer.plausibility else ""
        tell(f"{site.name:26} {name:31} {top.label:32} {top.probability:4.0%}  {words} {fault and '! ' + fault}")
        wrong += bool(fault)
    return wrong


if __name__ == "__main__":
    main()
