"""A network in motion: from start values to a trajectory, through its modes.

Between switches the equations are those of one combination of modes (`system`). A condition that becomes positive
inside a step is located in it by its interpolant; there the part enters its other mode, and further parts follow until
no condition holds. States go on from their values: a mode that would make one jump raises an error by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.names import nearest
from polybody.networks.assembly import Assembly, Modes
from polybody.networks.component import Component, PartComponent
from polybody.networks.joint_laws import held_together, impact, released, with_joint_laws
from polybody.networks.models import ModelComponent, flat_components
from polybody.networks.reduction import semiexplicit
from polybody.networks.structure import Choice
from polybody.networks.system import System
from polybody.properties import cached_property
from polybody.simulation.arguments import number
from polybody.simulation.events import Happening
from polybody.simulation.failures import SimulationError
from polybody.simulation.stops import AT

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
SWITCHES = 200  # changes of modes at one time
JUMP = 1e-6  # relative: what a state may change by at a switch


class Motion:
    """The systems of a network by its modes, made when they are first entered."""

    def __init__(
        self, net: Network, inputs: Mapping[str, Any] | None = None, started: frozenset[str] = frozenset(),
        components: Sequence[Component] | None = None, laws: tuple[str, str] = ("ignore", "smooth"),
    ) -> None:  # fmt: skip
        """`components` are the network's own where not given; `laws` say what limits and friction of models do."""
        self.net = net
        self.components = with_joint_laws(flat_components(net) if components is None else components, *laws)
        if not self.components:
            raise InputError(f"network {net.name!r} has no parts that move")
        self.inputs = input_values(self.components, inputs or {})
        if components is None:
            check_parameters(self.components, self.inputs)
        self.started, self.restitution = started, 0.0
        self.constant = frozenset(name for part in self.components if isinstance(part, ModelComponent)
                                  for name in part.inputs)  # fmt: skip
        self.every = False  # no choice of states: for what is exported
        self.systems: dict[tuple[tuple[tuple[str, str], ...], Choice], System] = {}
        if components is not None:
            return
        # Components do not change: systems made before serve again while the network has the same ones.
        key = (tuple(self.components), started, tuple((name, x) for name, x in self.inputs.items()))
        if net.kept_systems is None or net.kept_systems[0] != key:
            net.kept_systems = (key, {})
        self.systems = net.kept_systems[1]
        for system in self.systems.values():
            system.evaluations = 0

    def first_modes(self) -> Modes:
        return {part.name: mode for part in self.components
                if isinstance(part, PartComponent) and (mode := part.part.first_mode()) is not None}

    def system(self, modes: Modes, wanted: Choice = ()) -> System:
        """The system of a combination of modes; `wanted` are dummy derivatives to choose first."""
        key = (tuple(modes.items()), wanted)
        if key not in self.systems:
            self._invert(held_together(self.components, modes))  # known without a look at its forward dynamics
            made = semiexplicit(self._assembly(modes, wanted))
            if made.coupled_models:  # inertias ride rigidly on their joints
                self._invert(made.coupled_models)
                made = semiexplicit(self._assembly(modes, wanted))
            self.systems[key] = System(made, self.inputs)
        return self.systems[key]

    def _invert(self, models: frozenset[str]) -> None:
        """Take the inverse form of these models from here on."""
        if models:
            self.components = [part.inverted() if isinstance(part, ModelComponent) and part.name in models else part
                               for part in self.components]

    def _assembly(self, modes: Modes, wanted: Choice) -> Assembly:
        return Assembly(self.components, dict(modes), self.started, self.constant, wanted, self.every)

    def start(self, t: float, initial: Mapping[str, Any]) -> tuple[System, Array]:
        """The first system and state, in modes that agree with it."""
        given = {name: number(f"the start of {name!r}", x) for name, x in initial.items()}
        system = self.system(self.first_modes())
        known = {*system.observed, *(system.assembly.key_name(key) for key in system.equations.reduced.symbols)}
        for name in given:
            if name not in known:
                raise InputError(f"initial: there is no variable {name!r}{nearest(name, known)}")
        values = {**dict(zip(system.assembly.names, system.assembly.starts, strict=True)), **given}
        for part in self.components:  # a loop that is not closed at its neutral configuration is closed near it
            for names, function in getattr(part, "projections", ()):
                for name, x in zip(names, function(np.array([values.get(n, 0.0) for n in names])), strict=True):
                    if name not in given:
                        values[name] = float(x)
        self._refuse_beyond(values)
        system = self._well_chosen(system, values)
        system.expect(values)
        if any(name not in system.states for name in given):
            values |= self._states_for(t, system, values, given)
        return self.settle(t, system, values, given)

    def _refuse_beyond(self, values: Mapping[str, float]) -> None:
        """Refuse joints of models that start beyond their limits: nothing holds them there."""
        for part in self.components:
            inner = getattr(part, "inner", part)  # whose modes are data in exports
            if not isinstance(inner, PartComponent) or inner.range is None:
                continue
            (lower, upper), name = inner.range, inner.links["place"]
            excess = max(lower - values[name], values[name] - upper)
            if excess > AT:
                raise InputError(f"initial: {name!r} is {values[name]:.6g}, {excess:.4g} beyond its limits {lower:g} "
                                 f"to {upper:g}; start within them, or use limits='ignore'")

    def _well_chosen(self, system: System, values: Mapping[str, float]) -> System:
        """A system of the same modes whose choice of states is good at these values of its variables."""
        choice = system.better_at(values)
        return system if choice is None else self.system(system.modes, choice)

    def reselected(self, t: float, system: System, y: Array) -> tuple[System, Array] | None:
        """The system and state with other variables as states, where the choice has become poor; else None."""
        choice = system.better_choice(t, y)
        if choice is None:
            return None
        values = system.values(t, y)
        made = self.system(system.modes, choice)
        made.expect(values)
        return made, made.project(np.array([*(values[name] for name in made.states), y[-1]]))

    @staticmethod
    def _states_for(
        t: float, system: System, values: Mapping[str, float], given: Mapping[str, float]
    ) -> dict[str, float]:
        """Values of states, as near to `values` as can be, that give other variables the values they shall have."""
        y = np.array([*(values.get(name, 0.0) for name in system.states), 0.0])
        free = [k for k, name in enumerate(system.states) if name not in given]
        wanted = np.array(list(given.values()))

        def told(y: Array) -> Array:
            found = system.values(t, y)
            return np.array([found[name] for name in given])

        for _ in range(8):
            off = wanted - told(y)
            if np.abs(off).max(initial=0.0) <= 1e-12 * (1 + np.abs(wanted).max(initial=0.0)) or not free:
                break
            columns = []
            for k in free:
                step = 1e-6 * (1 + abs(y[k]))
                ahead, behind = y.copy(), y.copy()
                ahead[k], behind[k] = y[k] + step, y[k] - step
                columns.append((told(ahead) - told(behind)) / (2 * step))
            y[free] += np.linalg.lstsq(np.column_stack(columns), off, rcond=1e-9)[0]
        return dict(zip(system.states, y[:-1].tolist(), strict=True))

    def settle(
        self, t: float, system: System, values: Mapping[str, float], given: Mapping[str, float] | None = None,
        happenings: list[Happening] | None = None, work: float = 0.0, force: Sequence[tuple[str, str]] = (),
    ) -> tuple[System, Array]:  # fmt: skip
        """The system and state from values of variables, in modes whose conditions to leave do not hold."""
        modes = dict(system.modes)
        pending = list(force)
        rng = np.random.default_rng(0)
        for turn in range(SWITCHES):
            for part, mode in pending:
                if happenings is not None:
                    happenings.append(Happening(t, part, f"{modes[part]} → {mode}"))
                modes[part] = mode
                if given is None and mode in self._impacts.get(part, ()):
                    values, work = self._struck(t, modes, values, work)
            system = self._well_chosen(self.system(modes), values)
            system.expect(values)
            y = np.array([*(values.get(name, 0.0) for name in system.states), work])
            y = system.project(y)
            told = system.watch(t, y)
            scale = 1e-9 * (1 + np.abs(told))
            found = [c for c, x, s in zip(system.conditions, told, scale, strict=True) if x > s]
            if given is not None:  # who runs into a limit at the start hits it in the first step
                found = [(part, mode) for part, mode in found if mode not in self._impacts.get(part, ())]
            if not found:
                self._refuse_jumps(t, system, y, values, given)
                return system, y
            # the first one (Murty's rule); where that goes round in circles, any
            pending = [found[0 if turn < 20 else int(rng.integers(len(found)))]]
        names = ", ".join(sorted({part for part, _ in found}))
        raise SimulationError(f"the modes of {names} are inconsistent at t = {t:.9g} s: each switch undoes the last", t)

    @cached_property
    def _impacts(self) -> dict[str, frozenset[str]]:
        return {part.name: part.impacts for part in self.components if isinstance(part, PartComponent) and part.impacts}

    def _struck(
        self, t: float, modes: Modes, values: Mapping[str, float], work: float
    ) -> tuple[dict[str, float], float]:
        """Values of variables after the impact of joints that are at their limits in these modes."""
        parts = {part.name: part for part in self.components if isinstance(part, PartComponent)}
        stops = {name: (parts[name], mode) for name, mode in modes.items() if mode in self._impacts.get(name, ())}
        system = self._well_chosen(self.system({name: released(parts[name], m) for name, m in modes.items()}), values)
        system.expect(values)
        y = impact(system, t, np.array([*(values.get(name, 0.0) for name in system.states), work]), stops,
                   self.restitution)
        return system.values(t, y), float(y[-1])

    def _refuse_jumps(
        self, t: float, system: System, y: Array, before: Mapping[str, float], given: Mapping[str, float] | None
    ) -> None:
        if given is not None and not given:  # nothing was asked for
            system.argument(t, y)  # of what is solved by iteration there is a solution
            return
        after = system.values(t, y)
        if given is not None:
            for name, wanted in given.items():
                if abs(after[name] - wanted) > 1e-8 * (1 + abs(wanted)):
                    raise InputError(f"initial: {name!r} cannot be {wanted:g}: it follows from others and is "
                                     f"{after[name]:.9g}; states are {', '.join(system.states)}")
            return
        for name in system.remembered:
            if name in before and abs(after[name] - before[name]) > JUMP * (1 + abs(before[name])):
                raise SimulationError(
                    f"at t = {t:.9g} s {name!r} would jump from {before[name]:.6g} to {after[name]:.6g} "
                    f"(modes {system.assembly.mode_text()}): an ideal part would need an impulse; give it resistance, "
                    "compliance or friction", t)


def input_values(components: Sequence[Component], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """{input: number, expression or function of time}, with what the caller says in place of the parts' own."""
    own = {name: said for part in components for name, said in part.inputs.items()}
    for name, said in inputs.items():
        if name not in own:
            raise InputError(f"inputs: there is no input {name!r}{nearest(name, own)}; available: "
                             f"{', '.join(own) or 'none'}")
        part = next(p for p in components if name in p.inputs)
        if isinstance(part, PartComponent):
            key = name.removeprefix(f"{part.name}.")
            own[name] = part.part.values(name, {**part.values, key: said})[key]
        else:
            own[name] = said
    return own


def check_parameters(components: Sequence[Component], given: Mapping[str, Any]) -> None:
    """Raise an error by name where a parameter of a model has a value that it cannot have."""
    for part in components:
        if isinstance(part, ModelComponent) and part.inputs:
            for name in part.inputs:
                if not isinstance(given[name], (int, float)):
                    raise InputError(f"inputs: {name!r} is a parameter of the model {part.name!r} and cannot change in "
                                     "time; expected a number")
            part.model.parameters.checked(np.array([float(given[name]) for name in part.inputs]))


__all__ = ["Motion", "input_values"]
