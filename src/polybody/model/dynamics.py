"""Dynamics of a model: M a + C v + gravity_forces = tau + passive_forces + Σ Jᵀ w.

Each answer comes from a compiled kernel, or, where `formulation` names one, from that formulation's own text, state by
state. Arguments are in the order q, v, a or tau, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.formulations.protocol import formulation as formulation_named
from polybody.mechanism.mechanism import GROUND
from polybody.model.arguments import choose, finite, state_array
from polybody.model.batches import batch_shape, each_state
from polybody.model.kinematics import KinematicAnswers
from polybody.model.tracing import compiled
from polybody.names import listed
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
Wrenches = Mapping[str, Any]

#: Above this many degrees of freedom derivatives of forward dynamics are solved by LAPACK, not in straight-line code.
FUSED_DERIVATIVES_UP_TO = 16


class DynamicAnswers(KinematicAnswers):
    """Inverse and forward dynamics, their terms and their derivatives."""

    @property
    def independent_columns(self) -> tuple[int, ...]:
        """Indices in v of the independent coordinates: all of them where there are no loops."""
        return tuple(range(self.mechanism.nv))

    def inverse_dynamics(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Wrenches | None = None,
        formulation: str | None = None,
        out: Array | None = None,
        check: bool = False,
    ) -> Array:
        """tau, (..., nv): the joint forces for the accelerations a.

        `wrenches` maps a frame's name to a wrench [moment; force] on its body, at the frame's origin, in world axes.
        `check` refuses non-finite input, which otherwise comes out non-finite.
        """
        return self._dynamics("inverse_dynamics", "a", q, v, a, wrenches, formulation, out, check)

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        formulation: str | None = None,
        out: Array | None = None,
        check: bool = False,
    ) -> Array:
        """a, (..., nv): the accelerations under the joint forces tau. `wrenches` as in `inverse_dynamics`."""
        self._refuse_singular()
        return self._dynamics("forward_dynamics", "tau", q, v, tau, wrenches, formulation, out, check)

    def _dynamics(
        self,
        name: str,
        third: str,
        q: Any,
        v: Any,
        x: Any,
        wrenches: Wrenches | None,
        formulation: str | None,
        out: Array | None,
        check: bool,
    ) -> Array:
        self.refuse_loops(name)
        arrays = self._states(("q", q), ("v", v), (third, x))
        given = {} if wrenches is None else self._by_frame(wrenches)
        loads = self.body_wrenches(arrays[0], given, check) if given else None
        if check and (formulation is not None or self.is_long):
            for argument, array in zip(("q", "v", third), arrays, strict=True):
                finite(argument, array)
        if formulation is not None:
            return _into(out, self._by_formulation(formulation, name, arrays, loads))
        if loads is None:
            return self.kernel(name)(*arrays, out=out, check=check)
        if self.is_long:
            return _into(out, self._by_formulation("denoc", name, arrays, loads))
        return self.kernel(f"{name}_wrenches")(*arrays, loads, out=out, check=check)

    def _by_formulation(self, name: str, quantity: str, arrays: list[Array], loads: Array | None) -> Array:
        function = getattr(formulation_named(name), quantity)
        if loads is None:
            return each_state(lambda *s: function(self.mechanism, *s), arrays, (self.mechanism.nv,))
        return each_state(
            lambda *s: function(self.mechanism, *s[:-1], s[-1].reshape(-1, 6)), [*arrays, loads], (self.mechanism.nv,)
        )

    def mass_matrix(self, q: Any, *, formulation: str | None = None) -> Array:
        """M(q), (..., nv, nv), with armature and reflected rotors."""
        self.refuse_loops("mass_matrix")
        (q,) = self._states(("q", q))
        if formulation is None:
            return self._mass_columns(q) if self.is_long else self.kernel("mass_matrix")(q)
        function = formulation_named(formulation).mass_matrix
        return each_state(lambda q: function(self.mechanism, q), (q,), (self.mechanism.nv,) * 2)

    def _mass_columns(self, q: Array) -> Array:
        """M of a long chain, column by column: inverse dynamics of unit accelerations at rest, less its rest torque."""
        unit, rest = np.eye(self.mechanism.nv), np.zeros(self.mechanism.nv)
        columns = self.inverse_dynamics(q[..., None, :], rest, unit)
        return np.swapaxes(columns - self.inverse_dynamics(q, rest, rest)[..., None, :], -1, -2)

    def coriolis_matrix(self, q: Any, v: Any) -> Array:
        """Saha's C(q, v), (..., nv, nv), such that Ṁ − 2C is skew."""
        return self._term("coriolis_matrix", q, v)

    def bias_forces(self, q: Any, v: Any, *, formulation: str | None = None) -> Array:
        """C v + gravity_forces, (..., nv)."""
        if formulation is None:
            return self._term("bias_forces", q, v)
        self.refuse_loops("bias_forces")
        function = formulation_named(formulation).bias_forces
        arrays = self._states(("q", q), ("v", v))
        return each_state(lambda q, v: function(self.mechanism, q, v), arrays, (self.mechanism.nv,))

    def gravity_forces(self, q: Any) -> Array:
        """What the joints must exert to hold the mechanism still against gravity, (..., nv); springs not counted."""
        return self._term("gravity_forces", q)

    def passive_forces(self, q: Any, v: Any) -> Array:
        """What springs and dampers exert, (..., nv)."""
        return self._term("passive_forces", q, v)

    def energy(self, q: Any, v: Any) -> tuple[Array, Array]:
        """(kinetic, potential), each (...): springs, armature and rotors included."""
        arrays = self._states(("q", q), ("v", v))
        return self.answer("energy", *arrays)

    def momentum(self, q: Any, v: Any) -> Array:
        """[angular; linear] momentum about the centre of mass, world axes, (..., 6)."""
        arrays = self._states(("q", q), ("v", v))
        return self.answer("momentum", *arrays)

    def _term(self, name: str, *values: Any) -> Array:
        self.refuse_loops(name)
        arrays = self._states(*zip(QUANTITIES[name].arguments, values, strict=True))
        return self.answer(name, *arrays)

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, a: Any, *, wrenches: Wrenches | None = None
    ) -> tuple[Array, Array, Array]:
        """(dtau_dq, dtau_dv, dtau_da), each (..., nv, nv), q in tangent space; wrenches constant in world axes."""
        arrays = self._states(("q", q), ("v", v), ("a", a))
        wrenches = None if wrenches is None else self._by_frame(wrenches)
        if not wrenches and self.is_rolled:
            return self._rolled_derivatives(*arrays)
        if not wrenches:
            return self._derivative_kernel("inverse_derivatives", ("q", "v", "a"))(*arrays)
        loads, shifts = self.body_wrenches(arrays[0], wrenches), self._wrench_shifts(arrays[0], wrenches)
        kernel = self._derivative_kernel("inverse_derivatives_wrenches", ("q", "v", "a", "wrenches"))
        dq, dv, da = kernel(*arrays, loads)
        return dq + shifts, dv, da

    def _rolled_derivatives(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Long chains: one directional derivative for each degree of freedom, as a batch."""
        if "inverse_directional" not in self._kernels:
            from polybody.model import long_chains

            made = long_chains.kernel(self.mechanism, "inverse_directional")
            assert made is not None
            self._kernels["inverse_directional"] = made
        kernel, n = self._kernels["inverse_directional"], self.mechanism.nv
        unit, none = np.eye(n), np.zeros(n)
        q, v, a = (x[..., None, :] for x in (q, v, a))
        along = ((unit, none, none), (none, unit, none), (none, none, unit))
        dq, dv, da = (np.swapaxes(kernel(q, x, v, y, a, z), -1, -2) for x, y, z in along)
        return dq, dv, da

    def forward_dynamics_derivatives(self, q: Any, v: Any, tau: Any) -> tuple[Array, Array, Array]:
        """(da_dq, da_dv, da_dtau), each (..., nv, nv), q in tangent space."""
        self._refuse_singular()
        arrays = self._states(("q", q), ("v", v), ("tau", tau))
        if self.mechanism.nv <= FUSED_DERIVATIVES_UP_TO:
            return self._derivative_kernel("forward_derivatives", ("q", "v", "tau"))(*arrays)
        q, v, tau = arrays
        a = self.forward_dynamics(q, v, tau)
        dq, dv, M = self.inverse_dynamics_derivatives(q, v, a)
        inverse = np.linalg.inv(M)
        return -(inverse @ dq), -(inverse @ dv), inverse

    def _derivative_kernel(self, name: str, arguments: tuple[str, ...]) -> Kernel:
        if name not in self._kernels:
            from polybody.quantities import derivatives

            m, square = self.mechanism, (self.mechanism.nv,) * 2
            if name == "forward_derivatives":
                make = lambda: derivatives.forward_derivatives(self.lean_mechanism)  # noqa: E731
            elif "wrenches" in arguments:
                make = lambda: derivatives.inverse_derivatives(m, True)  # noqa: E731
            else:
                make = lambda: derivatives.inverse_derivatives(self.lean_mechanism, False)  # noqa: E731
            shapes = tuple((f"d{x}", square) for x in arguments[:3])
            self._kernels[name] = compiled(m, name, arguments, shapes, _untraced, function=make)
        return self._kernels[name]

    def body_wrenches(self, q: Array, wrenches: Wrenches, check: bool = False) -> Array:
        """(..., 6·bodies): the wrenches of named frames as wrenches at the bodies' origins, world axes."""
        m, wrenches = self.mechanism, self._by_frame(wrenches)
        given = [(m.frames[choose("frame", n, m.frame_index)], state_array(f"wrenches[{n!r}]", w, 6))
                 for n, w in wrenches.items()]
        if check:
            for name, (_, wrench) in zip(wrenches, given, strict=True):
                finite(f"wrenches[{name!r}]", wrench)
        lead = batch_shape([q, *(w for _, w in given)])
        loads = np.zeros((*lead, len(m.bodies), 6))
        rotations = self.kernel("body_rotations")(q) if any(frame.position.any() for frame, _ in given) else None
        for frame, wrench in given:
            if frame.body == GROUND:
                continue
            loads[..., frame.body, :] += wrench
            if rotations is not None:
                lever = rotations[..., frame.body, :, :] @ frame.position
                loads[..., frame.body, :3] += np.cross(lever, wrench[..., 3:])
        return loads.reshape(*lead, -1)

    def _by_frame(self, wrenches: Wrenches) -> Wrenches:
        if not isinstance(wrenches, Mapping):
            raise InputError(
                f"wrenches must map a frame's name to its wrench [moment; force], got {type(wrenches).__name__}; "
                f"the frames are {listed(self.mechanism.frame_index)}"
            )
        return wrenches

    def _wrench_shifts(self, q: Array, wrenches: Wrenches) -> Array:
        """What dtau/dq misses when a wrench given at a frame is taken to the body's origin: its lever turns with q.

        tau contains −Jᵀw with the moment (R r) × f added at the origin; along v_k the lever changes by ω_k × (R r).
        """
        m = self.mechanism
        shifts: Any = 0.0
        for name, wrench in wrenches.items():
            frame = m.frames[m.frame_index[name]]
            if frame.body == GROUND or not frame.position.any():
                continue
            force = state_array(name, wrench, 6)[..., 3:]
            J = self.jacobian(q, name)[..., :3, :]
            lever = self.kernel("body_rotations")(q)[..., frame.body, :, :] @ frame.position
            turned = np.cross(np.swapaxes(J, -1, -2), lever[..., None, :])
            moment = np.cross(turned, force[..., None, :])
            shifts = shifts - np.swapaxes(moment @ J, -1, -2)
        return shifts

    def refuse_loops(self, what: str) -> None:
        """Never answer for the cut tree."""
        m = self.mechanism
        if m.constrained:
            named = [r.name for r in (*m.closures, *m.rods, *m.guides, *m.relations)]
            names = ", ".join(repr(name) for name in [*named, *(c.joint for c in m.couplings)])
            raise PolybodyError(
                f"{what}: this model has loops or couplings ({names}) that its tree alone does not honour; "
                f"model.tree.{what} answers for the tree"
            )

    def _refuse_singular(self) -> None:
        """Name the joint whose pivot vanishes, once per model, instead of dividing by zero."""
        if not self._regular:
            from polybody.formulations.denoc.articulated import singular_joint, singular_message

            joint = singular_joint(self.mechanism)
            if joint is not None:
                raise PolybodyError(singular_message(joint))
            self._regular = True

    _regular: bool = False

    def _states(self, *named: tuple[str, Any]) -> list[Array]:
        sizes = {"q": self.mechanism.nq, "q0": self.mechanism.nq, "q1": self.mechanism.nq}
        return [state_array(name, value, sizes.get(name, self.mechanism.nv)) for name, value in named]


def _untraced(*_: Any, **__: Any) -> Any:
    raise AssertionError("this kernel is made from its own function")


def _into(out: Array | None, result: Array) -> Array:
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        raise InputError(f"out is of type {type(out).__name__}; wanted an array of shape {result.shape}")
    if out.shape != result.shape:
        raise InputError(f"out has shape {out.shape}; wanted {result.shape}")
    if not np.issubdtype(out.dtype, np.floating):
        raise InputError(f"out has dtype {out.dtype}; wanted float64 (or another float) of shape {result.shape}")
    if not out.flags.writeable:
        raise InputError(f"out is read-only; wanted a writeable array of shape {result.shape}")
    out[...] = result
    return out


__all__ = ["DynamicAnswers"]
