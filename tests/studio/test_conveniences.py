"""Runs and models as people use them: plots, folders, reports, pages and notebooks; curves in the right panels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import polybody as pb
from browser import Browser, find_chromium
from polybody.kernels import background
from polybody.studio.channels import Item, channels, position_items
from polybody.studio.panels import panels
from polybody.studio.plots import STYLE


@pytest.fixture(scope="module")
def run() -> pb.Trajectory:
    model = pb.load("stewart")
    active = model.actuation.active
    return pb.simulate(model, 0.1, model.assemble(), None, lambda t, q, v: 30 * np.sin(20 * t) * active, sample=0.005,
                       method="rk4", dt=1e-3)  # fmt: skip


def test_units_and_sizes_have_panels_of_their_own_and_zeros_are_named() -> None:
    t = np.linspace(0, 1, 50)
    items = (Item("a", "rad"), Item("b", "rad"), Item("c", "m"), Item("d", "rad"), Item("e", "rad"), Item("q", "1"))
    table = np.column_stack([np.sin(t), 100 * t, t, 0 * t, np.sin(t) * (1 + 1e-4), 1 + 0 * t])
    found, zero = panels(items, table)
    assert zero == ["d"]
    assert [(p.unit, [c.label for c in p.curves]) for p in found] == [
        ("rad", ["b"]), ("rad", ["a", "e"]), ("m", ["c"]), ("1", ["q"])]  # fmt: skip
    assert found[1].curves[1].twins == 1, "a curve over another is dashed"
    noise = np.column_stack([np.sin(t), 1e-9 * np.cos(50 * t)])
    assert panels((Item("x", "m"), Item("y", "m")), noise)[1] == ["y"], "roundings are no curve"


def test_quaternions_are_no_angles_and_every_number_of_a_state_has_one_label() -> None:
    model = pb.load("stewart")
    units = {item.label: item.unit for item in position_items(model)}
    assert len(units) == model.nq
    assert units["platform_joint.qw"] == "1"
    assert units["platform_joint.z"] == "m"
    assert units["leg1"] == "m"
    assert units["foot1.0"] == "rad"
    sizes = {c.key: len(c.items) for c in channels(model)}
    assert sizes["forces"] == sizes["velocities"] == model.nv


def test_run_plots_itself(run: pb.Trajectory, tmp_path: Path) -> None:
    figure = run.plot("forces", tmp_path / "forces.svg")
    labels = [line.get_label() for axes in figure.axes for line in axes.lines]
    assert labels == [f"leg{k}" for k in range(1, 7)], "six driven legs, and no curve that is zero"
    assert (tmp_path / "forces.svg").stat().st_size > 5000
    leg = run.model.joint_slices()["leg1"][1]
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), run.tau[:, leg][:, 0])
    with pytest.raises(pb.InputError, match="did you mean 'forces'"):
        run.plot("force")
    with pytest.raises(pb.InputError, match=r"\.png, \.svg"):
        run.plot("forces", tmp_path / "x.bmp")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_plot_that_is_interrupted_leaves_the_file_as_it_was(
    run: pb.Trajectory, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    path = tmp_path / f"forces.{kind}"
    run.plot("forces", path)
    before = path.read_bytes()
    assert before.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])

    def interrupted(figure: Figure, target: Any, **options: Any) -> None:
        stream = open(target, "wb") if isinstance(target, str | Path) else target  # noqa: SIM115
        stream.write(b"half")
        stream.flush()
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.plot("forces", path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    monkeypatch.undo()
    with pytest.raises(pb.InputError, match="does not exist"):
        run.plot("forces", tmp_path / "nowhere" / f"x.{kind}")


def test_run_saves_and_reads_back(run: pb.Trajectory, tmp_path: Path) -> None:
    from polybody.studio.results import read_run

    np.testing.assert_array_equal(read_run(run.save(tmp_path / "run")).q, run.q)
    with pytest.raises(pb.InputError, match="exists"):
        run.save(tmp_path / "run")
    run.save(tmp_path / "run", force=True)


def test_report_is_one_file_with_interactive_plots_and_no_empty_panels(run: pb.Trajectory, tmp_path: Path) -> None:
    path = run.report(tmp_path / "report.html")
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (POLYBODY_CHROMIUM may name one)")
    browser = Browser(program)
    try:
        browser.size(1100, 900)
        browser.open(path.as_uri())
        browser.wait("window.charts && charts.length > 5")
        told = "charts.map(c => [c.options.unit, c.options.curves.map(x => x.label), c.y0, c.y1])"
        every = json.loads(browser.script(f"JSON.stringify({told})"))
        assert ["N", [f"leg{k}" for k in range(1, 7)]] in [c[:2] for c in every]
        assert all(high > low for _, _, low, high in every)
        browser.script("charts[0].options.onSeek(0.05)")
        assert browser.script("charts.every(c => c.at === 0.05)"), "one cursor for all"
        assert browser.script("document.querySelector('img').naturalWidth") > 1000
        assert browser.logs == []
    finally:
        browser.close()


def test_notebooks_show_runs_and_models(run: pb.Trajectory) -> None:
    text = run._repr_html_()
    assert "<svg" in text
    assert "stewart" in text
    assert "<script" not in text
    shown = run.model._repr_html_()
    assert "<svg" in shown
    assert "6 prismatic" in shown


def test_run_is_shared_as_a_page(run: pb.Trajectory, tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    pytest.importorskip("websockets")
    assert run.share(tmp_path / "run.html").read_text().startswith("<!doctype html>")
    page = pb.view(run, browser=False, port=8200)
    try:
        assert page.url.startswith("http://127.0.0.1:")
    finally:
        page.close()
    with pytest.raises(pb.InputError, match="neither a model nor a run"):
        pb.view(3, browser=False)


def test_a_saved_plot_has_the_pixels_of_savefig_and_is_drawn_once(
    run: pb.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    drawings: list[Figure] = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: (drawings.append(self), draw(self, renderer))[1])
    figure = run.plot("positions", tmp_path / "ours.png")
    assert drawings == [figure]
    assert figure.get_layout_engine() is not None
    with matplotlib.rc_context(STYLE):
        run.plot("positions").savefig(tmp_path / "theirs.png")
    assert (tmp_path / "ours.png").read_bytes() == (tmp_path / "theirs.png").read_bytes()


def test_background_compilation_waits_while_a_run_is_shown(
    run: pb.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever draws, writes or packs has Python alone, and gives it back however it ends."""
    seen: dict[str, bool] = {}

    def looking(name: str, fails: bool = False) -> Any:
        def act(*_: Any, **__: Any) -> Any:
            seen[name] = background._worker.is_building()
            if fails:
                raise pb.InputError("no")
            return SimpleNamespace(url="")

        return act

    monkeypatch.setattr("polybody.studio.sharing.write_page", looking("share", fails=True))
    monkeypatch.setattr("polybody.studio.results.write_run", looking("save"))
    monkeypatch.setattr("polybody.studio.report.write_report", looking("report"))
    monkeypatch.setattr("polybody.studio.plots.plotted", looking("plot"))
    monkeypatch.setattr("polybody.studio.viewer.serve.Viewer", looking("view"))
    with pytest.raises(pb.InputError):
        run.share(tmp_path / "run.html")
    assert not background._worker.is_building()
    run.save(tmp_path / "run")
    run.report(tmp_path / "run.html")
    run.plot("positions")
    run.view(browser=False)
    assert seen == dict.fromkeys(("share", "save", "report", "plot", "view"), True)
    assert not background._worker.is_building()


def test_a_trajectory_does_not_import_the_studio() -> None:
    code = "import sys, polybody; polybody.simulate; print([m for m in sys.modules if m.startswith('polybody.studio')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
