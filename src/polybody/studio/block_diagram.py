"""Tokad's block diagram (Figure 4): how the solution proceeds through an open chain or a tree of bodies.

Above, the forward recursion of across variables (40) goes from the ground outwards; below, the inverse recursion of
through variables (41) comes back; between them the active one-port W_G = P_G d/dt + Q_G of each body, with its weight
u_G. A column is a body; a body on a branch takes its predecessor's x_G from where it branches. Many are put in rows.

    x_Gj = K_bj⁻ᵀ (K_aᵢᵀ x_Gi + x_j)                    y_j = K_bj⁻¹ (W_Gj x_Gj + u_Gj + Σ K_a y_k)

For one-dimensional parts the diagram is the order in which blocks of equations are solved, from states and inputs to
rates, which are integrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from polybody.formulations.network import Network
from polybody.formulations.network.closed import outward
from polybody.formulations.network.parts import WORLD
from polybody.studio.svg_pieces import arrow, page, words

COLUMN, MARGIN, TOP, BOX = 190.0, 70.0, 110.0, (92.0, 40.0)
WIDEST = 8  # columns of the order of solution
ACROSS = 7  # bodies side by side: 1,590 px
LONGEST = 15  # characters of a body's name in a box
INK, LIGHT, ACTIVE = "#22292f", "#eef2f5", "#dbe9f6"


def _box(x: float, y: float, said: str, fill: str = LIGHT, size: tuple[float, float] = BOX) -> str:
    w, h = size
    first, _, second = said.partition("\n")
    text = words(x, y - 3 if second else y + 4, first, size=12, halo=False)
    text += words(x, y + 12, second, size=10, halo=False) if second else ""
    return (f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6" fill="{fill}" '
            f'stroke="#8a949c"/>' + text)


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
    """Figure 4 for the bodies of a network, along its formulation tree, in rows that fit a page.

    A branch stays in one row where it can; what it takes from a body in another row, and gives back to it, is named at
    both ends. Joints that close loops are named above.
    """
    first: dict[str, Any] = {}  # how the tree enters each body; joints that close loops come later
    for entry in outward(net):
        first.setdefault(entry[1], entry)
    rows = _rows(_branch_by_branch(list(first.values())))
    title = f"{net.name}: across variables outwards (40), through variables inwards (41)"
    drawn = [words(MARGIN / 2, 34, title, size=16, weight="600", anchor="start", halo=False)]
    entered = {joint.name for row in rows for joint, *_ in row}
    closing = [name for name in net.parts.joints if name not in entered]
    top = 58.0
    if closing:
        for line in wrap(f"joined afterwards, by their circuits: {', '.join(closing)}", 190):
            drawn.append(words(MARGIN / 2, top, line, size=12, anchor="start", halo=False))
            top += 18
    labels = _labels([body for row in rows for _, body, *_ in row])
    for row in rows:
        more, top = _row(row, rows, labels, top + (TOP - 58))
        drawn += more
    wide = MARGIN + 190 + COLUMN * max((len(row) for row in rows), default=1)
    return page(max(wide, 9 * len(title)), top + 10, drawn)


def _rows(order: list[Any]) -> list[list[Any]]:
    """Bodies in rows of at most `ACROSS`, with branches that follow their predecessor kept together."""
    branches: list[list[Any]] = []
    for entry in order:
        if branches and branches[-1][-1][1] == entry[2] and len(branches[-1]) < ACROSS:
            branches[-1].append(entry)
        else:
            branches.append([entry])
    rows: list[list[Any]] = []
    for branch in branches:
        if rows and len(rows[-1]) + len(branch) <= ACROSS:
            rows[-1] += branch
        else:
            rows.append(list(branch))
    return rows


def _row(row: list[Any], rows: list[list[Any]], labels: dict[str, str], top: float) -> tuple[list[str], float]:
    """(drawing, where it ends) of the bodies of one row."""
    column = {body: k for k, (_, body, *_) in enumerate(row)}
    far = [k for k, (_, _, before, _) in enumerate(row) if before in column and k != column[before] + 1]
    lane = {k: 16.0 + 9.0 * n for n, k in enumerate(far)}  # lines of branches that begin elsewhere, one below another
    elsewhere = {body: [joint.name for other in rows if other is not row for joint, _, before, _ in other
                        if before == body] for body in column}
    forward = top + 40
    active = forward + 130 + 9 * len(far)
    inverse = active + 130
    drawn = [words(MARGIN, y + 4, said, size=13, weight="600", halo=False)
             for y, said in ((forward, "(40)"), (active, "(2)"), (inverse, "(41)"))]
    for k, (joint, body, before, _) in enumerate(row):
        x = MARGIN + 150 + COLUMN * k
        drawn += _column(x, forward, active, inverse, joint.name, labels[body])
        if before in column:
            xi = MARGIN + 150 + COLUMN * column[before]
            lift = drop = lane.get(k, 0.0)
            drawn.append(_line([(xi + 46, forward), (xi + 62, forward), (xi + 62, forward + 24 + lift),
                                (x - 82, forward + 24 + lift), (x - 82, forward + 11)]))
            drawn.append(words((xi + 62 + x - 82) / 2, forward + 20 + lift, "K_aᵀ", size=11))
            drawn.append(_line([(x - 46, inverse), (x - 60, inverse), (x - 60, inverse + 26 + drop),
                                (xi + 70, inverse + 26 + drop), (xi + 70, inverse + 11)]))
            drawn.append(words((xi + 70 + x - 60) / 2, inverse + 40 + drop, "K_a", size=11))
        elif before != WORLD:
            drawn.append(_line([(x - 82, forward + 46), (x - 82, forward + 11)]))
            drawn.append(words(x - 88, forward + 60, f"K_aᵀ x_G({labels[before]})", size=11))
        for n, name in enumerate(elsewhere[body]):
            if n == 0:
                drawn.append(_line([(x + 70, inverse + 46), (x + 70, inverse + 11)]))
            drawn.append(words(x + 60, inverse + 60 + 14 * n, f"K_a y({_joint(name)})", size=11, anchor="start"))
    deep = max([30 + 9 * len(far), *(14 * len(names) - 10 for names in elsewhere.values())])
    return drawn, inverse + 90 + deep


def _column(x: float, forward: float, active: float, inverse: float, joint: str, label: str) -> list[str]:
    """The blocks of one body."""
    return [
        _box(x, forward, f"K⁻ᵀ_b\n{label}"), _box(x, active, f"W_G\n{label}", ACTIVE),
        _box(x, inverse, f"K⁻¹_b\n{label}"), _sum(x - 82, forward), _sum(x + 70, inverse),
        _line([(x - 82, forward - 52), (x - 82, forward - 11)]),
        words(x - 82, forward - 58, f"x({_joint(joint)})", size=11), _line([(x - 71, forward), (x - 46, forward)]),
        # x_G down through W_G to the sum of the inverse recursion
        _line([(x, forward + 20), (x, active - 20)], ""),
        words(x + 8, forward + 44, f"x_G({label})", size=11, anchor="start"),
        _line([(x, active + 20), (x, inverse - 60), (x + 70, inverse - 60), (x + 70, inverse - 11)]),
        _line([(x + 116, active + 42), (x + 78, inverse - 9)]),
        words(x + 110, active + 36, f"u_G({label})", size=11), _line([(x + 59, inverse), (x + 46, inverse)]),
        _line([(x, inverse + 20), (x, inverse + 62)]),
        words(x, inverse + 78, f"y({_joint(joint)})", size=11),
    ]  # fmt: skip


def _branch_by_branch(order: list[Any]) -> list[Any]:
    """Bodies with each branch in one piece, so that most follow their predecessor's column."""
    found: list[Any] = []
    waiting = [entry for entry in reversed(order) if entry[2] == WORLD]
    while waiting:
        entry = waiting.pop()
        found.append(entry)
        waiting += [other for other in reversed(order) if other[2] == entry[1]]
    return found


def _joint(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:13]}…{name[-8:]}"


def _labels(bodies: Sequence[str]) -> dict[str, str]:
    """Short names that tell bodies apart: an ending that all share is left out, words are cut from the first on."""
    ends = {name[name.rindex("_") :] if "_" in name else "" for name in bodies}
    ending = ends.pop() if len(ends) == 1 and len(bodies) > 1 else ""
    found: dict[str, str] = {}
    for name in bodies:
        parts = (name.removesuffix(ending) or name).split("_")
        for k in range(len(parts) - 1):
            if len("_".join(parts)) <= LONGEST:
                break
            parts[k] = parts[k][:1]
        label = "_".join(parts)
        label = label if len(label) <= LONGEST else f"{label[: LONGEST // 2]}…{label[1 - LONGEST // 2 :]}"
        taken = list(found.values()).count(label)
        found[name] = label if not taken else f"{label[: LONGEST - 3]}…{taken + 1}"
    return found


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
