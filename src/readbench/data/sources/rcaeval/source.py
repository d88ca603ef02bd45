"""RCAEval: faults injected into three microservice applications, told by the metrics of all services.

Three collections, in `rcaeval/` at any depth, tables plain or gzipped; by default the first that is there is read:

* RE1, the one of the paper: `<system>/<service>_<fault>/<1..5>/data.csv` and `inject_time.txt` (a second since 1970).
  375 cases: 5 services x 5 faults x 5 repetitions of Online Boutique, Sock Shop and Train Ticket.
* RE2: the same tree with `simple_metrics.csv`, and `socket` as a sixth fault.
* Sock Shop 1 (from the RCD study): `<service>-<fault>/<1..5>/normal.csv` and `anomalous.csv`, recorded days apart.

Read here: all 50 cases of Sock Shop 1. Never seen working: RE1 and RE2, whose layout follows their own code. Not
verified against the official files.

Of RE1 and RE2 ten minutes on either side of the injection are used, as by the collection's own evaluation: two normal
and two faulty windows a case. All columns are kept under their names. The channels are those of all systems together,
so that every window has the same; a metric that a system does not have is an absent channel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from readbench.data.recording import Recording
from readbench.data.source import Channel, CutSource, Protocol, SourceInfo
from readbench.data.sources.files import find_files, fingerprint_files, folder_of
from readbench.data.sources.rcaeval.cases import (
    INJECTION,
    NORMAL_TABLE,
    TABLES,
    Case,
    Collection,
    Metrics,
    cases_of,
    metric_names,
    pattern,
    read_injected,
    read_one_sided,
    sibling,
)
from readbench.errors import SourceMissingError
from readbench.registry import SOURCES

VERSION = 1
"""Raise when the same files give other recordings."""

ONE_GROUP_IN_FIFTEEN = 1 / 15
"""Each fault of RE1 has 15 groups (5 services of 3 systems); the paper's 50 queries are one group of each fault."""


@SOURCES.register("rcaeval", title="RCAEval")
@dataclass(eq=False)
class RcaEval(CutSource):
    """Resource and network faults in microservices, metrics of all services once a second.

    Args:
        collection: which of the collections to read; `auto` takes the first of `re1`, `re2` and `sock-shop-1` that is
            there.
    """

    collection: Literal["auto", "re1", "re2", "sock-shop-1"] = "auto"

    info = SourceInfo(
        name="rcaeval",
        title="RCAEval",
        domain="microservice and telecom operations",
        description=(
            "Microservice applications under load, watched once a second by the metrics of every service: processor, "
            "memory, disk, network, workload, errors and latencies. In each case one fault is injected into one "
            "service; what follows the injection carries the fault, whatever service was hit. Each system has "
            "services of its own, so that most channels of a window are absent. Not verified against the official "
            "files."
        ),
        channels=(),
        faults=(
            "processor hog",
            "memory leak",
            "disk stress",
            "network delay",
            "packet loss",
            "socket exhaustion",
        ),
        protocol=Protocol(length=256, stride=256, label_rule="majority", test_share=ONE_GROUP_IN_FIFTEEN),
        split_unit="service and fault",
        asset_unit="system",
        licence="MIT (RE1, RE2); unclear (Sock Shop 1)",
        citation=(
            "Pham et al. 2025, RCAEval: a benchmark for root cause analysis of microservice systems with telemetry "
            "data, doi:10.5281/zenodo.14590730; Sock Shop 1 from Ikram et al. 2022, Root cause analysis of failures in "
            "microservices through causal discovery, NeurIPS"
        ),
        url="https://doi.org/10.5281/zenodo.14590730",
        size="RE1.zip 390 MB, RE2.zip 4.2 GB",
    )

    def resolved(self, root: Path | None) -> RcaEval:
        """The source with the metrics of all cases under `root` as channels, sorted by name."""
        names = {name for path in self._tables(root) for name in metric_names(path)}
        source = replace(self)
        source.info = replace(self.info, channels=tuple(Channel(name) for name in sorted(names)))
        return source

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all tables and injection times, and of where they lie."""
        collection, cases = self._cases(root)
        tables = self._tables(root)
        notes = [] if collection == "sock-shop-1" else [sibling(case.path, INJECTION) for case in cases]
        return fingerprint_files([*tables, *notes], "rcaeval", VERSION, collection, [case.id for case in cases])

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the cases by group and repetition; a case of Sock Shop 1 is two recordings."""
        info = self.info if self.info.channels else self.resolved(root).info
        axis = tuple(channel.name for channel in info.channels)
        collection, cases = self._cases(root)
        for case in cases:
            if collection == "sock-shop-1":
                normal = sibling(case.path, NORMAL_TABLE)
                yield _recording(f"{case.id}/normal", case, read_one_sided(normal, faulty=False), axis)
                yield _recording(f"{case.id}/anomalous", case, read_one_sided(case.path, faulty=True), axis)
            else:
                yield _recording(case.id, case, read_injected(case.path), axis)

    def _cases(self, root: Path | None) -> tuple[Collection, list[Case]]:
        """The collection to read, and its cases."""
        folder = folder_of(self.info, root)
        wanted = [name for name in TABLES if self.collection in ("auto", name)]
        for collection in wanted:
            try:
                return collection, cases_of(collection, find_files(self.info, root, [pattern(collection)]))
            except SourceMissingError:
                continue
        places = " or ".join(pattern(name).removeprefix("**/") for name in wanted)
        raise SourceMissingError(f"rcaeval: no {places} at any depth in {folder}. Get the files from {self.info.url}")

    def _tables(self, root: Path | None) -> list[Path]:
        collection, cases = self._cases(root)
        tables = [case.path for case in cases]
        normals = [sibling(path, NORMAL_TABLE) for path in tables] if collection == "sock-shop-1" else []
        return [*tables, *normals]


def _recording(identity: str, case: Case, metrics: Metrics, axis: tuple[str, ...]) -> Recording:
    """The metrics on the channels of all systems, the fault's label from its onset on."""
    steps = metrics.values.shape[1]
    values = np.full((len(axis), steps), np.nan)
    values[np.searchsorted(axis, metrics.channels)] = metrics.values
    labels = np.zeros(steps, np.int32)
    labels[metrics.onset :] = case.fault
    return Recording(
        id=identity,
        values=values,
        channels=axis,
        labels=labels,
        group=case.group,
        asset=case.system,
        start=metrics.start,
    )
