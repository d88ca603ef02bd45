"""Which captures of ROAD are there, in which form, what was attacked in them and when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from readbench.data.sources.files import plain_name, read_text
from readbench.errors import DataError

Form = Literal["signals", "log", "untimed"]

FAMILIES = (
    "accelerator",
    "correlated_signal",
    "max_engine_coolant_temp",
    "max_speedometer",
    "reverse_light_off",
    "reverse_light_on",
)
WHOLE = "accelerator"
"""The family whose captures are abnormal from begin to end: the car was compromised before, nothing is injected."""
LEFT_OUT = "fuzzing"
"""Random frames on all ids: published as a log only, without extracted signals, and no class here."""
OFFICIAL = (
    *(f"accelerator_attack_{gear}_{number}" for gear in ("drive", "reverse") for number in (1, 2)),
    *(f"correlated_signal_attack_{number}" for number in (1, 2, 3)),
    "max_engine_coolant_temp_attack",
    *(f"max_speedometer_attack_{number}" for number in (1, 2, 3)),
    *(f"reverse_light_{state}_attack_{number}" for state in ("off", "on") for number in (1, 2, 3)),
)
"""The 17 attack captures of the six families."""
PATTERNS: dict[Form, tuple[str, ...]] = {
    "signals": ("**/signal_extractions/attacks/*.csv", "**/signal_extractions/ambient/*.csv"),
    "log": ("**/attacks/*.log", "**/ambient/*.log"),
    "untimed": ("**/attacks_untimed/*.csv",),
}
"""Where captures lie, the best form first."""

_ATTACK = re.compile(rf"({'|'.join((*FAMILIES, LEFT_OUT))})_attack(_drive|_reverse)?(_\d+)?(_masquerade)?")
_MASQUERADE = "_masquerade"


@dataclass(frozen=True)
class Capture:
    """One recorded drive.

    Args:
        name: as its file is called.
        family: of the attack; "" for ambient driving.
        group: the capture that it is a variant of.
        form: signals already extracted, a log with times, or frames without.
        path: its file.
        interval: begin and end of the attack in seconds since the start, where known.
        elapsed: length in seconds, where known.
    """

    name: str
    family: str
    group: str
    form: Form
    path: Path
    interval: tuple[float, float] | None = None
    elapsed: float | None = None


def choose_captures(files: Iterable[tuple[Form, Path]], metadata: dict[str, dict[str, Any]]) -> list[Capture]:
    """One capture per group, sorted by group: the masquerade variant where there is one, in its best form.

    In a masquerade, the frames that the attacker displaces are removed; otherwise both are on the bus and the signal
    flickers. The two variants share all other frames, so only one of them may be used. Extracted signals may be
    scaled, so they are never mixed with decoded frames.
    """
    chosen: dict[str, Capture] = {}
    for form, path in files:
        capture = _capture(form, path, metadata)
        if capture.family == LEFT_OUT:
            continue
        chosen[capture.group] = min(chosen.get(capture.group, capture), capture, key=_preference)
    extracted = [capture for capture in chosen.values() if capture.form == "signals"]
    frames = sorted(capture.name for capture in chosen.values() if capture.form != "signals")
    if extracted and frames:
        raise DataError(
            f"{extracted[0].path.parent} holds extracted signals, but none of {', '.join(frames)}. Complete "
            "signal_extractions/, or remove its CSV files, so that all captures are decoded from their frames."
        )
    return [chosen[group] for group in sorted(chosen)]


def read_metadata(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """What capture_metadata.json (or metadata.json) files say, by capture; later files go before earlier ones."""
    merged: dict[str, dict[str, Any]] = {}
    for path in paths:
        try:
            content = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON ({error}). Get the file again.") from error
        if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
            raise DataError(f"{path}: expected one object per capture, by name. Get the file again.")
        merged.update(content)
    return merged


def _capture(form: Form, path: Path, metadata: dict[str, dict[str, Any]]) -> Capture:
    name = Path(plain_name(path.name)).stem
    entry = metadata.get(name, {})
    match = _ATTACK.fullmatch(name)
    if not match and path.parent.name != "ambient":
        raise DataError(f"{path}: not the name of an attack capture; they are called {', '.join(OFFICIAL[::4])} ...")
    group = entry.get("capture_group", name.removesuffix(_MASQUERADE))
    if not isinstance(group, str):
        raise DataError(f"Metadata of {name}: capture_group must be a name, got {group!r}.")
    return Capture(
        name=name,
        family=match[1] if match else "",
        group=group,
        form=form,
        path=path,
        interval=_interval(name, entry.get("injection_interval")),
        elapsed=_seconds(name, entry.get("elapsed_sec")),
    )


def _preference(capture: Capture) -> tuple[bool, int]:
    return not capture.name.endswith(_MASQUERADE), list(PATTERNS).index(capture.form)


def _interval(name: str, value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2:
        begin, end = (_seconds(name, item) for item in value)
        if begin is not None and end is not None and begin <= end:
            return begin, end
    raise DataError(f"Metadata of {name}: injection_interval must be [begin, end] in seconds, got {value!r}.")


def _seconds(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6:
        return float(value)
    raise DataError(f"Metadata of {name}: {value!r} is no time in seconds since the start of the capture.")
