"""`polybody network MODEL`: the system graph of a mechanism or network, drawn, its equations, its block diagram."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.names import counted


def register(app: typer.Typer) -> None:
    @app.command("network")
    def network(
        model: ModelArgument,
        svg: Annotated[Path | None, typer.Option("--svg", help="Draw the system graph to this .svg file.")] = None,
        blocks: Annotated[
            Path | None, typer.Option("--blocks", help="Draw the order of solution (Tokad's Figure 4) to this .svg.")
        ] = None,
        equations: Annotated[
            bool, typer.Option("--equations", help="Print terminal equations, cut-sets and circuits.")
        ] = False,
        write: Annotated[
            Path | None, typer.Option("--write", help="Write the equations to this .txt, .tex or .html file.")
        ] = None,
        form: Annotated[
            list[str] | None,
            typer.Option("--form", metavar="BODY.PORT", help="Print the terminal equations (1), (5) or (6) of a body "
                         "with this port in the co-tree, and its one-port (49), (50); repeatable."),
        ] = None,
        q: Annotated[
            str, typer.Option("--q", help="Configuration for --form: a name, 'joint=30deg,…', or all of q.")
        ] = "neutral",
        v: Annotated[str, typer.Option("--v", help="Velocities for --form: 'joint=1,…', or all of v.")] = "",
        driven: Annotated[
            list[str] | None, typer.Option("--driven", help="A joint whose motion is prescribed; repeatable.")
        ] = None,
        bode: Annotated[
            tuple[str, str] | None,
            typer.Option("--bode", metavar="INPUT OUTPUT", help="Frequency response from a source to a variable."),
        ] = None,
        impedance: Annotated[
            str | None, typer.Option("--impedance", metavar="NODE", help="Impedance of a node, or of NODE,NODE.")
        ] = None,
        admittance: Annotated[
            str | None, typer.Option("--admittance", metavar="NODE", help="Admittance of a node, or of NODE,NODE.")
        ] = None,
        omega: Annotated[
            tuple[float, float] | None,
            typer.Option("--omega", metavar="LOW HIGH", help="Range of ω, rad/s; default: around the poles."),
        ] = None,
        plot: Annotated[
            Path | None, typer.Option("--plot", help="Draw the Bode plot to this .svg, .png or .pdf file.")
        ] = None,
        powered: Annotated[bool, typer.Option("--powered", help="Connect motors to voltage sources.")] = False,
        force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Show a mechanism, or a file with `network:`, as a network: terminals, tree, circuits and cut-sets.

        Forms of a body: polybody network planar-3r --form link2.joint2:b --q joint1=0.3 --v joint1=1
        Bode plots: polybody network drive.yaml --bode supply.voltage load.w --plot bode.svg
        """
        from polybody.cli.network_forms import show_forms
        from polybody.errors import InputError
        from polybody.files import write_text
        from polybody.networks.equations import sheet
        from polybody.networks.reading import has_network, load_network

        for path in (svg, blocks, write, plot):
            _refuse_existing(path, force)
        asked = [x for x in (bode, impedance, admittance) if x is not None]
        if len(asked) > 1 or ((omega or plot) and not asked):
            raise InputError("--omega and --plot belong to one of --bode, --impedance and --admittance")
        if asked:
            if not has_network(model):
                raise InputError(f"{model}: has no network; `polybody linearize` gives the linear model of a mechanism")
            _bode(load_network(model), bode, impedance, admittance, omega, plot, as_json)
            return
        if has_network(model):
            if driven or powered or base is not None:
                raise InputError("--driven, --powered and --base are for mechanisms; this file has a network")
            net = load_network(model)
            graph, pictures = _of_network(net)
        else:
            net, graph, pictures = _of_mechanism(model, base, powered, tuple(driven or ()))
        if form:
            show_forms(net, form, q, v, as_json)
            return
        if q != "neutral" or v:
            raise InputError("--q and --v are the state of --form")
        written: list[str] = []
        for path, draws in zip((svg, blocks), pictures, strict=True):
            for ending, draw in draws.items() if path is not None else ():
                assert path is not None
                target = path.with_name(f"{path.stem}{ending}{path.suffix}")
                _refuse_existing(target, force)
                write_text(target, draw())
                written.append(str(target))
        if write is not None:
            forms = {".txt": "text", ".tex": "latex", ".html": "html"}
            if write.suffix not in forms:
                raise InputError(f"{write}: the equations are written as {', '.join(forms)}")
            write_text(write, getattr(sheet(net, tuple(driven or ())), forms[write.suffix])())
            written.append(str(write))
        tree = set(graph.tree)
        answer = {
            "name": net.name,
            "terminals": graph.vertices,
            "edges": [
                {"name": e.name, "from": e.tail, "to": e.head, "kind": e.kind, "component": e.component,
                 "tree": i in tree}
                for i, e in enumerate(graph.edges)
            ],
            **({"file": written[0], "files": written} if written else {}),
            **({"cutsets": graph.cutset_matrix().astype(int), "circuits": graph.circuit_matrix().astype(int)}
               if equations else {}),
        }
        words = _summary(net, graph) + (f"\n{sheet(net, tuple(driven or ())).text()}" if equations else "")
        for path in written:
            words += f"\nwrote {path}"
        emit(answer, as_json, lambda console: console.print(words, soft_wrap=True, markup=False))


