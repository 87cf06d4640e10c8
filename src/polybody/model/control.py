"""Influence coefficients, the dynamic model as arrays, linearisation and motors of a model (Freeman)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.errors import InputError
from polybody.formulations import influence as freeman
from polybody.formulations.influence.batched import CARRIED, PAIR, PAIR_LOADS
from polybody.formulations.influence.coefficients import Influence, check_order, higher_orders
from polybody.linearization import state_space as linearization
from polybody.mechanism.mechanism import GROUND, BodyFrame
from polybody.model import motors
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import DynamicAnswers
from polybody.model.tracing import trace
from polybody.quantities.table import Quantity

Array = np.ndarray
FLOAT64 = np.dtype(np.float64)

#: Above this many results straight-line code takes too long to compile; numpy then works over the whole batch.
COMPILED_UP_TO = 3000
#: States from which on a kernel of D is worth compiling: numpy takes 50 us a state of a 7-dof arm, the kernel one.
THIRD_ORDER_FROM = 1000
#: Velocities up to which I* and P* are one kernel: every entry of P* sums over bodies. Above, numpy multiplies
#: what kernels of the screws and of their pairs give.
COMPILED_ARRAYS_UP_TO = 9


class ControlAnswers(DynamicAnswers):
    """What a control engineer asks."""

    def influence(self, q: Any, frame: str, order: int = 3, *, point: Any = None) -> Influence:
        """Influence coefficients G (..., 6, nv), H (..., 6, nv, nv), D (..., 6, nv, nv, nv) of a frame, world axes.

        Rows are [angular; linear]; H[:, m, n] is the derivative of G[:, n] along v_m, D[:, l, m, n] that of H[:, m, n]
        along v_l. `order` is the highest wanted. `point` moves the point from the frame's origin: three numbers in the
        frame's axes, or "com" for the mass centre of the rigid body that carries the frame.
        """
        if point is None and isinstance(frame, str) and isinstance(order, int) and isinstance(q, np.ndarray):
            ready = self._ready.get((frame, order)) if q.dtype is FLOAT64 else None
            if ready is not None:  # asked before: the kernel itself checks what is left to check
                return Influence(*ready(q))
        order = check_order(order)
        place = self._placed(frame, point)
        (q,) = self._states(("q", q))
        name = f"{place.name} {place.position.tolist()}"
        compiled = self._compiled_order(order, name, q)

        def one(m: Any, q: Array, domain: Any) -> Influence:
            return freeman.column_influence(m, q, place, compiled, domain=domain)

        label = f"influence {compiled} {name}"
        found = self._kernel_coefficients(label, q, compiled, one, len(self.mechanism.slots))
        if point is None and compiled == order > 1 and not self.mechanism.followers:
            self._ready[frame, order] = self._kernels[label].call
        return higher_orders(self.mechanism, found, order)

    def _compiled_order(self, order: int, name: str, q: Array) -> int:
        """How many orders the kernel gives. D takes seconds to compile, so few states get it from numpy, by G and H."""
        if order == 3 and f"influence 3 {name}" not in self._kernels and q.size < THIRD_ORDER_FROM * q.shape[-1]:
            order = 2
        while order > 1 and 6 * self.mechanism.nv**order > COMPILED_UP_TO:
            order -= 1
        return order

    @cached_property
    def _ready(self) -> dict[tuple[str, int], Callable[..., Any]]:
        """Compiled coefficients by frame and order, for calls that need no preparation: they count in small batches."""
        return {}

    def center_of_mass_influence(self, q: Any, order: int = 3) -> Influence:
        """The same of the centre of mass of everything that moves; the angular rows are zero."""
        order = check_order(order)
        (q,) = self._states(("q", q))

        def one(m: Any, q: Array, domain: Any) -> Influence:
            return freeman.center_influence(m, q, order, domain=domain)

        if 6 * self.mechanism.nv**order <= COMPILED_UP_TO:
            return self._kernel_coefficients(f"com influence {order}", q, order, one)
        return self._looped_coefficients(q, order, one)

    def _placed(self, frame: str, point: Any) -> BodyFrame:
        place = self.frame(frame)
        if point is None:
            return place
        if isinstance(point, str):
            if point != "com" or place.body == GROUND:
                raise InputError(f"point is {point!r} of {frame!r}, wanted three numbers, or 'com' of a moving body")
            position = self.mechanism.bodies[place.body].com
        else:
            position = place.position + place.rotation @ state_array("point", point, 3)
        return BodyFrame(place.name, place.body, place.rotation, position)

    def _shapes(self, order: int, columns: int | None = None) -> tuple[tuple[str, tuple[int, ...]], ...]:
        n = self.mechanism.nv if columns is None else columns
        return tuple((name, (6, *(n,) * (k + 1))) for k, name in enumerate("GHD"[:order]))

    def _kernel_coefficients(
        self, label: str, q: Array, order: int, one: Callable[..., Influence], columns: int | None = None
    ) -> Influence:
        def text(m: Any, q: Array, *, domain: Any) -> tuple[Array, ...]:
            found = one(m, q, domain)
            return tuple(x for x in (found.G, found.H, found.D) if x is not None)

        found = self.kernel(Quantity(label, ("q",), lambda _: self._shapes(order, columns), text))(q)
        return Influence(*(found if isinstance(found, tuple) else (found,)))

    def _looped_coefficients(self, q: Array, order: int, one: Callable[..., Influence]) -> Influence:
        lead = batch_shape([q])
        arrays = {name: np.empty((*lead, *shape)) for name, shape in self._shapes(order)}
        for index in np.ndindex(lead):
            found = one(self.mechanism, q[index], FLOAT)
            for name, array in arrays.items():
                array[index] = getattr(found, name)
        return Influence(*arrays.values())

    def dynamic_arrays(self, q: Any) -> tuple[Array, Array]:
        """(I*, P*) of tau = I* a + vᵀP*v − loads: (..., nv, nv) and (..., nv, nv, nv); P*[i] belongs to tau_i."""
        (q,) = self._states(("q", q))
        n = self.mechanism.nv
        shapes = (("I", (n, n)), ("P", (n, n, n)))
        if n <= COMPILED_ARRAYS_UP_TO:
            return self.kernel(Quantity("dynamic arrays", ("q",), lambda _: shapes, freeman.dynamic_arrays))(q)
        parts = (("S", (len(self.mechanism.slots), 6)), ("carried", (len(self.mechanism.bodies), CARRIED)))
        S, carried = self.answer(Quantity("composites", ("q",), lambda _: parts, freeman.composites), q)
        pairs = self.compile("pair loads", PAIR, PAIR_LOADS, lambda: trace("pair_loads", PAIR, freeman.pair_loads))
        return freeman.arrays_of_composites(self.mechanism, S, carried, pairs)

    def linearize(
        self, q: Any, v: Any, tau: Any = None, *, inputs: str = "torque", outputs: Sequence[str] | None = None
    ) -> linearization.StateSpace:
        """Continuous A, B, C, D about (q, v) under tau, in tangent space; leading dimensions give a model each.

        States are q_… (displacements in tangent space), v_… and, with inputs="voltage", i_… of motors with inductance.
        tau=None takes the joint forces that give no acceleration. `inputs` "torque": one for each active coordinate;
        "voltage": one for each motor, then torques of active coordinates without a motor. `outputs` names frames whose
        displacement [rotation; translation] in world axes is measured; None measures every state.
        """
        q, v = self._states(("q", q), ("v", v))
        tau = None if tau is None else state_array("tau", tau, v.shape[-1])
        return linearization.linearize(self, q, v, tau, inputs=inputs, outputs=outputs)

    def motor_inputs(self, q: Any, v: Any, a: Any, jerk: Any = None) -> motors.MotorInputs:
        """Currents and voltages (..., motors) of a motion; `jerk` = da/dt is needed where there is inductance."""
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        return motors.motor_inputs(self, q, v, a, None if jerk is None else state_array("jerk", jerk, v.shape[-1]))

    def motor_dynamics(self, q: Any, v: Any, currents: Any, voltages: Any, tau: Any = None) -> tuple[Array, Array]:
        """(a, di/dt) of the motor-driven mechanism; `tau` are joint forces beside the motors'."""
        count = len(self.mechanism.motors)
        q, v = self._states(("q", q), ("v", v))
        i, V = state_array("currents", currents, count), state_array("voltages", voltages, count)
        tau = None if tau is None else state_array("tau", tau, v.shape[-1])
        return motors.motor_dynamics(self, q, v, i, V, tau)


__all__ = ["ControlAnswers"]
