"""The fingerprint of a set of windows: every fact counts, where values are stored does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from readbench.engine.context import Context
from readbench.engine.preparation import ChannelStats
from readbench.engine.testing import sample_windows
from readbench.engine.testing._samples import CLASSES
from readbench.engine.windows import WindowSet, concatenate, strings


def _relabelled(windows: WindowSet) -> WindowSet:
    labels = windows.labels.copy()
    labels[1] = 3 - labels[1]
    return replace(windows, labels=labels)


def _renamed(windows: WindowSet, column: str) -> WindowSet:
    values = getattr(windows, column).tolist()
    values[1] += "'"
    return replace(windows, **{column: strings(values, len(windows))})  # type: ignore[arg-type]


def _nudged(windows: WindowSet) -> WindowSet:
    flat = windows.chunks[0].copy()
    flat[7] = np.nextafter(flat[7], np.float32(np.inf))
    return replace(windows, chunks=(flat,))


def _later(windows: WindowSet) -> WindowSet:
    times = windows.times.copy()
    times[1] = np.nextafter(times[1], np.inf)
    return replace(windows, times=times)


def _reshaped(windows: WindowSet) -> WindowSet:
    """Window 1 with the same numbers in the same order, as 2 x 6 instead of 3 x 4."""
    return replace(
        windows,
        lengths=np.array([4, 6, 4], np.int32),
        channel_sets=(*windows.channel_sets, ("a", "b")),
        channel_set=np.array([0, 1, 0], np.int32),
    )


STORAGE = {"chunk", "offset"}
"""Where values lie; the same windows stored otherwise are the same windows."""
CHANGES: dict[str, Callable[[WindowSet], WindowSet]] = {
    "chunks": _nudged,
    "lengths": _reshaped,
    "channel_set": lambda w: replace(
        w, channel_sets=(*w.channel_sets, ("a", "c", "b")), channel_set=np.array([0, 1, 0], np.int32)
    ),
    "channel_sets": lambda w: replace(w, channel_sets=(("a", "b", "d"),)),
    "labels": _relabelled,
    "classes": lambda w: replace(w, classes=("ok", *CLASSES[1:])),
    "ids": lambda w: _renamed(w, "ids"),
    "groups": lambda w: _renamed(w, "groups"),
    "assets": lambda w: _renamed(w, "assets"),
    "times": _later,
    "spans": lambda w: replace(w, spans=w.spans + np.array([[0, 0], [0, 1], [0, 0]], np.int32)),
    "context": lambda w: w.with_context(Context.of(3, facts=[{}, {"speed": 29.5}, {}])),
    "stats": lambda w: w.with_stats(ChannelStats({"a": 0.0}, {"a": 1.0})),
}


def _for_fingerprints() -> WindowSet:
    return replace(
        sample_windows(3, channels=3, length=4), channel_sets=(("a", "b", "c"),), channel_set=np.zeros(3, int)
    )


def assert_fingerprint_sees(change: str, fingerprint: Callable[[WindowSet], str]) -> None:
    windows = _for_fingerprints()
    assert fingerprint(windows) != fingerprint(CHANGES[change](windows))


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with_every_field(change: str) -> None:
    assert_fingerprint_sees(change, WindowSet.fingerprint)


def test_every_field_has_its_fingerprint_check() -> None:
    assert {field.name for field in fields(WindowSet)} - STORAGE == set(CHANGES)


@pytest.mark.parametrize("change", ["labels", "classes", "ids", "groups", "assets", "times", "spans"])
def test_the_fingerprint_check_notices_a_forgotten_field(change: str) -> None:
    with pytest.raises(AssertionError):
        assert_fingerprint_sees(change, lambda windows: windows.anonymous().fingerprint())


def test_the_fingerprint_depends_on_the_numbers_of_the_statistics() -> None:
    windows = sample_windows(2)
    stats = [ChannelStats({"a": m}, {"a": s}) for m, s in ((0.0, 1.0), (0.5, 1.0), (0.0, 1.5))]
    assert len({windows.with_stats(s).fingerprint() for s in stats}) == 3


def test_the_fingerprint_depends_on_order_and_not_on_storage() -> None:
    windows = sample_windows(6, ragged=True)
    assert windows[::-1].fingerprint() != windows.fingerprint()
    assert windows[::-1].compact()[::-1].fingerprint() == windows.fingerprint()
    assert concatenate([windows[i : i + 1].compact() for i in range(6)]).fingerprint() == windows.fingerprint()
