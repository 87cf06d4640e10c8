"""A sub-network of linear parts as one part: its m-port in closed form, seen from its terminals.

With through variables y_p flowing into the sub-network at its terminals (against the ground) as inputs,

    ẋ = A x + B y_p + f,      x_p = C x + D y_p + h

are the equations of the part: states are the sub-network's, f and h what its sources give. Where an answer would need
the rate of y_p (an inductor in line with a terminal), across variables are the inputs in their place. The bodies of a
mechanism have their (m+1)-port, (18)-(39), in `Network.closed_form`, `multiport` and `hybrid`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.networks.component import PartComponent
from polybody.networks.library import part_named
from polybody.networks.linear import PROBES, linearize_network
from polybody.networks.motion import Motion
from polybody.networks.part import Part

if TYPE_CHECKING:
    from polybody.networks.network import Network


def multiport_part(net: Network, name: str | None = None) -> Part:
    """The sub-network as a `Part` whose ports are its terminals; refused where it is not linear, or switches."""
    if not net.terminals:
        raise InputError(f"network {net.name!r} has no terminals; name some with net.terminal(name, node)")
    try:
        return _made(net, name or net.name, 0)
    except PolybodyError as failure:
        try:
            return _made(net, name or net.name, 1)
        except PolybodyError:
            raise failure from None


def _made(net: Network, name: str, which: int) -> Part:
    """With through (which 0) or across (1) variables of the terminals as inputs."""
    probed, inputs, outputs, signs, ports = net, [], [], [], {}
    for terminal, node in net.terminals.items():
        domain = net.nodes[node][0]
        if domain.name not in PROBES:
            raise InputError(f"terminal {terminal!r} is a {domain.name}; a multiport has terminals that carry power")
        kind, key = PROBES[domain.name][2 * which : 2 * which + 2]
        probe = PartComponent(f"terminal {terminal}", part_named(kind), {"": (node, "ground")}, {key: 0.0})
        probed = probed.with_component(probe)
        inputs.append(f"{probe.name}.{key}")
        outputs.append(f"{probe.name}.{(domain.across, domain.through)[which]}")
        # what flows into the sub-network is the opposite of what flows into the probe
        signs.append(-1.0 if which == 1 or kind == "current_source" else 1.0)
        ports[terminal] = domain
    motion = Motion(probed)
    if motion.first_modes():
        raise InputError(f"network {net.name!r} has parts that switch ({', '.join(motion.first_modes())}); a multiport "
                         "is of linear parts")
    space = linearize_network(probed, inputs=inputs, outputs=outputs)
    system, y = motion.start(0.0, {})
    elsewhere = {name: 0.7 + 0.1 * k for k, name in enumerate(space.states)}
    moved = linearize_network(probed, elsewhere, inputs=inputs, outputs=outputs)
    for one, two in ((space.A, moved.A), (space.B, moved.B), (space.C, moved.C), (space.D, moved.D)):
        if not np.allclose(one, two, rtol=1e-9, atol=1e-12 * (1 + np.abs(one).max(initial=0.0))):
            raise InputError(f"network {net.name!r} is not linear, so it has no multiport in closed form")
    y[:] = 0.0
    f = system.rate(0.0, y)[:-1]
    told = system.values(0.0, y)
    scale = np.array(signs)
    return _part(name, ports, which, space, f, np.array([told[o] for o in outputs]), scale)


def _part(name: str, ports: dict[str, Any], which: int, space: Any, f: Any, h: Any, signs: Any) -> Part:
    """The part of matrices; input signs are the probes', outputs are theirs for through variables."""
    given = [f"{t}.{(d.through, d.across)[which]}" for t, d in ports.items()]
    answer = [f"{t}.{(d.across, d.through)[which]}" for t, d in ports.items()]
    # through inputs: y_p = sign · u; across inputs: u itself, and what flows into the sub-network is −(probe's)
    by, out = (signs, np.ones(len(given))) if which == 0 else (np.ones(len(given)), signs)
    states = [f"x{k}" for k in range(len(space.states))]

    def total(row: Any, names: list[str], constant: float) -> str:
        terms = [f"({float(x)!r})*{n}" for x, n in zip(row, names, strict=True) if x]
        return " + ".join([*terms, repr(float(constant))])

    columns = [*states, *given]
    equations = [f"der({s}) = {total([*a, *(b * by)], columns, c)}"
                 for s, a, b, c in zip(states, space.A, space.B, f, strict=True)]
    equations += [f"{target} = {total([*(o * c), *(o * d * by)], columns, o * k)}"
                  for target, c, d, k, o in zip(answer, space.C, space.D, h, out, strict=True)]
    domains = {t: d.name for t, d in ports.items()}
    return Part(name, domains, {}, equations, {s: "" for s in states},
                doc=f"Multiport with the states {', '.join(space.states)}.")


__all__ = ["multiport_part"]
