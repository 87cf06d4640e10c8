"""Tokad 1992, section 3: the three-link plane manipulator as a network; Tables 1 and 2 as printed and as corrected.

    python examples/tokad_section_3.py [FOLDER]

The network of Figure 5 is put together from bodies and joints; its closed form (20), reduced to the joints' axes, is
the (42) of the paper: M = c dω/dt + d ω − δ y_4 + β. Every entry of both tables is evaluated at the state of the errata
as it is printed, as it is corrected, and as the network computes it. The system graph (Figure 2e) and the block diagram
(Figure 4) are drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.studio.block_diagram import block_svg
from polybody.studio.network_drawing import network_svg

LENGTHS, MASSES, G = (1.0, 0.8, 0.6), (2.0, 1.5, 1.0), 9.81
THETA, OMEGA, ALPHA = (0.3, -0.5, 0.9), (0.4, -0.7, 1.1), (1.2, 0.5, -0.8)
LOAD = np.array([2.0, -3.0, 0.0, 0.0, 0.0, 0.5])  # y_4 = [f_4; M_4] on A_3

#: entry: (as printed, as corrected where the print is wrong), in the paper's letters
TABLE_1 = {
    "c11": ("m1*l1**2/3 + m2*(l1**2 + l1*l2*C2 + l2**2/3) + m3*(l1**2 + l2**2 + l3**2/3 + 2*l1*l2*C2 + l2*l3*C3"
            " + l1*l3*C23)", None),
    "c12": ("m2*(l2**2/3 + l1*l2*C2/2) + m3*(l2**2 + l3**2/3 + l2*l3*C3 + l1*l2*C2 + l1*l3*C23/2)", None),
    "c13": ("m3*(l3**2/3 + l2*l3*C3/2 + l1*l3*C23/2)", None),
    "c22": ("m2*l2**2/3 + m3*(l3**2/3 + l2**2 + l2*l3*C3)", None),
    "c23": ("m3*(l3**2/3 + l2*l3*C3/2)", None),
    "c33": ("m3*l3**2/3", None),
    "d11": ("-m2*l1*l2*S2*w2/2 - m3*l1*l2*S2*w2 + m3*l1*l3*S23*(w2 + w3)/2",
            "-(m2/2 + m3)*l1*l2*S2*w2 - m3/2*(l1*l3*S23*(w2 + w3) + l2*l3*S3*w3)"),
    "d12": ("-m2/2*l1*l2*S2*(w1 + w2) - m3/2*l2*l3*S3*w3 - m3*l1*l2*S2*(w1 + w2) + l1*l3*S23*(w1 + w2 + w3)/2",
            "-(m2/2 + m3)*l1*l2*S2*(w1 + w2) - m3/2*(l2*l3*S3*w3 + l1*l3*S23*(w1 + w2 + w3))"),
    "d13": ("-m3*(l2*l3*S3/2 + l1*l3*S23/2)*(w1 + w2 + w3)", None),
    "d21": ("m2*l1*l2*S2*w1/2 + m3*(l1*l2*S2 + l1*l3*S23/2)*w1 - l2*l3*S3*w3/2",
            "(m2/2 + m3)*l1*l2*S2*w1 + m3/2*(l1*l3*S23*w1 - l2*l3*S3*w3)"),
    "d22": ("-m3*l2*l3*S3*w3/2", None),
    "d23": ("-m3*l2*l3*S3/2*(w1 + w2 + w3)", None),
    "d31": ("m3/2*l1*l3*S23*w1 + l2*l3*S3*(w1 + w2)/2", "m3/2*(l1*l3*S23*w1 + l2*l3*S3*(w1 + w2))"),
    "d32": ("-m3*l2*l3*C3/2*(w1 + w2)", "m3/2*l2*l3*S3*(w1 + w2)"),
    "d33": ("0*l1", None),
    "delta11": ("-(l1*S1 + l2*S12 + l3*S123)", None),
    "delta21": ("-(l2*S12 + l3*S123)", None),
    "delta31": ("-l3*S123", None),
    "delta12": ("l1*C1 + l2*C12 + l3*C123", None),
    "delta22": ("l2*C12 + l3*C123", None),
    "delta32": ("l3*C123", None),
    "beta1": ("g*(m1*l1*C1/2 + m2*(l1*C1 + l2*C12/2) + m3*(l1*C1 + l2*C12 + l3*C123/2))", None),
    "beta2": ("g*(m2*l2*C12/2 + m3*(l2*C12 + l2*C123/2))", "g*(m2*l2*C12/2 + m3*(l2*C12 + l3*C123/2))"),
    "beta3": ("g*m3*l3*C123/2", None),
}
TABLE_2 = {
    "c11": ("m1*l1**2/3 + m2*(l1**2 + l1*l2*C2 + l2**2/3)", None),
    "c12": ("m2*(l2**2/3 + l1*l2*C2/2)", None),
    "c22": ("m2*l2**2/3", None),
    "d11": ("-m2*l1*l2*S2*w2/2", None),
    "d12": ("-m2*l1*l2*S2*(w1 + w2)/2", None),
    "d21": ("m2*l1*l2*S2*w1/2", None),
    "d22": ("0*l1", None),
    "beta1": ("m1*g*l1*C1/2 + m2*g*(l1*C1 + l2*C12/2)", None),
    "beta2": ("m2*g*l2*C12/2", None),
}


def manipulator(links: int) -> pb.Network:
    """Figure 5: homogeneous links, revolute joints about z, gravity along −y; port A of the last link is the load's."""
    net = pb.Network("three-link manipulator", gravity=(0, -G, 0))
    net.ground(base=(0, 0, 0))
    before = "world.base"
    for k, (length, mass) in enumerate(zip(LENGTHS[:links], MASSES[:links], strict=True), 1):
        J = mass * length**2 / 12
        ports = {"B": (0, 0, 0), "A": (length, 0, 0)}
        net.body(f"link{k}", mass, (length / 2, 0, 0), (0, J, J), ports=ports)
        net.joint(f"joint{k}", "revolute", before, f"link{k}.B")
        before = f"link{k}.A"
    return net


