"""Pictures of lines, filled shapes and words, written as SVG and PNG within milliseconds.

Plots of a run and drawings in notebooks and reports consist of nothing else. matplotlib, which makes the figures that
a user goes on working with (`run.plot()`), takes half a second to import and a quarter of a second per picture.
Coordinates are pixels, x to the right, y down. PNGs are drawn twice as large and averaged (Pillow does not smooth
lines), in the font that comes with matplotlib; its widths place words in SVG, too.
"""

from __future__ import annotations

import importlib.util
import struct
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

Array = np.ndarray
FAMILY = "DejaVu Sans, Verdana, Arial, sans-serif"
#: pixels of a PNG per pixel of the picture, and how much larger it is drawn
SCALE, FINER = 1.4, 2


@dataclass
class Line:
    """A polyline through points (n, 2); `dashes` are lengths drawn and left out, in pixels."""

    points: Array
    colour: str
    width: float = 1.0
    dashes: tuple[float, float] | None = None


@dataclass
class Shape:
    """A polygon; of no fill or no edge where the colour is ""."""

    points: Array
    fill: str
    edge: str = ""
    width: float = 1.0
    opacity: float = 1.0


@dataclass
class Words:
    """A text whose baseline begins, has its middle, or ends at (x, y)."""

    x: float
    y: float
    said: str
    size: float = 11.0
    colour: str = "#334155"
    anchor: str = "start"
    bold: bool = False


@dataclass
class Picture:
    """What is drawn, in this order."""

    width: float
    height: float
    strokes: list[Line | Shape | Words] = field(default_factory=list)

    def svg(self) -> str:
        """One SVG element on white ground."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FAMILY}">'
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return "\n".join([head, ground, *map(_element, self.strokes), "</svg>\n"])

    def png(self, path: Path) -> None:
        """Write a PNG."""
        from PIL import Image, ImageDraw

        whole = SCALE * FINER
        image = Image.new("RGB", (round(self.width * SCALE) * FINER, round(self.height * SCALE) * FINER), "#ffffff")
        seen_through = any(isinstance(stroke, Shape) and stroke.opacity < 1 for stroke in self.strokes)
        pen = ImageDraw.Draw(image, "RGBA" if seen_through else "RGB")
        for stroke in self.strokes:
            if isinstance(stroke, Words):
                pen.text((stroke.x * whole, stroke.y * whole), stroke.said, fill=stroke.colour,
                         font=_font(stroke.size * whole, stroke.bold),
                         anchor={"start": "ls", "middle": "ms", "end": "rs"}[stroke.anchor])  # fmt: skip
            elif isinstance(stroke, Shape):
                corners = (stroke.points * whole).ravel().tolist()
                if stroke.fill:
                    pen.polygon(corners, fill=stroke.fill + f"{round(255 * stroke.opacity):02x}" * seen_through)
                if stroke.edge:
                    pen.line(corners + corners[:2], fill=stroke.edge, width=_thick(stroke.width))
            else:
                for piece in [stroke.points] if stroke.dashes is None else dashed(stroke.points, *stroke.dashes):
                    joint = "curve" if len(piece) < 400 else None  # corners are rounded one by one, in Python
                    pen.line((piece * whole).ravel().tolist(), fill=stroke.colour, width=_thick(stroke.width),
                             joint=joint)  # fmt: skip
        path.write_bytes(png_bytes(np.asarray(image.reduce(FINER))))


def png_bytes(pixels: Array, level: int = 1) -> bytes:
    """A PNG of pixels (rows, columns, 3).

    Rows are stored as differences to those above. Pillow tries five such filters on each row, for three times as long.
    """
    height, width, _ = pixels.shape
    flat = pixels.reshape(height, 3 * width)
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 2  # the filter "up"
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), level)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def _thick(width: float) -> int:
    return max(1, round(width * SCALE * FINER))


def _element(stroke: Line | Shape | Words) -> str:
    if isinstance(stroke, Words):
        weight = ' font-weight="bold"' if stroke.bold else ""
        return (f'<text x="{stroke.x:.1f}" y="{stroke.y:.1f}" font-size="{stroke.size:g}" fill="{stroke.colour}" '
                f'text-anchor="{stroke.anchor}"{weight}>{escape(_printable(stroke.said))}</text>')  # fmt: skip
    points = ("%.1f,%.1f " * len(stroke.points) % tuple(stroke.points.ravel().tolist())).rstrip()
    if isinstance(stroke, Shape):
        edge = f' stroke="{stroke.edge}" stroke-width="{stroke.width:g}"' if stroke.edge else ""
        seen = f' fill-opacity="{stroke.opacity:g}"' if stroke.opacity < 1 else ""
        return f'<polygon points="{points}" fill="{stroke.fill or "none"}"{seen}{edge}/>'
    dashes = f' stroke-dasharray="{stroke.dashes[0]:g} {stroke.dashes[1]:g}"' if stroke.dashes else ""
    return (f'<polyline points="{points}" fill="none" stroke="{stroke.colour}" stroke-width="{stroke.width:g}" '
            f'stroke-linejoin="round"{dashes}/>')  # fmt: skip


def _printable(said: str) -> str:
    """Without characters that XML forbids: names come from files."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said)


def dashed(points: Array, drawn: float, left: float) -> list[Array]:
    """The pieces of a polyline that dashes leave."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    starts = np.arange(0.0, along[-1], drawn + left)
    ends = np.minimum(starts + drawn, along[-1])
    first, last = np.searchsorted(along, starts, side="right"), np.searchsorted(along, ends, side="left")
    cut = [np.column_stack([np.interp(at, along, points[:, k]) for k in (0, 1)]) for at in (starts, ends)]
    return [np.vstack([cut[0][k], points[first[k] : last[k]], cut[1][k]]) for k in range(len(starts))]


def width_of(said: str, size: float, bold: bool = False) -> float:
    """Pixels of a text."""
    return float(_font(100.0, bold).getlength(said)) * size / 100.0


@lru_cache(maxsize=32)
def _font(size: float, bold: bool) -> FreeTypeFont | ImageFont | Any:
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    found = importlib.util.find_spec("matplotlib")  # where it is, without importing it
    beside = Path(found.origin or "").parent / "mpl-data" / "fonts" / "ttf" if found else Path()
    for place in (str(beside / name), name):  # some systems keep fonts elsewhere
        try:
            return ImageFont.truetype(place, size, layout_engine=ImageFont.Layout.BASIC)
        except OSError:
            continue
    return ImageFont.load_default(size)


__all__ = ["Line", "Picture", "Shape", "Words", "dashed", "png_bytes", "width_of"]
