"""`SymbolicModel`: the equations of a mechanism as SymPy expressions that stay readable.

    sym = model.symbolic(symbols="all")
    sym.mass_matrix(), sym.poincare_matrix(), sym.potential_energy(), sym.equations()

q are the paper's joint parameters (three for a spherical joint), p its quasi-velocities: 𝓜(q) ṗ + 𝓒(q, p) p + 𝓕(q) =
Q_p, q̇ = V(q) p. Expressions are computed as trigonometric polynomials (see `ring`), in which angle sums collect by
themselves, and printed with common factors taken out. `program` gives any quantity as assignments of common
subexpressions instead; it goes through no closed form, and serves models that are too large for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from polybody.algebra.spatial import pose
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.mechanism import Mechanism
from polybody.names import counted
from polybody.properties import cached_property
from polybody.symbolic.charts import as_walked, chart_rest, charts, model_state, parallel_pairs
from polybody.symbolic.closed import ClosedForms
from polybody.symbolic.equations import Equations, Linearization, linearized
from polybody.symbolic.estimate import Estimate, estimated_size
from polybody.symbolic.parameters import Parameter, check_names, chosen, parameters, with_scalars
from polybody.symbolic.printing import number, to_matrix, to_sympy
from polybody.symbolic.program import QUANTITIES, Program, traced_program
from polybody.symbolic.quasi import QuasiEquations, quasi_equations
from polybody.symbolic.ring import exact
from polybody.symbolic.sections import Section

Array = np.ndarray
#: What `cse` knows by name.
SHARED = ("mass_matrix", "bias", "velocity_forces", "potential_forces", "passive_forces", "poincare_matrix",
          "coriolis_matrix")  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How large an expression is."""

    operations: int
    characters: int


