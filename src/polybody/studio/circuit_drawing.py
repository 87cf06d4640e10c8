"""The system graph of one-dimensional parts as an SVG: tree branches heavy, drivers marked, domains in colours.

Nodes are placed by stress (Kamada and Kawai) in the graph without the reference; an edge to the ground is a stub with
the sign of the ground beside its node. Domains that share no node are placed side by side.
"""

from __future__ import annotations

import math
from typing import Any

from polybody.networks.graph import PartGraph
from polybody.studio.svg_pieces import (
    COLOURS,
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

SPACING, MARGIN, STUB = 150.0, 80.0, 74.0


def circuit_svg(name: str, graph: PartGraph) -> str:
    """The drawing as SVG text."""
    system, tree = graph.system, set(graph.system.tree)
    place, width, height = _places(graph)
    count: dict[Any, int] = {}
    drawn, names, far = [], [], (0.0, 0.0)
    for i, edge in enumerate(system.edges):
        heavy, port = i in tree, graph.ports[edge.name]
        colour = COLOURS[port.domain.name]
        grounded = edge.head not in place or edge.tail not in place
        ends: Any = (edge.head if edge.head in place else edge.tail) if grounded else frozenset((edge.head, edge.tail))
        k = count[ends] = count.get(ends, 0) + 1
        if grounded:
            at = place[ends]
            turn = math.pi / 2 + (k // 2) * (0.62 if k % 2 else -0.62)
            far = (at[0] + STUB * math.cos(turn), at[1] + STUB * math.sin(turn))
            start, end = (far, at) if edge.head in place else (at, far)
            drawn.append(ground((far[0], far[1]), colour))
            control = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        else:
            start, end = place[edge.tail], place[edge.head]
            bend = 34.0 * (k // 2) * (1 if k % 2 else -1)
            dx, dy = end[0] - start[0], end[1] - start[1]
            length = max(math.hypot(dx, dy), 1e-9)
            aside = 2 * bend / length
            control = ((start[0] + end[0]) / 2 - aside * dy, (start[1] + end[1]) / 2 + aside * dx)
        path, middle = curve(start, control, end, colour, heavy, f"{edge.name}: {graph.reason(edge.name)}")
        drawn.append(path + arrow(middle, (end[0] - start[0], end[1] - start[1]), colour, heavy)
                     + mark(edge.kind, middle, colour))
        if grounded:  # the first to the left of its stub, others beside their ground
            spot = (middle[0] - 10, middle[1] + 4, "end") if k == 1 else (far[0] + 14, far[1] + 2, "start")
        else:
            spot = (middle[0], middle[1] - 10, "middle")
        names.append(words(spot[0], spot[1], edge.name, size=11, colour=colour, anchor=spot[2]))
    dots = [terminal(at) + words(at[0] - 9, at[1] - 9, node, size=11, anchor="end") for node, at in place.items()]
    legend, x = key_of_weights(MARGIN / 2, height - 24)
    for domain in dict.fromkeys(port.domain.name for port in graph.ports.values()):
        more, x = key_entry(x, height - 24, COLOURS[domain], domain)
        legend += more
    title = f"System graph of {name}: {len(tree)} of {len(system.edges)} edges in the formulation tree"
    head = words(MARGIN / 2, 30, title, size=16, weight="600", anchor="start", halo=False)
    return page(max(width, x + MARGIN, 9.0 * len(title)), height, [*drawn, *dots, *names, legend, head])


def _places(graph: PartGraph) -> tuple[dict[str, Point], float, float]:
    """(places of the nodes, width, height): connected parts side by side, in rows of at most some 1400 px."""
    import networkx as nx

    links: Any = nx.Graph()
    links.add_nodes_from(graph.system.vertices)
    links.add_edges_from((e.tail, e.head) for e in graph.system.edges
                         if e.tail in graph.system.vertices and e.head in graph.system.vertices)
    place: dict[str, Point] = {}
    x, y, row, widest = MARGIN, MARGIN + 20, 0.0, 0.0
    for part in sorted(nx.connected_components(links), key=lambda c: (-len(c), min(c))):
        nodes = sorted(part, key=list(graph.system.vertices).index)
        spots = {nodes[0]: (0.0, 0.0)} if len(nodes) == 1 else nx.kamada_kawai_layout(links.subgraph(nodes))
        size = SPACING * max(0.0, math.sqrt(len(nodes)) * 1.1 - 0.4) if len(nodes) > 1 else 0.0
        low = [min(p[k] for p in spots.values()) for k in (0, 1)]
        high = [max(p[k] for p in spots.values()) for k in (0, 1)]
        span = [max(h - lo, 1e-9) for lo, h in zip(low, high, strict=True)]
        scale = size / max(span)
        wide, tall = (span[0] * scale, span[1] * scale) if len(nodes) > 1 else (0.0, 0.0)
        if x > MARGIN and x + wide > 1400:
            x, y, row = MARGIN, y + row + STUB + 70, 0.0
        for node in nodes:
            place[node] = (x + 30 + (spots[node][0] - low[0]) * scale, y + 20 + (spots[node][1] - low[1]) * scale)
        x += wide + SPACING
        row, widest = max(row, tall), max(widest, x)
    return place, widest + MARGIN / 2, y + row + STUB + 110


__all__ = ["circuit_svg"]
