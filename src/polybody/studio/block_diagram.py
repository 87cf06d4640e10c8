"""Tokad's block diagram (Figure 4): how the solution proceeds through an open chain or a tree of bodies.

Above, the forward recursion of across variables (40) goes from the ground outwards; below, the inverse recursion of
through variables (41) comes back; between them the active one-port W_G = P_G d/dt + Q_G of each body, with its weight
u_G. A column is a body; a body on a branch takes its predecessor's x_G from where it branches.

    x_Gj = K_bj⁻ᵀ (K_aᵢᵀ x_Gi + x_j)                    y_j = K_bj⁻¹ (W_Gj x_Gj + u_Gj + Σ K_a y_k)

For one-dimensional parts the diagram is the order in which blocks of equations are solved, from states and inputs to
rates, which are integrated.
"""

from __future__ import annotations

from typing import Any

from polybody.formulations.network import Network
from polybody.formulations.network.closed import outward
from polybody.formulations.network.parts import WORLD
from polybody.studio.svg_pieces import arrow, page, words

COLUMN, MARGIN, TOP, BOX = 190.0, 70.0, 110.0, (92.0, 40.0)
WIDEST = 8  # columns of the order of solution
INK, LIGHT, ACTIVE = "#22292f", "#eef2f5", "#dbe9f6"


def _box(x: float, y: float, said: str, fill: str = LIGHT, size: tuple[float, float] = BOX) -> str:
    w, h = size
    return (f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6" fill="{fill}" '
            f'stroke="#8a949c"/>' + words(x, y + 4, said, size=12, halo=False))


def _sum(x: float, y: float) -> str:
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="#ffffff" stroke="{INK}" stroke-width="1.4"/>'
            + words(x, y + 4, "+", size=13, halo=False))


def _line(points: list[tuple[float, float]], said: str = "", colour: str = INK) -> str:
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    (x0, y0), (x1, y1) = points[-2:]
    drawn = f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.4"/>'
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
    tip = (x1 - 5.5 * (x1 - x0) / length, y1 - 5.5 * (y1 - y0) / length)
    drawn += arrow(tip, (x1 - x0, y1 - y0), colour, False)
    if said:
        drawn += words((x0 + x1) / 2, (y0 + y1) / 2 - 6, said, size=11)
    return drawn


def block_svg(net: Network) -> str:
    """Figure 4 for the bodies of a network, along its formulation tree; joints that close loops are named below."""
    first: dict[str, Any] = {}  # how the tree enters each body; joints that close loops come later
    for entry in outward(net):
        first.setdefault(entry[1], entry)
    order = _branch_by_branch(list(first.values()))
    column = {body: k for k, (_, body, *_) in enumerate(order)}
    far = [k for k, (_, _, before, _) in enumerate(order) if before != WORLD and k != column[before] + 1]
    lane = {k: 16.0 + 9.0 * n for n, k in enumerate(far)}  # lines of branches that begin elsewhere, one below another
    forward = TOP + 40
    active = forward + 130 + 9 * len(far)
    inverse = active + 130
    drawn: list[str] = []
    for k, (joint, body, before, _) in enumerate(order):
        x = MARGIN + 150 + COLUMN * k
        drawn += [_box(x, forward, f"K⁻ᵀ(b, {_short(body)})"), _box(x, active, f"W_G({_short(body)})", ACTIVE),
                  _box(x, inverse, f"K⁻¹(b, {_short(body)})"), _sum(x - 82, forward), _sum(x + 70, inverse)]
        drawn.append(_line([(x - 82, forward - 52), (x - 82, forward - 11)]))
        drawn.append(words(x - 82, forward - 58, f"x({joint.name})", size=11))
        drawn.append(_line([(x - 71, forward), (x - 46, forward)]))
        # x_G down through W_G to the sum of the inverse recursion
        drawn.append(_line([(x, forward + 20), (x, active - 20)], ""))
        drawn.append(words(x + 8, forward + 44, f"x_G({_short(body)})", size=11, anchor="start"))
        drawn.append(_line([(x, active + 20), (x, inverse - 60), (x + 70, inverse - 60), (x + 70, inverse - 11)]))
        drawn.append(_line([(x + 118, active + 36), (x + 78, inverse - 9)]))
        drawn.append(words(x + 112, active + 28, f"u_G({_short(body)})", size=11))
        drawn.append(_line([(x + 59, inverse), (x + 46, inverse)]))
        drawn.append(_line([(x, inverse + 20), (x, inverse + 62)]))
        drawn.append(words(x, inverse + 78, f"y({joint.name})", size=11))
        if before != WORLD:
            i = column[before]
            xi = MARGIN + 150 + COLUMN * i
            lift = drop = lane.get(k, 0.0)
            drawn.append(_line([(xi + 46, forward), (xi + 62, forward), (xi + 62, forward + 24 + lift),
                                (x - 82, forward + 24 + lift), (x - 82, forward + 11)]))
            drawn.append(words((xi + 62 + x - 82) / 2, forward + 20 + lift, "K_aᵀ", size=11))
            drawn.append(_line([(x - 46, inverse), (x - 60, inverse), (x - 60, inverse + 26 + drop),
                                (xi + 70, inverse + 26 + drop), (xi + 70, inverse + 11)]))
            drawn.append(words((xi + 70 + x - 60) / 2, inverse + 40 + drop, "K_a", size=11))
    names = [words(MARGIN, forward + 4, "(40)", size=13, weight="600", halo=False),
             words(MARGIN, inverse + 4, "(41)", size=13, weight="600", halo=False),
             words(MARGIN, active + 4, "(2)", size=13, weight="600", halo=False)]
    closing = [name for name in net.parts.joints if name not in {joint.name for joint, *_ in order}]
    title = f"{net.name}: across variables outwards (40), through variables inwards (41)"
    drawn.append(words(MARGIN / 2, 34, title, size=16, weight="600", anchor="start", halo=False))
    if closing:
        said = f"joined afterwards, by their circuits: {', '.join(closing)}"
        drawn.append(words(MARGIN / 2, 58, said, size=12, anchor="start", halo=False))
    deep = 30 + 9 * len(far)
    return page(max(MARGIN + 190 + COLUMN * len(order), 9 * len(title)), inverse + 110 + deep, [*names, *drawn])


