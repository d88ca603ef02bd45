"""MIT-BIH Arrhythmia Database: half-hour ambulatory electrocardiograms of 47 patients, every beat annotated.

Read are `NNN.hea`, `NNN.dat` and `NNN.atr` of PhysioNet's `mitdb` 1.0.0, plain or gzipped, in `mit_bih/` or in folders
below it, such as the one that the official archive unpacks to. Where a file `RECORDS` lies beside them, every record
it lists must be there; a subset is a shorter list. 18 of the 48 official records were seen working.

The three files of a record are header, signals and annotations, in the formats of the WFDB Applications Guide,
`header(5)`, `signal(5)` and `annot(5)` (Moody, Pollard and Moody, https://physionet.org/physiotools/wag/). Only what
this database uses is read: one segment, two leads in one file of format 212, the MIT annotation format. Anything else
is refused with the file's name.

The reader is our own, with `wfdb` as the oracle of its tests. Over 18 records, wfdb 4.3 takes 2.3 times as long (0.42
against 0.18 s of CPU; 0.16 s of it on annotations, which take 2 ms here) after 0.5 s of import. It opens no gzipped
file and reads one whose checksum is wrong without a word. To the 35 packages of a plain installation it would add 19,
of some 100 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import BeforeSource, Cuts, Protocol, Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.preparation import fill_gaps, is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError, SourceMissingError

LEADS = 2
INVALID = -2048
"""Format 212 writes this for a sample that was not read."""
DEFAULT_GAIN = 200.0
"""ADC units per mV where a header gives none (or 0), as the guide prescribes."""

_GAIN = re.compile(r"([\d.eE+-]+)(?:\((-?\d+)\))?(?:/(\S+))?")
_LAST_ANNOTATION, _SKIP, _NUM, _CHN, _AUX = 49, 59, 60, 62, 63


@dataclass(frozen=True)
class Lead:
    """One signal: mV = (ADC value - baseline) / gain; the checksum is the sum of all ADC values modulo 2**16."""

    name: str
    gain: float
    baseline: int
    checksum: int


@dataclass(frozen=True)
class Header:
    """What a `.hea` file says: sampling frequency in Hz, samples per lead, the two leads."""

    frequency: float
    samples: int
    leads: tuple[Lead, ...]


@dataclass(frozen=True, eq=False)
class Annotations:
    """Sample index (A,) and code (A,) of each annotation, in the order of the file."""

    samples: NDArray[np.int64]
    codes: NDArray[np.int64]


def read_header(path: Path) -> Header:
    """Read a `.hea` file."""
    lines = [line.strip() for line in _files.read_text(path).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise DataError(f"{path}: the header is empty. Get the file again.")
    if len(lines) != 1 + LEADS:
        raise DataError(f"{path}: {len(lines) - 1} signal lines, but a record of this database has {LEADS}.")
    frequency, samples = _parse_record_line(path, lines[0])
    return Header(frequency, samples, tuple(_parse_lead_line(path, line) for line in lines[1:]))


def read_signals(path: Path, header: Header) -> NDArray[np.float32]:
    """Both leads (2, T) in mV from a format 212 file, NaN where a sample was not read.

    Three bytes hold one 12-bit two's complement sample of each lead. The size and the checksums of the header are
    compared, so a truncated or altered file does not pass.
    """
    with _files.open_binary(path) as file:
        content = file.read()
    if len(content) != 3 * header.samples:
        raise DataError(
            f"{path}: {len(content)} bytes, but the header promises {header.samples} samples ({3 * header.samples} "
            "bytes). The file is incomplete or of another version: get it again."
        )
    adc = _unpack_212(np.frombuffer(content, np.uint8))
    for lead, raw in zip(header.leads, adc, strict=True):
        if (int(raw.sum(dtype=np.int64)) - lead.checksum) % 2**16:
            raise DataError(f"{path}: lead {lead.name} does not match the checksum in its header. Get the file again.")
    baseline = np.array([lead.baseline for lead in header.leads], np.float64)[:, None]
    gain = np.array([lead.gain for lead in header.leads], np.float64)[:, None]
    return np.where(adc == INVALID, np.nan, (adc - baseline) / gain).astype(np.float32)


def read_annotations(path: Path) -> Annotations:
    """Read an annotation file of the MIT format.

    It is a sequence of 16-bit words: 6 bits code, 10 bits samples since the last annotation. A SKIP word is followed
    by an interval of 32 bits, an AUX word by text; NUM, SUB and CHN words qualify an annotation and take no time.
    """
    with _files.open_binary(path) as file:
        content = file.read()
    if len(content) % 2:
        raise DataError(f"{path}: {len(content)} bytes are no whole number of 16-bit words. Get the file again.")
    words = np.frombuffer(content, "<u2").astype(np.int64)
    codes, steps = words >> 10, words & 0x3FF
    plain, skips = _layout(path, codes, steps)
    end = np.flatnonzero(plain & (words == 0))
    if not end.size:
        raise DataError(f"{path}: no end mark after {len(words)} words. The file is incomplete: get it again.")
    plain[end[0] :] = False
    unknown = np.flatnonzero(plain & (codes > _LAST_ANNOTATION) & (codes < _SKIP))
    if unknown.size:
        raise DataError(f"{path}: word {unknown[0]} has the undefined code {codes[unknown[0]]}. Get the file again.")
    annotation = plain & (codes <= _LAST_ANNOTATION)
    advance = np.where(annotation, steps, 0)
    skips = skips[plain[skips]]
    advance[skips] = _intervals(words, skips)
    return Annotations(np.cumsum(advance)[annotation], codes[annotation])


def _parse_record_line(path: Path, line: str) -> tuple[float, int]:
    fields = line.split()
    try:
        leads, frequency, samples = int(fields[1]), float(fields[2].split("/")[0]), int(fields[3])
    except (IndexError, ValueError) as error:
        raise DataError(
            f"{path}: expected 'record leads frequency samples' in the first line, got {line!r}."
        ) from error
    if leads != LEADS or samples < 1 or not frequency > 0:
        raise DataError(f"{path}: {line!r} is no record of {LEADS} leads with a frequency and a number of samples.")
    return frequency, samples


def _parse_lead_line(path: Path, line: str) -> Lead:
    fields = line.split(maxsplit=8)
    match = _GAIN.fullmatch(fields[2]) if len(fields) == 9 else None
    try:
        gain, baseline, unit = match.groups() if match else ("", None, None)
        lead = Lead(fields[-1], float(gain) or DEFAULT_GAIN, int(baseline or fields[4]), int(fields[6]))
    except ValueError as error:
        raise DataError(
            f"{path}: expected 'file format gain resolution zero first checksum block lead', got {line!r}."
        ) from error
    if fields[1] != "212" or not 1 <= lead.gain <= 1e5 or unit not in (None, "mV") or abs(lead.baseline) > 2**15:
        raise DataError(f"{path}: {line!r} is not a signal of format 212 in mV, as this database has them.")
    return lead


def _unpack_212(content: NDArray[np.uint8]) -> NDArray[np.int16]:
    """(2, T) ADC values of 3 T bytes."""
    low, shared, high = content.reshape(-1, 3).T.astype(np.int16)
    adc = np.stack([low | (shared & 0x0F) << 8, high | (shared & 0xF0) << 4])
    adc -= (adc & 0x800) << 1
    return adc


def _layout(
    path: Path, codes: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which words are words of their own, not the data behind a SKIP or AUX word; and where the SKIP words are."""
    plain = np.ones(len(codes), bool)
    skips = []
    for word in np.flatnonzero((codes == _SKIP) | (codes == _AUX)).tolist():
        if not plain[word]:
            continue
        follow = 2 if codes[word] == _SKIP else (int(steps[word]) + 1) // 2
        if word + follow >= len(codes):
            raise DataError(f"{path}: the data behind word {word} are cut off. The file is incomplete: get it again.")
        plain[word + 1 : word + 1 + follow] = False
        if codes[word] == _SKIP:
            skips.append(word)
    return plain, np.array(skips, np.intp)


