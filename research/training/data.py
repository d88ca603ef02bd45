"""Synthetic plants: what signals look like in normal operation, what goes wrong with them, and augmentation.

**Carriers** are series while nothing is wrong: ten families, each in several views of one program. Every family is a
function (draws, n, views) -> (n, views, T), standardised. The views of a program differ as two windows of the same
signal do: phases, noise and small parameter changes.

**Mechanisms** are eighteen ways in which a fault changes a signal, whatever the signal is.

**Plants** are channels driven by a few hidden processes, in normal operation and under faults that propagate. A plant
has M hidden processes (carriers). Each channel reads a lagged mixture of them and has a life of its own. A *process*
fault changes one hidden process, so it reaches every channel that reads it, each with its own gain and lag; a *sensor*
fault changes one channel. Two windows of the same fault share its parameters and nothing else.

**Fleets** are plants of one design: the same processes, wiring and faults on units that differ in gains, delays,
sampling, noise, operating point, strength of a fault and missing channels; in half of the fleets each unit even carries
signals of its own, so that only the place and the kind of a fault are shared.

**Augmentation** makes two windows of two views of one program: cropped, warped, jittered, at another level and scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as ops

from readbench.engine.encoders.sonde_network import LENGTH, Draws, read_at, standardise

TURN = 2 * math.pi
Family = Callable[[Draws, int, int], Tensor]


def smooth(draws: Draws, n: int, views: int) -> Tensor:
    """Gaussian processes by random Fourier features: RBF, rational quadratic, Matern-like, periodic; sums, products."""
    first, second = (_gaussian_process(draws, n, views) for _ in range(2))
    weight, how = draws.uniform(n, 1, 1, low=0.1), draws.choice(3, n, 1, 1)
    return standardise(_pick(how, [first, first + weight * second, first * (1 + weight * second)]))


def _gaussian_process(draws: Draws, n: int, views: int, features: int = 32) -> Tensor:
    kind = draws.choice(4, n, 1)
    direction = draws.normal(n, features)
    heavy = direction / torch.sqrt((draws.normal(n, features, 3) ** 2).mean(-1) + 0.02)
    mixed = direction * torch.exp(0.8 * draws.normal(n, features))
    harmonic = torch.arange(features, device=draws.device) % 8 + 1.0
    periodic = (TURN * draws.scale(1, 30, n, 1) * harmonic).expand(n, features)
    free = torch.where(kind == 1, mixed, torch.where(kind == 2, heavy, direction)) / draws.scale(0.008, 0.6, n, 1)
    speed = torch.where(kind == 3, periodic, free).clamp(-900, 900)
    rolloff = draws.normal(n, features) * harmonic ** -draws.uniform(n, 1, low=0.5, high=2.0)
    height = draws.stretched(torch.where(kind == 3, rolloff, torch.ones_like(rolloff)), views, 0.05)
    texture = draws.coin(0.2, n, 1, 1)
    phase = draws.shifted(draws.uniform(n, features, high=TURN), views, 0.1)
    phase = phase + texture * draws.uniform(n, views, features, high=TURN)
    speed = speed.unsqueeze(1) * torch.exp(0.03 * draws.normal(n, views, 1))
    total = torch.zeros(n, views, LENGTH, device=draws.device)
    for part in torch.arange(features, device=draws.device).split(8):
        angle = speed[..., part, None] * draws.time + phase[..., part, None]
        total = total + (height[..., part, None] * torch.cos(angle)).sum(2)
    return standardise(total)


def coloured(draws: Draws, n: int, views: int) -> Tensor:
    """Autoregressive noise with a power-law floor and resonances; a third of them switch regime on the way."""
    before, after = (_filtered_noise(draws, n, views) for _ in range(2))
    switch = draws.shifted(draws.uniform(n, low=0.15, high=0.85), views, 0.03)[..., None]
    switched = (draws.time > switch) & draws.coin(0.35, n, 1, 1)
    step = draws.shifted(draws.normal(n), views, 0.05)[..., None] * draws.coin(0.5, n, 1, 1)
    gain = draws.stretched(draws.scale(0.3, 3, n), views, 0.1)[..., None]
    return standardise(torch.where(switched, after * gain + step, before))


def _filtered_noise(draws: Draws, n: int, views: int) -> Tensor:
    bins = LENGTH // 2 + 1
    frequency = torch.arange(bins, device=draws.device) + 0.5
    slope = draws.shifted(draws.uniform(n, low=-0.3, high=2.5), views, 0.05)[..., None]
    knee = draws.stretched(draws.scale(0.5, 60, n), views, 0.1)[..., None]
    gain = (knee + frequency) ** (-slope / 2)
    gain = gain / gain.mean(-1, keepdim=True)
    for _ in range(3):
        height = draws.stretched(draws.scale(0.5, 60, n) * draws.coin(0.4, n), views, 0.1)[..., None]
        centre = draws.stretched(draws.scale(2, 250, n), views, 0.02)[..., None]
        width = draws.stretched(draws.scale(0.3, 15, n), views, 0.1)[..., None]
        gain = gain + height / (1 + ((frequency - centre) / width) ** 2)
    own = torch.where(draws.coin(0.6, n, 1, 1), torch.ones(1, device=draws.device), draws.uniform(n, 1, 1, high=0.4))
    noise = torch.complex(draws.noise(n, views, bins, own), draws.noise(n, views, bins, own))
    return standardise(torch.fft.irfft(gain * noise, n=LENGTH))


def waves(draws: Draws, n: int, views: int) -> Tensor:
    """Periodic shapes, chirps and frequency modulation under an envelope."""
    time = draws.time
    speed = draws.stretched(draws.scale(1, 60, n), views, 0.03)[..., None]
    chirp = draws.shifted(draws.normal(n) * 0.4 * draws.coin(0.4, n), views, 0.02)[..., None]
    slow = draws.stretched(draws.scale(0.5, 6, n), views, 0.05)[..., None]
    swing = draws.uniform(n, 1, 1, high=0.6) * draws.coin(0.4, n, 1, 1)
    start = draws.uniform(n, 1, 1) + draws.coin(0.6, n, 1, 1) * draws.uniform(n, views, 1)
    cycles = speed * (time + 0.5 * chirp * time**2) + start
    cycles = cycles + swing * torch.sin(TURN * (slow * time + draws.uniform(n, 1, 1)))
    shape = _periodic_shape(draws, cycles)
    decay = draws.stretched(draws.scale(0.05, 1, n), views, 0.05)[..., None]
    centre = draws.shifted(draws.uniform(n), views, 0.03)[..., None]
    width = draws.stretched(draws.scale(0.03, 0.4, n), views, 0.05)[..., None]
    flat = torch.ones_like(shape)
    beat = 1 + 0.8 * torch.sin(TURN * (slow * time + centre))
    burst = torch.exp(-(((time - centre) / width) ** 2))
    envelopes = [torch.exp(-time / decay), torch.exp((time - 1) / decay), burst, beat, flat, flat]
    return standardise(shape * _pick(draws.choice(6, n, 1, 1), envelopes))


def _periodic_shape(draws: Draws, cycles: Tensor) -> Tensor:
    n, views, _ = cycles.shape
    part = cycles - cycles.floor()
    duty = draws.stretched(draws.uniform(n, low=0.05, high=0.9), views, 0.05)[..., None]
    second, third = (draws.shifted(draws.normal(n) * size, views, 0.03)[..., None] for size in (0.5, 0.4))
    offset, wave = TURN * draws.uniform(n, 1, 1), torch.sin(TURN * cycles)
    rich = wave + second * torch.sin(2 * TURN * cycles + offset) + third * torch.sin(3 * TURN * cycles + 2 * offset)
    peak = torch.exp(-(((part - 0.5) / (0.02 + 0.2 * duty)) ** 2))
    relaxing = torch.exp(-part / (0.02 + duty))
    shapes = [rich, (part < duty).float(), part, (part - 0.5).abs(), peak, wave.abs(), wave**3, relaxing]
    return _pick(draws.choice(8, n, 1, 1), [standardise(shape) for shape in shapes])


def pulses(draws: Draws, n: int, views: int, lobes: int = 5) -> Tensor:
    """Pulse trains with a wandering rate, as hearts and pistons make them; in some, single beats of another form."""
    wander = ops.interpolate(draws.normal(n, views, 24), size=LENGTH, mode="linear")
    drift = torch.cumsum(wander * draws.scale(0.005, 0.3, n, 1, 1), -1) / LENGTH
    start = draws.uniform(n, 1, 1) + draws.coin(0.6, n, 1, 1) * draws.uniform(n, views, 1)
    cycles = draws.stretched(draws.scale(1, 16, n), views, 0.06)[..., None] * (draws.time + drift) + start
    place, beat = cycles - cycles.floor(), cycles.floor()
    centre = draws.shifted(draws.uniform(n, lobes), views, 0.008)
    width = draws.stretched(draws.scale(0.006, 0.12, n, lobes), views, 0.06)
    height = draws.shifted(draws.normal(n, lobes) * torch.exp(0.6 * draws.normal(n, lobes)), views, 0.05)

    def lobe(middle: Tensor, spread: Tensor) -> Tensor:
        away = place - middle
        return torch.exp(-0.5 * ((away - away.round()) / spread) ** 2)

    usual = torch.zeros_like(place)
    for k in range(lobes):
        usual = usual + height[..., k, None] * lobe(centre[..., k, None], width[..., k, None])
    odd_width = draws.stretched(draws.scale(0.02, 0.15, n), views, 0.05)[..., None]
    odd = draws.shifted(2 * draws.normal(n), views, 0.1)[..., None] * lobe(centre[..., 0, None], odd_width)
    rare = torch.sin(beat * 12.9898 + draws.uniform(n, 1, 1, high=50)) > draws.uniform(n, 1, 1, low=0.2)
    breath = torch.sin(TURN * (draws.uniform(n, 1, 1, high=3) * draws.time + draws.uniform(n, views, 1)))
    trace = torch.where(rare & draws.coin(0.3, n, 1, 1), odd, usual)
    return standardise(trace + draws.uniform(n, 1, 1, high=0.5) * breath)


def control(draws: Draws, n: int, views: int, moves: int = 8) -> Tensor:
    """Set-point steps answered by a lag, some with ringing."""
    used = torch.arange(moves, device=draws.device) <= draws.choice(moves, n, 1)
    when = draws.shifted(draws.uniform(n, moves), views, 0.01)
    free = draws.normal(n, moves)
    size = torch.where(draws.coin(0.4, n, 1), free.sign(), free * torch.exp(0.5 * draws.normal(n, moves))) * used
    size = draws.shifted(size, views, 0.03)
    lag = draws.stretched(draws.scale(5e-4, 0.15, n), views, 0.05)[..., None]
    ringing = draws.stretched(draws.scale(5, 300, n), views, 0.03)[..., None] * draws.coin(0.4, n, 1, 1)
    total = torch.zeros(n, views, LENGTH, device=draws.device)
    for k in range(moves):
        since = draws.time - when[..., k, None]
        after = since.clamp(min=0)
        total = total + size[..., k, None] * (since > 0) * (1 - torch.exp(-after / lag) * torch.cos(ringing * after))
    return standardise(total)


def walks(draws: Draws, n: int, views: int) -> Tensor:
    """Random walks with bursts, and bridges that come back."""
    steps = draws.noise(n, views, LENGTH, draws.uniform(n, 1, 1, high=0.25))
    steps = steps * torch.exp(draws.uniform(n, 1, 1, high=1.2) * draws.normal(n, 1, LENGTH))
    path = torch.cumsum(steps + 0.1 * draws.normal(n, 1, 1), -1)
    bridge = path - path[..., :1] - (path[..., -1:] - path[..., :1]) * draws.time
    return standardise(torch.where(draws.coin(0.3, n, 1, 1), bridge, path))


def bumps(draws: Draws, n: int, views: int, most: int = 7) -> Tensor:
    """A few lopsided bumps, from needles to hills, flat-topped or pointed."""
    used = torch.arange(most, device=draws.device) <= draws.choice(most, n, 1)
    centre = draws.shifted(draws.uniform(n, most, low=-0.05, high=1.05), views, 0.01)
    width = draws.stretched(draws.scale(0.01, 0.3, n, most), views, 0.05)
    height = draws.shifted(draws.normal(n, most) * used, views, 0.04)
    power = draws.stretched(draws.scale(0.7, 6, n), views, 0.05)[..., None]
    lean = draws.shifted(0.5 * draws.normal(n, most), views, 0.03)
    total = torch.zeros(n, views, LENGTH, device=draws.device)
    for k in range(most):
        away = draws.time - centre[..., k, None]
        spread = width[..., k, None] * torch.exp(lean[..., k, None] * away.sign())
        total = total + height[..., k, None] * torch.exp(-(((away / spread).abs() + 1e-6) ** power))
    return standardise(total)


def switching(draws: Draws, n: int, views: int, most: int = 6) -> Tensor:
    """Machines that switch on and off: loads, requests, duty cycles."""
    used = torch.arange(most, device=draws.device) <= draws.choice(most, n, 1)
    start = draws.shifted(draws.uniform(n, most), views, 0.01)
    start = start + draws.coin(0.5, n, 1, 1) * draws.uniform(n, views, most)
    start = start - start.floor()
    spread = torch.exp(draws.uniform(n, 1, high=0.7) * draws.normal(n, most))
    duration = draws.stretched(draws.scale(0.004, 0.35, n, 1) * spread, views, 0.05)
    height = draws.stretched((0.3 + draws.uniform(n, most)) * used, views, 0.05)
    fade = draws.stretched(draws.scale(0.01, 3, n), views, 0.1)[..., None]
    total = torch.zeros(n, views, LENGTH, device=draws.device)
    for k in range(most):
        since = draws.time - start[..., k, None]
        running = (since > 0) & (since < duration[..., k, None])
        total = total + height[..., k, None] * running * torch.exp(-since.clamp(min=0) / fade)
    flicker = 1 + draws.scale(0.002, 0.3, n, 1, 1) * draws.normal(n, views, LENGTH)
    return standardise(total * flicker + draws.scale(0.001, 0.1, n, 1, 1) * draws.normal(n, views, LENGTH))


def counters(draws: Draws, n: int, views: int) -> Tensor:
    """Counters, ramps and codes that wrap, and levels that hold: what buses and state machines send."""
    rate = draws.stretched(draws.scale(0.5, 60, n), views, 0.03)[..., None]
    turns = rate * draws.time + draws.uniform(n, 1, 1) + draws.coin(0.6, n, 1, 1) * draws.uniform(n, views, 1)
    digits = torch.exp2(1 + draws.choice(6, n, 1, 1).float())
    wrapped = torch.floor((turns - turns.floor()) * digits)
    bit = torch.remainder(wrapped, 2)
    held = torch.sin(torch.floor(turns * 3) * 78.233 + draws.uniform(n, 1, 1, high=100))
    return standardise(_pick(draws.choice(3, n, 1, 1), [wrapped, bit, held]))


def rotating(draws: Draws, n: int, views: int, harmonics: int = 4) -> Tensor:
    """Machines that turn: harmonics of the shaft, a mesh of teeth, and in some the impacts of a damaged bearing."""
    speed = draws.stretched(draws.scale(2, 60, n), views, 0.03)[..., None]
    wander = draws.scale(0.001, 0.05, n, 1, 1) * torch.sin(TURN * (2 * draws.time + draws.uniform(n, views, 1)))
    turns = speed * (draws.time + wander) + draws.uniform(n, views, 1)
    height = draws.stretched(draws.scale(0.03, 1, n, harmonics), views, 0.1)
    phase = draws.uniform(n, harmonics)
    total = draws.scale(0.02, 1, n, 1, 1) * draws.noise(n, views, LENGTH, torch.ones(1, device=draws.device))
    for k in range(harmonics):
        total = total + height[..., k, None] * torch.cos(TURN * ((k + 1) * turns + phase[:, None, k, None]))
    teeth = 3 + draws.choice(20, n, 1, 1)
    mesh = torch.cos(TURN * teeth * turns) * (teeth * speed < LENGTH / 2.2)
    total = total + draws.scale(0.03, 1, n, 1, 1) * mesh * (1 + draws.uniform(n, 1, 1) * torch.cos(TURN * turns))
    strikes = _ringing(
        draws.scale(2.2, 8, n, 1, 1) * turns, draws.scale(0.05, 0.5, n, 1, 1), draws.scale(2, 9, n, 1, 1)
    )
    loaded = 1 + draws.uniform(n, 1, 1) * torch.cos(TURN * turns)
    return standardise(total + draws.coin(0.5, n, 1, 1) * draws.scale(0.3, 6, n, 1, 1) * loaded * strikes)


def _ringing(turns: Tensor, decay: Tensor, pitch: Tensor) -> Tensor:
    """A blow at every whole turn, which rings on: `pitch` swings a turn, dying away with `decay` of a turn."""
    part = turns - turns.floor()
    return torch.exp(-part / decay) * torch.sin(TURN * pitch * part)


FAMILIES: dict[str, tuple[Family, float]] = {
    "smooth": (smooth, 4.0),
    "coloured": (coloured, 3.0),
    "waves": (waves, 2.0),
    "pulses": (pulses, 2.0),
    "control": (control, 1.5),
    "walks": (walks, 1.0),
    "bumps": (bumps, 2.0),
    "switching": (switching, 1.5),
    "counters": (counters, 0.7),
    "rotating": (rotating, 1.5),
}
"""Name -> family and its weight in the mixture."""


def carriers(draws: Draws, n: int, views: int, families: tuple[str, ...] = tuple(FAMILIES)) -> Tensor:
    """(n, views, T) standardised series of all families, mixed, bent, held, quantised and noisy."""
    weights = [FAMILIES[name][1] for name in families]
    counts = [int(n * weight / sum(weights)) for weight in weights]
    counts[0] += n - sum(counts)
    drawn = [FAMILIES[name][0](draws, count, views) for name, count in zip(families, counts, strict=True) if count]
    series = torch.cat(drawn)[draws.order(n)]
    return standardise(_worn(draws, _composed(draws, series)))


def _composed(draws: Draws, series: Tensor) -> Tensor:
    """Half of the series become a function of themselves and another one, or get a trend."""
    n, views, _ = series.shape
    other, weight = series[draws.order(n)], draws.uniform(n, 1, 1, low=0.1)
    line = draws.shifted(2.5 * draws.normal(n), views, 0.03)[..., None] * draws.time
    bend = draws.shifted(draws.normal(n) * draws.coin(0.3, n), views, 0.03)[..., None]
    trend = line + bend * torch.exp(draws.time * draws.uniform(n, 1, 1, low=-4, high=4)) / 3
    mixed = series + weight * other
    modulated = series * (1 + weight * other)
    options = [mixed, modulated, _bent(draws, mixed), _bent(draws, series), series + trend]
    return standardise(_pick(draws.choice(10, n, 1, 1), options + [series] * 5))


def _bent(draws: Draws, series: Tensor) -> Tensor:
    """Through a random nonlinearity."""
    n, views, _ = series.shape
    bias = draws.shifted(0.7 * draws.normal(n), views, 0.02)[..., None]
    value = draws.stretched(draws.scale(0.4, 3, n), views, 0.03)[..., None] * series + bias
    options = [torch.tanh(value), torch.sin(1.5 * value), ops.relu(value), value.abs(), torch.exp(-(value**2))]
    options += [ops.softplus(value), torch.remainder(value, 2.0), value**2]
    return _pick(draws.choice(len(options), n, 1, 1), options)


def _worn(draws: Draws, series: Tensor) -> Tensor:
    """What sensors and loggers do: rounding, sample-and-hold, noise."""
    n, views, _ = series.shape
    step = draws.scale(0.03, 0.6, n, 1, 1)
    series = torch.where(draws.coin(0.07, n, 1, 1), (series / step).round() * step, series)
    holds = draws.scale(8, 200, n, 1, 1)
    held = read_at(series, (torch.floor(draws.time * holds) / holds).expand_as(series))
    series = torch.where(draws.coin(0.1, n, 1, 1), held, series)
    loud = draws.scale(0.002, 0.5, n, 1, 1) * draws.coin(0.6, n, 1, 1)
    return series + loud * draws.normal(n, views, LENGTH)


FEWEST_READINGS = 12
"""Of a coarsely sampled window."""


def sampled(draws: Draws, series: Tensor, share: float) -> Tensor:
    """(n, ..., T) series of which a share is recorded at few points, with straight lines in between.

    What a recorder with few readings a window gives, once it is brought to T points.
    """
    if not share:
        return series
    first = (len(series), *[1] * (series.dim() - 1))
    steps = draws.scale(FEWEST_READINGS, LENGTH, *first).round() - 1
    place = draws.time * steps
    left = place.floor().clamp(max=steps - 1).expand_as(series)
    before, after = read_at(series, left / steps), read_at(series, (left + 1) / steps)
    return torch.where(draws.coin(share, *first), before + (place - left) * (after - before), series)


def _pick(which: Tensor, options: list[Tensor]) -> Tensor:
    """Option number `which` (n, 1, 1) of each program."""
    result = options[0]
    for number, option in enumerate(options[1:], 1):
        result = torch.where(which == number, option, result)
    return result


@dataclass(frozen=True)
class SyntheticFault:
    """Parameters of F faults, (F,) each: which mechanism, which sign, how strong, how fast, when and how long it acts.

    One without a `fixed_start` begins anywhere in each view.
    """

    kind: Tensor
    sign: Tensor
    size: Tensor
    speed: Tensor
    start: Tensor
    duration: Tensor
    fixed_start: Tensor

    @classmethod
    def draw(cls, draws: Draws, count: int) -> SyntheticFault:
        """F faults; nearly half act throughout, and half of the others begin anywhere in each view."""
        throughout = draws.coin(0.45, count)
        return cls(
            kind=draws.choice(len(MECHANISMS), count),
            sign=draws.normal(count).sign(),
            size=draws.scale(0.5, 5, count),
            speed=draws.scale(4, 100, count),
            start=torch.where(throughout, draws.uniform(count, low=-0.3, high=0.0), draws.uniform(count, high=0.7)),
            duration=torch.where(
                throughout, torch.full((count,), 2.0, device=draws.device), draws.scale(0.05, 0.7, count)
            ),
            fixed_start=draws.coin(0.5, count) | throughout,
        )

    def varied(self, draws: Draws, rows: Tensor) -> SyntheticFault:
        """Some of the faults, each stronger or weaker, faster or slower than where it was drawn for."""
        chosen = self[rows]
        size, speed = (draws.stretched(value, 1, 0.3).flatten() for value in (chosen.size, chosen.speed))
        return replace(chosen, size=size, speed=speed)

    def __getitem__(self, rows: Tensor) -> SyntheticFault:
        return SyntheticFault(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Action:
    """F faults at work in V views, with parameters that differ a little between the views.

    Args:
        draws: more random numbers, for mechanisms that need them.
        sign: (F, 1, 1).
        size: (F, V, 1).
        speed: (F, V, 1).
        phase: (F, V, 1) in turns.
        begin: (F, V, 1) when it begins, in 0..1 of the window.
        active: (F, V, T) where it acts.
    """

    draws: Draws
    sign: Tensor
    size: Tensor
    speed: Tensor
    phase: Tensor
    begin: Tensor
    active: Tensor

    @classmethod
    def draw(cls, draws: Draws, fault: SyntheticFault, views: int) -> Action:
        """The faults in so many views."""
        count = len(fault.kind)
        fixed = draws.shifted(fault.start, views, 0.03)
        free = draws.uniform(count, views, low=-0.1, high=0.7)
        begin = torch.where(fault.fixed_start[:, None], fixed, free)[..., None]
        end = begin + draws.stretched(fault.duration, views, 0.1)[..., None]
        return cls(
            draws=draws,
            sign=fault.sign[:, None, None],
            size=draws.stretched(fault.size, views, 0.15)[..., None],
            speed=draws.stretched(fault.speed, views, 0.05)[..., None],
            phase=draws.uniform(count, views, 1),
            begin=begin,
            active=(draws.time >= begin) & (draws.time < end),
        )

    @property
    def signed(self) -> Tensor:
        """(F, V, 1) size with its sign."""
        return self.size * self.sign

    @property
    def rising(self) -> Tensor:
        """(F, 1, 1) whether the sign is positive."""
        return self.sign > 0

    @property
    def since(self) -> Tensor:
        """(F, V, T) time since it began."""
        return (self.draws.time - self.begin).clamp(min=0)


def inject(draws: Draws, series: Tensor, fault: SyntheticFault) -> Tensor:
    """(F, V, T) the standardised series (F, V, T) under their faults."""
    action = Action.draw(draws, fault, series.shape[1])
    result = series
    for number, mechanism in enumerate(MECHANISMS.values()):
        here = action.active & (fault.kind == number)[:, None, None]
        result = torch.where(here, mechanism(series, action), result)
    return result


def _spikes(series: Tensor, action: Action) -> Tensor:
    """Single points off, up to 6 % of them."""
    count, views, _ = series.shape
    rare = action.draws.uniform(count, views, LENGTH) < action.draws.scale(0.005, 0.06, count, 1, 1)
    return series + rare * action.signed * 1.5


def _faster(series: Tensor, action: Action) -> Tensor:
    """Time runs faster or slower, and back again from the end."""
    ratio = torch.where(action.rising, 1.6 + 0.8 * action.size, 1 / (1.6 + 0.5 * action.size))
    folded = torch.remainder(action.begin + action.since * ratio, 2.0)
    return read_at(series, torch.where(folded > 1, 2 - folded, folded))


def _dropout(series: Tensor, action: Action) -> Tensor:
    """Now and then the signal falls below its lowest value."""
    gaps = torch.sin(TURN * (0.3 * action.speed * action.draws.time + action.phase)) > 0
    return torch.where(gaps, series.amin(-1, keepdim=True) - 0.3, series)


def _saturation(series: Tensor, action: Action) -> Tensor:
    """Nothing beyond a ceiling, or below a floor."""
    ceiling = 0.8 - 0.25 * action.size
    return torch.where(action.rising, torch.minimum(series, ceiling), torch.maximum(series, -ceiling))


def _smoothing(series: Tensor, action: Action) -> Tensor:
    """A moving average."""
    return torch.where(action.size > 1.5, _average(series, 41), _average(series, 15))


def _average(series: Tensor, points: int) -> Tensor:
    return ops.avg_pool1d(series, points, 1, points // 2, count_include_pad=False)


def _coarse(series: Tensor, action: Action) -> Tensor:
    """Rounded to a coarse grid."""
    step = 0.3 + 0.3 * action.size
    return (series / step).round() * step


def _response(series: Tensor, action: Action) -> Tensor:
    """A step that is answered with ringing."""
    ringing = torch.exp(-action.since * 60 / action.speed) * torch.cos(action.speed * action.since)
    return series + action.signed * (1 - ringing)


def _impacts(series: Tensor, action: Action) -> Tensor:
    """Blows at a rate, each of which rings on."""
    turns = action.speed * action.draws.time + action.phase
    return series + action.size * _ringing(turns, torch.full_like(action.size, 0.15), torch.full_like(action.size, 5.0))


def _modulation(series: Tensor, action: Action) -> Tensor:
    """Now louder, now quieter, at a rate."""
    swing = torch.sin(TURN * (0.5 * action.speed * action.draws.time + action.phase))
    return series * (1 + torch.tanh(0.4 * action.size) * swing)


Mechanism = Callable[[Tensor, Action], Tensor]
"""From standardised series (F, V, T) to what they would be if the fault acted throughout."""

MECHANISMS: dict[str, Mechanism] = {
    "shift": lambda series, action: series + action.signed,
    "drift": lambda series, action: series + action.signed * action.since / 0.4,
    "spikes": _spikes,
    "freeze": lambda series, action: read_at(series, action.begin.expand_as(series)),
    "noise": lambda series, action: series + 0.6 * action.size * action.draws.normal(*series.shape),
    "speed": _faster,
    "gain": lambda series, action: series * (1 + action.size) ** action.sign,
    "dropout": _dropout,
    "oscillation": lambda series, action: (
        series + 0.7 * action.size * torch.sin(TURN * (action.speed * action.draws.time + action.phase))
    ),
    "saturation": _saturation,
    "transient": lambda series, action: series + 1.5 * action.signed * torch.exp(-action.since * action.speed / 4),
    "smoothing": _smoothing,
    "coarse": _coarse,
    "response": _response,
    "dead": lambda series, action: torch.zeros_like(series) + action.signed,
    "delay": lambda series, action: read_at(series, (action.draws.time - 0.02 * action.size).expand_as(series)),
    "impacts": _impacts,
    "modulation": _modulation,
}
"""Name -> mechanism; a fault's `kind` is its number here."""


