"""The functions of a combination of modes as CasADi functions of (x, a, u, d, p, t), for C.

    rates       ẋ                           complete   x and a with what is neither a state nor iterated put in
    observe     z                           algebra    g, ∂g/∂a
    watch       conditions to leave         slopes     ∂ẋ/∂(x, a, t), ∂g/∂(x, t)
    tangent     changes along (dx, du, da)  strike     slopes by impulses at joints with limits (`impacts`)
    hold        constraints among x and their slopes, where all variables with a memory are states
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polybody.networks.export.impacts import Limit, strike
from polybody.networks.export.selected import SelectedComponent
from polybody.networks.system import System

ARGUMENTS = ["x", "a", "u", "d", "p", "t"]


class Texts:
    """Names of all combinations' variables, and their columns."""

    def __init__(
        self, systems: Sequence[System], free: Sequence[str], tuned: Sequence[str],
        selected: Sequence[SelectedComponent], limits: Sequence[Limit],
    ) -> None:  # fmt: skip
        import casadi as ca

        self.free, self.tuned, self.selected, self.limits = list(free), list(tuned), list(selected), list(limits)
        self.states = list(dict.fromkeys(name for system in systems for name in system.states))
        self.algebraic = list(dict.fromkeys(name for system in systems for name in system.algebraic))
        self.observed = [name for name in systems[0].observed if name not in self.states]
        sizes = [len(self.states), len(self.algebraic), len(self.free), len(self.selected), len(self.tuned), 1]
        self.columns = [ca.SX.sym(name, size) for name, size in zip(ARGUMENTS, sizes, strict=True)]
        self.pushes = ca.SX.sym("push", len(self.limits))

    def functions(self, k: int, system: System) -> list[Any]:
        """The functions of one combination, named by its number."""
        import casadi as ca

        x, a, u, d, p, t = self.columns
        states, algebraic = self.states, self.algebraic
        given = {**{name: u[i] for i, name in enumerate(self.free)}, **{name: p[i] for i, name in
                 enumerate(self.tuned)}, **{part.selector: d[i] for i, part in enumerate(self.selected)},
                 **{limit.push: self.pushes[i] for i, limit in enumerate(self.limits)}}  # fmt: skip
        at = ca.vertcat(*(x[states.index(n)] for n in system.states),
                        *(a[algebraic.index(n)] for n in system.algebraic), *(given[name] for name in system.called), t)

        def read(expressions: list[Any]) -> list[Any]:
            return ca.vertsplit(ca.densify(system.function("part", expressions)(at))) if expressions else []

        def column(entries: list[Any]) -> Any:
            return ca.densify(ca.vertcat(*entries, ca.SX(0, 1)))

        def rows(of: Any, by: Any) -> Any:
            return ca.vec(ca.densify(ca.jacobian(of, by)).T) if of.numel() and by.numel() else ca.SX(0, 1)

        assembly, symbols = system.assembly, system.equations.reduced.symbols
        by_name = {assembly.key_name(key): symbol for key, symbol in symbols.items()}
        rates = dict(zip(system.states, read(system.rate_expressions[:-1]), strict=True))
        f = column([rates.get(name, ca.SX(0.0)) for name in states])
        g = column(read(system.algebraic_expressions))
        known = [name for name in (*states, *algebraic) if name in by_name]
        values = dict(zip(known, read(system.closed([by_name[name] for name in known])), strict=True))
        own = {*system.states, *system.algebraic}
        full = [column([values[n] if n in values and n not in own else symbol[i] for i, n in enumerate(names)])
                for names, symbol in ((states, x), (algebraic, a))]
        table = assembly.observables()
        z = column(read(system.closed([table[name] for name in self.observed])))
        watch = [expression for *_, expression in assembly.conditions()]
        watch += [expression for part in self.selected for _, expression in part.conditions(assembly.lookup(part))]
        w = column(read(system.closed(watch)))
        h = column(read(system.closed(system.equations.reduced.invariants)))
        own_a = column([a[algebraic.index(n)] for n in system.algebraic])
        seeds = [ca.SX.sym("dx", x.numel()), ca.SX.sym("du", u.numel()), ca.SX.sym("da", a.numel())]
        by, along = ca.vertcat(x, u, own_a), ca.vertcat(*seeds[:2], seeds[2][: own_a.numel()])
        made = {
            "rates": ([f], ["rates"]),
            "observe": ([z], ["values"]),
            "watch": ([w], ["conditions"]),
            "complete": (full, ["x_full", "a_full"]),
            "algebra": ([g, rows(g, own_a)], ["g", "slopes"]),
            "slopes": ([rows(f, x), rows(f, own_a), rows(f, t), rows(g, x), rows(g, t)],
                       ["f_x", "f_a", "f_t", "g_x", "g_t"]),
            "hold": ([h, rows(h, x)], ["h", "h_x"]),
        }
        if self.limits:
            made["strike"] = (strike(system, self.limits, read, f, g, self.pushes, x, own_a, rows),
                              ["f_push", "g_push", "w_x", "w_a", "w"])
        tangent = [ca.densify(ca.jtimes(of, by, along)) for of in (f, z, g)]
        none = ca.DM.zeros(len(self.limits))

        def still(results: list[Any]) -> list[Any]:
            return list(ca.substitute(results, [self.pushes], [none])) if self.limits else results

        return [*(ca.Function(f"{name}_{k}", self.columns, still(results), ARGUMENTS, labels, {"cse": True})
                  for name, (results, labels) in made.items()),
                ca.Function(f"tangent_{k}", [*self.columns, *seeds], still(tangent), [*ARGUMENTS, "dx", "du", "da"],
                            ["df", "dz", "dg"], {"cse": True})]


__all__ = ["ARGUMENTS", "Texts"]