class SymbolicModel:
    """The symbolic face of a mechanism. Get it by `model.symbolic(...)`."""

    honours_loops = False

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        symbols: str | Iterable[str] = "all",
        joints: str | Mapping[str, str] | None = None,
        q: Sequence[str] | None = None,
        p: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        own: tuple[Any, tuple[Any, ...]] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        if mechanism.constrained and not self.honours_loops:
            raise PolybodyError(
                f"symbolic: {mechanism.name!r} has loops that its tree alone does not honour; "
                "model.symbolic() takes them up, model.tree.symbolic answers for the tree"
            )
        self.mechanism = mechanism
        self._charts = charts(mechanism, joints)
        available = parameters(mechanism)
        self._kept = chosen(available, symbols)
        renamed = _renaming(available, names)
        self._symbol_of = {x.name: sympy.Symbol(renamed.get(x.name, x.name)) for x in self._kept}
        self.q = _coordinates("q", q, mechanism.nv)
        self.p = _coordinates("p", p, mechanism.nv)
        self.p_dot = tuple(sympy.Symbol(f"{x.name}_dot") for x in self.p)
        self.Q = tuple(sympy.Symbol(f"Q{k + 1}") for k in range(mechanism.nv))
        check_names(
            {
                "coordinate": [x.name for x in self.q],
                "quasi-velocity": [x.name for x in self.p],
                "acceleration": [x.name for x in self.p_dot],
                "force": [x.name for x in self.Q],
                "parameter": [x.name for x in self._symbol_of.values()],
            }
        )
        self._values = dict(values or {})
        self._own = own
        self._progress = progress
        kept = [x.name for x in self._kept]
        self._options: dict[str, Any] = {"symbols": kept, "joints": joints, "q": q, "p": p, "names": names, "own": own}

    # ---- what the model is made of -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def parameters(self) -> dict[Any, float]:
        """The symbols that the expressions may contain, and their numbers in the model."""
        kept = [x for x in self._kept if x.name not in self._values]
        result = {self._symbol_of[x.name]: x.value for x in kept}
        new = {s for value in self._values.values() for s in sympy.sympify(value).free_symbols}
        if self._own is not None:
            new |= sympy.Tuple(self._own[0], *self._own[1]).free_symbols - {*self.q, *self.p, *self._symbol_of.values()}
        for symbol in sorted(new - set(result), key=str):
            result[symbol] = float("nan")  # brought in by `substitute` or `acted_on`: the model has no number for it
        return result

    def meanings(self) -> dict[Any, str]:
        """What each parameter symbol represents."""
        return {self._symbol_of[x.name]: x.meaning for x in self._kept if x.name not in self._values}

    def to_model(self, q: Any, p: Any) -> tuple[Array, Array]:
        """The model's own q (quaternions) and v of the state (q, p) in the paper's joint parameters."""
        q, p = np.asarray(q, dtype=float), np.asarray(p, dtype=float)
        n = self.mechanism.nv
        if q.shape[-1:] != (n,) or p.shape[-1:] != (n,):
            raise InputError(f"q and p have shapes {q.shape} and {p.shape}, expected (..., {n}) both")
        lead = np.broadcast_shapes(q.shape[:-1], p.shape[:-1])
        own_q, own_v = np.empty((*lead, self.mechanism.nq)), np.empty((*lead, n))
        for index in np.ndindex(lead):
            at_q, at_p = np.broadcast_to(q, (*lead, n))[index], np.broadcast_to(p, (*lead, n))[index]
            for joint in self.mechanism.independent_joints:
                chart = self._charts[joint.index]
                pair = model_state(joint, chart, at_q[joint.v], at_p[joint.v])
                own_q[(*index, joint.q)], own_v[(*index, joint.v)] = pair
        return own_q, own_v

    def substitute(self, values: Mapping[Any, Any]) -> SymbolicModel:
        """The model with parameters replaced by numbers or by expressions of other symbols."""
        known = {symbol.name: key for key, symbol in self._symbol_of.items()}
        replaced = {key: sympy.sympify(value) for key, value in self._values.items()}
        given = {}
        for symbol, value in values.items():
            name = str(symbol)
            if name in {x.name for x in (*self.q, *self.p)}:
                raise InputError(f"{name!r} is a coordinate of the motion; substitute it in an expression by .subs")
            if name not in known and name not in {str(s) for v in replaced.values() for s in v.free_symbols}:
                raise InputError(f"no parameter symbol {name!r}; available: {', '.join(known) or 'none'}")
            given[sympy.Symbol(name)] = _exact_expression(value)
        motion = {x.name for x in (*self.q, *self.p, *self.p_dot, *self.Q)}
        for value in given.values():
            clash = motion & {s.name for s in value.free_symbols}
            if clash:
                raise InputError(f"the value {value} contains {sorted(clash)[0]!r}, a coordinate of the motion")
        merged = {key: value.subs(given) for key, value in replaced.items()}
        merged |= {known[s.name]: value for s, value in given.items() if s.name in known}
        return type(self)(self.mechanism, **self._options, values=merged, progress=self._progress)

    def acted_on(self, potential: Any = 0, forces: Mapping[Any, Any] | None = None) -> SymbolicModel:
        """The model with a potential U(q) and generalised forces {quasi-velocity: f(q, p)} of your own besides.

        SymPy expressions in q, p, the parameters and symbols of yours. All closed forms have them, `program` does not.
        """
        by_name = {x.name: k for k, x in enumerate(self.p)}
        expressions = {str(key): sympy.sympify(value) for key, value in (forces or {}).items()}
        potential, loads = sympy.sympify(potential), [sympy.Integer(0)] * len(self.p)
        for key, value in expressions.items():
            if key not in by_name:
                raise InputError(f"forces: no quasi-velocity {key!r}; available: {', '.join(by_name)}")
            loads[by_name[key]] = value
        refused = {*self.p_dot, *self.Q}
        of_forces = [("forces", x, refused) for x in loads]
        for what, value, out in (("potential", potential, refused | {*self.p}), *of_forces):
            if value.free_symbols & out or value.has(sympy.nan, sympy.oo, sympy.zoo):
                raise InputError(
                    f"{what}: {value!s:.60} is not a finite expression in q{' and p' * (what == 'forces')}"
                )
        if self._own is not None:
            potential, loads = potential + self._own[0], [x + y for x, y in zip(loads, self._own[1], strict=True)]
        options: dict[str, Any] = self._options | {"own": (potential, tuple(loads))}
        return type(self)(self.mechanism, **options, values=self._values, progress=self._progress)

    def quasi(self, B: Any, names: Sequence[str] | None = None) -> QuasiEquations:
        """Poincaré's equations in quasi-velocities w of your choice, p = B(q) w. See `symbolic.quasi`."""
        return quasi_equations(self, B, names)

    @cached_property
    def estimate(self) -> Estimate:
        """About how large the closed forms are, found without computing them."""
        return estimated_size(self.mechanism, self._charts, len(self.parameters))

    # ---- closed forms --------------------------------------------------------------------------------------------

    @cached_property
    def _closed(self) -> ClosedForms:
        if self.estimate.too_large:
            raise PolybodyError(
                f"{self.name!r} is too large for closed form: about {self.estimate.terms:,} terms, some "
                f"{self.estimate.characters / 1e6:,.0f} million characters; use .program('equations'), which gives the "
                "same equations as assignments of common subexpressions (polybody derive --python writes them)"
            )
        pairs = parallel_pairs(self.mechanism, self._charts)
        own = self._own
        if own is not None:
            known = {self._symbol_of[key]: sympy.sympify(value) for key, value in self._values.items()}
            own = own[0].subs(known), tuple(x.subs(known) for x in own[1])
        return ClosedForms(self._built, self.q, self.p, pairs, self._progress, own)

    def _built(self, domain: Any, scalar_of: Callable[[Any], Any] | None = None) -> Mechanism:
        """The mechanism over a domain; `scalar_of` turns a symbol or expression into a scalar of it."""
        convert = scalar_of or domain.from_sympy
        scalars = []
        for parameter in self._kept:
            value = self._values.get(parameter.name, self._symbol_of[parameter.name])
            scalars.append((parameter, convert(sympy.sympify(value))))
        chart_of = dict(zip((j.index for j in self.mechanism.joints), self._charts, strict=True))
        return with_scalars(
            self.mechanism,
            scalars,
            lambda joint: as_walked(joint, chart_of[joint.index]),
            lambda joint: (joint.v, chart_rest(joint)),
        )

    def _joint(self, name: str) -> int:
        if name not in self.mechanism.joint_index:
            raise InputError(f"no joint {name!r}; available: {', '.join(self.mechanism.joint_index)}")
        return self.mechanism.joint_index[name]

    def configuration(self, joint: str) -> Any:
        """X(q) of a joint, 4×4: pose of its body in the joint frame (XXeuc, XXCompnd)."""
        i, domain = self._joint(joint), self._closed.domain
        model = self._closed.mechanism.joints[i]
        return to_matrix(pose(*model.model.configuration(self._closed.q[model.q], domain=domain), domain=domain))

    def joint_map(self, joint: str) -> Any:
        """H(q) of a joint, 6×r, [angular; linear] in its body's frame (HCompnd)."""
        i = self._joint(joint)
        model = self._closed.mechanism.joints[i]
        return to_matrix(model.model.velocity_map(self._closed.q[model.q], domain=self._closed.domain))

    def kinematic_matrix(self, joint: str | None = None) -> Any:
        """V(q) with q̇ = V p; of one joint, the paper's Γ (GammaKin, GamCompnd)."""
        V = self._closed.kinematic_matrix()
        if joint is not None:
            own = self._closed.mechanism.joints[self._joint(joint)].v
            V = V[own, own]
        return to_matrix(V)

    def mass_matrix(self) -> Any:
        """𝓜(q)."""
        return self._matrix("mass_matrix")

    def poincare_matrix(self) -> Any:
        """𝓒(q, p) of (53b), as the errata correct it (Cmat)."""
        return self._matrix("poincare_matrix")

    def coriolis_matrix(self) -> Any:
        """Saha's C(q, p), with Ṁ − 2C skew; 𝓒p = Cp."""
        return self._matrix("coriolis_matrix")

    def velocity_forces(self) -> Any:
        """𝓒 p, the terms quadratic in p."""
        return self._matrix("velocity_forces")

    def potential_forces(self) -> Any:
        """𝓕(q) of gravity, and of a potential of your own."""
        return self._matrix("potential_forces")

    def passive_forces(self) -> Any:
        """What springs, dampers and forces of your own exert on p."""
        return self._matrix("passive_forces")

    def _matrix(self, what: str) -> Any:
        if what not in self._printed:
            self._printed[what] = to_matrix(getattr(self._closed, what))
        return self._printed[what].copy()

    @cached_property
    def _printed(self) -> dict[str, Any]:
        return {}

    def kinetic_energy(self) -> Any:
        """½ pᵀ𝓜p."""
        return to_sympy(self._closed.kinetic_energy)

    def potential_energy(self) -> Any:
        """Of gravity, of springs (GravPotChn), and your own."""
        return to_sympy(self._closed.potential)

    def end_effector(self, frame: str) -> Any:
        """The pose of a frame in the world, 4×4 (XEndEf)."""
        table = self.mechanism.frame_index
        if frame not in table:
            raise InputError(f"no frame {frame!r}; available: {', '.join(table)}")
        return to_matrix(self._closed.frame_pose(table[frame]))

    def equations(self) -> Equations:
        """𝓜 ṗ + 𝓒 p + 𝓕 − passive = Q_p and q̇ = V p (PoincFunc)."""
        return Equations(
            q=sympy.Matrix(self.q),
            p=sympy.Matrix(self.p),
            p_dot=sympy.Matrix(self.p_dot),
            Q=sympy.Matrix(self.Q),
            kinematic_matrix=self.kinematic_matrix(),
            mass_matrix=self.mass_matrix(),
            velocity_forces=self.velocity_forces(),
            potential_forces=self.potential_forces(),
            passive_forces=self.passive_forces(),
        )

    def linearize(self, q: Mapping[Any, Any] | Sequence[Any], p: Any = None, p_dot: Any = None) -> Linearization:
        """The equations linearised about a motion: E δṗ + D δp + K δq = δQ. See `Linearization`."""
        return linearized(self.equations(), q, p, p_dot)

    # ---- common-subexpression form, sizes ------------------------------------------------------------------------

    def program(self, *quantities: str) -> Program:
        """Quantities as assignments of common subexpressions, traced from the recursions: any size of model.

        Names: mass_matrix, bias (𝓒p + 𝓕 − passive), equations (both), inverse_dynamics, forward_dynamics,
        coriolis_matrix, poincare_matrix, kinetic_energy, potential_energy, and pose:FRAME.
        """
        wanted = quantities or ("equations",)
        if self._own is not None:
            raise PolybodyError("program: it is traced from the recursions, without the forces of acted_on; use cse(…)")
        for name in wanted:
            if name not in QUANTITIES and not name.startswith("pose:"):
                raise InputError(f"no quantity {name!r}; available: {', '.join(QUANTITIES)} and pose:FRAME")
        return traced_program(self, wanted)

    def cse(self, *what: Any) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """Closed forms in common-subexpression form: (assignments, results).

        `what`: names of matrices (mass_matrix, bias, velocity_forces, potential_forces, passive_forces,
        poincare_matrix, coriolis_matrix), factored so that they share much, or any expressions of your own.
        """
        expressions = []
        for one in what:
            if isinstance(one, str) and one not in SHARED:
                raise InputError(f"no closed form {one!r}; available: {', '.join(SHARED)}")
            expressions.append(to_matrix(getattr(self._closed, one), shared=True) if isinstance(one, str) else one)
        taken = {s.name for s in (*self.q, *self.p, *self.parameters)}
        fresh = (s for s in sympy.numbered_symbols("x") if s.name not in taken)
        return sympy.cse(expressions, symbols=fresh, order="none")  # pyright: ignore

    def size(self, quantity: str | Any = "mass_matrix") -> Size:
        """Operations and characters of a quantity by name, or of any expression."""
        expression = getattr(self, quantity)() if isinstance(quantity, str) else quantity
        if isinstance(expression, Equations):
            expression = sympy.Matrix([*expression.mass_matrix, *expression.bias()])
        return Size(int(sympy.count_ops(expression)), len(str(expression).replace(" ", "")))

    # ---- ways out ------------------------------------------------------------------------------------------------

    def constraint_sections(self) -> list[Section]:
        """What a printed model says of its constraints: nothing of a tree's."""
        return []

    def latex(self) -> str:
        """A LaTeX document of the equations."""
        from polybody.symbolic.latex import document

        return document(self)

    def html(self) -> str:
        """A self-contained HTML page of the equations, in MathML: any browser shows it offline."""
        from polybody.symbolic.html import page

        return page(self)

    def python_source(self, *quantities: str) -> str:
        """A Python module with one function of NumPy arrays for each quantity."""
        from polybody.symbolic.sources import python_module

        return python_module(self, quantities or ("mass_matrix", "bias", "inverse_dynamics", "forward_dynamics"))

    def __repr__(self) -> str:
        return (
            f"<SymbolicModel {self.name!r}: {counted(len(self.q), 'coordinate')}, "
            f"{counted(len(self.parameters), 'parameter')}>"
        )


def _coordinates(default: str, given: Sequence[str] | None, n: int) -> tuple[Any, ...]:
    if given is None:
        return tuple(sympy.Symbol(f"{default}{k + 1}") for k in range(n))
    if len(given) != n:
        raise InputError(
            f"{default} names {counted(len(given), 'symbol')}, expected {n}: one for each degree of freedom"
        )
    return tuple(sympy.Symbol(name) for name in given)


def _renaming(available: list[Parameter], names: Mapping[str, str] | None) -> dict[str, str]:
    known = {x.name for x in available}
    for name in names or {}:
        if name not in known:
            raise InputError(f"names: no parameter {name!r}; available: {', '.join(sorted(known))}")
    return dict(names or {})


def _exact_expression(value: Any) -> Any:
    """Numbers as exactly as files' numbers; expressions as they are."""
    if isinstance(value, (int, float, np.number)):
        return number(exact(value if isinstance(value, int) else float(value)))
    return sympy.sympify(value)


__all__ = ["Size", "SymbolicModel"]