def _branch_by_branch(order: list[Any]) -> list[Any]:
    """Bodies with each branch in one piece, so that most follow their predecessor's column."""
    found: list[Any] = []
    waiting = [entry for entry in reversed(order) if entry[2] == WORLD]
    while waiting:
        entry = waiting.pop()
        found.append(entry)
        waiting += [other for other in reversed(order) if other[2] == entry[1]]
    return found


def _short(body: str) -> str:
    """A long name without its middle: names often differ at their end only."""
    return body if len(body) <= 8 else f"{body[:4]}…{body[-3:]}"


def solution_svg(system: Any) -> str:
    """The order of solution of one-dimensional parts: states and inputs, blocks in turn, rates, integration."""
    equations, assembly = system.equations, system.assembly
    blocks = [assembly.key_name(key) for key, _ in equations.solved]
    rates = {assembly.key_name((j, k + 1)) for j, k in equations.states}
    cells = [("states", name) for name in system.states] + [("inputs", name) for name in assembly.inputs]
    cells += [("iterated", name) for name in system.algebraic]
    cells += [("rates" if name in rates else "solved", name) for name in blocks]
    fills = {"states": ACTIVE, "inputs": "#fdeccf", "iterated": "#f9d7d5", "solved": LIGHT, "rates": "#d9efdf"}
    wide = max([len(name) for _, name in cells] + [8]) * 7.2 + 18
    per_row = max(2, min(WIDEST, int(1300 / (wide + 40))))
    drawn, places = [], []
    for n, (kind, name) in enumerate(cells):
        x, y = MARGIN + wide / 2 + (wide + 40) * (n % per_row), 100 + 74 * (n // per_row)
        places.append((x, y))
        drawn.append(_box(x, y, name, fills[kind], (wide, 36.0)))
        if n and n % per_row:
            drawn.append(_line([(places[n - 1][0] + wide / 2, y), (x - wide / 2, y)]))
        elif n:
            px, py = places[n - 1]
            drawn.append(_line([(px, py + 18), (px, py + 37), (x, py + 37), (x, y - 18)]))
    height = 100 + 74 * ((len(cells) - 1) // per_row) + 100
    x = MARGIN / 2
    for kind, fill in fills.items():
        drawn.append(f'<rect x="{x:.0f}" y="{height - 34:.0f}" width="14" height="14" fill="{fill}" stroke="#8a949c"/>')
        drawn.append(words(x + 20, height - 22, kind, anchor="start", halo=False))
        x += 90
    title = "Order of solution: each block needs only those before it; rates are integrated to the states"
    drawn.append(words(MARGIN / 2, 40, title, size=16, weight="600", anchor="start", halo=False))
    return page(max(MARGIN * 2 + (wide + 40) * min(per_row, len(cells)), 8.6 * len(title)), height, drawn)


__all__ = ["block_svg", "solution_svg"]
