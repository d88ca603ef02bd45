"""The three files of a WFDB record as the MIT-BIH database writes them: header, format 212 signals, annotations.

Formats after the WFDB Applications Guide, `header(5)`, `signal(5)` and `annot(5)` (Moody, Pollard and Moody,
https://physionet.org/physiotools/wag/). Only what this database uses is read: one segment, two leads in one file of
format 212, the MIT annotation format. Anything else is refused with the file's name.

This is code of our own, with `wfdb` as the oracle of its tests. Over 18 records, wfdb 4.3 takes 2.3 times as long (0.42
against 0.18 s of CPU; 0.16 s of it on annotations, which take 2 ms here) after 0.5 s of import. It opens no gzipped
file and reads one whose checksum is wrong without a word. To the 35 packages of a plain installation it would add 19,
of some 100 MB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.data.sources.files import open_binary, read_text
from readbench.errors import DataError

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
    lines = [line.strip() for line in read_text(path).splitlines()]
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
    with open_binary(path) as file:
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
    with open_binary(path) as file:
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
