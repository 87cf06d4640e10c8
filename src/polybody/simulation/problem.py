"""The initial value problem of a model: what every integrator integrates.

    q̇ = Γ(q) v,    v̇ = FD(q, v, tau(t, q, v, i), w(t)),    Ẇ = vᵀ(tau + dampers) + Σ wᵀV

y = [q; v; i; W], i the currents of motors where voltages drive them (see `currents`). W is the work that torques,
dampers and external wrenches have done; energy − W is constant, which the audit looks at. Quaternions are carried as
four numbers and put back on the unit sphere after every step: the method keeps its order, since the correction is no
larger than the step's own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.saturation import DriveLimits, saturated
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.constrained_motion import ConstrainedMotion, constrained_engine
from polybody.simulation.currents import Circuits
from polybody.simulation.failures import BlowUp, ControllerError, UserFunctionError, call_user
from polybody.simulation.steady import is_steady

if TYPE_CHECKING:
    from polybody.simulation.friction import DryFriction
    from polybody.simulation.stops import Stops
from polybody.model.engine import Request
from polybody.quantities.frames import find_frame
from polybody.quantities.table import QUANTITIES

Array = np.ndarray
Controller = Callable[[float, Array, Array], Any]
Loads = dict[str, Array] | None
#: (joint forces of controller and motors, accelerations under all that acts as if nothing were held, or None) of
#: (t, q, v, currents); None where neither is to be believed
Told = Callable[[float, Array, Array, Array], "tuple[Array, Array | None] | None"]
SOON = 1e-5  # s
RUNAWAY = 1e8  # rad/s or m/s: no speed of a mechanism


class Problem:
    """The right side, and how states are read, projected and checked."""

    def __init__(
        self,
        model: Model,
        controller: Controller | None = None,
        wrenches: Mapping[str, Any] | None = None,
        voltages: Any = None,
    ) -> None:
        self.model = model
        self.whole = model  # with dry friction, where `model` is without it
        self.given = model  # as the user gave it, with parameters where `whole` has their values only
        self.efforts = "ignore"
        self.controller = controller
        self.wrenches = wrench_functions(model, wrenches)
        self.nq, self.nv = model.nq, model.nv
        self.circuits = Circuits(model, voltages)
        self.size = self.nq + self.nv + self.circuits.size + 1
        self.limits = "ignore"  # what happens at joint limits
        self.stops: Stops | None = None
        #: bounds of what the controller asks for, and dry friction of joints that can stick; None: there are none
        self.drives: DriveLimits | None = None
        self.friction: DryFriction | None = None
        self.compilable = True  # unless every step is wanted in Python
        self.collocated: Callable[..., tuple[Array, Array] | None] | None = None  # `bridge` (F, y₁) by compiled code
        self.calls = False  # a user's controller in Python, at its instants
        self.until = np.inf  # when the run ends: users' functions need not know of times after it
        self._told: Told | None = None  # compiled code, which may be asked before (`telling`)
        self._moves: tuple[Array, Array, Array, Array] | None = None  # (q, v, tau, acceleration) that it has told
        self.evaluations = 0
        self._quaternions, self.trivial_rate = _rates(model.mechanism)
        self._dissipates = _has_dampers(model.mechanism)
        self._no_torque = np.zeros(self.nv)
        self._at_rest = np.zeros(self.nv)
        #: with loops: the largest residual that a step left before it was mended, evaluations near singular states, and
        #: how often one was passed
        self.loops = bool(model.mechanism.constrained)
        self.off_loops = 0.0
        self.singular = 0
        self.passed = 0
        self._signs: Any = None
        self._watched_to: Array | None = None
        self.tree = model.tree if self.loops else model
        self.motion: Any = ConstrainedMotion(constrained_engine(model)) if self.loops else None

    def _rate(self, q: Array, v: Array) -> Array:
        return self.model.engine.tree.answer(Request(QUANTITIES["rate"], (q, v)))

    @property
    def autonomous(self) -> bool:
        """True when nothing but the model itself acts."""
        return not self.driven and not self.resting

    @property
    def driven(self) -> bool:
        """True when a controller, wrenches or motors act."""
        return self.driven_from_outside or self.friction is not None

    @property
    def driven_from_outside(self) -> bool:
        """True when a controller, wrenches or voltages act."""
        return self.controller is not None or bool(self.wrenches) or self.circuits.closed

    @property
    def has_timed_law(self) -> bool:
        """True when the controller may ask for other forces though the state does not change."""
        return self.controller is not None and not is_steady(self.controller)

    @property
    def has_timed_loads(self) -> bool:
        """True when wrenches, voltages or right sides of velocity relations may change so."""
        changing = not all(isinstance(f, _Constant) for f in self.wrenches.values())
        return changing or self.has_timed_drives

    @property
    def has_timed_drives(self) -> bool:
        """The same without wrenches."""
        return callable(self.circuits.voltages) or bool(self.model.mechanism.paced)

    @property
    def resting(self) -> list[int]:
        """Velocities of joints that rest at a stop."""
        return sorted(self.stops.held) if self.stops is not None else []

    @property
    def curved(self) -> bool:
        """True when configurations have quaternions."""
        return bool(self._quaternions)

    def state(self, q: Array, v: Array, currents: Array | None = None, work: float = 0.0) -> Array:
        y = np.zeros(self.size)
        y[: self.nq], y[self.nq : self.nq + self.nv], y[-1] = q, v, work
        if currents is not None and len(currents):
            y[self.nq + self.nv : -1] = currents
        return y

    def split(self, y: Array) -> tuple[Array, Array]:
        """(q, v); between steps quaternions are off the unit sphere by the step's error, and are read as directions."""
        q = y[: self.nq].copy()
        for k in self._quaternions:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        return q, y[self.nq : self.nq + self.nv].copy()

    def currents(self, y: Array) -> Array:
        return y[self.nq + self.nv : -1]

    def torque(self, t: float, q: Array, v: Array) -> Array:
        """What the controller asks for, checked."""
        if self.controller is None:
            return self._no_torque
        answer = call_user("the controller", t, self.controller, t, q.copy(), v.copy())
        if hasattr(answer, "full"):  # of a casadi.Function
            answer = answer.full().ravel()
        try:
            tau = float_array("tau", answer)
        except InputError:
            raise ControllerError(
                f"the controller returned {type(answer).__name__} at t = {t:.9g} s; "
                f"expected {counted(self.nv, 'number')}", t
            ) from None
        if tau.shape != (self.nv,):
            raise ControllerError(
                f"the controller returned shape {tau.shape} at t = {t:.9g} s; expected ({self.nv},), one per entry "
                "of v",
                t,
            )
        if not np.isfinite(tau).all():
            if np.abs(v).max(initial=0.0) > RUNAWAY:
                raise BlowUp("speeds left all bounds, and the controller with them")
            k = int(np.argmin(np.isfinite(tau)))
            raise ControllerError(f"the controller returned tau[{k}] = {tau[k]} at t = {t:.9g} s", t)
        return tau

    def set_wrench(self, frame: str, wrench: Array) -> None:
        """Another constant wrench on a frame on which one acts."""
        self.wrenches[frame] = _Constant(wrench)

    def wrenches_at(self, t: float) -> Loads:
        return {name: self._wrench(name, function, t) for name, function in self.wrenches.items()} or None

    @staticmethod
    def _wrench(name: str, function: Callable[[float], Any], t: float) -> Array:
        what = f"the function of the wrench on {name!r}"
        wrench = np.asarray(call_user(what, t, function, t), dtype=float)
        if wrench.shape != (6,) or not np.isfinite(wrench).all():
            raise UserFunctionError(f"{what} returned {wrench} at t = {t:.9g} s; expected 6 finite numbers", t)
        return wrench

    def drive(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, Loads]:
        """What acts from outside the smooth dynamics: controller and motors, dry friction; wrenches of that time."""
        told = None if self._told is None else self._told(t, q, v, i)
        tau, loads = self.commanded(t, q, v, i) if told is None else told[0], self.wrenches_at(t)
        if self.friction is not None:
            tau = tau + self.friction.forces(self, q, v, tau, loads)
        self._moves = None if told is None or told[1] is None else (q, v, tau, told[1])
        return tau, loads

    @contextmanager
    def telling(self, told: Told | None) -> Iterator[None]:
        """While a state is looked at: have compiled code tell what acts there, and how it moves."""
        self._told = told
        try:
            yield
        finally:
            self._told = self._moves = None

    def commanded(self, t: float, q: Array, v: Array, i: Array) -> Array:
        """Joint forces of controller and motors, within the limits of the drives."""
        tau = self.torque(t, q, v)
        if self.drives is not None:
            tau = saturated(self.drives, tau, v)
        if self.circuits.closed:
            tau = tau + self.circuits.drive(t, q, v, i)[0]
        return tau

    def free_acceleration(self, q: Array, v: Array, tau: Array, loads: Loads) -> Array:
        """v̇ as if there were no stops."""
        self.evaluations += 1
        if self._moves is not None and all(map(np.array_equal, (q, v, tau), self._moves)):
            return self._moves[3]
        if self.loops:
            a, singular = self.motion.acceleration(q, v, tau, loads)
            self.singular += singular
            return a
        if loads:
            return self.model.forward_dynamics(q, v, tau, wrenches=loads)
        return self.model.forward_dynamics(q, v, tau)

    def settling_acceleration(self, q: Array, v: Array, tau: Array, loads: Loads) -> Array:
        """The same where it may be asked for once in a run."""
        if not self.loops and not loads and self._moves is None:
            found = self.model.engine.tree.once(QUANTITIES["forward_dynamics"], q, v, tau)
            if found is not None:
                self.evaluations += 1
                return found
        return self.free_acceleration(q, v, tau, loads)

    def coming_acceleration(self, t: float, q: Array, v: Array, i: Array, a: Array) -> Array:
        """v̇ a moment after a state of rest: a force that begins at zero presses from there on. Where the moment is not
        of the run, or joints move, a."""
        if v.any() or t + SOON > self.until:
            return a
        later = t + SOON, q, v + a * SOON, i
        told = None if self._told is None else self._told(*later)
        if told is not None and told[1] is not None:
            return told[1]
        return self.free_acceleration(*later[1:3], *self.drive(*later))

    def accelerate(self, q: Array, v: Array, tau: Array, loads: Loads) -> Array:
        a = self.free_acceleration(q, v, tau, loads)
        if self.stops is not None and self.stops.held:
            a = a + self.stops.reaction(q, a)[0]
            a[list(self.stops.held)] = 0.0  # rounding would let events of their speeds happen in every step
        return a

    def power(self, q: Array, v: Array, tau: Array, loads: Loads) -> float:
        """Stops do no work while they hold."""
        power = float(v @ tau)
        if self._dissipates:
            passive = self.tree.passive_forces
            power += float(v @ (passive(q, v) - passive(q, self._at_rest)))
        for name, wrench in (loads or {}).items():
            power += float(wrench @ (self.model.jacobian(q, name) @ v))
        if self.model.mechanism.paced:  # λᵀb: what right sides of velocity relations cost
            a = self.accelerate(q, v, tau, loads)
            power += float(v @ (self.tree.inverse_dynamics(q, v, a, wrenches=loads) - tau))
        return power

    def power_at(self, t: float, y: Array) -> float:
        """Ẇ of a state."""
        (q, v), i = self.split(y), self.currents(y)
        return self.power(q, v, *self.drive(t, q, v, i))

    def power_gradient(self, q: Array, v: Array, tau: Array, loads: Loads) -> Array:
        """∂power/∂v with tau held; dampers are linear in v."""
        gradient = tau.copy()
        if self._dissipates:
            passive = self.tree.passive_forces
            gradient += 2 * (passive(q, v) - passive(q, self._at_rest))
        for name, wrench in (loads or {}).items():
            gradient += self.model.jacobian(q, name).T @ wrench
        return gradient

    def outside_force(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, float]:
        """(torques and external wrenches as joint forces, power), for methods that bring their own dynamics."""
        tau, loads = self.drive(t, q, v, i)
        force = tau
        for name, wrench in (loads or {}).items():
            force = force + self.model.jacobian(q, name).T @ wrench
        return force, self.power(q, v, tau, loads)

    def generalized_force(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, float]:
        """The same with what stops exert."""
        force, power = self.outside_force(t, q, v, i)
        if self.stops is not None and self.stops.held:
            free = self.free_acceleration(q, v, force, None)
            force = force + self.stops.reaction(q, free)[1]
        return force, power

    def rate(self, t: float, y: Array) -> Array:
        """ẏ."""
        (q, v), i = self.split(y), self.currents(y)
        tau, loads = self.drive(t, q, v, i)
        result = np.empty(self.size)
        result[: self.nq] = v if self.trivial_rate else self._rate(q, v)
        result[self.nq : self.nq + self.nv] = self.accelerate(q, v, tau, loads)
        if self.circuits.size:
            result[self.nq + self.nv : -1] = self.circuits.drive(t, q, v, i)[1]
        result[-1] = self.power(q, v, tau, loads)
        return result

    def off_manifold(self, y: Array) -> float:
        """How far quaternions are from unit length."""
        return max((abs(float(np.linalg.norm(y[k : k + 4])) - 1.0) for k in self._quaternions), default=0.0)

    def project(self, y: Array) -> Array:
        """y with unit quaternions, and with what a stop holds at its stop."""
        if self._quaternions:
            y = y.copy()
            for k in self._quaternions:
                y[k : k + 4] /= np.linalg.norm(y[k : k + 4])
        if self.loops:
            y = y.copy()
            held = {} if self.stops is None else {s.v: (s.q, s.limit) for s in self.stops.held.values()}
            q, v, off = self.motion.projection(*self.split(y), held)
            y[: self.nq], y[self.nq : self.nq + self.nv] = q, v
            self.off_loops = max(self.off_loops, off)
        if self.stops is not None and self.stops.held:
            y = self.stops.pinned(y)
        return y

    def watch(self, y: Array) -> None:
        """Look whether the step that ended at y has passed a singular configuration of the loops."""
        if self.loops:
            if self._watched_to is not None:
                self._signs, self._watched_to = self.motion.signs(self._watched_to)[0], None
            self._signs, passed = self.motion.signs(self.split(y)[0], self._signs)
            self.passed += passed

    def watch_anew(self, y: Array) -> None:
        """Look from here on: up to y, somebody else has looked."""
        if self.loops:
            self._watched_to = self.split(y)[0]  # asked for when the next step here ends, if there is one

    def moves(self) -> bool:
        """True when `project` may change a state."""
        return self.curved or self.loops or (self.stops is not None and bool(self.stops.held))


