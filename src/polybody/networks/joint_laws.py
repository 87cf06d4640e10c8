"""Limits and dry friction of a model's joints in a network: what `pb.simulate(model)` does with them, as modes.

For each velocity w of a model with a limit or dry friction, between its node and the ground (t on the part, x the
joint's coordinate, F(w) = F_c + (F_s − F_c) e^{−|w/w_s|^δ}, summed over the joints that share the velocity):

    free, forward, backward      t = 0, F(w), −F(w)
    stuck, upper, lower          ẇ = 0;   stuck while |t| ≤ F_s, at a limit while it presses (t beyond ∓F_s)
                                 and x is there

A limit is met with an impact: impulses at the nodes of joints at their limits take their speeds away, and move every
other state as the network's equations say (`impact`). The smooth law of `forward_dynamics` is taken out of the model
where a joint sticks. Friction that depends on load is `pb.simulate(model)`'s alone, and named in a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.description.parameters import Parameter
from polybody.errors import InputError, warn
from polybody.mechanism.saturation import drive_limits
from polybody.names import listed
from polybody.networks.component import Component, PartComponent
from polybody.networks.models import ModelComponent
from polybody.networks.part import Part
from polybody.simulation.failures import SimulationError
from polybody.simulation.friction import Rubbing, rubbing
from polybody.simulation.stops import REST, finite_limits

if TYPE_CHECKING:
    from polybody.networks.system import System
    from polybody.networks.trajectory import NetworkTrajectory

Array = np.ndarray
LIMITS, FRICTION = ("stop", "ignore"), ("stick", "smooth")
#: modes in which a joint's velocity does not change
HELD = ("stuck", "upper", "lower")
#: speeds at which a joint that is held is known to move
CREEP = 1e-6
#: rad or m: a joint as far from its limit as this was put there by a user, and is held no more
OFF = 1e-6


def with_joint_laws(components: Sequence[Component], limits: str, friction: str) -> list[Component]:
    """Components with what limits and friction of models do, by `limits` "stop" or "ignore", `friction` "stick" or
    "smooth"."""
    for word, said, known in (("limits", limits, LIMITS), ("friction", friction, FRICTION)):
        if said not in known:
            raise InputError(f"{word} is {said!r}; expected one of {', '.join(known)}")
    found: list[Component] = []
    for part in components:
        if not isinstance(part, ModelComponent):
            found.append(part)
            continue
        if (limits, friction) not in part.lawful:  # kept: systems are made for these very components
            part.lawful[(limits, friction)] = _lawful(part, limits == "stop", friction == "stick")
        found += part.lawful[(limits, friction)]
    return found


def _lawful(part: ModelComponent, stopping: bool, sticking: bool) -> list[Component]:
    model = part.model
    ends: dict[int, dict[int, float]] = {}
    for stop in finite_limits(model) if stopping else ():
        ends.setdefault(stop.v, {})[stop.side] = stop.limit
    rubs: dict[int, list[Rubbing]] = {}
    for rub in rubbing(model.mechanism) if sticking else ():
        if rub.law.static[rub.k] and rub.factor:
            rubs.setdefault(rub.v, []).append(rub)
    loaded = sorted({rub.joint for rub in rubbing(model.mechanism) if rub.law.load[rub.k]})
    if loaded:
        warn(f"friction of {listed(loaded)} in {part.name!r} depends on the load of the joint, which a network does "
             "not count; pb.simulate(model) does")
    fixed = [p.name for p in model.parameters if sticking and changes_sticking(p, bool(rubs))]
    if fixed:
        raise InputError(f"{part.name!r}: {listed(fixed)} cannot be parameters of a model whose joints stick; use "
                         "friction='smooth', or leave them numbers")
    dry = tuple(rub for group in rubs.values() for rub in group)
    places = {slot: k for k, slot in _coordinates(model).items()}
    laws = [_law(part, k, places.get(k), ends.get(k, {}), rubs.get(k, [])) for k in sorted({*ends, *rubs})]
    return [replace(part, dry=dry) if dry else part, *laws]


def changes_sticking(parameter: Parameter, rubs: bool) -> bool:
    """Whether a parameter of a model is one of those by which its joints stick: they are numbers of the law, not of the
    model's compiled texts. `rubs`: whether any joint has dry friction."""
    if ".friction." in parameter.name:
        return not any(f".friction.{word}" in parameter.name for word in ("viscous", "regularisation"))
    return rubs and (parameter.place[0] == "constants" or parameter.place[2] == "ratio")


