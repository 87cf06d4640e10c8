"""A simulation that runs while it is looked at and touched.

    M a + C v + s G = tau + passive + pull

`s` scales gravity: G is linear in it, so (1 − s) G(q) is added to the joint forces and nothing is compiled anew. tau
is the controller's, at active joints; gains are per unit of inertia, so that one pair suits a finger and a crane:

    hold             K_p log(q, q0) − K_d v + what holds still                 K = k / diag M⁻¹(q0)
    PD               K_p log(q, goal) − K_d v
    computed torque  ID(q, v, k_p log(q, goal) − k_d v)

`pull` is a spring from a point p of a body to the pointer, as joint forces J_pᵀ f, f = k (target − p) − c ṗ. Forces are
those of a sampled controller: new at every step of small models, every 2 ms of large ones, between which the compiled
`rollout` steps with loops closed. Joint limits are rigid stops without rebound (`simulation.stops`): joints that a step
took beyond them are put back, and the impulses of the stops take what speed leads outwards. A free base may be pinned
where it was. `Stepper` is the one place that knows what advances the state.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.model.model import Model
from polybody.simulation import controllers
from polybody.simulation.rollout import METHODS, MIDPOINT_UP_TO, rollout
from polybody.simulation.stops import Stops, finite_limits, inward
from polybody.studio.viewer.posing import Posing
from polybody.studio.viewer.tuning import Tuning

Array = np.ndarray
CONTROLLERS = ("none", "hold", "PD", "computed torque")
STEPS = ("0.0002", "0.0005", "0.001", "0.002", "0.005")
RANGES = {"speed": (0.001, 8.0), "kp": (0.0, 1e5), "kd": (0.0, 1e4), "gravity": (0.0, 100.0), "stiffness": (0.0, 1e6)}
#: velocities up to which joint forces are new at every step; of larger models they are held for so many seconds, and
#: stops are looked at as often, where nothing else acts less often
SMALL, HELD, HELD_FREE = 12, 0.002, 0.005
BUDGET = 0.8  # of the time between states that stepping may take


class Stepper:
    """Advances (q, v) by fixed steps in one call of compiled code, `rollout`.

    A pinned base is exact: the model with its first joint locked is advanced. It is made anew only where the base was
    turned meanwhile; where it stands does not matter to the motion.
    """

    def __init__(self) -> None:
        self._pinned: tuple[Model, Array, Model] | None = None
        self._stops: Stops | None = None

    def advance(
        self, model: Model, q: Array, v: Array, tau: Array, steps: int, method: str, dt: float, pinned: bool
    ) -> tuple[Array, Array]:
        """The state after some steps under constant joint forces."""
        if not pinned:
            return self._moved(model, q, v, tau, steps, method, dt)
        base = q[:7]
        if self._pinned is None or self._pinned[0] is not model or np.abs(self._pinned[1] - base[3:]).max() > 1e-9:
            self._pinned = (model, base[3:].copy(), model.lock(model.mechanism.joints[0].name, q))
        there, speed = self._moved(self._pinned[2], q[7:], v[6:], tau[6:], steps, method, dt)
        return np.concatenate([base, there]), np.concatenate([np.zeros(6), speed])

    def _moved(
        self, model: Model, q: Array, v: Array, tau: Array, steps: int, method: str, dt: float
    ) -> tuple[Array, Array]:
        found = rollout(model, q, v, tau, steps, dt, method=method, keep="last")
        if self._stops is None or self._stops.model is not model:
            self._stops = Stops(model, 0.0)
        return at_stops(self._stops, found.q.reshape(-1), found.v.reshape(-1))


def at_stops(stops: Stops, q: Array, v: Array) -> tuple[Array, Array]:
    """The state with joints that are beyond their limits put back by least motion, and their speed outwards taken."""
    struck = [stop for stop in stops.all if stop.excess(q) > 0]
    if not struck or not np.isfinite(q).all():
        return q, v
    B = stops.motions(q)
    v, _ = stops.impact(struck, q, v, B)
    back = np.linalg.lstsq(inward(B, struck), np.array([stop.excess(q) for stop in struck]), rcond=None)[0]
    q = stops.model.integrate(q, B @ back)
    if stops.model.mechanism.constrained:
        q = stops.model.constraints.assemble_dependent(q)
        v = stops.model.assemble_velocity(q, v)
    return q, v


class Live:
    """The state of a live simulation and what acts on it."""

    def __init__(self, model: Model, posing: Posing, size: float) -> None:
        self.model, self.posing, self.size = model, posing, size
        self.goal_posing = Posing(model, size, posing.q)
        self.floating = (
            bool(model.mechanism.joints)
            and model.mechanism.joints[0].kind == "floating"
            and not (model.mechanism.constrained)
        )
        self.strength = float(np.linalg.norm(model.gravity))
        self.options: dict[str, Any] = {
            "controller": "hold" if self.floating else "none", "kp": 100.0, "kd": 20.0, "gravity": self.strength,
            "method": "rk4" if model.nv <= 12 else "semi-implicit", "step_size": "0.001", "speed": 1.0,
            "stiffness": self._gentle(), "base": "pinned" if self.floating else "free",
        }  # fmt: skip
        self.methods = [
            m for m in METHODS if m != "midpoint" or (model.nv <= MIDPOINT_UP_TO and not model.mechanism.constrained)
        ]
        self.active, self._stopped = model.actuation.active, bool(finite_limits(model))
        self.stepper, self.tuning, self._owed = Stepper(), Tuning(model), 0.0
        self.running, self.factor = False, None
        self._ready: set[str] = set()
        self.place(posing.q)
        self.reset()

    def _gentle(self) -> float:
        """A pull that lifts the mechanism over a tenth of its size."""
        weight = max(self.model.total_mass, 1e-3) * max(float(np.linalg.norm(self.model.gravity)), 1.0)
        return float(np.clip(weight / (0.1 * self.size), 1.0, 1e5))

    # State.

    def reset(self) -> None:
        self.running, self.factor = False, None
        self.place(self.posing.start)
        self.first = self.q.copy()
        self.goal_here()

    def place(self, q: Array) -> None:
        """At rest in another configuration, at time zero."""
        self.q, self.v = np.array(q, dtype=float), np.zeros(self.model.nv)
        self.a, self.tau, self.t = np.zeros(self.model.nv), np.zeros(self.model.nv), 0.0
        self.first = self.q.copy()
        self.pulled: tuple[int, Array, Array] | None = None
        # what each joint feels while the others are free: gains per unit of it are stable at the steps offered
        self.inertia = 1 / np.maximum(np.diagonal(np.linalg.pinv(self.model.tree.mass_matrix(self.q))), 1e-9)
        self.history: deque[tuple[float, float]] = deque(maxlen=90)

    def goal_here(self) -> None:
        self.goal_posing.q = self.q.copy()
        self.goal_frame: str | None = None

    @property
    def controlled(self) -> bool:
        """True where a dragged frame is the controller's goal, not the mechanism itself."""
        return self.options["controller"] in ("PD", "computed torque")

    def drag_goal(self, frame: str, target: Array, turn: bool) -> None:
        self.goal_posing.drag(frame, target, turn)
        self.goal_frame = frame

    def pull(self, body: int, local: Array, target: Array) -> None:
        if not 0 <= body < len(self.model.mechanism.bodies):
            raise InputError(f"no body {body}")
        self.pulled = (body, local, target)

    def release(self) -> None:
        self.pulled = None

    # Settings.

    def prepares(self, key: str, value: Any) -> bool:
        """True where the next step must be compiled first, which takes a while for large models."""
        if key == "running":
            return bool(value) and self.options["method"] not in self._ready and self.model.nv > 8
        if key.startswith("parameter "):
            return not self.tuning.made
        return key == "method" and value not in self._ready and self.running

    def set(self, key: str, value: Any) -> None:
        """Change what a person can change; everything else raises an error."""
        choices = {"controller": CONTROLLERS, "method": self.methods, "step_size": STEPS, "base": ("pinned", "free")}
        if key == "running":
            self.running = bool(value)
            self.history.clear()
        elif key in choices:
            if value not in choices[key]:
                raise InputError(f"{key} is {value!r}; expected one of {', '.join(choices[key])}")
            self.options[key] = value
            if key == "controller":
                self.first = self.q.copy()
                self.goal_here()
        elif key.startswith("parameter ") and isinstance(value, (int, float)) and not isinstance(value, bool):
            self.model = self.tuning.set(key, float(value))
        elif key in RANGES and isinstance(value, (int, float)) and not isinstance(value, bool):
            self.options[key] = float(np.clip(value, *RANGES[key]))
        else:
            raise InputError(f"no setting {key!r} with the value {value!r}")

    def settings(self) -> dict[str, Any]:
        offered = {"controllers": list(CONTROLLERS), "methods": list(self.methods), "steps": list(STEPS)}
        told = {"running": self.running, "floating": self.floating, "note": self._note(), **self.tuning.values,
                "parameters": [slider.as_dict() for slider in self.tuning.sliders]}  # fmt: skip
        return {**self.options, **offered, **told}

    def _note(self) -> str:
        if self.options["controller"] in ("PD", "computed torque"):
            return "drag a frame's orange ball to move the goal (green)"
        if self.strength == 0:
            return "this model has no gravity"
        return ""

    def told(self, stage: Any) -> dict[str, Any]:
        """What the page shows beside the state."""
        kinetic, potential = self.model.energy(self.q, self.v)
        potential = float(potential) + (self._scale - 1) * self._height_energy()
        residual = 0.0
        if self.model.mechanism.constrained:
            residual = float(np.abs(self.model.constraints.residual(self.q)).max(initial=0.0))
        told = {"kinetic": float(kinetic), "potential": potential, "residual": residual,
                "factor": self.factor if self.running else None}  # fmt: skip
        if self.controlled and self.goal_frame is not None:
            pose = self.model.pose(self.goal_posing.q, self.goal_frame)
            told["goal"] = [float(x) for x in pose[:3, 3]]
            told["goal_poses"] = stage.poses(self.goal_posing.q).ravel()
        return told

    @property
    def _scale(self) -> float:
        return self.options["gravity"] / self.strength if self.strength > 0 else 1.0

    def _height_energy(self) -> float:
        """−m g · c of everything that moves, under the model's own gravity."""
        if self.strength == 0 or self.model.total_mass == 0:
            return 0.0
        return -self.model.total_mass * float(np.asarray(self.model.gravity) @ self.model.center_of_mass(self.q))

    # What acts.

    @property
    def _free(self) -> bool:
        return self.options["controller"] == "none" and self.pulled is None and self._scale == 1.0

    def policy(self, q: Array, v: Array) -> Array:
        """Joint forces of everything that acts beside the model itself."""
        tau = np.where(self.active, self._control(q, v), 0.0)
        self.tau = tau
        total = tau
        if self._scale != 1.0:
            total = total + (1 - self._scale) * self.model.tree.gravity_forces(q)
        if self.pulled is not None:
            total = total + self._pull(q, v)
        return total

    def _control(self, q: Array, v: Array) -> Array:
        kind, kp, kd = self.options["controller"], self.options["kp"], self.options["kd"]
        if kind == "none":
            return np.zeros(self.model.nv)
        goal = self.first if kind == "hold" else self.goal_posing.q
        if kind == "computed torque":
            still = np.zeros(self.model.nv)
            law = controllers.ComputedTorque(self.model, lambda t: (goal, still, still), kp, kd)  # type: ignore[arg-type]
            return law(0.0, q, v) + (self._scale - 1) * self._holding(q)
        tau = self.inertia * (kp * self.model.difference(q, goal) - kd * v)
        return tau + self._scale * self._holding(q) if kind == "hold" else tau

    def _holding(self, q: Array) -> Array:
        """What holds still against gravity; of a mechanism that cannot be held, nothing."""
        if self.floating:
            return self.model.gravity_forces(q)
        try:
            return self.model.actuation.holding_forces(q)
        except PolybodyError:
            return np.zeros(self.model.nv)

    def _pull(self, q: Array, v: Array) -> Array:
        assert self.pulled is not None
        body, local, target = self.pulled
        m = self.model.mechanism
        link = m.bodies[body].links[0]
        frame = m.frames[m.frame_index[link]]
        pose = self.model.pose(q, link)
        R = pose[:3, :3] @ frame.rotation.T
        point = pose[:3, 3] + R @ (local - frame.position)
        J = self.model.tree.jacobian(q, link)
        arm = point - pose[:3, 3]
        cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        Jp = J[3:] - cross @ J[:3]
        k = self.options["stiffness"]
        c = 2 * 0.3 * np.sqrt(k * max(0.3 * self.model.total_mass, 1e-6))
        return Jp.T @ (k * (target - point) - c * (Jp @ v))

    # Stepping.

    def step(self) -> None:
        """One step of the integrator."""
        self._steps(1)

    def advance(self, passed: float) -> None:
        """As many steps as the time that passed asks for, within the budget, which decides the real-time factor."""
        dt = float(self.options["step_size"])
        wanted = min(passed, 0.1) * self.options["speed"]
        steps = round(wanted / dt)
        if not steps:
            self._owed += wanted
            if self._owed < dt:
                return
            steps, self._owed = 1, self._owed - dt
        clock, done = time.monotonic(), 0
        end = clock + BUDGET / 30
        while done < steps and time.monotonic() < end:
            some = min(steps - done, 10)
            self._steps(some)
            done += some
        self.history.append((time.monotonic(), self.t))
        if len(self.history) > 1:
            wall, simulated = self.history[-1][0] - self.history[0][0], self.history[-1][1] - self.history[0][1]
            self.factor = simulated / wall if wall > 0 else None

    def _steps(self, count: int) -> None:
        dt = float(self.options["step_size"])
        before, q, v, left = self.v, self.q, self.v, count
        pinned = self.floating and self.options["base"] == "pinned"
        held = 1 if self.model.nv <= SMALL else max(1, round((HELD_FREE if self._free else HELD) / dt))
        held = count if self._free and not self._stopped else held
        while left:
            some = min(left, held)
            forces = self.policy(q, v)
            q, v = self.stepper.advance(self.model, q, v, forces, some, self.options["method"], dt, pinned)
            left -= some
        self._ready.add(self.options["method"])
        if not (np.isfinite(q).all() and np.isfinite(v).all()) or np.abs(v).max(initial=0.0) > 1e6:
            self.running = False
            raise PolybodyError(
                f"the simulation diverged at t = {self.t:.4g} s: take a smaller step or lower gains, then reset"
            )
        self.a = (v - before) / (count * dt)
        self.q, self.v, self.t = q, v, self.t + count * dt
        if self.model.mechanism.constrained:
            self.a = self.model.assemble_acceleration(self.q, self.v, self.a)


__all__ = ["CONTROLLERS", "Live", "Stepper", "at_stops"]
