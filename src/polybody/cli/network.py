"""`polybody network MODEL`: the system graph of a mechanism, drawn, and its equations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit


def register(app: typer.Typer) -> None:
    @app.command("network")
    def network(
        model: ModelArgument,
        svg: Annotated[Path | None, typer.Option("--svg", help="Draw the system graph into this .svg file.")] = None,
        equations: Annotated[
            bool, typer.Option("--equations", help="Print terminal equations, cut-sets and circuits.")
        ] = False,
        driven: Annotated[
            list[str] | None, typer.Option("--driven", help="A joint whose motion is given (repeat for more).")
        ] = None,
        powered: Annotated[bool, typer.Option("--powered", help="Connect motors to voltage sources.")] = False,
        force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Show a mechanism as a network: terminals, ports, formulation tree, circuits and cut-sets."""
        from polybody.errors import InputError
        from polybody.formulations.network import network_of
        from polybody.formulations.network.listing import listing
        from polybody.model.load import load

        if svg is not None and svg.exists() and not force:
            raise InputError(f"{svg}: exists; choose another path, or overwrite with --force")
        loaded = load(model, base=base)
        net = network_of(loaded.mechanism, powered=powered)
        for name in driven or ():
            if name not in net.parts.joints:
                raise InputError(f"--driven {name!r} is no joint; there are {', '.join(net.parts.joints)}")
        graph = net.graph(tuple(driven or ()))
        if svg is not None:
            from polybody.files import write_text
            from polybody.studio.network_drawing import network_svg

            write_text(svg, network_svg(net, graph))
        tree = set(graph.tree)
        answer = {
            "name": net.name,
            "terminals": graph.vertices,
            "edges": [
                {"name": e.name, "from": e.tail, "to": e.head, "kind": e.kind, "component": e.component,
                 "tree": i in tree}
                for i, e in enumerate(graph.edges)
            ],
            **({"file": str(svg)} if svg is not None else {}),
            **({"cutsets": graph.cutset_matrix().astype(int), "circuits": graph.circuit_matrix().astype(int)}
               if equations else {}),
        }
        words = listing(net, graph)
        if not equations:
            words = words.partition("\n")[0]
        if svg is not None:
            words += f"\nwrote {svg}"
        emit(answer, as_json, lambda console: console.print(words, soft_wrap=True, markup=False))


__all__ = ["register"]
