"""TelecomTS: a private 5G network in windows of 128 steps, jammed for real or disturbed by injected anomalies.

Layout: `chunked.jsonl` files in `telecomts/` at any depth, plain or gzipped, officially
`anomalous/jammer/<application>/processed/`, `anomalous/synthetic/<zone>/<application>/processed/`,
`normal/mobile/<application>/processed/` and `normal/stationary/<zone>/<congestion>/<application>/processed/`. One JSON
object a line; read are `KPIs` (18 lists of 128 values, two of them names of protocols: TCP is 0, UDP 1, anything else
2), `anomalies` (`exists` and `type`) and the zone in `labels`. Not verified against the official files, none of which
was seen here; written from the dataset's description and its loader.

Only jamming was observed; the ten other kinds were injected into recorded windows by the authors. Windows are held out
one by one, as in the benchmark's paper, so that neighbours in time may stand on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Recording, read_info
from readbench.benchmark.sources import _files
from readbench.engine.preparation import is_reading
from readbench.engine.registry import SOURCES
from readbench.errors import DataError

VERSION = 1
"""Raise when the same files give other recordings."""

STEPS = 128
PROTOCOLS = {"TCP": 0.0, "UDP": 1.0}
OTHER_PROTOCOL = 2.0
KINDS = (
    "Jamming",
    "Antenna Failure",
    "Co-Channel Interference (Mild)",
    "Co-Channel Interference (Severe)",
    "Faulty RF Filters (Temporal)",
    "Doppler Shift (Severe)",
    "Faulty Handover Algorithm (Too Frequent)",
    "Buffer Overflow (Gradual Buildup)",
    "Resource Allocation Bugs",
    "High Network Congestion (Gradual Buildup)",
    "High Network Congestion (Sudden Spike)",
)
"""Kinds of anomaly as the files spell them: classes 1 to 11."""
FACTS = read_info(__name__, "telecomts", faults=tuple(kind.lower() for kind in KINDS), length=STEPS)
NAMES = tuple(channel.name for channel in FACTS.channels)


@SOURCES.register("telecomts", title="TelecomTS")
class TelecomTs:
    """Eleven kinds of anomalies in a 5G network, 18 indicators over 128 steps."""

    info = FACTS

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the contents and places of all files."""
        files = self._files(root)
        return _files.fingerprint_files(files.values(), "telecomts", VERSION, list(files))

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the windows, file by file, line by line."""
        for place, path in self._files(root).items():
            for line, record in _records(path):
                yield _recording(f"{path}, line {line}", f"{place}:{line:05d}", record)

    def _files(self, root: Path | None) -> dict[str, Path]:
        """All files by their place, from `anomalous` or `normal` on."""
        return _files.name_each(_files.find_files(self.info, root, ["**/chunked.jsonl"]), _place, "windows are")


def _place(path: Path) -> str:
    """Where a file lies, without the folder `processed`.

    >>> _place(Path("data/telecomts/normal/mobile/Twitch/processed/chunked.jsonl"))
    'normal/mobile/Twitch'
    """
    folders = [folder for folder in path.parent.parts if folder != "processed"]
    begins = [k for k, folder in enumerate(folders) if folder in ("anomalous", "normal")]
    if not begins:
        raise DataError(f"{path}: not below a folder anomalous/ or normal/. Keep the folders of the dataset.")
    return "/".join(folders[begins[-1] :])


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each line that is not empty; at least one."""
    found = False
    with _files.open_binary(path) as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield line, _files.parse_json(f"{path}, line {line}", text)
                found = True
    if not found:
        raise DataError(f"{path}: no windows in it. The file is empty: get it again.")


def _recording(where: str, name: str, record: object) -> Recording:
    indicators, anomalies = _member(where, record, "KPIs"), _member(where, record, "anomalies")
    values = np.stack([_series(where, kpi, indicators.get(kpi)) for kpi in NAMES])
    if not is_reading(values).any():
        raise DataError(f"{where}: no indicator has any value. Remove the line, or get the file again.")
    return Recording(
        id=name,
        values=values,
        channels=NAMES,
        labels=np.full(STEPS, _label(where, anomalies), np.int32),
        group=name,
        asset=str(_member(where, record, "labels").get("zone") or ""),
    )


def _member(where: str, record: object, name: str) -> dict[str, Any]:
    member = record.get(name) if isinstance(record, dict) else None
    if not isinstance(member, dict):
        raise DataError(f"{where}: no object {name!r} in it. The line is of another kind: get the file again.")
    return member


def _label(where: str, anomalies: dict[str, Any]) -> int:
    exists, kind = anomalies.get("exists"), anomalies.get("type")
    if not isinstance(exists, bool):
        raise DataError(f"{where}: anomalies.exists is {exists!r}, not true or false. Get the file again.")
    if not exists:
        return 0
    if kind not in KINDS:
        raise DataError(f"{where}: anomaly of type {kind!r}, which is none of {', '.join(KINDS)}. Get the file again.")
    return KINDS.index(kind) + 1


def _series(where: str, name: str, values: object) -> NDArray[np.float64]:
    """(128,) one indicator; null is a gap."""
    if not isinstance(values, list) or len(values) != STEPS:
        found = f"{len(values)} values" if isinstance(values, list) else "no list"
        raise DataError(f"{where}: indicator {name} has {found}, expected {STEPS}. Get the file again.")
    if name.endswith("_Protocol"):
        return np.array([np.nan if v is None else PROTOCOLS.get(str(v), OTHER_PROTOCOL) for v in values])
    return _files.number_list(where, name, values)
