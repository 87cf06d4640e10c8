"""Pictures of runs without matplotlib: what they show is where the numbers are."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import polybody as pb
from polybody.studio.charts import chart, colours, pieces, ticks
from polybody.studio.panels import Curve, Panel
from polybody.studio.sketch import sketch, sketches
from polybody.studio.strokes import SCALE, Line, Picture, Shape, Words, dashed, width_of

SVG = "{http://www.w3.org/2000/svg}"


def curve_points(picture: Picture, colour: str) -> np.ndarray:
    return next(s.points for s in picture.strokes if isinstance(s, Line) and s.colour == colour and len(s.points) > 2)


def test_values_read_from_ticks_are_those_of_the_curve() -> None:
    """Positions of tick labels give the scale of both axes; with it pixels of the curve are its numbers."""
    t = np.linspace(2.0, 5.0, 50)
    values = 3e-4 * np.sin(3 * t) + 1e-3
    picture = chart(t, "title", [Panel("m", [Curve("a", values, 1.3e-3)])], [])
    points = curve_points(picture, colours(1)[0])
    told = [s for s in picture.strokes if isinstance(s, Words)]
    across = [(s.x, float(s.said)) for s in told if s.anchor == "middle" and s.said.replace(".", "").isdigit()]
    up = [(s.y - 3.5, float(s.said.replace("−", "-")) * 1e-3) for s in told if s.anchor == "end"]
    assert any(s.said == "10⁻³ m" for s in told)
    for pairs, pixels, wanted in ((across, points[:, 0], t), (up, points[:, 1], values)):
        at, said = np.array(pairs).T
        slope, start = np.polyfit(at, said, 1)
        np.testing.assert_allclose(slope * pixels + start, wanted, atol=1e-9 * np.abs(wanted).max())


def test_png_has_the_colours_where_the_svg_has_the_lines(tmp_path: Path) -> None:
    picture = Picture(80, 60, [
        Shape(np.array([[10, 10], [30, 10], [30, 30], [10, 30]]), "#ff0000"),
        Line(np.array([[5, 45], [75, 45]]), "#0000ff", 6.0),
        Shape(np.array([[50, 10], [70, 10], [70, 30], [50, 30]]), "#000000", opacity=0.5),
    ])  # fmt: skip
    picture.png(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        image.verify()  # check sums of all parts
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (round(80 * SCALE), round(60 * SCALE))
        seen = {place: image.getpixel((round(SCALE * place[0]), round(SCALE * place[1])))
                for place in ((20, 20), (40, 45), (60, 20), (40, 20))}  # fmt: skip
    assert seen[20, 20] == (255, 0, 0)
    assert seen[40, 45] == (0, 0, 255)
    assert seen[40, 20] == (255, 255, 255)
    assert seen[60, 20] == pytest.approx((127, 127, 127), abs=2)
    found = ET.fromstring(picture.svg())
    assert [child.tag.removeprefix(SVG) for child in found] == ["rect", "polygon", "polyline", "polygon"]


def test_thinned_curves_keep_the_extremes_of_every_column() -> None:
    rng = np.random.default_rng(0)
    x, y = np.linspace(0, 500, 200_000), rng.normal(size=200_000)
    y[123_456] = 40.0
    (points,) = pieces(x, y)
    assert len(points) < 5000
    for column in (0, 300, 617):
        whole, kept = (y[np.floor(2 * x) == column], points[np.floor(2 * points[:, 0]) == column, 1])
        assert (kept.min(), kept.max(), kept[0], kept[-1]) == (whole.min(), whole.max(), whole[0], whole[-1])
    assert points[:, 1].max() == 40.0
    assert np.all(np.diff(points[:, 0]) >= 0)


def test_curves_are_interrupted_where_they_are_not_finite() -> None:
    y = np.array([0.0, 1, np.nan, 2, 3, np.inf, 4])
    assert [len(points) for points in pieces(np.arange(7.0), y)] == [2, 2, 1]


@pytest.mark.parametrize(("low", "high"), [(-3.2, 7.1), (1e5, 1e5 + 0.3), (-1e-9, 2e-9), (0.0, 1.0), (-70.0, -1.0)])
def test_ticks_are_round_and_cover_the_range(low: float, high: float) -> None:
    found = ticks(low, high, 5)
    step = found[1] - found[0]
    assert 2 <= len(found) <= 7
    assert low - 1e-6 * step <= found[0] < low + step
    assert high - step < found[-1] <= high + 1e-6 * step
    first = step / 10.0 ** np.floor(np.log10(step) + 1e-6)
    assert min(abs(first - m) for m in (1, 2, 5)) < 1e-4


def test_dashes_draw_their_part_of_the_length() -> None:
    angle = np.linspace(0, 2 * np.pi, 400)
    circle = 50 * np.column_stack([np.cos(angle), np.sin(angle)])
    whole = np.hypot(*np.diff(circle, axis=0).T).sum()
    drawn = sum(np.hypot(*np.diff(piece, axis=0).T).sum() for piece in dashed(circle, 3.0, 1.0))
    assert drawn == pytest.approx(0.75 * whole, abs=3.0)


def test_lengths_of_a_plane_mechanism_are_to_scale() -> None:
    """The bar below the drawing says how long a pixel is; the links of a two-link arm are seen in full length."""
    model = pb.load("two-link")
    picture = sketch(model, np.array([0.3, 0.9]))
    lines = [s for s in picture.strokes if isinstance(s, Line)]
    bar = next(s for s in lines if s.colour == "#64748b")
    said = next(s.said for s in picture.strokes if isinstance(s, Words))
    scale = float(said.removesuffix(" m")) / float(np.ptp(bar.points[:, 0]))
    links = {round(float(np.hypot(*np.diff(s.points, axis=0)[0])) * scale, 6) for s in lines if s.width == 4}
    joints = [joint.position for joint in model.mechanism.joints if joint.parent >= 0]
    wanted = {round(float(np.linalg.norm(p)), 6) for p in joints}
    assert wanted
    assert wanted <= links


def test_one_camera_for_all_times() -> None:
    model = pb.load("stewart")
    q = model.assemble()
    picture = sketches(model, [q, q], ["a", "b"])
    lines = [s.points for s in picture.strokes if isinstance(s, Line) and s.colour == "#5d6d7e"]
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(b - a, np.broadcast_to([340.0, 0.0], a.shape), atol=1e-9)


def test_hostile_names_are_well_formed_svg(tmp_path: Path) -> None:
    curves = [Curve("<b>&\x01\u202e$" + 300 * "x", np.arange(3.0), 2.0), Curve("日本", np.ones(3), 1.0, twins=1)]
    picture = chart(np.arange(3.0), "a & b", [Panel("1", curves)], ["<z>"])
    told = [e.text or "" for e in ET.fromstring(picture.svg()).iter(f"{SVG}text")]
    assert "a & b" in told
    assert max(map(len, told)) < 60
    picture.png(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size[0] == round(840 * SCALE)


def test_one_state_and_nothing_but_zeros_are_drawn(tmp_path: Path) -> None:
    for t, found, zero in ((np.zeros(1), [Panel("m", [Curve("a", np.array([2.0]), 2.0)])], []),
                           (np.arange(4.0), [], ["a"]),
                           (np.arange(4.0), [Panel("m", [Curve("a", np.full(4, np.nan), 0.0)])], [])):  # fmt: skip
        picture = chart(t, "title", found, zero)
        picture.png(tmp_path / "a.png")
        ET.fromstring(picture.svg())


def test_saving_a_run_and_showing_it_need_no_matplotlib(tmp_path: Path) -> None:
    """It takes half a second to import, and each picture a quarter of a second."""
    text = ("import sys, polybody as pb; run = pb.simulate(pb.load('two-link'), 0.01); run.save(sys.argv[1]); "
            "run._repr_html_(); run.model._repr_html_(); print('matplotlib' in sys.modules)")  # fmt: skip
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", text, str(tmp_path / "run")], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert told.stdout.split() == ["False"]
    assert (tmp_path / "run" / "joints.png").stat().st_size > 1000


def test_long_times_and_names_stay_within_the_picture() -> None:
    """Of seconds since 1970 the first digit was cut off, which makes another time of it."""
    t = 1.7636e9 + np.linspace(0.0, 1.0, 11)
    picture = chart(t, "late", [Panel("m", [Curve("a", np.arange(11.0), 10.0)])], ["n" * 200 for _ in range(12)])
    said = [s for s in picture.strokes if isinstance(s, Words)]
    assert any(s.said == "1763600000.0" for s in said)
    assert any(s.said.startswith("zero throughout: nnn") and s.said.endswith(" more") for s in said)
    for s in said:
        wide = width_of(s.said, s.size)
        begin = s.x - {"start": 0.0, "middle": wide / 2, "end": wide}[s.anchor]
        assert 0 <= begin <= picture.width - wide, s.said
