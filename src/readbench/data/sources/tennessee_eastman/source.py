"""Tennessee Eastman process: a simulated chemical plant under twenty disturbances.

Two layouts, in `tennessee_eastman/` or a folder in it:

* Rieth et al. 2017: `TEP_FaultFree_Training`, `TEP_Faulty_Training`, `TEP_FaultFree_Testing` and `TEP_Faulty_Testing`,
  each as `.RData` (as published) or `.csv` (plain or gzipped), with the columns faultNumber, simulationRun, sample,
  xmeas_1 to xmeas_41 and xmv_1 to xmv_11. CSV tables are read run by run. An `.RData` table stores column after column:
  it goes through a temporary file of 4 bytes per number (2 GB for the largest one) in the system's temporary folder,
  never through memory as a whole. Read here: CSV tables of this layout from own runs of the same simulator, the same
  tables as RData, and small RData files written by R. Never seen working: the published files themselves.
* Russell, Chiang and Braatz 2000: `d00.dat` to `d20.dat` and `d00_te.dat` to `d20_te.dat`, one run per fault and side,
  plain or gzipped; all read here. `d21` holds a fault outside the twenty and is left out.

A fault's label starts at its onset; neither layout marks the transient after it apart. After a shutdown of the plant
the published runs repeat their last state to the end (fault 6 always, 18 often).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from readbench.data.recording import Recording
from readbench.data.source import CutSource, Protocol, SourceInfo
from readbench.data.sources.files import fingerprint_files, folder_of
from readbench.data.sources.tennessee_eastman.facts import CHANNELS, FAULTS
from readbench.data.sources.tennessee_eastman.files import (
    NAMES,
    PLACES,
    Run,
    find_single_runs,
    find_tables,
    single_run,
    table_runs,
)
from readbench.parameters import Interval
from readbench.registry import SOURCES

VERSION = 1
"""Raise when the same files give other recordings."""

Layout = Literal["auto", "rieth", "braatz"]
SAMPLING = 180.0  # s


@SOURCES.register("tennessee_eastman", title="Tennessee Eastman")
@dataclass(eq=False)
class TennesseeEastman(CutSource):
    """Simulated chemical plant, 52 channels, 20 disturbances; training runs make the corpus, testing runs the queries.

    Args:
        layout: `rieth` (many runs per fault), `braatz` (one), or `auto`: `rieth` where any of its tables is there.
        runs: simulation runs with a number above this are left out; all are read by default. The published tables have
            500 per fault and side, which make about 14 GB of windows.
    """

    layout: Layout = "auto"
    runs: Annotated[int | None, Interval(1)] = None

    info = SourceInfo(
        name="tennessee_eastman",
        title="Tennessee Eastman",
        domain="industrial control",
        description=(
            "A simulated chemical plant with reactor, condenser, separator, stripper and compressor under closed-loop "
            "control. 41 measurements and 11 manipulated variables are sampled every three minutes; compositions are "
            "analysed more slowly and look like stairs. In each faulty run one of twenty disturbances sets in after "
            "one hour (training) or eight hours (testing) and stays. Disturbances are steps, random variation, slow "
            "drift, sticking valves and five whose nature is not told. Faults 3, 9 and 15 hardly show in any channel."
        ),
        channels=CHANNELS,
        faults=FAULTS,
        protocol=Protocol(length=256, stride=48, normal_stride=10, label_rule="majority", native_split=True),
        split_unit="simulation run",
        asset_unit="",
        licence="CC0-1.0 (Rieth et al.); University of Illinois permissive licence (Russell, Chiang and Braatz)",
        citation=(
            "Downs and Vogel 1993, A plant-wide industrial process control problem, Computers & Chemical Engineering "
            "17(3):245-255; Rieth et al. 2017, Additional Tennessee Eastman process simulation data for anomaly "
            "detection evaluation, Harvard Dataverse, doi:10.7910/DVN/6C3JR1"
        ),
        url="https://doi.org/10.7910/DVN/6C3JR1",
        size="four RData files, 1.4 GB",
        verified=True,
        redistributable=True,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents of the files of the layout that is read, and of the limit on runs."""
        if self._has_tables(root):
            files = [path for _, path in find_tables(self.info, root)]
        else:
            files = find_single_runs(self.info, root)
        return fingerprint_files(files, "tennessee_eastman", VERSION, self.runs)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the runs: training before testing, as they stand in the files."""
        runs = self._table_runs(root) if self._has_tables(root) else map(single_run, find_single_runs(self.info, root))
        for run in runs:
            if self.runs is None or run.number <= self.runs:
                yield _recording(run)

    def _has_tables(self, root: Path | None) -> bool:
        """Whether the layout of Rieth et al. is the one to read; a part of it that is missing is missed later."""
        if self.layout != "auto":
            return self.layout == "rieth"
        folder = folder_of(self.info, root)
        return any(path for place in PLACES for path in folder.glob(f"{place}TEP_Fault*"))

    def _table_runs(self, root: Path | None) -> Iterator[Run]:
        for part, path in find_tables(self.info, root):
            yield from table_runs(path, part)


def _recording(run: Run) -> Recording:
    name = f"{run.side}/fault-{run.fault:02d}/run-{run.number:03d}"
    labels = np.zeros(run.values.shape[1], np.int32)
    labels[run.onset :] = run.fault
    return Recording(
        id=name, values=run.values, channels=NAMES, labels=labels, group=name, step=SAMPLING, side=run.side
    )
