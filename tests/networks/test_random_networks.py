"""Random circuits and drive trains against a sparse tableau written here, which shares nothing with the library.

Unknowns of the tableau are the potentials of the nodes and the flow through each edge: Kirchhoff's laws and the laws of
the elements, as a pencil A + s E. No tree, no structural analysis, no choice of states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import polybody as pb

Element = tuple[str, Any, Any, float]


def _random(rng: np.random.Generator, kinds: dict[str, float], pairs: tuple[str, ...]) -> tuple[int, list[Element]]:
    """(nodes besides the ground, elements): a connected graph, with two-ports between any of its nodes."""
    n = int(rng.integers(2, 6))
    edges = [(k, int(rng.integers(0, k))) for k in range(1, n + 1)]
    for _ in range(int(rng.integers(0, 5))):
        a, b = rng.choice(n + 1, 2, replace=False)
        edges.append((int(a), int(b)))
    chosen = rng.choice(list(kinds), size=len(edges), p=list(kinds.values()))
    elements: list[Element] = [(str(k), a, 0 if k == "J" else b, float(rng.uniform(0.3, 3))) for k, (a, b) in
                               zip(chosen, edges, strict=True) if not (k == "J" and a == 0)]
    elements += [("R", k, 0, float(rng.uniform(1, 3))) for k in range(1, n + 1) if "J" in kinds]
    for _ in range(int(rng.integers(0, 3))):
        (a, b), (c, d) = (rng.choice(n + 1, 2, replace=False).tolist() for _ in range(2))
        elements.append((str(rng.choice(pairs)), (a, b), (c, d), float(rng.uniform(0.4, 2.5))))
    return n, elements


def _node(k: int) -> str:
    return "ground" if k == 0 else f"n{k}"


ELECTRICAL = {"R": ("resistor", "resistance"), "L": ("inductor", "inductance"), "C": ("capacitor", "capacitance"),
              "I": ("current_source", "current"), "V": ("voltage_source", "voltage"), "T": ("transformer", "ratio"),
              "G": ("gyrator", "conductance")}  # fmt: skip
ROTATIONAL = {"R": ("rotational_damper", "damping"), "L": ("rotational_spring", "stiffness"),
              "J": ("inertia", "inertia"), "I": ("torque_source", "torque"), "V": ("speed_source", "speed"),
              "T": ("gear", "ratio")}  # fmt: skip


def _network(elements: list[Element], parts: dict[str, tuple[str, str]]) -> pb.Network:
    net = pb.Network("random")
    for k, (kind, a, b, value) in enumerate(elements):
        name, (part, key) = f"{kind}{k}", parts[kind]
        if isinstance(a, int):
            net.part(name, part, _node(a), _node(b), **{key: value})
        else:
            net.part(name, part, tuple(map(_node, a)), tuple(map(_node, b)), **{key: value})
    return net


def _pencil(n: int, elements: list[Element], rotational: bool) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(A, E, row of each element): (A + s E) [potentials; flows] = sources."""
    ends, row, count = [], [], 0
    for _, a, b, _ in elements:
        row.append(n + count)
        pairs = [(a, b)] if isinstance(a, int) else [a, b]
        ends += pairs
        count += len(pairs)
    A, E = np.zeros((n + count, n + count)), np.zeros((n + count, n + count))

    def across(M: np.ndarray, r: int, pair: tuple[int, int], by: float) -> None:
        for node, sign in zip(pair, (1, -1), strict=True):
            if node:
                M[r, node - 1] += sign * by

    for j, pair in enumerate(ends):
        for node, sign in zip(pair, (1, -1), strict=True):
            if node:
                A[node - 1, n + j] += sign
    for (kind, a, b, x), r in zip(elements, row, strict=True):
        pair = (a, b)
        if kind == "R":
            across(A, r, pair, x if rotational else 1.0)
            A[r, r] -= 1.0 if rotational else x
        elif kind == "L":  # v = L i' or t' = k w
            across(A, r, pair, x if rotational else 1.0)
            E[r, r] -= 1.0 if rotational else x
        elif kind in "CJ":
            across(E, r, pair, x)
            A[r, r] -= 1.0
        elif kind == "V":
            across(A, r, pair, 1.0)
        elif kind == "I":
            A[r, r] = -1.0 if rotational else 1.0  # a torque source turns its first node forward
        elif kind == "T":
            across(A, r, a, 1.0)
            across(A, r, b, -x)
            A[r + 1, r + 1], A[r + 1, r] = 1.0, x
        else:
            A[r, r] = A[r + 1, r + 1] = 1.0
            across(A, r, b, -x)
            across(A, r + 1, a, x)
    return A, E, row