def wrench_functions(model: Model, wrenches: Mapping[str, Any] | None) -> dict[str, Callable[[float], Any]]:
    """{frame: function of time}, from functions or constant wrenches; checked once."""
    functions: dict[str, Callable[[float], Any]] = {}
    for name, given in (wrenches or {}).items():
        find_frame(model.mechanism, name)
        function = given if callable(given) else _Constant(given)
        first = np.asarray(function(0.0), dtype=float)
        if first.shape != (6,):
            raise InputError(
                f"wrenches[{name!r}] has shape {first.shape}, expected (6,): [moment; force] in world axes at the "
                "frame's origin, or a function of time that returns it"
            )
        functions[name] = function
    return functions


class _Constant:
    """A wrench that is always the same."""

    def __init__(self, value: Any) -> None:
        self.value = float_array("a wrench", value)

    def __call__(self, t: float) -> Array:
        return self.value


@lru_cache(maxsize=32)  # asked for with every run
def _rates(mechanism: Any) -> tuple[tuple[int, ...], bool]:
    """(where quaternions begin in q, whether q̇ = v)."""
    joints = mechanism.independent_joints
    quaternions = tuple(j.q.stop - 4 for j in joints if j.nq != j.nv)
    return quaternions, all(j.model.rates_are_velocities for j in joints)


@lru_cache(maxsize=32)
def _has_dampers(mechanism: Any) -> bool:
    joints = any(j.damping.any() or j.friction is not None or compliant(j.limits) for j in mechanism.joints)
    joints = joints or bool(mechanism.motor_damping.any())
    between = any(s.damping for s in mechanism.springs) or any(
        s.damping.any() or s.friction is not None for s in mechanism.closure_springs
    )
    return joints or between or bool(mechanism.contacts)


__all__ = ["Controller", "Problem", "wrench_functions"]