PROCESSES = 3


@dataclass(frozen=True)
class Plants:
    """Windows of P plants with C channels, scaled per channel by the plant's own normal operation.

    Args:
        faulty: (P, F, 2, C, T) two windows of each of F faults.
        normal: (P, V, C, T) windows of normal operation.
        present: (P, C) which channels a plant has; the windows of the others count for nothing among fleets.
        units: plants of a fleet, which stand one after the other.
    """

    faulty: Tensor
    normal: Tensor
    present: Tensor
    units: int = 1


def plants(  # noqa: PLR0913 - what a fleet is made of
    draws: Draws,
    count: int,
    channels: int,
    faults: int,
    normals: int,
    families: tuple[str, ...] = tuple(FAMILIES),
    units: int = 1,
    *,
    coarse: float = 0.0,
) -> Plants:
    """Draw plants and their windows: fleets of so many units each, or with one unit plants that share nothing.

    Args:
        draws: random numbers.
        count: plants.
        channels: of each.
        faults: of each, two windows each.
        normals: normal windows of each.
        families: which carriers.
        units: of a fleet.
        coarse: share of the plants with few readings a window.
    """
    views, fleets = 2 * faults + normals, count // units
    hidden = _processes(draws, fleets, units, views, families)
    own = carriers(draws, count * channels, views, families).view(count, channels, views, LENGTH)
    fault = SyntheticFault.draw(draws, fleets * faults)
    in_process = draws.coin(0.6, fleets, faults)
    fleet = torch.arange(fleets, device=draws.device).repeat_interleave(units)
    if units > 1:
        fault = fault.varied(draws, (fleet[:, None] * faults + torch.arange(faults, device=draws.device)).flatten())
    process = draws.choice(PROCESSES, fleets, faults)[fleet]
    hidden = _at(draws, hidden, fault, process, in_process[fleet], faults)
    reading = _mixture(draws, hidden, channels, units) + draws.scale(0.1, 2, count, channels, 1, 1) * own
    reading = standardise(reading.reshape(count, channels, -1)).view_as(reading)
    sensor = draws.choice(channels, fleets, faults)[fleet]
    reading = _at(draws, reading, fault, sensor, ~in_process[fleet], faults)
    reading = sampled(draws, _operated(draws, reading), coarse)
    usual = reading[:, :, 2 * faults :].reshape(count, channels, -1)
    centre, spread = usual.mean(-1)[..., None, None], usual.std(-1)[..., None, None]
    scaled = ((reading - centre) / (spread + 1e-3)).clamp(-30, 30).transpose(1, 2)
    present = torch.ones(count, channels, dtype=torch.bool, device=draws.device)
    if units > 1:
        present &= draws.coin(0.85, count, channels)
    return Plants(scaled[:, : 2 * faults].unflatten(1, (faults, 2)), scaled[:, 2 * faults :], present, units)


