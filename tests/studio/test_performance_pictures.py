"""Pictures and page of a machine's performance, and the command that makes them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.design.ellipsoids import Ellipsoid
from polybody.studio import performance_plots as pictures
from polybody.studio.performance_report import write_performance


@pytest.fixture(scope="module")
def arm():
    model = pb.load("two-link")
    return model, pb.performance(model, "tip"), np.array([0.4, 0.9])


def test_drawn_surfaces_are_the_ellipsoids():
    """Points of the surface satisfy Σ (xᵀa_i/r_i)² = 1 up to the scale of the drawing."""
    rng = np.random.default_rng(0)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    ball = Ellipsoid("velocity", ("x", "y", "z"), axes, np.array([3.0, 2.0, 0.5]), np.zeros(3), 3)
    points = pictures.surface_of(ball, 0.3).reshape(-1, 3)
    np.testing.assert_allclose(np.square(points @ axes / (0.1 * ball.radii)).sum(axis=-1), 1.0, atol=1e-9)
    flat = Ellipsoid("velocity", ("x", "y"), np.eye(2), np.array([1.0, 0.5]), np.zeros(2), 2)
    assert np.abs(pictures.surface_of(flat, 1.0)[..., 2]).max() == 0.0
    assert pictures.surface_of(Ellipsoid("velocity", ("rx",), np.eye(1), np.ones(1), np.zeros(1), 1), 1.0) is None


def test_page_holds_every_part_and_needs_no_network(arm, tmp_path):
    model, found, q = arm
    motion = pb.paths.quintic(model, q, q + 0.5, 0.5)
    page = write_performance(found, tmp_path / "p.html", q, samples=50, motion=motion, stiffness=200.0,
                             grid=tuple(model.joint_names))
    text = page.read_text(encoding="utf-8")
    for part in ("Ellipsoids", "Workspace", "Map of two coordinates", "Actuators over the motion", "Lowest modes"):
        assert f"<h2>{part}</h2>" in text
    assert "http" not in text
    with pytest.raises(pb.InputError, match=r"is an \.html file"):
        write_performance(found, tmp_path / "p.txt", q)


def test_a_mode_is_animated(arm, tmp_path):
    _, found, q = arm
    path = pictures.animate_mode(found.modes(q, 200.0), tmp_path / "mode.gif", frames=3)
    assert path.read_bytes()[:6] in (b"GIF87a", b"GIF89a")
    with pytest.raises(pb.InputError, match="an animation is a"):
        pictures.animate_mode(found.modes(q, 200.0), tmp_path / "mode.mp4")
    with pytest.raises(pb.InputError, match="no measure 'speed'"):
        pictures.workspace_figure(found.workspace(5), "speed")


def test_page_in_the_browser_holds_ellipsoids_and_modes(arm, tmp_path, monkeypatch):
    from polybody.studio.performance_page import tubes, write_performance_page
    from polybody.studio.viewer import pack

    contents, packed = [], pack.compressed
    monkeypatch.setattr(pack, "compressed", lambda content, *more: contents.append(content) or packed(content, *more))

    rng = np.random.default_rng(1)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    ball = Ellipsoid("velocity", ("x", "y", "z"), axes, np.array([3.0, 2.0, 0.5]), np.zeros(3), 3)
    half = pictures.axes_of(ball, 0.3)
    np.testing.assert_allclose(np.linalg.norm(half, axis=0), [0.3, 0.2, 0.05], atol=1e-12)
    mesh = tubes(half, np.array([1.0, 2.0, 3.0]), 1e-6)
    inside = np.square((mesh.positions - [1, 2, 3]) @ (half / np.square([0.3, 0.2, 0.05])))
    np.testing.assert_allclose(inside.sum(axis=1), 1.0, atol=1e-3)  # on the ellipsoid, but for the tubes and float32
    _, found, q = arm
    path = write_performance_page(found, tmp_path / "page.html", q, modes=found.modes(q, 200.0))
    assert path.stat().st_size > 10_000
    (content,) = contents
    *links, ground = ([part["mesh"] for part in body["parts"]] for body in content["bodies"])
    assert sorted(k for own in (*links, ground) for k in own) == list(range(len(content["meshes"])))
    assert all(links), "each link is shown"
    assert len(ground) >= 3, "one ellipsoid of each kind"
    assert len(content["analyses"]["motions"]) == 2
    with pytest.raises(pb.InputError, match="no ellipsoid 'speed'"):
        write_performance_page(found, tmp_path / "page.html", q, kinds=["speed"])


def test_command_line_tells_the_same_numbers(arm, tmp_path):
    _, found, q = arm
    done = CliRunner().invoke(app, [
        "performance", "two-link", "--frame", "tip", "--q", "0.4,0.9", "--samples", "20", "--stiffness", "200", "--to",
        "0.9,1.4", "--json",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["manipulability"] == pytest.approx(float(found.measures(q)["manipulability"]))
    np.testing.assert_allclose(told["frequencies"], found.modes(q, 200.0).frequencies, rtol=1e-9)
    assert len(told["actuators"]) == 2
    shown = CliRunner().invoke(app, ["performance", "four-bar", "--samples", "0"])
    assert shown.exit_code == 0, shown.output
    assert "effective masses" in shown.stdout
    assert CliRunner().invoke(app, ["performance", "two-link", "--grid", "a"]).exit_code == 1
    alone = CliRunner().invoke(app, ["performance", "two-link", "--grid", "shoulder,elbow"])
    assert "--report" in alone.output
    assert CliRunner().invoke(app, ["performance", "six-dof-arm", "--stiffness", "1", "--samples", "0"]).exit_code == 1


def test_infinite_radii_are_drawn_longest():
    """A force that the structure bears: longer than all others, not missing."""
    ball = Ellipsoid("force", ("x", "y"), np.eye(2), np.array([np.inf, 0.5]), np.zeros(2), 2)
    np.testing.assert_allclose(np.abs(pictures.axes_of(ball, 1.0)[:, :2]), [[1, 0], [0, 0.4], [0, 0]], atol=1e-12)
    assert pictures.axes_of(Ellipsoid("force", ("x",), np.eye(1), np.array([np.inf]), np.zeros(1), 1), 1.0) is None


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
def test_a_free_base_is_reported_without_stiffness(tmp_path):
    done = CliRunner().invoke(app, [
        "performance", "humanoid", "--samples", "20", "--stiffness", "200", "--json", "-o", str(tmp_path / "h.html"),
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["stiffness"] == {"free_motions": 6}
    assert told["frequencies"][:6] == [0.0] * 6
    assert told["frequencies"][6] > 0
    text = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "<h2>Compliance</h2>" not in text
    assert "motions that nothing holds" in text