def entries(links: int) -> dict[str, float]:
    """c, d, δ and β of (42) as the network computes them."""
    net = manipulator(links)
    q, v = ({f"joint{k + 1}": x[k] for k in range(links)} for x in (THETA, OMEGA))
    form = net.closed_form(q, v, [f"link{links}.A"])
    c, d, delta, beta = form.reduced()
    found = {f"beta{i + 1}": beta[i] for i in range(links)}
    for i in range(links):
        for j in range(links):
            found |= {f"c{i + 1}{j + 1}": c[i, j], f"d{i + 1}{j + 1}": d[i, j]}
        found |= {f"delta{i + 1}1": delta[i, 0], f"delta{i + 1}2": delta[i, 1]}
    return found


def letters() -> dict[str, float]:
    t1, t2, t3 = THETA
    angles = {"1": t1, "2": t2, "3": t3, "12": t1 + t2, "23": t2 + t3, "123": t1 + t2 + t3}
    values = {f"{f}{k}": fun(x) for k, x in angles.items() for f, fun in (("C", np.cos), ("S", np.sin))}
    values |= {f"l{k + 1}": x for k, x in enumerate(LENGTHS)} | {f"m{k + 1}": x for k, x in enumerate(MASSES)}
    return values | {f"w{k + 1}": x for k, x in enumerate(OMEGA)} | {"g": G}


def show(title: str, table: dict[str, tuple[str, str | None]], found: dict[str, float]) -> None:
    from polybody.networks.expressions import NUMBERS, parse

    known = letters()

    def value(text: str) -> float:
        return float(parse(text).value(known.__getitem__, NUMBERS))

    print(f"\n{title:8} {'as printed':>14} {'corrected':>14} {'network':>14}")
    for name, (printed, corrected) in table.items():
        right = value(corrected or printed)
        assert abs(right - found[name]) < 1e-12 * (1 + abs(right)), name
        wrong = corrected is not None
        print(f"{name:8} {value(printed):14.9f} {right:14.9f} {found[name]:14.9f}{'   misprint' if wrong else ''}")


def main(folder: Path) -> None:
    show("Table 1", TABLE_1, entries(3))
    show("Table 2", TABLE_2, entries(2))
    net = manipulator(3)
    q, v = ({f"joint{k + 1}": x[k] for k in range(3)} for x in (THETA, OMEGA))
    c, d, delta, beta = net.closed_form(q, v, ["link3.A"]).reduced()
    moments = c @ np.array(ALPHA) + d @ np.array(OMEGA) - delta @ LOAD + beta
    print("\njoint torques (42) under the load:", np.array2string(moments, precision=9))
    for name, draw in (("graph", network_svg(net, net.graph())), ("figure_4", block_svg(net))):
        file = folder / f"tokad_{name}.svg"
        file.write_text(draw, encoding="utf-8")
        print(f"wrote {file}")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    main(target)
