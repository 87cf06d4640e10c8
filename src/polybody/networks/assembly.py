"""The equations of a network: terminal equations with circuits and cut-sets substituted, over CasADi.

Unknown are the across variables of tree branches, the through variables of chords, and the components' own variables;
circuits and cut-sets give the rest, x_C = Q_Cᵀ x_T and y_T = −Q_C y_C. The terminal equations are as many. Since the
tree is a normal one, a constraint among states (capacitors in parallel, inertias on one gear) is seen in the structure
of the equations, which `structure` reduces to index one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.names import counted
from polybody.networks.component import Component, Lookup, PartComponent
from polybody.networks.graph import PartGraph, part_graph
from polybody.networks.structure import Choice, Key, Reduced, RedundantConstraints, SingularStructure, reduce_index

#: a component: its mode
Modes = dict[str, str]


@dataclass(eq=False)
class Assembly:
    """Unknowns and equations in one combination of modes; `names` are those of the unknowns."""

    components: Sequence[Component]
    modes: Modes
    started: frozenset[str] = frozenset()  # variables that a user gave a start: they should be states
    constant: frozenset[str] = frozenset()  # inputs that do not change in time: parameters of what is exported
    wanted: Choice = ()  # dummy derivatives to choose first, where others have become poor along the motion
    every: bool = False  # all variables with a memory are states, with constraints among them

    names: list[str] = field(init=False)
    graph: PartGraph = field(init=False)

    def __post_init__(self) -> None:
        import casadi as ca

        self.graph = part_graph(self.components)
        system, sx = self.graph.system, ca.SX
        tree = set(system.tree)
        self.names, self.keep, self.starts = [], [], []
        self._terms: dict[tuple[str, str], list[tuple[int, int]]] = {}
        position: dict[int, int] = {}
        for i, edge in enumerate(system.edges):
            domain = self.graph.ports[edge.name].domain
            letter = domain.across if i in tree else domain.through
            position[i] = self._unknown(f"{edge.name}.{letter}", self.graph.ports[edge.name].keep, 0.0)
        Q = system.cutset_chords
        for row, i in enumerate(system.tree):
            self._terms[("across", system.edges[i].name)] = [(position[i], 1)]
            self._terms[("through", system.edges[i].name)] = [
                (position[system.cotree[c]], -int(Q[row, c])) for c in np.flatnonzero(Q[row])]
        for column, i in enumerate(system.cotree):
            self._terms[("through", system.edges[i].name)] = [(position[i], 1)]
            self._terms[("across", system.edges[i].name)] = [
                (position[system.tree[r]], int(Q[r, column])) for r in np.flatnonzero(Q[:, column])]
        self.variables = {v.name: self._unknown(v.name, v.keep, v.start) for c in self.components for v in c.variables}
        self.symbols: dict[Key, Any] = {(j, 0): sx.sym(name) for j, name in enumerate(self.names)}
        self.symbols |= {(j, 1): sx.sym(f"der({name})") for j, name in enumerate(self.names)}
        self._hashes: dict[Key, int] = {}  # of symbols: every derivative looks all of them up
        self.time = sx.sym("time")
        self.inputs = {name: sx.sym(name) for part in self.components for name in part.inputs}
        self.input_rates: dict[tuple[str, int], Any] = {(name, 0): x for name, x in self.inputs.items()}
        self.combined: list[tuple[int, Any]] = []  # residuals that take the place of those of the parts

    def _unknown(self, name: str, keep: int, start: float) -> int:
        self.names.append(name)
        self.keep.append(keep + (10 if name in self.started else 0))
        self.starts.append(start)
        return len(self.names) - 1

    # -- what components read ---------------------------------------------------------------------------------------

    def value(self, kind: str, edge: str) -> Any:
        """The across or through variable of an edge."""
        total: Any = 0.0
        for j, sign in self._terms[(kind, edge)]:
            total = total + self.symbols[(j, 0)] if sign > 0 else total - self.symbols[(j, 0)]
        return total

    def lookup(self, component: Component) -> Lookup:
        """Names in a component's own words."""
        table: dict[str, Any] = {"time": self.time}
        for port in component.ports:
            lead = f"{port.own}." if port.own else ""
            for kind, letter in (("across", port.domain.across), ("through", port.domain.through)):
                table[lead + letter] = self.value(kind, port.name)
        for variable in component.variables:
            table[variable.own] = self.symbols[(self.variables[variable.name], 0)]
        links: Mapping[str, str] = getattr(component, "links", {})
        table |= {own: self.symbols[(self.variables[name], 0)] for own, name in links.items()}
        for name, symbol in self.inputs.items():
            if name in component.inputs:
                table[name.removeprefix(f"{component.name}.")] = symbol
        return table.__getitem__

    def der(self, x: Any) -> Any:
        """dx/dt by the chain rule."""
        return self.differentiate(x, self.symbols)

    def differentiate(self, x: Any, symbols: Mapping[Key, Any]) -> Any:
        import casadi as ca

        if not isinstance(x, ca.SX):
            return 0.0
        used = {s.element_hash() for s in ca.symvar(x)}
        by, rates, hashes = [], [], self._hashes
        for (j, k), symbol in symbols.items():
            if (j, k) not in hashes:
                hashes[(j, k)] = symbol.element_hash()
            if hashes[(j, k)] in used:
                by.append(symbol)
                rates.append(symbols[(j, k + 1)] if (j, k + 1) in symbols else self.fresh((j, k + 1)))
        for (name, k), symbol in list(self.input_rates.items()):
            if symbol.element_hash() in used and name not in self.constant:
                by.append(symbol)
                rates.append(self.input_rates.setdefault((name, k + 1), ca.SX.sym(f"der{k + 1}({name})")))
        if self.time.element_hash() in used:
            by.append(self.time)
            rates.append(ca.SX(1.0))
        return ca.jtimes(x, ca.vertcat(*by), ca.vertcat(*rates)) if by else ca.SX(0.0)

    def fresh(self, key: Key) -> Any:
        """The symbol of a derivative."""
        import casadi as ca

        if key not in self.symbols:
            self.symbols[key] = ca.SX.sym(self.key_name(key))
        return self.symbols[key]

    def key_name(self, key: Key) -> str:
        name, order = self.names[key[0]], key[1]
        return name if order == 0 else f"der({name})" if order == 1 else f"der{order}({name})"

    # -- the system --------------------------------------------------------------------------------------------------

    def equations(self) -> tuple[list[Any], list[str]]:
        """(residuals, the component each belongs to)."""
        import casadi as ca

        residuals, owners = [], []
        for part in self.components:
            for residual in part.equations(self.modes.get(part.name), self.lookup(part), self.der):
                residuals.append(ca.SX(residual))
                owners.append(part.name)
        return residuals, owners

    def reduced(self) -> tuple[Reduced, list[str]]:
        """Index one, with the component of each equation; an ill-posed network is reported by names."""
        residuals, owners = self.equations()
        for k, residual in self.combined:
            residuals[k] = residual
        if len(residuals) != len(self.names):
            raise PolybodyError(
                f"the network has {counted(len(residuals), 'equation')} for {counted(len(self.names), 'unknown')}"
            )
        try:
            used = {key: symbol for key, symbol in self.symbols.items() if key[1] <= 1}
            reduced = reduce_index(residuals, used, self.keep, self.differentiate, self.fresh, self._probe,
                                   self.wanted, self.every)
        except SingularStructure as fault:
            raise self._ill_posed(fault, owners) from None
        except RedundantConstraints as fault:
            parts = list(dict.fromkeys(owners[i] for i in fault.equations))
            raise InputError(
                f"the network is not well posed: {', '.join(map(repr, parts))} hold the same motion twice"
                f"{self._circuit(parts)}, so their individual loads are undetermined; give one of them compliance"
            ) from None
        return reduced, [owners[i] for i in reduced.origin]

    def combine(self, weights: Mapping[int, float]) -> bool:
        """Let a combination of equations, in which terms cancel, represent one of them; False where nothing is left."""
        import casadi as ca

        residuals, _ = self.equations()
        for k, residual in self.combined:
            residuals[k] = residual
        F = ca.vertcat(*(residuals[i] for i in weights))
        by = ca.vertcat(*ca.symvar(F))
        slopes, c = ca.densify(ca.jacobian(F, by)), ca.DM(list(weights.values()))
        sums, sizes = c.T @ slopes, ca.fabs(c).T @ ca.fabs(slopes)
        gone = [k for k in range(by.numel()) if sizes[k].is_constant() and sums[k].is_constant()
                and abs(float(sums[k])) <= 1e-13 * float(sizes[k])]
        total = ca.substitute(c.T @ F, by[gone], ca.DM.zeros(len(gone))) if gone else c.T @ F
        used = {s.element_hash() for s in ca.symvar(total)}
        if not any(symbol.element_hash() in used for symbol in self.symbols.values()):
            return False
        self.combined.append((max(weights, key=lambda i: abs(weights[i])), total))
        return True

    def _probe(self, matrix: Any) -> np.ndarray:
        import casadi as ca

        symbols = ca.vertcat(*ca.symvar(matrix), ca.SX(0, 1))
        at = np.random.default_rng(0).uniform(0.4, 1.6, size=symbols.shape[0])
        return np.array(ca.Function("probe", [symbols], [ca.densify(matrix)])(at), dtype=float)

    def _ill_posed(self, fault: SingularStructure, owners: Sequence[str]) -> InputError:
        parts = list(dict.fromkeys(owners[i] for i in fault.extra))
        open_ = [self.names[j] for j in fault.open]
        where = f" (in the modes {self.mode_text()})" if self.modes else ""
        lines = [f"the network is not well posed{where}:"]
        if parts:
            over = [self.names[j] for j in self._variables_of(fault.extra)]
            lines.append(f"the equations of {', '.join(map(repr, parts))} are too many for "
                         f"{', '.join(over) or 'nothing'}{self._circuit(parts)};")
        if open_:
            lines.append(f"nothing determines {', '.join(open_)}{self._cutset(open_)}")
        return InputError(" ".join(lines))

    def _variables_of(self, rows: Sequence[int]) -> list[int]:
        import casadi as ca

        residuals, _ = self.equations()
        used = {s.element_hash() for i in rows for s in ca.symvar(residuals[i])}
        return sorted({j for (j, _), symbol in self.symbols.items() if symbol.element_hash() in used})

    def _circuit(self, parts: Sequence[str]) -> str:
        """The fundamental circuit that only parts at fault are in, if there is one."""
        system, owners = self.graph.system, self.graph.owners
        for chord in range(len(system.cotree)):
            members = system.circuit_of(chord)
            if len(members) > 1 and all(owners[e.name] in parts for e in members):
                return f" around the circuit {' - '.join(repr(e.name) for e in members)}"
        return ""

    def _cutset(self, names: Sequence[str]) -> str:
        system = self.graph.system
        for row in system.cutset_matrix():
            members = [e for e, entry in zip(system.edges, row, strict=True) if entry]
            if len(members) > 1 and any(n.rpartition(".")[0] in {e.name for e in members} for n in names):
                return f"; look at the cut-set {', '.join(repr(e.name) for e in members)}"
        return ""

    def mode_text(self) -> str:
        return ", ".join(f"{part}: {mode}" for part, mode in self.modes.items())

    def conditions(self) -> list[tuple[str, str, Any]]:
        """[(component, mode to enter, SX that is positive where it must be)]."""
        found = []
        for part in self.components:
            if part.name in self.modes:
                assert isinstance(part, PartComponent)
                table = part.conditions(self.modes[part.name], self.lookup(part))
                found += [(part.name, other, expression) for other, expression in table.items()]
        return found

    def power(self) -> tuple[Any, Any]:
        """(stored energy, power that leaves it: losses and what parts without an account take)."""
        import casadi as ca

        energy, leaving = ca.SX(0.0), ca.SX(0.0)
        for part in self.components:
            stored, loss = part.power(self.lookup(part))
            energy = energy + (0.0 if stored is None else stored)
            if isinstance(part, PartComponent) and not part.audited:
                for port in part.ports:
                    if port.domain.name != "signal":
                        leaving = leaving + self.value("across", port.name) * self.value("through", port.name)
            else:
                leaving = leaving + loss
        return energy, leaving

    def domains(self) -> dict[str, str]:
        """{across or through variable: its domain}."""
        return {f"{port.name}.{letter}": port.domain.name for port in self.graph.ports.values()
                for letter in (port.domain.across, port.domain.through)}

    def units(self) -> dict[str, str]:
        """{variable or input: its unit}."""
        units = {}
        for port in self.graph.ports.values():
            units[f"{port.name}.{port.domain.across}"] = port.domain.across_unit
            units[f"{port.name}.{port.domain.through}"] = port.domain.through_unit
        for part in self.components:
            units |= {variable.name: variable.unit for variable in part.variables}
            if isinstance(part, PartComponent):
                units |= {f"{part.name}.{key}": said.unit for key, said in part.part.parameters.items() if said.input}
        return units

    def observables(self) -> dict[str, Any]:
        """{name: SX}: across and through of every edge, then variables."""
        found: dict[str, Any] = {}
        for port in self.graph.ports.values():
            found[f"{port.name}.{port.domain.across}"] = self.value("across", port.name)
            if port.domain.name != "signal":
                found[f"{port.name}.{port.domain.through}"] = self.value("through", port.name)
        return found | {name: self.symbols[(j, 0)] for name, j in self.variables.items()}


__all__ = ["Assembly", "Modes"]
