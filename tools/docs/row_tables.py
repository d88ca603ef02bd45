"""Tables that documents show of published rows: a short one for a front page, each dataset, both orders, one rival.

A method that lacks datasets is shown over those that it has, and says how many they are: `.812 (9 of 13)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from readbench.benchmark.metrics import ConfidenceInterval, bootstrap_datasets, paired_bootstrap
from readbench.benchmark.report import (
    LABEL_USES,
    LabelUse,
    MethodPlace,
    Results,
    canonical,
    count_origins,
    dataset_scores,
    describe,
    explain_marks,
    find_real,
    mark_dataset,
    marks_of,
    place_methods,
    state_method,
    tell_place,
)
from readbench.benchmark.runs import open_folder
from readbench.errors import UsageError

FRONT = (
    "flagship", "flagship-spread", "mr-hydra(form=joint)", "flagship-pool", "ours", "sonde", "rocket", "dtw-i",
    "euclidean", "random",
)  # fmt: skip
"""Methods of the table on a front page."""
ORDERS = (
    "flagship", "flagship-spread", "flagship-fast", "flagship-window", "flagship-pool", "mr-hydra(form=joint)", "ours",
    "sonde",
)  # fmt: skip
"""Methods whose lists are judged by several metrics side by side."""
ORDER_METRICS = ("NDCG@10", "HR@10", "P@1", "macro_F1")
HEAD = 12
"""Methods of each kind in the short table."""


def front_table(results: Results) -> str:
    """A few methods that a reader knows: labels that each reads, headline at the first and the last level, hits.

    All are judged on the same datasets: those that all of them have.
    """
    first, last = results.levels[0], results.levels[-1]
    places = {row.method: row for row in place_methods(results).rows}
    known = [m for text in FRONT if (m := canonical(text)) in results.methods]
    known = [m for m in known if results.held(results.methods.index(m))]
    shared = sorted(set.intersection(*(set(results.held(results.methods.index(m))) for m in known))) if known else []
    if not shared:
        return "No dataset is computed with these methods yet."
    hits = _hits(results)
    wanted = [(results.headline, first), (results.headline, last), *([(hits, first)] if hits else [])]
    means = {
        m: [results.figure(metric, rho, shared, results.methods.index(m)).mean for metric, rho in wanted] for m in known
    }
    rows = [
        [results.title(m), state_method(m).knowledge, *map(short, means[m]), _tell_rank(places.get(m))]
        for m in sorted(known, key=lambda m: (_by_labels(m), -means[m][0]))
    ]
    header = ["Method", "Labels it reads", f"{results.headline}, ρ = {first} %", f"{last} %"]
    header += [f"{hits}, ρ = {first} %"] * bool(hits) + ["Place among like"]
    counted = count_origins(results.origins[results.datasets[d]] for d in shared)
    lacking = len(results.datasets) - len(shared)
    part = f", the ones of {len(results.datasets)} that all of these methods have," if lacking else ""
    note = f"Mean over {counted}{part} and {results.told_seeds}."
    return markdown_table(header, rows, labels=2) + f"\n{note}"


def _by_labels(method: str) -> int:
    """Methods that read all labels first."""
    return -LABEL_USES.index(state_method(method).labels)


def _tell_rank(row: MethodPlace | None) -> str:
    return f"{tell_place(row)} of {row.rivals}" if row else "–"


def short_table(results: Results) -> str:
    """The best of each kind with its place."""
    last = results.levels[-1]
    found = place_methods(results)
    rows, seen = [], dict[LabelUse, int]()
    for row in found.rows:
        seen[row.stated.labels] = seen.get(row.stated.labels, 0) + 1
        if seen[row.stated.labels] > HEAD:
            continue
        m = results.methods.index(row.method)
        polluted = float(results.at(results.headline, last)[:, :, m].mean())
        hits = next((value for name, value in row.others.items() if name.startswith("HR")), float("nan"))
        names = [row.stated.knowledge, results.title(row.method)]
        rows.append([*names, short(row.mean), short(polluted), short(hits), tell_place(row), row.tie])
    header = [
        "Labels",
        "Method",
        f"{results.headline}, ρ = {results.levels[0]} %",
        f"{last} %",
        "HR@10",
        "Place",
        "Tie",
    ]
    unit = "datasets and split groups" if found.over_datasets else "split groups"
    note = (
        f"Over {describe(results)} and {results.told_seeds}. Place: 95 % interval of the rank among those"
        f" that read the same labels (paired bootstrap over {unit}); whoever shares a letter is not"
        " surely behind its first."
    )
    return markdown_table(header, rows, labels=2) + f"\n{note}"


def dataset_rows(results: Results, methods: Sequence[str], *, labels: bool = False) -> str:
    """Methods on each dataset at the first level, best first, after the means over all and over the real ones.

    Those that lack datasets come last: their means are over others.

    Args:
        results: of a run.
        methods: canonical texts that have some dataset at the first level.
        labels: say which labels each reads.
    """
    first, real = results.levels[0], [results.datasets.index(d) for d in find_real(results.origins)]
    scores = dataset_scores(results, first)
    lacking = {m: len(results.datasets) - len(results.held(results.methods.index(m), first)) for m in methods}
    order = sorted(methods, key=lambda method: (lacking[method] > 0, -_mean(results, method, first)))
    rows = []
    for method in order:
        m = results.methods.index(method)
        own = [results.held(m, rho) for rho in results.levels]
        figures = [results.figure(results.headline, rho, h, m) for rho, h in zip(results.levels, own, strict=True)]
        means = [
            results.figure(results.headline, rho, [d for d in h if d in real], m)
            for rho, h in zip(results.levels, own, strict=True)
            if real
        ]
        spread = "" if np.isnan(figures[0].spread) else f" ±{short(figures[0].spread)}"
        numbers = [f"{short(figures[0].mean)}{spread}{part_of(results, own[0])}"]
        numbers += [short(f.mean) for f in (*figures[1:], *means)]
        single = [short(scores[d, m]) for d in range(len(results.datasets))]
        rows.append([results.title(method), *([state_method(method).knowledge] * labels), *numbers, *single])
    header = ["", *(["Labels"] * labels), *(f"ρ = {rho} %" for rho in results.levels)]
    header += [f"real: {rho} %" for rho in results.levels if real]
    header += [mark_dataset(results, dataset) for dataset in results.datasets]
    notes = " ".join(explain_marks(marks_of(results, dataset) for dataset in results.datasets))
    return markdown_table(header, rows, labels=1 + labels) + (f"\n{notes}" if notes else "")


def splits_table(results: Results) -> str:
    """Methods over many splits of few datasets: the mean over splits and, on each dataset, how far splits differ.

    Args:
        results: rows on more split seeds than the published ones.
    """
    first = results.levels[0]
    held = {m: results.held(results.methods.index(m), first) for m in results.methods}
    shown = [m for m in held if held[m]]
    shown.sort(key=lambda m: (len(held[m]) < len(results.datasets), -_mean(results, m, first)))
    rows = []
    for method in shown:
        values = results.at(results.headline, first)[:, :, results.methods.index(method)]
        single = [
            f"{short(own.mean())} ({short(own.min())} to {short(own.max())})" if d in held[method] else "–"
            for d, own in enumerate(values)
        ]
        mean = f"{short(_mean(results, method, first))}{part_of(results, held[method])}"
        rows.append([results.title(method), state_method(method).knowledge, mean, *single])
    header = ["", "Labels", "Mean", *(mark_dataset(results, dataset) for dataset in results.datasets)]
    note = (
        f"{results.headline} at ρ = {first} % over {results.told_seeds}; in brackets the lowest and the highest split."
    )
    return markdown_table(header, rows, labels=2) + f"\n{note}"


def orders_table(results: Results) -> str:
    """A few methods by several metrics at the first and the last level: what one order wins, another loses."""
    metrics = [name for name in ORDER_METRICS if name in results.metrics]
    known = [m for text in ORDERS if (m := canonical(text)) in results.methods]
    shown = [m for m in known if results.held(results.methods.index(m))]
    if not shown:
        return "No row of these methods is computed yet."
    ends = dict.fromkeys((results.levels[0], results.levels[-1]))
    rows = [
        [
            results.title(method) + part_of(results, results.held(results.methods.index(method))),
            *(short(_mean(results, method, rho, metric)) for rho in ends for metric in metrics),
        ]
        for method in shown
    ]
    header = ["", *(f"{results.metrics[metric].title}, ρ = {rho} %" for rho in ends for metric in metrics)]
    return markdown_table(header, rows, labels=1)


def rival_table(results: Results, rival: str, methods: Sequence[str]) -> str:
    """Methods less a rival on each dataset that it has at the first level, with paired intervals over split groups.

    Args:
        results: of published rows.
        rival: canonical text.
        methods: canonical texts that stand beside it.
    """
    first = results.levels[0]
    shown = [m for m in methods if m in results.methods]
    if rival not in results.methods or not (held := _shared(results, (rival, *shown), first)):
        return f"No row of `{rival}` is computed yet."
    rows, differences = [], {method: list[float]() for method in shown}
    for d in held:
        read = {method: _queries(results, results.datasets[d], method) for method in (rival, *shown)}
        base, groups = read[rival]
        line = [mark_dataset(results, results.datasets[d]), str(len(base)), *(short(read[m][0].mean()) for m in read)]
        for method in shown:
            values = read[method][0]
            differences[method].append(float((values - base).mean()))
            line.append(_difference(values, base, groups))
        rows.append(line)
    means = [short(float(np.mean([_at(results, m, d, first) for d in held]))) for m in (rival, *shown)]
    totals = [bootstrap_datasets(own, np.zeros(len(own)), seed=0) for own in differences.values()]
    counted = f"mean of {len(held)}"
    rows.append([counted, "", *means, *(tell_interval(one) if one else "–" for one in totals)])
    titles = [results.title(m) for m in (rival, *shown)]
    header = ["", "queries", *titles, *(f"{title} − {titles[0]}" for title in titles[1:])]
    note = (
        f"{results.headline} at ρ = {first} %, {results.told_seeds}. Intervals of a dataset are paired and"
        " over split groups, those of the mean over datasets."
    )
    return markdown_table(header, rows, labels=1) + f"\n{note}"


def _shared(results: Results, methods: Sequence[str], rho: int) -> list[int]:
    """Indices of the datasets that all of these have at a level."""
    own = [set(results.held(results.methods.index(method), rho)) for method in methods]
    return sorted(set.intersection(*own))


def _at(results: Results, method: str, dataset: int, rho: int) -> float:
    return float(results.at(results.headline, rho)[dataset, :, results.methods.index(method)].mean())


def _queries(
    results: Results, dataset: str, method: str
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[str]]:
    """Values of all queries of a dataset at the first level, and their split groups."""
    wanted = [("dataset", "=", dataset), ("rho", "=", results.levels[0]), ("method", "=", method)]
    table = open_folder(results.folder).read_per_query([*wanted, ("metric", "=", results.headline)])
    return np.asarray(table["value"].to_numpy(), np.float64), table["group"].to_pylist()


def _difference(
    own: np.ndarray[tuple[int], np.dtype[np.float64]],
    other: np.ndarray[tuple[int], np.dtype[np.float64]],
    groups: list[str],
) -> str:
    try:
        found = paired_bootstrap(own, other, seed=0, clusters=groups)
    except UsageError:  # all queries are of one recording
        return f"{(own - other).mean():+.3f}"
    text = tell_interval(found)
    return f"**{text}**" if found.low > 0 or found.high < 0 else text


def tell_interval(found: ConfidenceInterval) -> str:
    """A difference with its interval."""
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _mean(results: Results, method: str, rho: int, metric: str = "") -> float:
    m = results.methods.index(method)
    held = results.held(m, rho)
    return results.figure(metric or results.headline, rho, held, m).mean


def _hits(results: Results) -> str:
    """The hit rate at the cutoff of the headline, where the rows have it."""
    cutoff = results.metrics[results.headline].cutoff
    return name if (name := f"HR@{cutoff}") in results.metrics else ""


def part_of(results: Results, held: Sequence[int]) -> str:
    """On how many datasets, where these are not all."""
    total = len(results.datasets)
    return "" if len(held) == total else f" ({len(held)} of {total})"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> str:
    """A table without a caption; the first `labels` columns are names."""
    rule = ["---"] * labels + ["---:"] * (len(header) - labels)
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def short(value: float) -> str:
    """A number without its leading zero."""
    text = "–" if np.isnan(value) else f"{value:.3f}"
    return text.removeprefix("0") if text.startswith("0.") else text