def _coordinates(model: Any) -> dict[int, int]:
    """{number of q: number of v} of joints where they correspond."""
    return {joint.q.start + k: joint.v.start + k for joint in model.mechanism.independent_joints
            if joint.nq == joint.nv for k in range(joint.nv)}


def _law(part: ModelComponent, k: int, q: int | None, ends: dict[int, float], rubs: list[Rubbing]) -> PartComponent:
    """The part between the node of velocity k and the ground."""
    port = part.ports[k]
    w, t = port.domain.across, port.domain.through
    static = sum(abs(r.factor) * float(r.law.static[r.k]) for r in rubs)
    level = " + ".join(_level(r, w) for r in rubs)
    upper, lower = ends.get(1), ends.get(-1)
    beyond = {"upper": f"place > {upper!r} and {w} > 0", "lower": f"place < {lower!r} and {w} < 0"}
    here = {side: text for side, text in beyond.items() if {"upper": upper, "lower": lower}[side] is not None}
    held, out, back = f"der({w}) = 0", f"{t} > {static!r} or {w} > {CREEP}", f"{t} < {-static!r} or {w} < {-CREEP}"
    modes: dict[str, Any]
    if rubs:
        modes = {
            "stuck": {"equations": [held], "to": {"forward": out, "backward": back}},
            "forward": {"equations": [f"{t} = {level} - push"],
                        "to": {"stuck": f"{w} < 0", **{s: x for s, x in here.items() if s == "upper"}}},
            "backward": {"equations": [f"{t} = -({level}) - push"],
                         "to": {"stuck": f"{w} > 0", **{s: x for s, x in here.items() if s == "lower"}}},
        }  # fmt: skip
    else:
        modes = {"free": {"equations": [f"{t} = -push"], "to": here}}
    if upper is not None:
        off = f"{back} or place < {upper - OFF!r}"
        modes["upper"] = {"equations": [held], "to": {"backward" if rubs else "free": off}}
    if lower is not None:
        off = f"{out} or place > {lower + OFF!r}"
        modes["lower"] = {"equations": [held], "to": {"forward" if rubs else "free": off}}
    what = " and ".join(word for word, said in (("limits", ends), ("friction", rubs)) if said)
    unit = "m" if port.domain.name == "translational" else "rad"
    kind = Part(f"joint {what}", port.domain.name, {"push": (port.domain.through_unit, 0), "place": (unit, 0)},
                inputs=["push"], modes=modes, loss=f"{t}*{w}")
    links = {} if q is None else {"place": part.configuration_names[q]}
    return PartComponent(f"{port.name} {what}", kind, {"": (port.head, port.tail)}, kind.values(port.name, {}),
                         links=links, impacts=frozenset({"upper", "lower"} & set(modes)), law=True,
                         range=(ends.get(-1, -np.inf), ends.get(1, np.inf)) if links and ends else None)


def _level(rub: Rubbing, w: str) -> str:
    """F(w) of one joint on the velocity it has."""
    law, k, factor = rub.law, rub.k, abs(rub.factor)
    coulomb, above = factor * float(law.coulomb[k]), factor * float(law.static[k] - law.coulomb[k])
    if not above:
        return repr(coulomb)
    return f"{coulomb!r} + {above!r}*exp(-(abs({w})*{factor / float(law.stribeck[k])!r})^{float(law.exponent[k])!r})"


def smooth_friction(components: Sequence[Component]) -> list[str]:
    """Joints of models whose dry friction is the smooth law of `forward_dynamics` in linear models, by name."""
    return list(dict.fromkeys(f"{part.prefix}{rub.joint}" for part in components if isinstance(part, ModelComponent)
                              for rub in rubbing(part.model.mechanism)))


