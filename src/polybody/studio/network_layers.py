"""The system graph of a large network in layers: bodies at their distance from the ground along the formulation tree.

Each body is a box with its terminals in a row; the edges from the reference O to the ports of a body are short stubs
with the sign of the ground, so that only joints, springs and other two-ended parts cross the page. Within a layer
bodies stand near those they are connected to (two sweeps of the barycentre rule).
"""

from __future__ import annotations

from typing import Any

from polybody.formulations.network import Network, SystemGraph
from polybody.formulations.network.parts import CENTRE
from polybody.studio.svg_pieces import (
    ACROSS,
    COLOURS,
    THROUGH,
    Point,
    arrow,
    curve,
    ground,
    key_entry,
    key_of_weights,
    mark,
    page,
    terminal,
    words,
)

#: width up to which a narrow drawing is widened, so that names have room, and how much at most
PAGE, WIDER = 1500.0, 1.8
PITCH, GAP, LAYER, MARGIN, BOX = 44.0, 26.0, 190.0, 60.0, 62.0
LEGEND = (("joint", "joint"), ("velocity", "velocity driver"), ("force", "force driver"),
          ("spring", "spring or damper"), ("constraint", "rod or guide"), ("electric", "electrical"))  # fmt: skip


def layered_svg(net: Network, graph: SystemGraph) -> str:
    """The drawing as SVG text."""
    owner = {vertex: net.ports[vertex].component if vertex in net.ports else "electrical" for vertex in graph.vertices}
    members: dict[str, list[str]] = {}
    for vertex, component in owner.items():
        members.setdefault(component, []).append(vertex)
    layers = _layers(graph, owner, members)
    place, boxes, width = _places(layers, members)
    height = MARGIN * 2 + LAYER * len(layers) + 60
    tree, content = set(graph.tree), []
    for name, (x, y, w) in boxes.items():
        content.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{BOX}" rx="10" fill="#eef2f5" '
                       'stroke="#c9d2d9"/>')
        content.append(words(x + w / 2, y + BOX - 6, name, size=11, weight="600", colour="#33404a"))
    drawn, names, seen = [], [], dict[frozenset[str], int]()
    for i, edge in enumerate(graph.edges):
        heavy, colour = i in tree, COLOURS[edge.kind]
        if edge.kind in ("body", "multiport"):
            drawn.append(_stub(place[edge.head], heavy, colour, edge.name))
            continue
        ends = frozenset((edge.tail, edge.head))
        seen[ends] = seen.get(ends, 0) + 1
        start, end = (_end(vertex, other, place, seen[ends]) for vertex, other in
                      ((edge.tail, edge.head), (edge.head, edge.tail)))
        bend = 14.0 * (seen[ends] - 1) + (26.0 if abs(start[1] - end[1]) < 1 else 0.0)
        control = ((start[0] + end[0]) / 2 + 10.0 * (seen[ends] - 1), (start[1] + end[1]) / 2 - 2 * bend)
        path, middle = curve(start, control, end, colour, heavy, edge.name)
        drawn.append(path + arrow(middle, (end[0] - start[0], end[1] - start[1]), colour, heavy)
                     + mark(edge.kind, middle, colour))
        if edge.tail not in place or edge.head not in place:
            drawn.append(ground(start if edge.tail not in place else end, colour))
        above = 18 if edge.kind in ACROSS | THROUGH else 8
        names.append(words(middle[0] + 6, middle[1] - above + 12, edge.name, size=10, colour=colour, anchor="start"))
    dots = [terminal(at) + words(at[0], at[1] - 9, _label(vertex), size=9) for vertex, at in place.items()]
    legend, x = key_of_weights(MARGIN, height - 24)
    kinds = {edge.kind for edge in graph.edges}
    for kind, said in LEGEND:
        if kind in kinds or (kind == "electric" and kinds & {"voltage", "current"}):
            more, x = key_entry(x, height - 24, COLOURS[kind], said)
            legend += more
    title = f"System graph of {net.name}: {len(tree)} of {len(graph.edges)} edges in the formulation tree"
    head = words(MARGIN, 30, title, size=16, weight="600", anchor="start", halo=False)
    return page(max(width, x + MARGIN), height, [*content, *drawn, *dots, *names, legend, head])


def _label(vertex: str) -> str:
    """A terminal's short name: G, or the end of the part it is a port for."""
    return CENTRE if vertex.endswith(f".{CENTRE}") else vertex.rpartition(":")[2] if ":" in vertex else \
        vertex.rpartition(".")[2]


def _stub(at: Point, heavy: bool, colour: str, title: str) -> str:
    path, _ = curve((at[0], at[1] + 18), (at[0], at[1] + 11), at, colour, heavy, title)
    return path + ground((at[0], at[1] + 18), colour)


def _end(vertex: str, other: str, place: dict[str, Point], parallel: int) -> Point:
    if vertex in place:
        return place[vertex]
    x, y = place[other]
    return x - 14.0 + 16.0 * (parallel - 1), y + LAYER * 0.5  # beside the stub of the port


def _layers(graph: SystemGraph, owner: dict[str, str], members: dict[str, list[str]]) -> list[list[str]]:
    """Components by their distance from the ground, each layer in an order with few crossings."""
    import networkx as nx

    links: Any = nx.Graph()
    links.add_nodes_from([*members, "O"])
    for edge in graph.edges:
        a, b = (owner.get(v, "O") for v in (edge.tail, edge.head))
        if edge.kind not in ("body", "multiport", "spring", "force") and a != b:
            links.add_edge(a, b)
    distance = nx.single_source_shortest_path_length(links, "O")
    far = max(distance.values(), default=0) + 1
    layers: list[list[str]] = []
    for name in members:
        level = distance.get(name, far) - 1
        while len(layers) <= level:
            layers.append([])
        layers[level].append(name)
    layers = [layer for layer in layers if layer]
    for _ in range(2):
        order = {name: k / max(1, len(layer) - 1) for layer in layers for k, name in enumerate(layer)}
        for layer in layers:
            layer.sort(key=lambda name: _barycentre(name, links, order))
            order |= {name: k / max(1, len(layer) - 1) for k, name in enumerate(layer)}
    return layers


def _barycentre(name: str, links: Any, order: dict[str, float]) -> float:
    near = [order[n] for n in links.neighbors(name) if n in order]
    return sum(near) / len(near) if near else order[name]


def _places(layers: list[list[str]], members: dict[str, list[str]]) -> tuple[dict[str, Point], dict[str, Any], float]:
    least = max((sum(PITCH * len(members[name]) + GAP for name in layer) for layer in layers), default=PAGE)
    wider = min(max((PAGE - 2 * MARGIN) / least, 1.0), WIDER)
    pitch, gap = PITCH * wider, GAP * wider
    widths = [sum(pitch * len(members[name]) + gap for name in layer) - gap for layer in layers]
    width = max(widths, default=0.0) + 2 * MARGIN
    place: dict[str, Point] = {}
    boxes: dict[str, tuple[float, float, float]] = {}
    for level, layer in enumerate(layers):
        y = MARGIN + 30 + LAYER * (len(layers) - 1 - level)  # the ground is below
        x = (width - widths[level]) / 2
        for name in layer:
            wide = pitch * len(members[name])
            boxes[name] = (x, y - 18, wide)
            for k, vertex in enumerate(members[name]):
                place[vertex] = (x + pitch * (k + 0.5), y)
            x += wide + gap
    return place, boxes, width


__all__ = ["layered_svg"]
