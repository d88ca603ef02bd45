"""What signals look like while nothing is wrong: nine families of series, each in several views of one program.

Every family is a function (draws, n, views) -> (n, views, T), standardised. The views of a program differ as two
windows of the same signal do: phases, noise and small parameter changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as ops

from readbench.training.draws import LENGTH, Draws, read_at, standardised

TURN = 2 * math.pi
Family = Callable[[Draws, int, int], Tensor]


def smooth(draws: Draws, n: int, views: int) -> Tensor:
    """Gaussian processes by random Fourier features: RBF, rational quadratic, Matern-like, periodic; sums, products."""
    first, second = (_gaussian_process(draws, n, views) for _ in range(2))
    weight, how = draws.uniform(n, 1, 1, low=0.1), draws.choice(3, n, 1, 1)
    return standardised(_pick(how, [first, first + weight * second, first * (1 + weight * second)]))


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
    return standardised(total)


def coloured(draws: Draws, n: int, views: int) -> Tensor:
    """Autoregressive noise with a power-law floor and resonances; a third of them switch regime on the way."""
    before, after = (_filtered_noise(draws, n, views) for _ in range(2))
    switch = draws.shifted(draws.uniform(n, low=0.15, high=0.85), views, 0.03)[..., None]
    switched = (draws.time > switch) & draws.coin(0.35, n, 1, 1)
    step = draws.shifted(draws.normal(n), views, 0.05)[..., None] * draws.coin(0.5, n, 1, 1)
    gain = draws.stretched(draws.scale(0.3, 3, n), views, 0.1)[..., None]
    return standardised(torch.where(switched, after * gain + step, before))


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
    return standardised(torch.fft.irfft(gain * noise, n=LENGTH))


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
    return standardised(shape * _pick(draws.choice(6, n, 1, 1), envelopes))


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
    return _pick(draws.choice(8, n, 1, 1), [standardised(shape) for shape in shapes])


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
    return standardised(trace + draws.uniform(n, 1, 1, high=0.5) * breath)


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
    return standardised(total)


def walks(draws: Draws, n: int, views: int) -> Tensor:
    """Random walks with bursts, and bridges that come back."""
    steps = draws.noise(n, views, LENGTH, draws.uniform(n, 1, 1, high=0.25))
    steps = steps * torch.exp(draws.uniform(n, 1, 1, high=1.2) * draws.normal(n, 1, LENGTH))
    path = torch.cumsum(steps + 0.1 * draws.normal(n, 1, 1), -1)
    bridge = path - path[..., :1] - (path[..., -1:] - path[..., :1]) * draws.time
    return standardised(torch.where(draws.coin(0.3, n, 1, 1), bridge, path))


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
    return standardised(total)


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
    return standardised(total * flicker + draws.scale(0.001, 0.1, n, 1, 1) * draws.normal(n, views, LENGTH))


def counters(draws: Draws, n: int, views: int) -> Tensor:
    """Counters, ramps and codes that wrap, and levels that hold: what buses and state machines send."""
    rate = draws.stretched(draws.scale(0.5, 60, n), views, 0.03)[..., None]
    turns = rate * draws.time + draws.uniform(n, 1, 1) + draws.coin(0.6, n, 1, 1) * draws.uniform(n, views, 1)
    digits = torch.exp2(1 + draws.choice(6, n, 1, 1).float())
    wrapped = torch.floor((turns - turns.floor()) * digits)
    bit = torch.remainder(wrapped, 2)
    held = torch.sin(torch.floor(turns * 3) * 78.233 + draws.uniform(n, 1, 1, high=100))
    return standardised(_pick(draws.choice(3, n, 1, 1), [wrapped, bit, held]))


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
}
"""Name -> family and its weight in the mixture."""


def carriers(draws: Draws, n: int, views: int, families: tuple[str, ...] = tuple(FAMILIES)) -> Tensor:
    """(n, views, T) standardised series of all families, mixed, bent, held, quantised and noisy."""
    weights = [FAMILIES[name][1] for name in families]
    counts = [int(n * weight / sum(weights)) for weight in weights]
    counts[0] += n - sum(counts)
    drawn = [FAMILIES[name][0](draws, count, views) for name, count in zip(families, counts, strict=True) if count]
    series = torch.cat(drawn)[draws.order(n)]
    return standardised(_worn(draws, _composed(draws, series)))


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
    return standardised(_pick(draws.choice(10, n, 1, 1), options + [series] * 5))


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


def _pick(which: Tensor, options: list[Tensor]) -> Tensor:
    """Option number `which` (n, 1, 1) of each program."""
    result = options[0]
    for number, option in enumerate(options[1:], 1):
        result = torch.where(which == number, option, result)
    return result