def _refuse_existing(path: Path | None, force: bool) -> None:
    from polybody.errors import InputError

    if path is not None and path.exists() and not force:
        raise InputError(f"{path}: exists; choose another path, or overwrite with --force")


def _bode(
    net: Any, between: tuple[str, str] | None, impedance: str | None, admittance: str | None,
    omega: tuple[float, float] | None, plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """A frequency response in numbers, and as a plot."""
    import numpy as np

    from polybody.errors import InputError
    from polybody.studio.bode import POINTS, response
    from polybody.studio.plots import FORMATS

    if plot is not None and plot.suffix.lower() not in FORMATS:
        raise InputError(f"{plot}: a plot is one of {', '.join(FORMATS)}")
    if omega is not None and not (np.isfinite(omega).all() and 0 < omega[0] < omega[1]):
        raise InputError(f"--omega is {omega[0]:g} {omega[1]:g}; expected two positive numbers, the second larger")

    def nodes(said: str | None) -> Any:
        return said if said is None or "," not in said else tuple(x.strip() for x in said.split(","))

    w = None if omega is None else np.geomspace(*omega, POINTS)
    source, target = between or (None, None)
    found = response(net, source, target, nodes(impedance), nodes(admittance), w, None)
    if plot is not None:
        found.figure().savefig(plot)
    degrees = np.degrees(np.unwrap(np.angle(found.H)))
    answer = {"title": found.title, "unit": found.unit, "omega": found.omega, "real": np.real(found.H),
              "imaginary": np.imag(found.H), **({"file": str(plot)} if plot else {})}  # fmt: skip

    def show(console: Any) -> None:
        console.print(f"{found.title}{f', {found.unit}' if found.unit else ''}", markup=False)
        for k in np.linspace(0, len(found.omega) - 1, min(13, len(found.omega))).astype(int):
            size = abs(found.H[k])
            console.print(f"  ω = {found.omega[k]:10.4g} rad/s   |H| = {size:11.5g} ({20 * np.log10(size):8.2f} dB)   "
                          f"phase {degrees[k]:8.2f}°", markup=False)  # fmt: skip
        if plot is not None:
            console.print(f"wrote {plot}", soft_wrap=True, markup=False)

    emit(answer, as_json, show)


#: how to draw the system graph, and the order of solution: by what is put at the end of the file's name
Pictures = tuple[dict[str, Callable[[], str]], dict[str, Callable[[], str]]]


def _of_mechanism(model: str, base: Any, powered: bool, driven: tuple[str, ...]) -> tuple[Any, Any, Pictures]:
    """(network, graph, pictures) of a mechanism."""
    from polybody.errors import InputError
    from polybody.formulations.network import network_of
    from polybody.model.load import load
    from polybody.networks.network import Network

    net = network_of(load(model, base=base).mechanism, powered=powered, make=Network)
    for name in driven:
        if name not in net.parts.joints:
            raise InputError(f"--driven {name!r} is not a joint; available: {', '.join(net.parts.joints)}")
    graph = net.graph(driven)
    return net, graph, _of_bodies(net, graph)


def _of_bodies(net: Any, graph: Any, ending: str = "") -> Pictures:
    from polybody.studio.block_diagram import block_svg
    from polybody.studio.network_drawing import network_svg

    return {ending: lambda: network_svg(net, graph)}, {ending: lambda: block_svg(net)}


def _of_network(net: Any) -> tuple[Any, Pictures]:
    """(graph, pictures) of a file's network; where it has bodies besides parts, they have pictures of their own."""
    from polybody.networks.equations import mechanical
    from polybody.networks.motion import Motion
    from polybody.studio.block_diagram import solution_svg
    from polybody.studio.circuit_drawing import circuit_svg

    if net.parts.bodies and not net.components:
        graph = net.graph()
        return graph, _of_bodies(net, graph)
    motion = Motion(net)
    system = motion.system(motion.first_modes())
    graph = system.assembly.graph
    svg, blocks = {"": lambda: circuit_svg(net.name, graph)}, {"": lambda: solution_svg(system)}
    if net.parts.bodies:
        own = mechanical(net)
        more = _of_bodies(own, own.graph(), "-bodies")
        svg, blocks = svg | more[0], blocks | more[1]
    return graph.system, (svg, blocks)


def _summary(net: Any, graph: Any) -> str:
    return (f"{net.name}: {counted(len(graph.vertices), 'terminal')}, {counted(len(graph.edges), 'edge')}, "
            f"{len(graph.tree)} in the formulation tree")


__all__ = ["register"]