def _processes(draws: Draws, fleets: int, units: int, views: int, families: tuple[str, ...]) -> Tensor:
    """(P, M, V, T) hidden processes of fleets; units sample at rates of their own."""
    shared = carriers(draws, fleets * PROCESSES, units * views, families)
    shared = shared.view(fleets, PROCESSES, units, views, LENGTH).transpose(1, 2).flatten(0, 1)
    if units == 1:
        return shared
    count = fleets * units
    own = carriers(draws, count * PROCESSES, views, families).view(count, PROCESSES, views, LENGTH)
    alike = draws.coin(0.5, fleets).repeat_interleave(units)[:, None, None, None]
    series = torch.where(alike, shared, own)
    ratio = draws.uniform(count, 1, 1, 1, low=0.6)
    start = draws.uniform(count, PROCESSES, views, 1) * (1 - ratio)
    return standardise(read_at(series, start + ratio * draws.time))


def _at(draws: Draws, series: Tensor, fault: SyntheticFault, where: Tensor, chosen: Tensor, faults: int) -> Tensor:
    """(P, S, V, T) with fault f of a plant in views 2 f and 2 f + 1 of series number `where` (P, F), if `chosen`."""
    series = series.clone()
    plant, number = torch.nonzero(chosen, as_tuple=True)
    if not len(plant):
        return series
    row, views = where[plant, number], torch.stack([2 * number, 2 * number + 1], 1)
    before = series[plant[:, None], row[:, None], views]
    series[plant[:, None], row[:, None], views] = inject(draws, before, fault[plant * faults + number])
    return series


