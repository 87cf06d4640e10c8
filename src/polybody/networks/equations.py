"""The equations of a network to read: graph, tree with reasons, matrices, terminal equations, the assembled system.

A `Sheet` is a list of headed sections whose lines are texts, equations (pairs of SymPy expressions) or matrices; it is
printed as plain text, LaTeX or HTML (MathML, readable offline).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.formulations.network.graph import SystemGraph
from polybody.formulations.network.listing import assembled, signed_sum, terminal_equations, tree_reason
from polybody.names import counted
from polybody.networks.assembly import Assembly
from polybody.networks.component import PartComponent
from polybody.networks.expressions import Text, sympy_functions
from polybody.networks.models import ModelComponent
from polybody.networks.motion import Motion

if TYPE_CHECKING:
    from polybody.networks.network import Network

FORMATS = ("text", "latex", "html")
#: edges above which matrices are not printed: they are there to be read
MOST_EDGES = 60


@dataclass
class Section:
    """A heading and its lines: str, (left, right) of SymPy, or a labelled matrix."""

    title: str
    lines: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Labelled:
    """A matrix of whole numbers with names of its rows and columns."""

    letter: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: np.ndarray


@dataclass
class Sheet:
    """All sections of a network."""

    title: str
    sections: list[Section]

    def text(self) -> str:
        parts = [self.title]
        for section in self.sections:
            parts += ["", section.title]
            parts += [_text_line(line) for line in section.lines]
        return "\n".join(parts) + "\n"

    def latex(self) -> str:
        body = []
        for section in self.sections:
            body += [rf"\section*{{{_latex_words(section.title)}}}"]
            body += [_latex_line(line) for line in section.lines]
        head = "\\documentclass[a4paper]{article}\n\\usepackage[T1]{fontenc}\n\\usepackage[utf8]{inputenc}\n" \
               "\\usepackage{amsmath,amssymb}\n\\begin{document}\n"
        title = f"\\title{{{_latex_words(self.title)}}}\\date{{}}\\maketitle\n"
        return head + title + "\n".join(body) + "\n\\end{document}\n"

    def html(self) -> str:
        from polybody.symbolic.html import STYLE

        body = [f"<h1>{escape(self.title)}</h1>"]
        for section in self.sections:
            body += [f"<h2>{escape(section.title)}</h2>", *(_html_line(line) for line in section.lines)]
        return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                f"<title>{escape(self.title)}</title>\n<style>{STYLE}\n"
                "table.matrix td, table.matrix th { padding: 0 .5rem; text-align: center; }</style>\n</head>\n<body>\n"
                + "\n".join(body) + "\n</body>\n</html>\n")


def equations(net: Network, form: str = "text") -> str:
    """The equations of a network as "text", "latex" or "html"."""
    if form not in FORMATS:
        raise InputError(f"form is {form!r}; expected one of {', '.join(FORMATS)}")
    return getattr(sheet(net), form)()


def sheet(net: Network, driven: Sequence[str] = ()) -> Sheet:
    """Everything that is to be read about a network; joints in `driven` are velocity drivers."""
    sections: list[Section] = []
    if net.parts.bodies:
        own = mechanical(net)
        bodies = own.graph(driven)
        edges = {edge.name: edge for edge in bodies.edges}
        letters = {name: ("u", "i") if edge.size == 1 else ("x", "y") for name, edge in edges.items()}
        sections += [Section("Terminal equations of bodies and joints", list(terminal_equations(net, bodies))),
                     *_graph_sections(bodies, letters, lambda name: tree_reason(bodies, edges[name]), "{1}({0})"),
                     Section("The assembled system of bodies and joints", list(assembled(own, bodies)))]
    if net.components or net.parts.electric:
        motion = Motion(net)
        system = motion.system(motion.first_modes())
        graph = system.assembly.graph
        letters = {name: (port.domain.across, port.domain.through) for name, port in graph.ports.items()}
        lines = [line for part in motion.components for line in _terminal(part)]
        sections.append(Section("Terminal equations of parts", lines))
        sections += _graph_sections(graph.system, letters, graph.reason, "{0}.{1}")
        sections.append(_assembled(system.assembly, system))
    return Sheet(f"Network {net.name}", sections)


def mechanical(net: Network) -> Network:
    """The bodies alone, where electrical parts are drawn and listed with the other one-dimensional ones."""
    if not net.components:
        return net
    own = net.with_component()
    own.components = {}
    own.parts.electric = {}
    own.parts.motors = {name: replace(motor, plus=None, minus=None) for name, motor in net.parts.motors.items()}
    return own


# -- what is said ---------------------------------------------------------------------------------------------------


def _terminal(part: Any) -> list[Any]:
    """The equations of a component, its name first."""
    if isinstance(part, ModelComponent):
        form = "a = FD(q, v, tau)" if part.form == "forward" else "ID(q, v, a) = tau"
        lines = [f"{part.name} (model with {counted(part.model.nv, 'velocity', 'velocities')}): dq/dt = Γ(q) v, {form}"]
        motors = part.model.mechanism.motors
        return lines + [f"{part.name}, winding of {name}: u = R i + L di/dt + K_e E v" for name in motors.names]
    assert isinstance(part, PartComponent)
    ends = ", ".join(f"{port.own or 'port'}: {port.head} to {port.tail}" for port in part.ports)
    numbers = ", ".join(f"{name} = {_said(value)}" for name, value in part.values.items())
    lines: list[Any] = [f"{part.name} ({part.part.name}; {ends}{'; ' if numbers else ''}{numbers})"]
    for mode in part.part.alternatives or [None]:
        if mode is not None:
            to = part.part.alternatives[mode].to
            leave = ", ".join(f"to {other} where {text.text} > 0" for other, text in to.items())
            lines.append(f"mode {mode}{f' ({leave})' if leave else ''}:")
        lines += [tuple(_symbolic(part, side) for side in equation) for equation in part.part.equations_in(mode)]
    return lines


def _said(value: Any) -> str:
    return value.text if isinstance(value, Text) else "f(t)" if callable(value) else f"{value:g}"


def _symbolic(part: PartComponent, text: Text) -> Any:
    """An expression of a part with its own names made those of the network: R1.v, M.winding.i, M.resistance."""
    import sympy as sp

    def name(own: str) -> Any:
        if own == "time":
            return sp.Symbol("t")
        return sp.Symbol(f"{part.name}.{own}")

    table = sympy_functions()
    table["der"] = lambda x: sp.Symbol(f"der {x}")
    return text.value(name, table)


def _graph_sections(system: SystemGraph, letters: Any, reason: Any, form: str) -> list[Section]:
    """Edges with reasons, matrices, cut-sets and circuits; `form` puts together an edge's name and letter."""
    tree, names = set(system.tree), [edge.name for edge in system.edges]
    lines: list[Any] = []
    for i, edge in enumerate(system.edges):
        why = reason(edge.name)
        where = "tree" if i in tree else "co-tree"
        lines.append(f"{edge.name}: {edge.tail} → {edge.head}, {where}{f' ({why})' if why else ''}")
    sections = [Section(f"Edges: {len(tree)} of {len(names)} in the formulation tree", lines)]
    branches = tuple(names[i] for i in system.tree)
    chords = tuple(names[i] for i in system.cotree)
    if len(names) <= MOST_EDGES:
        sections.append(Section("Matrices", [
            Labelled("A", system.vertices, tuple(names), system.incidence),
            Labelled("Q_f", branches, tuple(names), system.cutset_matrix()),
            Labelled("B_f", chords, tuple(names), system.circuit_matrix())]))
    for title, matrix, k in (("Fundamental cut-sets, Q_f y = 0", system.cutset_matrix(), 1),
                             ("Fundamental circuits, B_f x = 0", system.circuit_matrix(), 0)):
        rows = []
        for row in matrix:
            order = sorted(np.flatnonzero(row), key=lambda c: (-row[c], c))
            said = [form.format(names[c], letters[names[c]][k]) for c in order]
            terms = [(row[c], word) for c, word in zip(order, said, strict=True)]
            rows.append(f"{signed_sum(terms)} = 0")
        sections.append(Section(title, rows))
    return sections


