"""A network as an FMU (FMI 3.0): its machine of modes in C (`library`), and a description in XML.

Continuous states are those of all combinations of modes; inputs are the sources that are numbers or Python functions;
outputs every across and through variable, every variable of a part, and the mode of each part that switches. Conditions
to leave a mode are event indicators; numbers of parts may be tunable parameters; directional derivatives are exact.
Co-simulation is implicit and adaptive, so that ideal diodes do not matter to it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polybody.bridges.c_library import library_prefix
from polybody.bridges.fmu_package import Variables, description, fmu_target, pack, write_sources
from polybody.errors import InputError
from polybody.networks.export.library import written
from polybody.networks.export.machine import MOST_COMBINATIONS, Machine, machine
from polybody.networks.units import unit_of

if TYPE_CHECKING:
    from polybody.networks.network import Network

STEP, TOLERANCE = 1e-2, 1e-8


def export_network_fmu(
    net: Network,
    path: str | os.PathLike[str],
    initial: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    parameters: Sequence[str] = (),
    combinations: int = MOST_COMBINATIONS,
    limits: str = "stop",
    restitution: float = 0.0,
    friction: str = "stick",
    step: float = STEP,
    tolerance: float = TOLERANCE,
    binary: bool | None = None,
    force: bool = False,
) -> Path:
    """Write an FMU (FMI 3.0, model exchange and co-simulation) of a network, and return its path.

    `initial`, `inputs`, `parameters` (tunable ones of the FMU), `combinations`, `limits`, `restitution` and `friction`
    as in `pb.export_c` of a network.
    `step` is the longest internal step of co-simulation in seconds and `tolerance` its relative tolerance; both are
    parameters of the FMU. `binary=None` adds a binary for this machine if a C compiler is found, True requires one,
    False omits it.
    """
    from polybody.kernels.csource import generate

    target = fmu_target(path, step, force)
    if not tolerance > 0:
        raise InputError(f"tolerance is {tolerance!r}; expected a positive number")
    made = machine(net, initial, inputs, parameters, combinations, limits, restitution, friction)
    name = library_prefix(net.name, None)
    comment = f"{net.name}: equations of a network, written by polybody. SI units."
    text = generate("polybody", made.functions, comment=comment, more=[written("polybody", made)])

    def write(root: Path) -> None:
        token = "{" + hashlib.sha256(text.source.encode()).hexdigest()[:32] + "}"
        given = {"TOKEN": f'"{token}"', "START_STEP": repr(float(step)), "START_TOLERANCE": repr(float(tolerance))}
        shape = "".join(f"#define {word} {value}\n" for word, value in given.items())
        fmu = resources.files("polybody") / "networks" / "export" / "c" / "fmu.c"
        write_sources(root, name, {"polybody.c": text.source, "polybody.h": text.header, "shape.h": shape,
                                   "fmu.c": fmu.read_text(encoding="utf-8")})
        (root / "modelDescription.xml").write_text(_description(name, token, made, float(step), float(tolerance)),
                                                   encoding="utf-8")

    return pack(target, name, write, binary)


def _description(name: str, token: str, made: Machine, step: float, tolerance: float) -> str:
    """modelDescription.xml; value references run as in c/fmu.c."""
    variables, n = Variables(), len(made.states)
    units: dict[str, str] = {"s": '<BaseUnit s="1"/>'}

    def unit(word: str) -> str:
        said = made.units.get(word, "")
        if said:
            units[said] = _base_unit(said)
        return said

    rates, given = 1 + n, 1 + 2 * n
    tuned = given + len(made.inputs)
    observed = tuned + len(made.parameters)
    modes = observed + len(made.observed)
    last = modes + len(made.modes)
    for k, word in enumerate(made.states):
        variables.add(word, 1 + k, causality="output", variability="continuous", initial="exact",
                      start=repr(float(made.x[k])), unit=unit(word))
    for k, word in enumerate(made.states):
        name_ = f"der({word})" if f"der({word})" not in made.states else f"rate of {word}"  # the rate may be a state
        variables.add(name_, rates + k, causality="local", variability="continuous", derivative=1 + k)
    for k, word in enumerate(made.inputs):
        variables.add(word, given + k, causality="input", variability="continuous", start=repr(float(made.u[k])),
                      unit=unit(word))
    for k, word in enumerate(made.parameters):
        variables.add(word, tuned + k, causality="parameter", variability="tunable", initial="exact",
                      start=repr(float(made.p[k])), unit=unit(word))
    for k, word in enumerate(made.observed):
        variables.add(word, observed + k, causality="output", variability="continuous", unit=unit(word))
    for k, (part, names) in enumerate(made.modes.items()):
        said = ", ".join(f"{i} {mode}" for i, mode in enumerate(names))
        variables.add(f"{part}.mode", modes + k, causality="output", variability="discrete", description=said)
    variables.add("tolerance", last, causality="parameter", variability="tunable", initial="exact",
                  start=repr(tolerance), description="relative tolerance of co-simulation")
    variables.add("step", last + 1, causality="parameter", variability="tunable", initial="exact", start=repr(step),
                  unit="s", description="longest internal step of co-simulation")
    for k in range(made.conditions):
        variables.add(f"condition {k}", last + 2 + k, causality="local", variability="continuous",
                      description="positive where a mode must be left")
    states = range(1, 1 + n)
    outputs = [*states, *range(observed, last)]
    structure = [f'<Output valueReference="{k}"/>' for k in outputs]
    structure += [f'<ContinuousStateDerivative valueReference="{k}"/>' for k in range(rates, given)]
    unknown = [*range(rates, given), *range(observed, last)]
    structure += [f'<InitialUnknown valueReference="{k}"/>' for k in unknown]
    structure += [f'<EventIndicator valueReference="{last + 2 + k}"/>' for k in range(made.conditions)]
    return description(name, made.name, token, None, variables, units, structure, derivatives=True,
                       drifts=bool(made.loops or made.quaternions or max(made.held)))


def _base_unit(unit: str) -> str:
    """FMI's words for a unit: powers of SI's base units; polybody's numbers are in SI units already."""
    powers: dict[str, int] = dict(zip(("m", "kg", "s", "A"), unit_of(unit)[1], strict=True))
    if unit in ("rad", "rad/s"):
        powers["rad"] = 1
    words = "".join(f' {key}="{power}"' for key, power in powers.items() if power)
    return f"<BaseUnit{words}/>"


__all__ = ["export_network_fmu"]
