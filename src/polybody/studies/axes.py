"""What varies in a study: axes, and the cases they make, chunk by chunk.

An axis gives one name its values. Lists and grids are counted through; distributions are functions of numbers from the
unit interval, so that every way to fill the unit cube serves all of them:

    random            independent numbers (`kernels.uniform`); chunk c draws from the c-th spawn of the study's seed
    latin-hypercube   every n-th part of each axis has one case
    sobol             a scrambled Sobol sequence, balanced where the number of samples is a power of two
    saltelli          n (d + 2) cases A, B and A with one column of B: for Sobol indices (`statistics`)

Cases are grid points times samples, the grid outermost, in this fixed order; a chunk of them is made without the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.kernels.uniform import uniform
from polybody.names import counted, listed, nearest
from polybody.properties import cached_property

Array = np.ndarray
DESIGNS = ("random", "latin-hypercube", "sobol", "saltelli")
#: kind of a distribution: its numbers
DISTRIBUTIONS = {
    "uniform": ("low", "high"), "normal": ("mean", "deviation"), "lognormal": ("mean of the logarithm", "deviation"),
    "triangular": ("low", "mode", "high"), "truncated-normal": ("mean", "deviation", "low", "high"),
}  # fmt: skip
LATIN_UP_TO = 5_000_000
LARGEST_GRID = 10_000_000  # values of one axis, which are held in memory
MOST_CASES = 10**12  # of a study; years of computing, and far below what an index can count
LEAST = 1e-16  # in place of a zero among numbers of the unit interval, where unbounded distributions are infinite


@dataclass(frozen=True, eq=False)
class Counted:
    """A list of values, (n, size): numbers or vectors."""

    name: str
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        return self.values.shape[1]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Numbers (size,) of one distribution each; `numbers` are those of `DISTRIBUTIONS`, (size,) each."""

    name: str
    kind: str
    numbers: tuple[Array, ...]

    @property
    def size(self) -> int:
        return len(self.numbers[0])

    def at(self, u: Array) -> Array:
        """Values (n, size) for u (n, size) in the unit interval; uniform numbers are scaled with others (`_scale`)."""
        from scipy import stats

        a, u = self.numbers, np.maximum(u, LEAST)
        if self.kind == "normal":
            return stats.norm.ppf(u, a[0], a[1])
        if self.kind == "lognormal":
            return np.exp(stats.norm.ppf(u, a[0], a[1]))
        if self.kind == "triangular":
            return stats.triang.ppf(u, (a[1] - a[0]) / (a[2] - a[0]), a[0], a[2] - a[0])
        return stats.truncnorm.ppf(u, (a[2] - a[0]) / a[1], (a[3] - a[0]) / a[1], a[0], a[1])


@dataclass(frozen=True, eq=False)
class Correlated:
    """Several names at once: normal with a covariance matrix, mean + L z."""

    name: str
    names: tuple[str, ...]
    mean: Array
    factor: Array  # L, the covariance's lower triangular root

    @property
    def size(self) -> int:
        return len(self.mean)

    def at(self, u: Array) -> Array:
        from scipy import stats

        return self.mean + stats.norm.ppf(np.maximum(u, LEAST)) @ self.factor.T


Axis = Counted | Drawn | Correlated


def read_axis(name: str, given: Any) -> Axis:
    """An axis from numbers, or from {"list" | "grid" | a distribution | "covariance": …}."""
    where = f"axis {name!r}"
    if not isinstance(given, Mapping):
        return _counted(name, given, where)
    words = [word for word in given if word not in ("mean", "names")]
    known = ["list", "grid", "covariance", *DISTRIBUTIONS]
    if len(words) != 1 or words[0] not in known:
        offered = nearest(str(words[0]), known) if words else ""
        said = ", ".join(map(str, given)) or "nothing"
        raise InputError(f"{where} has {said}{offered}; expected one of {listed(known)}")
    word, value = words[0], given[words[0]]
    if word == "list":
        return _counted(name, value, where)
    if word == "grid":
        numbers = _numbers(where, value)
        if numbers.shape != (3,) or numbers[2] != int(numbers[2]) or not 1 <= numbers[2] <= LARGEST_GRID:
            raise InputError(
                f"{where}: grid is {value!r:.60}; expected [first, last, how many], at most {LARGEST_GRID}"
            )
        return Counted(name, np.linspace(numbers[0], numbers[1], int(numbers[2]))[:, None])
    if word == "covariance":
        return _correlated(name, given, where)
    return _drawn(name, word, value, where)