def beyond_drives(components: Sequence[Component], values: NetworkTrajectory) -> list[str]:
    """Joints whose drives exceeded the effort or velocity that the model states for them, in words."""
    found = []
    for part in components:
        if not isinstance(part, ModelComponent):
            continue
        bounds = drive_limits(part.model.mechanism)
        for k, port in enumerate(part.ports[: part.model.nv]):
            domain = port.domain
            for bound, letter, unit, word in ((bounds.effort[k], domain.through, domain.through_unit, "effort"),
                                              (bounds.velocity[k], domain.across, domain.across_unit, "speed")):
                most = np.abs(values[f"{port.name}.{letter}"]).max(initial=0.0)
                if most > bound * (1 + 1e-9):
                    found.append(f"the {word} at {port.name!r} reached {most:.4g} {unit}, its model allows {bound:g}")
    return found


def held_together(components: Sequence[Component], modes: Mapping[str, str]) -> frozenset[str]:
    """Models in which several velocities of one tree are held: the forces that hold them depend on each other, so that
    their equations are solved together, in the inverse form (`ModelComponent.may_invert`)."""
    held = {port.head for part in components if isinstance(part, PartComponent) and part.law
            and modes.get(part.name) in HELD for port in part.ports}  # fmt: skip
    found = set[str]()
    for part in components:
        if held and isinstance(part, ModelComponent) and part.may_invert:
            mechanism = part.model.mechanism
            roots = [mechanism.supports[mechanism.owner(k).index][0] for k, port in
                     enumerate(part.ports[: part.model.nv]) if port.head in held]  # fmt: skip
            if len(set(roots)) < len(roots):
                found.add(part.name)
    return frozenset(found)


def released(part: Component, mode: str) -> str:
    """The mode in which a part gives no impulse: of friction that sticks (it is finite), of a stop."""
    if not isinstance(part, PartComponent) or (mode not in part.impacts and mode not in ("stuck", "locked")):
        return mode
    return next(other for other in ("free", "forward", mode) if other in part.part.alternatives)


def impact(
    system: System, t: float, y: Array, stops: Mapping[str, tuple[PartComponent, str]], restitution: float
) -> Array:
    """y after joints met their limits, in a system in which nothing sticks; W takes the energy that is lost.

    With N the speeds away from the limits, impulses λ there and restitution e: 0 ≤ λ ⊥ N y⁺ + e N y⁻ ≥ 0, as in
    `simulation.stops` (1); slow joints do not rebound.
    """
    from scipy.optimize import nnls

    told, before = system.values(t, y), system.observation(t, y)[-1]
    changes, rows, speeds = [], [], []
    for part, mode in stops.values():
        port, away = part.ports[0], -1.0 if mode == "upper" else 1.0
        across = f"{port.name}.{port.domain.across}"
        change, row = system.impulse(t, y, f"{part.name}.push", across)
        changes.append(away * change)
        rows.append(away * row)
        speeds.append(away * told[across])
    B, N = np.column_stack(changes), np.array(rows)
    W, u = N @ B, np.array(speeds)
    u = u * (1.0 + restitution) if restitution * np.abs(u).max() >= REST else u
    if not np.isfinite(W).all() or np.any(np.diag(W) <= 1e-14 * np.einsum("ij,ji->i", np.abs(N), np.abs(B))):
        name = list(stops)[int(np.argmin(np.diag(W)))]
        raise SimulationError(f"{name!r}: the joint is driven beyond its limit at t = {t:.9g} s by a part that gives "
                              "it its speed; put a spring or a clutch between, or use limits='ignore'", t)
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T  # Wᵀ = rootᵀ root
    impulses, _ = nnls(root, np.linalg.lstsq(root.T, -u, rcond=1e-12)[0])
    after = y.copy()
    after[:-1] += B @ impulses
    after = system.project(after)
    after[-1] += before - system.observation(t, after)[-1]
    return after


__all__ = [
    "FRICTION", "LIMITS", "beyond_drives", "held_together", "impact", "released", "smooth_friction", "with_joint_laws",
]  # fmt: skip