def _intervals(words: NDArray[np.int64], skips: NDArray[np.intp]) -> NDArray[np.int64]:
    """Signed 32-bit intervals behind the SKIP words, high word first."""
    interval = words[skips + 1] << 16 | words[skips + 2]
    return interval - ((interval >> 31) << 32)


VERSION = 1
"""Raise when the recordings change although the files do not."""
FREQUENCY = 360.0
HALF = 128
"""Samples before and after the fiducial point of a beat."""
BEATS_BEFORE = 16
"""Preceding beats that tell what is usual: normal ones for the time before a window, any for the interval of beats."""
RENEWED = 8
"""Normal beats after which the time before is taken anew: windows in between share one."""
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
class MitBih(BeforeSource):
    """Heartbeats of the MIT-BIH Arrhythmia Database, one window around each, split by patient.

    The time before a window are the windows of the patient's latest normal beats before it, end to end (`onset`), or
    the samples just before it (`preceding`).
    """

    info = read_info(__name__, "mit_bih", length=2 * HALF, before_steps=BEATS_BEFORE * 2 * HALF)

    def fingerprint(self, root: Path | None) -> str:
        """Hash of headers, signals and annotations."""
        files = [file for header in self._headers(root) for file in _files_of(header)]
        return _files.fingerprint_files(files, VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """One recording per record, in the order of their numbers; a window around each beat."""
        for path in self._headers(root):
            yield _recording(*_files_of(path), self.info.protocol)

    def _headers(self, root: Path | None) -> list[Path]:
        paths = _files.name_each(
            _files.find_files(self.info, root, ["**/[12][0-9][0-9].hea"]), _files.plain_stem, "record is"
        )
        for folder in sorted({path.parent for path in paths.values()}):
            _check_list(folder, paths)
        return [path for _, path in sorted(paths.items())]


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


def normal_beats_before(
    starts: NDArray[np.intp], beats: NDArray[np.int64], classes: NDArray[np.int32], most: int
) -> list[NDArray[np.int64]]:
    """The latest normal beats before each window whose own windows do not overlap it; fewer than 2 count as none.

    Args:
        starts: (W,) first steps of the windows.
        beats: (B,) ascending sample indices.
        classes: (B,) class of each beat.
        most: so many of them.

    >>> beats, classes = np.array([200, 500, 800, 1100]), np.array([0, 0, 2, 0], np.int32)
    >>> [own.tolist() for own in normal_beats_before(beats - HALF, beats, classes, 16)]
    [[], [], [200, 500], [200, 500]]
    """
    normal = beats[(classes == 0) & (beats >= HALF)]
    known = np.searchsorted(normal, starts - HALF, side="right")
    known = np.where(known < RENEWED, known, known - known % RENEWED)
    return [normal[max(0, count - most) : count] if count > 1 else normal[:0] for count in known.tolist()]


def interval_ratios(beats: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(B,) intervals to the beat before and to the next one, over the median of the preceding intervals.

    Preceding are up to 16 intervals that lie before both; NaN where there is none.

    >>> before, after = interval_ratios(np.array([0, 100, 200, 250, 400]))
    >>> before.tolist(), after.tolist()
    ([nan, nan, 1.0, 0.5, 1.5], [nan, nan, 0.5, 1.5, nan])
    """
    intervals = np.diff(beats, prepend=np.nan, append=np.nan)
    padded = np.concatenate([np.full(BEATS_BEFORE, np.nan), intervals[:-1]])
    preceding = np.lib.stride_tricks.sliding_window_view(padded, BEATS_BEFORE)[: len(beats)]
    usual = np.full(len(beats), np.nan)
    known = np.isfinite(preceding).any(axis=1)
    usual[known] = np.nanmedian(preceding[known], axis=1)
    return intervals[:-1] / usual, intervals[1:] / usual


def _recording(header_file: Path, signal_file: Path, annotation_file: Path, protocol: Protocol) -> Recording:
    header = read_header(header_file)
    if header.frequency != FREQUENCY:
        raise DataError(f"{header_file}: {header.frequency:g} Hz, but this database is sampled at {FREQUENCY:g} Hz.")
    values = read_signals(signal_file, header)
    steps = values.shape[1]
    beats, classes = _beats(annotation_file, read_annotations(annotation_file), steps)
    record = _files.plain_stem(header_file)
    patient = f"patient-{SAME_PATIENT.get(record, record)}"
    cuts = beat_windows(beats, classes, steps)
    own = np.searchsorted(beats, cuts.starts + HALF)
    ratios = dict(zip(("rr_before", "rr_after"), interval_ratios(beats), strict=True))
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
        cuts=replace(
            cuts,
            befores=_befores(values, cuts.starts, beats, classes, protocol),
            facts={name: ratio[own] for name, ratio in ratios.items()},
        ),
        rate=FREQUENCY,
    )


def _befores(
    values: NDArray[np.float32],
    starts: NDArray[np.intp],
    beats: NDArray[np.int64],
    classes: NDArray[np.int32],
    protocol: Protocol,
) -> tuple[NDArray[np.float32] | None, ...] | None:
    """The windows of normal beats before each window, end to end; None where the rule takes other rows, or none."""
    if protocol.before != "onset":
        return None
    taken: dict[bytes, NDArray[np.float32] | None] = {b"": None}
    chosen = normal_beats_before(starts, beats, classes, protocol.before_steps // (2 * HALF))
    for usual in chosen:
        if usual.tobytes() not in taken:
            rows = values[:, (usual[:, None] + np.arange(-HALF, HALF)).ravel()]
            taken[usual.tobytes()] = fill_gaps(rows, is_reading(rows)).astype(np.float32)
    return tuple(taken[usual.tobytes()] for usual in chosen)


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


def _files_of(header_file: Path) -> tuple[Path, Path, Path]:
    """Header, signals and annotations of a record."""
    names = (f"{_files.plain_stem(header_file)}.{ending}" for ending in ("dat", "atr"))
    signals, marks = (_files.find_beside(MitBih.info, header_file, name) for name in names)
    return header_file, signals, marks


def _check_list(folder: Path, headers: dict[str, Path]) -> None:
    """Every record that RECORDS lists must be there."""
    listing = folder / "RECORDS"
    if not listing.is_file():
        return
    missing = [record for record in _files.read_text(listing).split() if record not in headers]
    if missing:
        raise SourceMissingError(
            f"{listing}: records {', '.join(missing)} are listed but not there. Get them from {MitBih.info.url}, or "
            "take them off the list to use a subset."
        )