def _numbers(where: str, value: Any) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{where}: {value!r:.60} are not numbers") from None
    if not np.isfinite(array).all():
        raise InputError(f"{where}: {value!r:.60} has numbers that are not finite")
    return array


def _counted(name: str, value: Any, where: str) -> Counted:
    array = _numbers(where, value)
    if array.ndim not in (1, 2) or not array.size:
        raise InputError(f"{where} has shape {array.shape}; expected a list of numbers, or of vectors")
    return Counted(name, array.reshape(len(array), -1))


def _drawn(name: str, kind: str, value: Any, where: str) -> Drawn:
    wanted = DISTRIBUTIONS[kind]
    if not isinstance(value, Sequence) or len(value) != len(wanted):
        raise InputError(f"{where}: {kind} is {value!r:.60}; expected [{', '.join(wanted)}]")
    parts = [np.atleast_1d(_numbers(where, part)) for part in value]
    size = max(len(part) for part in parts)
    if any(part.ndim != 1 or len(part) not in (1, size) for part in parts):
        raise InputError(f"{where}: the numbers of {kind} have different lengths")
    numbers = tuple(np.broadcast_to(part, (size,)).copy() for part in parts)
    _check_support(where, kind, numbers)
    return Drawn(name, kind, numbers)


def _check_support(where: str, kind: str, a: tuple[Array, ...]) -> None:
    """Distributions without a support are no distributions."""
    if kind == "uniform" and not np.all(a[0] < a[1]):
        raise InputError(f"{where}: uniform from {a[0]} to {a[1]} has no support; low must be below high")
    if kind in ("normal", "lognormal", "truncated-normal") and not np.all(a[1] > 0):
        raise InputError(f"{where}: {kind} with deviation {a[1]} has no support; it must be positive")
    if kind == "triangular" and not np.all((a[0] < a[2]) & (a[0] <= a[1]) & (a[1] <= a[2])):
        raise InputError(f"{where}: triangular [{a[0]}, {a[1]}, {a[2]}] has no support; expected low <= mode <= high")
    if kind == "truncated-normal":
        if not np.all(a[2] < a[3]):
            raise InputError(f"{where}: between {a[2]} and {a[3]} there is no support; low must be below high")
        if np.any((a[2] - a[0]) / a[1] > 30) or np.any((a[3] - a[0]) / a[1] < -30):
            raise InputError(f"{where}: the interval is more than 30 deviations from the mean: no support in numbers")


def _correlated(name: str, given: Mapping[str, Any], where: str) -> Correlated:
    names, mean = tuple(given.get("names", ())), np.atleast_1d(_numbers(where, given.get("mean", ())))
    matrix = np.atleast_2d(_numbers(where, given["covariance"]))
    n = len(names)
    if not n or mean.shape != (n,) or matrix.shape != (n, n):
        raise InputError(f"{where}: covariance {matrix.shape} and mean {mean.shape} do not fit {counted(n, 'name')}")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
        raise InputError(f"{where}: the covariance is not symmetric")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-12 * max(values[-1], 1e-300) or values[-1] <= 0:
        raise InputError(f"{where}: the covariance has no support: its eigenvalues are {values}; none may be negative")
    return Correlated(name, names, mean, vectors * np.sqrt(np.clip(values, 0, None)))


