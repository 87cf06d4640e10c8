"""Pieces of SVG that drawings of graphs share: words with a halo, arrows, marks of drivers, the page."""

from __future__ import annotations

from html import escape

Point = tuple[float, float]
COLOURS = {
    "body": "#4a5560",
    "multiport": "#4a5560",
    "joint": "#1f6fb2",
    "velocity": "#c2261d",
    "force": "#d07a00",
    "spring": "#2d8a4e",
    "constraint": "#8a6d3b",
    "voltage": "#7b3fa0",
    "current": "#7b3fa0",
    "electric": "#7b3fa0",
    "electrical": "#7b3fa0",
    "rotational": "#1f6fb2",
    "translational": "#2d8a4e",
    "hydraulic": "#0f766e",
    "signal": "#64748b",
}
#: kinds that are drivers, and get a mark: a circle for across, a diamond for through
ACROSS = {"velocity", "voltage", "across driver"}
THROUGH = {"force", "current", "through driver"}


def page(width: float, height: float, content: list[str]) -> str:
    """A whole SVG on white ground."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">'
    )
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([head, ground, *content, "</svg>\n"])


def words(
    x: float, y: float, said: str, *, size: int = 12, weight: str = "400", anchor: str = "middle",
    colour: str = "#22292f", halo: bool = True,
) -> str:
    """A text."""
    behind = 'paint-order="stroke" stroke="#ffffff" stroke-width="3.5" stroke-linejoin="round" ' if halo else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'{behind}fill="{colour}">{escape(said)}</text>'
    )


def arrow(at: Point, along: Point, colour: str, heavy: bool) -> str:
    """An arrow's head at a point."""
    size = 7.5 if heavy else 5.5
    length = max((along[0] ** 2 + along[1] ** 2) ** 0.5, 1e-9)
    ux, uy = along[0] / length, along[1] / length
    tip = (at[0] + size * ux, at[1] + size * uy)
    left = (at[0] - size * ux - 0.7 * size * uy, at[1] - size * uy + 0.7 * size * ux)
    right = (at[0] - size * ux + 0.7 * size * uy, at[1] - size * uy - 0.7 * size * ux)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, left, right))
    return f'<polygon points="{points}" fill="{colour}"/>'


def mark(kind: str, at: Point, colour: str) -> str:
    """A circle around the arrow of an across driver, a diamond around that of a through driver."""
    x, y = at
    if kind in ACROSS:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="12" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    if kind in THROUGH:
        points = f"{x:.1f},{y - 14:.1f} {x + 14:.1f},{y:.1f} {x:.1f},{y + 14:.1f} {x - 14:.1f},{y:.1f}"
        return f'<polygon points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    return ""


def terminal(at: Point) -> str:
    """A vertex."""
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5" fill="#ffffff" stroke="#22292f" stroke-width="1.8"/>'


def ground(at: Point, colour: str = "#22292f") -> str:
    """The sign of the reference vertex."""
    x, y = at
    return "".join(f'<path d="M{x - w:.1f} {y + d:.1f} h{2 * w:.1f}" stroke="{colour}" stroke-width="2"/>'
                   for w, d in ((11, 0), (7, 4), (3, 8)))


def curve(start: Point, control: Point, end: Point, colour: str, heavy: bool, title: str) -> tuple[str, Point]:
    """(a quadratic curve, its middle)."""
    middle = ((start[0] + 2 * control[0] + end[0]) / 4, (start[1] + 2 * control[1] + end[1]) / 4)
    way = f"M{start[0]:.1f} {start[1]:.1f} Q{control[0]:.1f} {control[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    path = (f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{3.6 if heavy else 1.2}">'
            f"<title>{escape(title)}</title></path>")
    return path, middle


def key_of_weights(x: float, y: float) -> tuple[str, float]:
    """(the legend of tree and co-tree, where it ends)."""
    parts = []
    for heavy, said in ((True, "tree branch"), (False, "co-tree chord")):
        parts.append(f'<path d="M{x:.0f} {y:.0f} h26" stroke="#4a5560" stroke-width="{3.6 if heavy else 1.2}"/>')
        parts.append(words(x + 32, y + 4, said, anchor="start", halo=False))
        x += 46 + 6.6 * len(said)
    return "".join(parts), x


def key_entry(x: float, y: float, colour: str, said: str) -> tuple[str, float]:
    """(one entry of a legend, where it ends)."""
    box = f'<rect x="{x:.0f}" y="{y - 6:.0f}" width="12" height="12" rx="2" fill="{colour}"/>'
    return box + words(x + 17, y + 4, said, anchor="start", halo=False), x + 34 + 6.6 * len(said)


__all__ = ["ACROSS", "COLOURS", "THROUGH", "Point", "arrow", "curve", "ground", "key_entry", "key_of_weights", "mark",
           "page", "terminal", "words"]  # fmt: skip
