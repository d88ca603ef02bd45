"""MIT-BIH Arrhythmia Database: half-hour ambulatory electrocardiograms of 47 patients, every beat annotated.

Read are `NNN.hea`, `NNN.dat` and `NNN.atr` of PhysioNet's `mitdb` 1.0.0, plain or gzipped, in `mit_bih/` or in folders
below it, such as the one that the official archive unpacks to. Where a file `RECORDS` lies beside them, every record
it lists must be there; a subset is a shorter list. 18 of the 48 official records were seen working.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readbench.data.recording import Cuts, Recording
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.data.sources.files import find_files, fingerprint_files, plain_name, read_text
from readbench.data.sources.mit_bih.format import Annotations, read_annotations, read_header, read_signals
from readbench.errors import DataError, SourceMissingError
from readbench.registry import SOURCES

VERSION = 1
"""Raise when the recordings change although the files do not."""
FREQUENCY = 360.0
HALF = 128
"""Samples before and after the fiducial point of a beat."""
SAME_PATIENT = {"202": "201"}
"""Records 201 and 202 are of one man (Moody and Mark 2001)."""

BEATS: dict[int, str] = dict(enumerate("NLRaVFJASEj/Q", start=1)) | {34: "e", 38: "f"}
"""Annotation code -> symbol of the beats that the database marks (WFDB Applications Guide, Appendix B)."""
OTHER_BEATS: dict[int, str] = {25: "B", 30: "?", 35: "n", 41: "r"}
"""Beats that other databases mark; not in this one, and without a class here."""
AAMI: tuple[str, ...] = ("NLRej", "AaJS", "VE", "F", "/fQ")
"""Symbols of each class, normal first: ANSI/AAMI EC57, with paced beats kept in the last class."""

_CLASS_OF = np.full(64, -1, np.int32)
for _code, _symbol in BEATS.items():
    _CLASS_OF[_code] = next(label for label, symbols in enumerate(AAMI) if _symbol in symbols)


@SOURCES.register("mit_bih", title="MIT-BIH")
class MitBih:
    """Heartbeats of the MIT-BIH Arrhythmia Database, one window around each, split by patient."""

    info: ClassVar[SourceInfo] = SourceInfo(
        name="mit_bih",
        title="MIT-BIH",
        domain="physiological and general signals",
        description=(
            "Two-lead ambulatory electrocardiograms of half an hour each, sampled at 360 Hz. The first lead is a "
            "modified limb lead II in most records and V5 in three, the second mostly V1, else V2, V4, V5 or MLII; "
            "channels are named by position. Cardiologists marked and classified every beat. A window is cut "
            "around each beat, 128 samples to either side, and takes the strict majority class of the beats inside, "
            "normal on a tie. Classes group the beats as ANSI/AAMI EC57 does; normal includes bundle branch blocks and "
            "escape beats, and paced beats stay with the unclassifiable ones."
        ),
        channels=(
            Channel("lead_0", "mV", "first lead: MLII, in 102, 104 and 114 V5"),
            Channel("lead_1", "mV", "second lead: V1 in most records, else V2, V4, V5 or MLII"),
        ),
        faults=(
            "supraventricular ectopic beat",
            "ventricular ectopic beat",
            "fusion of ventricular and normal beat",
            "paced or unclassifiable beat",
        ),
        protocol=Protocol(length=2 * HALF, label_rule="native"),
        split_unit="patient",
        asset_unit="patient",
        licence="ODC-By-1.0",
        citation=(
            "Moody and Mark, IEEE Eng. Med. Biol. Mag. 20 (2001) 45-50; Goldberger et al., Circulation 101 (2000) "
            "e215-e220"
        ),
        url="https://physionet.org/content/mitdb/1.0.0/",
        size="48 records, 104 MB",
        verified=True,
        redistributable=True,
    )

    def fingerprint(self, root: Path | None) -> str:
        """Hash of headers, signals and annotations."""
        files = [file for header in self._headers(root) for file in _files_of(header)]
        return fingerprint_files(files, VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """One recording per record, in the order of their numbers; a window around each beat."""
        for path in self._headers(root):
            yield _recording(*_files_of(path))

    def _headers(self, root: Path | None) -> list[Path]:
        paths: dict[str, Path] = {}
        for path in find_files(self.info, root, ["**/[12][0-9][0-9].hea"]):
            if (other := paths.setdefault(_record(path), path)) != path:
                raise DataError(f"{path}: record {_record(path)} is also in {other.parent}. Keep one of the two.")
        for folder in sorted({path.parent for path in paths.values()}):
            _check_list(folder, paths)
        return [paths[record] for record in sorted(paths)]


def beat_windows(beats: NDArray[np.int64], classes: NDArray[np.int32], steps: int) -> Cuts:
    """The window around each beat that fits, labelled by the strict majority of the beats inside, else normal.

    Args:
        beats: (B,) ascending sample indices.
        classes: (B,) class of each beat.
        steps: length of the record.

    >>> cuts = beat_windows(np.array([100, 200, 300, 700]), np.array([0, 2, 0, 1], np.int32), 1000)
    >>> cuts.starts.tolist(), cuts.labels.tolist()
    ([72, 172, 572], [0, 0, 1])
    """
    starts = beats - HALF
    starts = starts[(starts >= 0) & (beats + HALF <= steps)]
    first = np.searchsorted(beats, starts)
    last = np.searchsorted(beats, starts + 2 * HALF)
    seen = np.zeros((len(beats) + 1, len(AAMI)), np.intp)
    np.cumsum(classes[:, None] == np.arange(len(AAMI)), axis=0, out=seen[1:])
    counts = seen[last] - seen[first]
    wins = 2 * counts.max(axis=1) > last - first
    return Cuts(starts.astype(np.intp), np.where(wins, counts.argmax(axis=1), 0).astype(np.int32))


def _recording(header_file: Path, signal_file: Path, annotation_file: Path) -> Recording:
    header = read_header(header_file)
    if header.frequency != FREQUENCY:
        raise DataError(f"{header_file}: {header.frequency:g} Hz, but this database is sampled at {FREQUENCY:g} Hz.")
    values = read_signals(signal_file, header)
    steps = values.shape[1]
    beats, classes = _beats(annotation_file, read_annotations(annotation_file), steps)
    record = _record(header_file)
    patient = f"patient-{SAME_PATIENT.get(record, record)}"
    middles = (beats[1:] + beats[:-1] + 1) // 2
    return Recording(
        id=record,
        values=values,
        channels=tuple(channel.name for channel in MitBih.info.channels),
        labels=classes[np.searchsorted(middles, np.arange(steps), side="right")],
        group=patient,
        asset=patient,
        start=0.0,
        step=1 / FREQUENCY,
        cuts=beat_windows(beats, classes, steps),
    )


def _beats(path: Path, marks: Annotations, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sample and class of each beat; rhythm changes, noise and other marks are left out."""
    foreign = np.flatnonzero(np.isin(marks.codes, list(OTHER_BEATS)))
    if foreign.size:
        symbol = OTHER_BEATS[int(marks.codes[foreign[0]])]
        raise DataError(f"{path}: annotation {foreign[0]} is a beat {symbol!r}, which this database does not have.")
    is_beat = _CLASS_OF[marks.codes] >= 0
    beats, classes = marks.samples[is_beat], _CLASS_OF[marks.codes[is_beat]]
    if not len(beats):
        raise DataError(f"{path}: no beat is annotated. The file is damaged or of another annotator.")
    back = np.flatnonzero(np.diff(beats) <= 0)
    if back.size:
        raise DataError(f"{path}: beat {back[0] + 1} is not after the one before (sample {beats[back[0] + 1]}).")
    if beats[0] < 0 or beats[-1] >= steps:
        raise DataError(f"{path}: beats at samples {beats[0]} to {beats[-1]} lie outside the {steps} of the record.")
    return beats, classes


def _record(header_file: Path) -> str:
    return plain_name(header_file.name).removesuffix(".hea")


def _files_of(header_file: Path) -> tuple[Path, Path, Path]:
    """Header, signals and annotations of a record."""
    return header_file, _beside(header_file, "dat"), _beside(header_file, "atr")


def _beside(header_file: Path, suffix: str) -> Path:
    plain = header_file.with_name(f"{_record(header_file)}.{suffix}")
    for path in (plain, plain.with_name(f"{plain.name}.gz")):
        if path.is_file():
            return path
    raise SourceMissingError(f"{plain} is missing beside {header_file.name}. Get it from {MitBih.info.url}")


def _check_list(folder: Path, headers: dict[str, Path]) -> None:
    """Every record that RECORDS lists must be there."""
    listing = folder / "RECORDS"
    if not listing.is_file():
        return
    missing = [record for record in read_text(listing).split() if record not in headers]
    if missing:
        raise SourceMissingError(
            f"{listing}: records {', '.join(missing)} are listed but not there. Get them from {MitBih.info.url}, or "
            "take them off the list to use a subset."
        )
