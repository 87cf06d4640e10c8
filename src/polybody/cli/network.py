"""`polybody network MODEL`: the system graph of a mechanism or network, drawn, its equations, its block diagram."""

from __future__ import annotations

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
        driven: Annotated[
            list[str] | None, typer.Option("--driven", help="A joint whose motion is prescribed; repeatable.")
        ] = None,
        powered: Annotated[bool, typer.Option("--powered", help="Connect motors to voltage sources.")] = False,
        force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Show a mechanism, or a file with `network:`, as a network: terminals, tree, circuits and cut-sets."""
        from polybody.errors import InputError
        from polybody.files import write_text
        from polybody.networks.reading import has_network, load_network

        for path in (svg, blocks, write):
            if path is not None and path.exists() and not force:
                raise InputError(f"{path}: exists; choose another path, or overwrite with --force")
        if has_network(model):
            if driven or powered or base is not None:
                raise InputError("--driven, --powered and --base are for mechanisms; this file has a network")
            net, graph, pictures = _of_parts(load_network(model))
        else:
            net, graph, pictures = _of_bodies(model, base, powered, tuple(driven or ()))
        for path, draw in zip((svg, blocks), pictures, strict=True):
            if path is not None:
                write_text(path, draw())
        if write is not None:
            forms = {".txt": "text", ".tex": "latex", ".html": "html"}
            if write.suffix not in forms:
                raise InputError(f"{write}: the equations are written as {', '.join(forms)}")
            write_text(write, net.equations(forms[write.suffix]))
        written = [str(path) for path in (svg, blocks, write) if path is not None]
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
        words = _words(net, graph) if equations else _summary(net, graph)
        for path in written:
            words += f"\nwrote {path}"
        emit(answer, as_json, lambda console: console.print(words, soft_wrap=True, markup=False))


def _of_bodies(model: str, base: Any, powered: bool, driven: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """(network, graph, how to draw graph and blocks) of a mechanism."""
    from polybody.errors import InputError
    from polybody.formulations.network import network_of
    from polybody.model.load import load
    from polybody.networks.network import Network
    from polybody.studio.block_diagram import block_svg
    from polybody.studio.network_drawing import network_svg

    net = network_of(load(model, base=base).mechanism, powered=powered, make=Network)
    for name in driven:
        if name not in net.parts.joints:
            raise InputError(f"--driven {name!r} is not a joint; available: {', '.join(net.parts.joints)}")
    graph = net.graph(driven)
    return net, graph, (lambda: network_svg(net, graph), lambda: block_svg(net))


def _of_parts(net: Any) -> tuple[Any, Any, Any]:
    """(network, graph, how to draw graph and blocks) of one-dimensional parts."""
    from polybody.networks.motion import Motion
    from polybody.studio.block_diagram import solution_svg
    from polybody.studio.circuit_drawing import circuit_svg

    motion = Motion(net)
    system = motion.system(motion.first_modes())
    graph = system.assembly.graph
    return net, graph.system, (lambda: circuit_svg(net.name, graph), lambda: solution_svg(system))


def _summary(net: Any, graph: Any) -> str:
    return (f"{net.name}: {counted(len(graph.vertices), 'terminal')}, {counted(len(graph.edges), 'edge')}, "
            f"{len(graph.tree)} in the formulation tree")


def _words(net: Any, graph: Any) -> str:
    from polybody.formulations.network.listing import listing

    return listing(net, graph) if net.parts.bodies else f"{_summary(net, graph)}\n{net.equations()}"


__all__ = ["register"]
