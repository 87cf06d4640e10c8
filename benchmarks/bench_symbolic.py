"""The paper's six-degree-of-freedom arm: polybody's symbolic model against SymPy's KanesMethod, in one run.

Both derive the full equations (mass matrix and forcing) of the same arm, wrist and shoulder given by the same angles
(the compound wrist: KanesMethod's speeds are the angles' rates), parameters numeric and exact. Then both are counted
after common-subexpression elimination by the same function, sympy.cse with its default optimisations off; polybody's
own program (the traced recursions) is printed beside. The two results are compared at a random state.

    python benchmarks/bench_symbolic.py [--all-symbols]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import sympy
from sympy.physics.mechanics import (
    KanesMethod,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

import polybody as pb

NAMES = {"q": ["s1", "s2", "e", "t1", "t2", "t3"], "p": ["w1", "w2", "u1", "v1", "v2", "v3"]}


def parameters(symbolic: bool) -> dict:
    """The arm's numbers, exact, or symbols in their place; named as polybody names them."""
    exact = sympy.Rational
    values = {
        "m1": 1, "m2": 1, "m3": exact(1, 2), "c1z": exact(3, 2), "c2z": exact(3, 2), "c3z": exact(7, 20),
        "r2z": 3, "r3z": 3, "I1xx": exact(3, 4), "I1yy": exact(3, 4), "I2xx": exact(3, 4), "I2yy": exact(3, 4),
        "I3xx": exact(343, 9600), "I3yy": exact(343, 9600), "I3zz": exact(49, 9600), "g": exact(981, 100),
    }  # fmt: skip
    return {name: sympy.Symbol(name) if symbolic else sympy.sympify(value) for name, value in values.items()}


def kane(k: dict) -> tuple[sympy.Matrix, sympy.Matrix, list, list]:
    """The arm by SymPy: frames, points, bodies, loads, KanesMethod."""
    q, u = dynamicsymbols("s1 s2 e t1 t2 t3"), dynamicsymbols("w1 w2 u1 v1 v2 v3")
    s1, s2, e, t1, t2, t3 = q
    N = ReferenceFrame("N")
    turns = [(s2, "z"), (s1, "y"), (e, "y"), (t3, "x"), (t2, "z"), (t1, "y")]
    speeds = [u[1], u[0], u[2], u[5], u[4], u[3]]
    frames, frame = [], N
    for number, ((angle, axis), speed) in enumerate(zip(turns, speeds, strict=True)):
        following = frame.orientnew(f"F{number}", "Axis", [angle, getattr(frame, axis)])
        following.set_ang_vel(frame, speed * getattr(frame, axis))
        frames.append(following)
        frame = following
    upper, lower, gripper = frames[1], frames[2], frames[5]
    shoulder = Point("shoulder")
    shoulder.set_vel(N, 0)
    elbow = shoulder.locatenew("elbow", k["r2z"] * upper.z)
    wrist = elbow.locatenew("wrist", k["r3z"] * lower.z)
    bodies, loads = [], []
    places = ((upper, shoulder, "1"), (lower, elbow, "2"), (gripper, wrist, "3"))
    elbow.v2pt_theory(shoulder, N, upper)
    wrist.v2pt_theory(elbow, N, lower)
    for frame, origin, i in places:
        centre = origin.locatenew(f"centre{i}", k[f"c{i}z"] * frame.z)
        centre.v2pt_theory(origin, N, frame)
        tensor = inertia(frame, k[f"I{i}xx"], k[f"I{i}yy"], k.get(f"I{i}zz", 0))
        bodies.append(RigidBody(f"body{i}", centre, frame, k[f"m{i}"], (tensor, centre)))
        loads.append((centre, -k[f"m{i}"] * k["g"] * N.z))
    equations = [x.diff() - y for x, y in zip(q, u, strict=True)]
    method = KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=equations)
    method.kanes_equations(bodies, loads)
    return method.mass_matrix, method.forcing, q, u


def operations(assignments: list, results: list) -> int:
    return int(sum(sympy.count_ops(x) for _, x in assignments) + sum(sympy.count_ops(x) for x in results))


def main() -> None:
    symbolic = "--all-symbols" in sys.argv
    started = time.perf_counter()
    M_kane, forcing, q, u = kane(parameters(symbolic))
    kane_time = time.perf_counter() - started

    kept = list(parameters(True)) if symbolic else "none"
    started = time.perf_counter()
    model = pb.load("six-dof-arm").symbolic(kept, joints={"wrist": "compound"}, **NAMES)
    M, bias = model.mass_matrix(), model.equations().bias()
    own_time = time.perf_counter() - started
    started = time.perf_counter()
    program = model.program("equations")
    program_time = time.perf_counter() - started

    plain = dict(zip([*q, *u], [*model.q, *model.p], strict=True))
    rng = np.random.default_rng(0)
    state = rng.uniform(-1, 1, size=12)
    numbers = parameters(False)
    values = {sympy.Symbol(name): value for name, value in numbers.items()}
    arguments = [*model.q, *model.p]
    found = sympy.lambdify(arguments, [M.subs(values), bias.subs(values)], cse=True)(*state)
    wanted = sympy.lambdify(
        arguments, [M_kane.subs(plain).subs(values), -forcing.subs(plain).subs(values)], cse=True
    )(*state)
    off = max(float(np.abs(np.ravel(a) - np.ravel(b)).max()) for a, b in zip(found, wanted, strict=True))

    kane_operations = operations(*sympy.cse([M_kane.subs(plain), forcing.subs(plain)], order="none"))
    own_operations = operations(*model.cse("mass_matrix", "bias"))
    kind = "symbols" if symbolic else "rationals"
    print(f"six-dof-arm, compound wrist, parameters as {kind}; largest difference {off:.1e}")
    print(f"{'':28}{'seconds':>10}{'operations after CSE':>24}")
    print(f"{'SymPy KanesMethod':28}{kane_time:10.2f}{kane_operations:24}")
    print(f"{'polybody closed form':28}{own_time:10.2f}{own_operations:24}")
    print(f"{'polybody program':28}{program_time:10.2f}{program.operations:24}")
    for name in ("stanford-arm", "puma560"):
        started = time.perf_counter()
        other = pb.load(name).symbolic("none")
        other.equations()
        other.poincare_matrix()
        size = other.size("equations")
        print(f"{name}: full equations and C in {time.perf_counter() - started:.1f} s, {size.operations} operations, "
              f"{other.program('equations').operations} as a program")  # fmt: skip


if __name__ == "__main__":
    main()
