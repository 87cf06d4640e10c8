"""From samples to states: even spacing, a zero-phase low-pass, derivatives.

The choices, all stated in the result: samples are interpolated by cubic splines (joint forces linearly, they jump
with friction) at the median rate; a fourth-order Butterworth filter runs forwards and backwards, so nothing is
delayed; its cut-off is `MARGIN` times the frequency below which `POWER` of the velocities' power lies, unless it is
given; derivatives are central differences of sixth order, q̇ on the manifold. The same filter runs over the predicted
forces and over the columns of the regressor ("parallel filtering"), so that what it does to friction's jumps it does
on both sides. Ends of the recording, where filters have no past or future, are left out. Samples beyond `DENSE` times
the cut-off are left out too.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.identification.recording import Recording
from polybody.late import dataclass
from polybody.model.model import Model
from polybody.names import counted

Array = np.ndarray

POWER, MARGIN = 0.98, 12.0
ORDER = 4
#: what counts as motion in differences of positions: so many times the level of noise
ABOVE = 10.0
#: samples kept for each period of the cut-off frequency: what a faster recording has more is in its filtered signals
DENSE = 20
#: samples that the filter needs
SHORTEST = 20
#: samples at either end whose derivatives are one-sided
EDGE = 4


@dataclass(frozen=True, eq=False)
class States:
    """A recording as states at even spacing: smooth q, v, a; tau as measured (`raw`) and filtered."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    raw: Array
    cutoff: float  # Hz; inf: no filter
    source: str

    @property
    def rate(self) -> float:
        return float(1.0 / (self.t[1] - self.t[0]))

    @property
    def inner(self) -> slice:
        """Samples far enough from the ends for the filter."""
        if not np.isfinite(self.cutoff):
            return slice(EDGE, len(self.t) - EDGE)
        edge = max(EDGE, min(int(np.ceil(self.rate / self.cutoff)), len(self.t) // 10))
        return slice(edge, len(self.t) - edge)

    def filtered(self, x: Array) -> Array:
        """Signals (N, …) through the recording's own filter."""
        return low_pass(x, self.cutoff, self.rate)


def low_pass(x: Array, cutoff: float, rate: float) -> Array:
    """Zero-phase Butterworth filter along the first axis."""
    if not np.isfinite(cutoff) or cutoff >= 0.49 * rate:
        return x
    from scipy.signal import butter, sosfiltfilt

    return sosfiltfilt(butter(ORDER, cutoff / (0.5 * rate), output="sos"), x, axis=0)


def motion_frequency(v: Array, rate: float, *, differences: bool = False) -> float:
    """The frequency below which `POWER` of the velocities' power lies, Hz.

    Differences of positions amplify the steps of encoders, white noise, by the response of `rates_of`. The upper half
    of the spectrum shows its level, and only what is well above it counts.
    """
    power = np.abs(np.fft.rfft((v - v.mean(axis=0)) / np.maximum(v.std(axis=0), 1e-12), axis=0)) ** 2
    at = np.fft.rfftfreq(len(v), 1 / rate)
    if differences:
        w = 2 * np.pi * at / rate
        noise = (1.5 * np.sin(w) - 0.3 * np.sin(2 * w) + np.sin(3 * w) / 30) ** 2
        upper = (at > rate / 4) & (noise > 0.3 * noise.max())
        level = np.mean(power[upper] / noise[upper, None], axis=0)
        power = np.where(power > ABOVE * level * noise[:, None], power, 0.0)
    total = power.sum(axis=1)
    share = np.cumsum(total) / max(float(total.sum()), 1e-300)
    return float(at[min(int(np.searchsorted(share, POWER)), len(at) - 1)])


def states_of(model: Model, record: Recording, cutoff: float | None = None, rate: float | None = None) -> States:
    """The recording as states; `cutoff` in Hz, inf for none."""
    gaps = np.diff(record.t)
    own = float(np.median(gaps))
    spacing = own if rate is None else 1.0 / rate
    if not spacing > 0:
        raise InputError(f"{record.source}: sample times are not increasing")
    even = max(float(np.ptp(gaps)), abs(own - spacing)) < 1e-6 * spacing  # at the rate that is asked for already
    t = record.t if even else np.arange(record.t[0], record.t[-1], spacing)
    if len(t) < SHORTEST:
        raise InputError(f"{record.source}: lasts {record.t[-1] - record.t[0]:.4g} s, {counted(len(t), 'sample')} at "
                         f"{1 / spacing:.4g} Hz; at least {SHORTEST} are needed, and t in seconds")  # fmt: skip
    q = record.q if even else _splined(record.t, record.q, t)
    q = model.normalize(q) if model.nq != model.nv else q
    measured = None if record.v is None else (record.v if even else _splined(record.t, record.v, t))
    raw = record.tau if even else np.column_stack([np.interp(t, record.t, x) for x in record.tau.T])
    rough = _rates(model, q, spacing) if measured is None else measured
    frequency = 1.0 / spacing
    if cutoff is None:
        moving = motion_frequency(rough, frequency, differences=measured is None)
        cutoff = float(np.clip(MARGIN * moving, 1.0, 0.4 * frequency))
    if model.nq == model.nv:
        q = low_pass(q, cutoff, frequency)
    v = low_pass(rough if measured is not None else _rates(model, q, spacing), cutoff, frequency)
    a = rates_of(v, spacing)
    step = max(1, int(frequency / (DENSE * cutoff))) if np.isfinite(cutoff) else 1
    t, q, v, a, tau, raw = (x[::step] for x in (t, q, v, a, low_pass(raw, cutoff, frequency), raw))
    if model.mechanism.constrained:
        q = model.assemble(q, limits=False)
        v = model.assemble_velocity(q, v)
        a = model.assemble_acceleration(q, v, a)
    return States(t, q, v, a, tau, raw, cutoff, record.source)


def rates_of(x: Array, spacing: float) -> Array:
    """Time derivative of samples (N, …): central differences of sixth order, of second at the three at either end."""
    result = np.gradient(x, spacing, axis=0, edge_order=2)
    if len(x) > 6:
        inside = 45 * (x[4:-2] - x[2:-4]) - 9 * (x[5:-1] - x[1:-5]) + (x[6:] - x[:-6])
        result[3:-3] = inside / (60 * spacing)
    return result


def _splined(t: Array, x: Array, at: Array) -> Array:
    from scipy.interpolate import CubicSpline

    return CubicSpline(t, x, axis=0)(at)


def _rates(model: Model, q: Array, spacing: float) -> Array:
    """v by central differences on the manifold."""
    if model.nq == model.nv:
        return rates_of(q, spacing)
    forward = model.difference(q[:-1], q[1:]) / spacing
    return np.concatenate([forward[:1], (forward[1:] + forward[:-1]) / 2, forward[-1:]])


__all__ = ["States", "low_pass", "motion_frequency", "rates_of", "states_of"]