def _assembled(assembly: Assembly, system: Any) -> Section:
    reduced, made = system.equations.reduced, system.equations
    differentiated = sorted(set(made.owners[len(assembly.names) :]))
    lines: list[Any] = [
        f"{counted(len(assembly.names), 'unknown')}: {', '.join(assembly.names)}",
        f"index {reduced.index}" + (f": equations of {', '.join(differentiated)} are differentiated" if differentiated
                                    else ": no equation is differentiated"),
        f"states: {', '.join(system.states) or 'none'}",
    ]
    if assembly.modes:
        lines.append(f"modes at the start: {assembly.mode_text()}")
    order = [assembly.key_name(key) for key, _ in made.solved]
    lines.append(f"solved in this order: {', '.join(order)}")
    if system.algebraic:
        lines.append(f"by iteration at each instant: {', '.join(system.algebraic)}")
    return Section("The assembled system", lines)


# -- how it is printed ----------------------------------------------------------------------------------------------


def _text_line(line: Any) -> str:
    if isinstance(line, str):
        return f"  {line}"
    if isinstance(line, Labelled):
        cells = [[" ", *line.columns], *([r, *(f"{int(x):d}" for x in row)] for r, row in
                                         zip(line.rows, line.entries, strict=True))]
        widths = [max(len(row[c]) for row in cells) for c in range(len(cells[0]))]
        rows = ["  " + " ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        return f"  {line.letter}\n" + "\n".join(rows)
    left, right = (re.sub(r"\bder (\S+?)(?=[\s*+\-)/]|$)", r"der(\1)", str(side)) for side in line)
    return f"    {left} = {right}"


def _latex_words(words: str) -> str:
    words = words.replace("\\", r"\textbackslash{}")
    for character in "&%$#_{}":
        words = words.replace(character, f"\\{character}")
    for character, code in (("→", r"$\to$"), ("Γ", r"$\Gamma$"), ("ᵀ", r"$^\top$"), ("−", "$-$"), ("Φ", r"$\Phi$"),
                            ("λ", r"$\lambda$"), ("ω", r"$\omega$"), ("‖", r"$\|$"), ("^", r"\^{}")):
        words = words.replace(character, code)
    return words


def _parts_of(name: str) -> tuple[str, str, bool]:
    """(letter, subscript, derivative) of a symbol's name: R1.v is v with subscript R1."""
    derived = name.startswith("der ")
    owner, _, letter = name.removeprefix("der ").rpartition(".")
    return letter, owner, derived


def _latex_symbol(name: str) -> str:
    letter, owner, derived = _parts_of(name)
    letter = letter if len(letter) == 1 else rf"\mathit{{{_latex_words(letter)}}}"
    letter = rf"\dot{{{letter}}}" if derived else letter
    return f"{letter}_{{\\mathrm{{{_latex_words(owner)}}}}}" if owner else letter


def _latex_line(line: Any) -> str:
    import sympy as sp

    if isinstance(line, str):
        return f"\\noindent {_latex_words(line)}\\par"
    if isinstance(line, Labelled):
        body = r" \\ ".join(" & ".join(f"{int(x):d}" for x in row) for row in line.entries)
        return f"\\[ {line.letter} = \\setcounter{{MaxMatrixCols}}{{{max(10, len(line.columns))}}}" \
               f"\\begin{{pmatrix}} {body} \\end{{pmatrix}} \\]"
    left, right = (sp.latex(side, symbol_names={s: _latex_symbol(s.name) for s in side.free_symbols}) for side in line)
    return f"\\[ {left} = {right} \\]"


def _html_line(line: Any) -> str:
    import sympy as sp

    from polybody.symbolic.mathml import write

    if isinstance(line, str):
        return f"<p>{escape(line)}</p>"
    if isinstance(line, Labelled):
        head = "".join(f"<th>{escape(c)}</th>" for c in line.columns)
        rows = "".join(f"<tr><th>{escape(r)}</th>{''.join(f'<td>{int(x):d}</td>' for x in row)}</tr>"
                       for r, row in zip(line.rows, line.entries, strict=True))
        return f'<p>{escape(line.letter)}</p><table class="matrix"><tr><th></th>{head}</tr>{rows}</table>'
    plain: list[str] = []
    for side in line:
        marks = {s: sp.Symbol(f"x_{k}") for k, s in enumerate(sorted(side.free_symbols, key=str))}
        text = write(side.xreplace(marks))
        for symbol, mark in reversed(list(marks.items())):
            text = text.replace(write(mark), _html_symbol(symbol.name))
        plain.append(text)
    return f"<p><math><mrow>{plain[0]}<mo>=</mo>{plain[1]}</mrow></math></p>"


def _html_symbol(name: str) -> str:
    letter, owner, derived = _parts_of(name)
    inner = f"<mi>{escape(letter)}</mi>"
    inner = f"<mover>{inner}<mo>˙</mo></mover>" if derived else inner
    return f"<msub><mrow>{inner}</mrow><mtext>{escape(owner)}</mtext></msub>" if owner else inner


def tree_reasons(net: Network) -> dict[str, str]:
    """{edge: why it is in the tree, or not} of a network's bodies, joints and one-dimensional parts."""
    found: dict[str, str] = {}
    if net.parts.bodies:
        bodies = mechanical(net).graph()
        found = {edge.name: tree_reason(bodies, edge) for edge in bodies.edges}
    if not net.components:
        return found
    motion = Motion(net)
    graph = motion.system(motion.first_modes()).assembly.graph
    return found | {name: graph.reason(name) for name in graph.ports}


__all__ = ["FORMATS", "Labelled", "Section", "Sheet", "equations", "mechanical", "sheet", "tree_reasons"]
