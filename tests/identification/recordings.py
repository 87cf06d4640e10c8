"""Recorded motions made by inverse dynamics: smooth random Fourier motions with known parameters and noise."""

from __future__ import annotations

import numpy as np

import polybody as pb


def fourier(rng: np.random.Generator, t: np.ndarray, n: int, size: float = 0.8, waves: int = 4):
    """(q, v, a), (N, n) each: sums of a few sines that start anywhere."""
    q, v, a = np.zeros((3, len(t), n))
    base = 2 * np.pi / t[-1]
    for k in range(1, waves + 1):
        w = base * k * 2
        A, B = rng.normal(size=(2, n)) * size / (waves * np.sqrt(k))
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, v, a = q + A * s + B * c, v + w * (A * c - B * s), a - w * w * (A * s + B * c)
    return q, v, a


def motion(model: pb.Model, rng: np.random.Generator, seconds: float = 12.0, rate: float = 100.0):
    """(t, q, v, a) of a tree."""
    t = np.arange(0, seconds, 1 / rate)
    q, v, a = fourier(rng, t, model.nv)
    return t, q, v, a


def table(t, q, v, tau) -> dict[str, np.ndarray]:
    """A mapping as `pb.identify` takes it."""
    return {"t": t, "q": q, "v": v, "tau": tau}


def write_csv(path, t, q, v, tau, names: tuple[str, ...] = ()) -> None:
    """The table of the command line, by number or by joint names."""
    groups = (("q", q), ("v", v), ("tau", tau))
    def label(kind, k):
        return f"{kind}_{names[k]}" if names else f"{kind}{k + 1}"

    header = ["t", *(label(kind, k) for kind, x in groups if x is not None for k in range(x.shape[1]))]
    rows = np.column_stack([t, *(x for _, x in groups if x is not None)])
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")


__all__ = ["fourier", "motion", "table", "write_csv"]