def _compare(n: int, elements: list[Element], parts: dict[str, tuple[str, str]], rotational: bool) -> bool:
    """Whether the network was solvable; its poles and frequency responses are then the tableau's."""
    A, E, row = _pencil(n, elements, rotational)
    net = _network(elements, parts)
    if np.linalg.cond(A + (0.2 + 1.3j) * E) > 1e10:
        with pytest.raises(pb.PolybodyError):
            pb.linearize(net, inputs=[])
        return False
    al, be = scipy.linalg.eigvals(A, -E, homogeneous_eigvals=True)
    finite = np.abs(be) > 1e-7 * np.abs(al)
    poles, own = al[finite] / be[finite], pb.linearize(net, inputs=[]).poles()
    if rotational:  # the angle of a spring that closes a circuit of springs is a state of its own, whose pole is 0
        poles, own = (x[np.abs(x) > 1e-6] for x in (poles, own))
    assert len(poles) == len(own)
    for pole in poles:
        assert np.abs(own - pole).min() < 1e-5 * (1 + np.abs(pole)), (poles, own)
    letter = "w" if rotational else "v"
    for k, (kind, *_) in enumerate(elements):
        if kind not in "IV":
            continue
        for j, (other, a, b, _) in enumerate(elements):
            if not isinstance(a, int):
                continue
            told = pb.frequency_response(net, f"{kind}{k}.{parts[kind][1]}", f"{other}{j}.{letter}", [0.7, 2.1])
            for w, H in zip((0.7, 2.1), told, strict=True):
                right = np.zeros(len(A))
                right[row[k]] = 1.0
                v = np.concatenate([[0], np.linalg.solve(A + 1j * w * E, right)[:n]])
                assert abs(H - (v[a] - v[b])) < 1e-9 * (1 + np.abs(v).max())
    return True


@pytest.mark.parametrize("seed", range(24))
def test_random_circuits_have_the_poles_and_responses_of_their_tableau(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, elements = _random(rng, {"R": 0.45, "L": 0.2, "C": 0.2, "I": 0.08, "V": 0.07}, ("T", "G"))
    _compare(n, elements, ELECTRICAL, False)


@pytest.mark.parametrize("seed", range(16))
def test_random_drive_trains_have_the_poles_and_responses_of_their_tableau(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    n, elements = _random(rng, {"R": 0.2, "L": 0.35, "J": 0.35, "I": 0.1}, ("T",))
    _compare(n, elements, ROTATIONAL, True)


@pytest.mark.parametrize(
    ("n", "elements"),
    [(2, [("R", 1, 0, 2.7), ("L", 2, 0, 2.5), ("G", (0, 2), (2, 0), 2.1)]),
     (2, [("V", 1, 0, 2.9), ("L", 2, 1, 1.9), ("G", (0, 2), (2, 1), 1.07), ("G", (2, 1), (0, 2), 0.45)]),
     (2, [("I", 1, 0, 0.8), ("L", 2, 1, 1.0), ("L", 2, 0, 1.5), ("T", (2, 0), (1, 0), 2.3),
          ("G", (2, 1), (2, 0), 0.9)])],
)  # fmt: skip
def test_networks_whose_terms_cancel_have_the_poles_of_their_tableau(n: int, elements: list[Element]) -> None:
    # structure alone takes these for regular, and the numbers for singular: equations must be combined
    assert _compare(n, elements, ELECTRICAL, False)


def test_a_network_without_memory_is_trusted() -> None:
    net = pb.Network("divider")
    net.part("V", "voltage_source", "a", voltage=2.0)
    net.part("R1", "resistor", "a", "b", resistance=3.7)
    net.part("R2", "resistor", "b", resistance=1.3)
    run = pb.simulate(net, 0.1)
    assert run.audit.trusted
    assert run["R2.v"][-1] == pytest.approx(2.0 * 1.3 / 5.0, rel=1e-14)