def _mixture(draws: Draws, hidden: Tensor, channels: int, units: int = 1) -> Tensor:
    """(P, C, V, T) what each channel reads of the hidden processes: sparse gains of both signs, small lags.

    The units of a fleet have the same gains up to a factor, and lags of their own.
    """
    count, processes, views, _ = hidden.shape
    fleets = count // units
    gain = draws.normal(fleets, channels, processes) * draws.coin(0.5, fleets, channels, processes)
    if units > 1:
        gain = draws.stretched(gain, units, 0.4).flatten(0, 1)
    total = torch.zeros(count, channels, views, LENGTH, device=hidden.device)
    for m in range(processes):
        lag = draws.uniform(count, channels, 1, 1, high=0.08)
        source = hidden[:, m, None].expand(-1, channels, -1, -1)
        total = total + gain[:, :, m, None, None] * read_at(source, (draws.time - lag).expand_as(source))
    return total


def _operated(draws: Draws, reading: Tensor) -> Tensor:
    """Another operating point in each window: small changes of level and gain, larger in some plants than in others."""
    count, channels, views, _ = reading.shape
    restless = draws.scale(0.02, 0.6, count, 1, 1, 1)
    level = restless * draws.normal(count, channels, views, 1)
    gain = torch.exp(0.3 * restless * draws.normal(count, channels, views, 1))
    return gain * reading + level