@dataclass(frozen=True, eq=False)
class Cases:
    """All cases of a study: counted axes outermost, then samples."""

    axes: tuple[Axis, ...]
    samples: int
    design: str
    seed: int
    chunk: int
    counted: tuple[Counted, ...] = field(init=False)
    sampled: tuple[Drawn | Correlated, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counted", tuple(a for a in self.axes if isinstance(a, Counted)))
        object.__setattr__(self, "sampled", tuple(a for a in self.axes if not isinstance(a, Counted)))

    @property
    def dimensions(self) -> int:
        return sum(axis.size for axis in self.sampled)

    @property
    def rows(self) -> int:
        """Cases for each grid point."""
        if not self.sampled:
            return 1
        return self.samples * (self.dimensions + 2) if self.design == "saltelli" else self.samples

    @property
    def count(self) -> int:
        """How many, also where they are too many for `len`."""
        return math.prod(len(axis) for axis in self.counted) * self.rows

    def __len__(self) -> int:
        return self.count

    @property
    def chunks(self) -> int:
        return -(-len(self) // self.chunk)

    def span(self, index: int) -> tuple[int, int]:
        """First case of a chunk, and the one after its last."""
        return index * self.chunk, min((index + 1) * self.chunk, len(self))

    def values(self, index: int) -> dict[str, Array]:
        """{name: (cases of the chunk, size)}."""
        first, last = self.span(index)
        found: dict[str, Array] = {}
        if self.counted:
            point = np.arange(first, last) // self.rows
            for axis in reversed(self.counted):
                found[axis.name] = axis.values[point % len(axis)]
                point = point // len(axis)
            found = dict(reversed(found.items()))
        if self.sampled:
            u, start = self._unit(index, first, last), 0
            for axis in self.sampled:
                part = u[:, start : start + axis.size]
                if not (isinstance(axis, Drawn) and axis.kind == "uniform"):
                    part = axis.at(part)
                start += axis.size
                if isinstance(axis, Correlated):
                    found |= {name: part[:, k : k + 1] for k, name in enumerate(axis.names)}
                else:
                    found[axis.name] = part
        return found

    @cached_property
    def single(self) -> Cases:
        """The same in chunks of one case, to look at the first."""
        return replace(self, chunk=1)

    def bounds(self) -> dict[str, tuple[Array, Array]]:
        """{name: (least, largest)} of axes whose numbers are never rounded beyond their bounds: lists and uniform ones.

        The largest of a uniform axis is meant up to rounding.
        """
        found = {a.name: (a.values.min(axis=0), a.values.max(axis=0)) for a in self.counted}
        some = [a for a in self.sampled if isinstance(a, Drawn) and a.kind == "uniform"]
        return found | {a.name: (a.numbers[0], a.numbers[1]) for a in some}

    # The unit cube.

    def _unit(self, index: int, first: int, last: int) -> Array:
        """Numbers for cases from first to before last: uniform ones in their ranges, others between 0 and 1."""
        if self.design == "random":
            own = np.random.SeedSequence(self._child.entropy, spawn_key=(*self._child.spawn_key, index))
            return uniform(own, last - first, *self._uniform)
        u = self._balanced(np.arange(first, last) % self.rows)
        _scale(u, *self._uniform)
        return u

    def _balanced(self, sample: Array) -> Array:
        """Rows of the design in the unit cube, an array of their own."""
        if self.design == "latin-hypercube":
            return self._latin[sample]
        if self.design == "sobol":
            return self._sobol(self.dimensions, sample)
        n, d = self.samples, self.dimensions
        block, row = sample // n, sample % n
        both = self._sobol(2 * d, row)
        u = np.where((block == 1)[:, None], both[:, d:], both[:, :d])
        for k in range(d):
            u[block == 2 + k, k] = both[block == 2 + k, d + k]
        return u

    @cached_property
    def _child(self) -> np.random.SeedSequence:
        """The seed of the axes; that of users' functions (`Case.rng`) is another."""
        return np.random.SeedSequence(self.seed).spawn(1)[0]

    @cached_property
    def _uniform(self) -> tuple[Array, Array]:
        """Least value and width of each number that is uniform; 0 and 1, which change nothing, of the others."""
        low, width = np.zeros(self.dimensions), np.ones(self.dimensions)
        start = 0
        for axis in self.sampled:
            if isinstance(axis, Drawn) and axis.kind == "uniform":
                low[start : start + axis.size] = axis.numbers[0]
                width[start : start + axis.size] = axis.numbers[1] - axis.numbers[0]
            start += axis.size
        return low, width

    @cached_property
    def _latin(self) -> Array:
        from scipy.stats import qmc

        return np.clip(qmc.LatinHypercube(self.dimensions, rng=np.random.default_rng(self.seed)).random(self.samples),
                       1e-16, 1 - 1e-16)  # fmt: skip

    def _sobol(self, d: int, sample: Array) -> Array:
        """Rows of a scrambled Sobol sequence: those from the least to the largest are made, the asked ones taken."""
        from scipy.stats import qmc

        low, high = int(sample.min()), int(sample.max())
        engine = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(self.seed))
        if low:
            engine.fast_forward(low)
            rows = engine.random(high - low + 1)
        else:  # the first for itself: SciPy would warn once per chunk that the rest is not balanced, as docs say
            rows = np.concatenate([engine.random(1), engine.random(high)])
        return np.clip(rows[sample - low], 1e-16, 1 - 1e-16)


def _scale(u: Array, low: Array, width: Array, block: int = 512) -> None:
    """u (n, d) times width plus low, in place; many rows at once, as loops over d numbers would be short."""
    whole = len(u) // block * block
    wide = u[:whole].reshape(-1, block * u.shape[1])  # rows lie one behind the other: no copy
    wide *= np.tile(width, block)
    wide += np.tile(low, block)
    u[whole:] *= width
    u[whole:] += low


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    good = good and (isinstance(value, int | np.integer) or math.isfinite(value))
    if not good or value != int(value) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number of at least {least}")
    return int(value)


def cases_of(vary: Mapping[str, Any], samples: int | None, design: str, seed: int, chunk: int) -> Cases:
    """The cases of a study's description, or an error that says what of it cannot be."""
    if not isinstance(vary, Mapping) or not vary:
        raise InputError("a study varies something: vary={'forearm.mass': {'uniform': [1, 2]}, …}")
    axes = tuple(read_axis(str(name), given) for name, given in vary.items())
    _refuse_twice(axes)
    if design not in DESIGNS:
        raise InputError(f"no design {design!r}{nearest(str(design), DESIGNS)}; available: {', '.join(DESIGNS)}")
    sampled = any(not isinstance(axis, Counted) for axis in axes)
    if sampled:
        whole("samples", samples, 1)
    if not sampled and samples is not None:
        raise InputError("samples is given, but no axis is a distribution")
    if design == "saltelli" and (not sampled or any(isinstance(a, Correlated) for a in axes)):
        raise InputError("design 'saltelli' needs distributions that are independent of each other")
    if design == "latin-hypercube" and sampled and int(samples or 0) > LATIN_UP_TO:
        raise InputError(f"a Latin hypercube of {samples} samples is held in memory whole; above {LATIN_UP_TO} take "
                         "design='sobol' or 'random'")
    cases = Cases(axes, int(samples or 1), design, seed, chunk)
    if cases.count > MOST_CASES:
        raise InputError(f"the study has {cases.count:.3g} cases; at most {MOST_CASES:.0e} are computed")
    return cases


def _refuse_twice(axes: Sequence[Axis]) -> None:
    owner: dict[str, str] = {}
    for axis in axes:
        for name in axis.names if isinstance(axis, Correlated) else (axis.name,):
            for other in owner:
                if name == other or name.startswith(f"{other}.") or other.startswith(f"{name}."):
                    raise InputError(f"two axes vary one thing: {owner[other]!r} and {axis.name!r} both set {name!r}")
            owner[name] = axis.name


__all__ = ["DESIGNS", "DISTRIBUTIONS", "Cases", "Correlated", "Counted", "Drawn", "cases_of", "read_axis"]
