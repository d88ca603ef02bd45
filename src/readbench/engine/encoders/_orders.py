"""Envelope spectrum over shaft orders: encoder `orders` for rotating machines; no network, no labels.

Rolling elements strike a pit in a bearing one after the other. Each impact rings the housing at some kHz; the rate of
impacts is a multiple of the shaft speed that identifies the damaged part. The vector of a window is

    envelope   |analytic signal| above a tenth of the band, or 1 kHz if that is lower
    spectrum   of the centred envelope, with a Hann window
    order      frequency / shaft speed, divided by half the number of rolling elements

The last division makes bearings comparable: with n rolling elements the outer race is struck n / 2 (1 - r) times per
turn and the inner race n / 2 (1 + r) times, where r, the ratio of ball to pitch diameter, is .2 to .3 in most bearings.
On this axis outer races lie at .7 to .8 and inner races at 1.2 to 1.3 for any n. For an unknown n, 8 is used, which
gives plain orders, stretched.

Lines are averaged around points of the axis and measured by the logarithm of their ratio to the median of the points
(at least zero), so that neither the level of a signal nor its noise floor is part of the vector.

Rate and shaft speed come from the context: `rate`, and the facts `speed` (Hz) and `rolling_elements`. A window without
rate or speed, or hardly longer than a turn of the shaft, has a zero vector.
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import digest
from readbench.engine.abilities import UsesContext
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import RESOLUTION, channel_axis
from readbench.engine.protocols import BatchEncoder, Metric, Vectors, unit_vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError

VERSION = 1
"""Increased when vectors change, so that stored ones are not mixed."""
SPEED, ROLLING_ELEMENTS = "speed", "rolling_elements"
"""Names of the facts."""
DEFAULT_ROLLING_ELEMENTS = 8.0
"""Rolling elements assumed for an unknown bearing."""
MIN_RESONANCE_HZ = 1000.0
"""Lower cut-off of the envelope in Hz; at low rates, a tenth of the Nyquist frequency."""
ORDER_AXIS = np.arange(2, 73) * 0.05
"""Scaled orders .1 to 3.6: two to three multiples of the races' frequencies, with side bands."""
MAX_LINE_SPACING = 0.2
"""Maximum line spacing in scaled orders; with a wider one the lines of both races coincide."""
Array = NDArray[np.float64]


@ENCODERS.register("orders", title="Orders", family="embedder", abilities=(UsesContext,))
class Orders(BatchEncoder):
    """Envelope spectrum of each channel over shaft orders that are comparable between bearings.

    Args:
        reach: maximum distance of lines from a point of the axis, with linearly decreasing weight. A wider reach blurs
            lines and tolerates an inexact speed.
    """

    metric: Metric = "cosine"
    corpus_dependent = False
    uses_context = True

    def __init__(self, reach: Annotated[float, ParameterRange(0.02, 1.0)] = 0.1) -> None:
        self.reach = reach

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Determine the channels."""
        self.axis_ = channel_axis(corpus)
        return self

    def footprint(self, windows: WindowSet) -> NDArray[np.int64]:
        """(N,) numbers of each window, its spectra and the weights of lines."""
        return super().footprint(windows) * 6 + windows.lengths * len(ORDER_AXIS)

    def encode_batch(self, windows: WindowSet) -> Vectors:
        """(B, C * points) unit vectors, channel by channel; zeros for windows without rate or speed."""
        if not hasattr(self, "axis_"):
            raise UsageError("Fit the encoder first: it needs to know the channels of the corpus.")
        place = {name: c for c, name in enumerate(self.axis_)}
        out = np.zeros((len(windows), len(self.axis_), len(ORDER_AXIS)))
        for i in range(len(windows)):
            names = windows.channels(i)
            kept = [k for k, name in enumerate(names) if name in place]
            rate, unit = measure_unit(windows, i)
            if kept and np.isfinite(unit):
                rows = windows.values(i)[kept].astype(np.float64)
                out[i, [place[names[k]] for k in kept]] = measure_orders(rows, rate, unit, self.reach)
        return unit_vectors(out.reshape(len(windows), -1).astype(np.float32))

    def fingerprint(self) -> str:
        """Hash of the channels and the reach."""
        return digest("orders", VERSION, self.reach, self.axis_)


def measure_unit(windows: WindowSet, i: int) -> tuple[float, float]:
    """Rate of window i in Hz, and frequency of one scaled order in Hz; NaN if rate or speed is unknown.

    >>> from readbench.engine.context import Context
    >>> context = Context.of(1, rates=[20_000.0], facts=[{"speed": 25.0, "rolling_elements": 9.0}])
    >>> measure_unit(WindowSet.from_arrays([[[0.0, 1.0]]], context=context), 0)
    (20000.0, 112.5)
    """
    if windows.context is None:
        return np.nan, np.nan
    rate, facts = float(windows.context.rates[i]), windows.context.facts_of(i)
    speed, elements = facts.get(SPEED, np.nan), facts.get(ROLLING_ELEMENTS, DEFAULT_ROLLING_ELEMENTS)
    known = rate > 0 and speed > 0
    return (rate, speed * (elements if elements > 0 else DEFAULT_ROLLING_ELEMENTS) / 2) if known else (np.nan, np.nan)


def measure_orders(values: Array, rate: float, unit: float, reach: float) -> Array:
    """(C, points) log ratio of the envelope's lines to their median around each point of the axis.

    Args:
        values: (C, T) readings.
        rate: samples per second.
        unit: frequency of one scaled order, Hz.
        reach: maximum distance of lines from a point.
    """
    spectrum = measure_envelope_spectrum(values, rate)
    resolution = rate / values.shape[1] / unit
    lines = np.arange(spectrum.shape[1]) * resolution
    held = lines[-1] >= ORDER_AXIS
    excess = np.zeros((len(values), len(ORDER_AXIS)))
    if resolution > MAX_LINE_SPACING or not held.any():
        return excess
    # Slow shafts and short windows have lines farther apart than points: use at least one line per point.
    weights = np.maximum(0.0, 1 - np.abs(lines - ORDER_AXIS[held, None]) / max(reach, resolution))
    around = spectrum @ (weights / weights.sum(axis=1, keepdims=True)).T
    usual = np.median(around, axis=1, keepdims=True)
    ratio = np.divide(around, usual, out=np.ones_like(around), where=usual > 0)
    excess[:, held] = np.log(np.maximum(ratio, 1.0))
    return excess


def measure_envelope_spectrum(values: Array, rate: float) -> Array:
    """(C, T // 2 + 1) magnitude spectrum of the envelope of values (C, T) above the cut-off."""
    steps = values.shape[1]
    mean, spread = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    moving = spread > np.abs(mean) * RESOLUTION  # else the spectrum would be that of rounding
    centred = np.divide(values - mean, spread, out=np.zeros_like(values), where=moving)
    # The analytic signal has no negative frequencies; its magnitude is the envelope.
    band = np.fft.fftfreq(steps, 1 / rate) > min(MIN_RESONANCE_HZ, rate / 20)
    envelope = np.abs(np.fft.ifft(np.fft.fft(centred, axis=1) * band, axis=1))
    envelope -= envelope.mean(axis=1, keepdims=True)
    spectrum: Array = np.abs(np.fft.rfft(envelope * np.hanning(steps), axis=1))
    return spectrum