def augment(draws: Draws, pairs: Tensor, *, crop: float = 0.3, warp: float = 0.04, jitter: float = 0.1) -> Tensor:
    """(N, 2, T) augmented pairs; half of them keep a level and a scale that both views share."""
    n, views, _ = pairs.shape
    cut = draws.uniform(n, views, 1, high=crop)
    bend = draws.uniform(n, views, 1, high=warp) * 0.5
    wobble = torch.sin(TURN * (draws.time * (1 + draws.choice(3, n, views, 1)) + draws.uniform(n, views, 1)))
    series = read_at(pairs, draws.uniform(n, views, 1) * cut + (1 - cut) * draws.time + bend * wobble)
    loud = draws.coin(0.5, n, views, 1) * draws.uniform(n, views, 1, high=jitter)
    series = series + loud * series.std(-1, keepdim=True) * draws.normal(n, views, LENGTH)
    gap = draws.uniform(n, views, 1, high=0.15) * draws.coin(0.4, n, views, 1)
    at = draws.uniform(n, views, 1)
    series = torch.where((draws.time > at) & (draws.time < at + gap), series.mean(-1, keepdim=True), series)
    series = standardise(series)
    scale = torch.where(draws.coin(0.5, n, 1), torch.ones(1, device=draws.device), draws.scale(0.05, 8, n, 1))
    level = draws.normal(n, 1) * draws.scale(0.3, 4, n, 1)
    placed = series * draws.stretched(scale, views, 0.05) + draws.shifted(level, views, 0.05)
    return torch.where(draws.coin(0.5, n, 1, 1), placed, series)
