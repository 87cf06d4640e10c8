"""Studies: cases, executors that agree bit for bit, results on disk, resuming, statistics, and what cannot be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError
from polybody.studies.axes import cases_of

pytest.importorskip("pyarrow")


def payloads(**more: Any) -> pb.Study:
    arm = pb.load("puma560").with_payload("link6", 1.0)
    vary = {"payload.mass": {"uniform": [0, 3]}, "q": {"normal": [[0] * 6, [0.5] * 6]}, "payload.com.z": [0.0, 0.1]}
    options = {"samples": 300, "chunk": 64, "quantity": "inverse_dynamics", "keep": ["tau", "peak(tau)"], **more}
    return pb.Study(arm, vary, **options)


def ishigami(case: pb.studies.Case) -> dict[str, float]:
    x = [case[name] for name in ("x1", "x2", "x3")]
    return {"y": np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])}


def sometimes(case: pb.studies.Case) -> dict[str, float]:
    if case.index % 5 == 3:
        raise ValueError("no such machine")
    return {"y": case["x"] + case.rng.normal()}


def test_lanes_are_what_single_calls_give_and_do_not_depend_on_who_computes(tmp_path: Path) -> None:
    study = payloads()
    results = study.run(tmp_path / "here")
    assert results.complete
    assert not results.failures()
    found = results.numpy()
    assert found["tau"].shape == (600, 6)
    np.testing.assert_array_equal(found["case"], np.arange(600))
    for k in (0, 77, 599):
        own = study.model.parameters.at([found["payload.mass"][k], found["payload.com.z"][k]])  # type: ignore[union-attr]
        np.testing.assert_allclose(found["tau"][k], own.inverse_dynamics(found["q"][k], np.zeros(6), np.zeros(6)),
                                   rtol=1e-12, atol=1e-12)  # fmt: skip
    others = study.run(tmp_path / "processes", workers=2)
    assert [p.name for p in results.files()] == [p.name for p in others.files()]
    assert [p.read_bytes() for p in results.files()] == [p.read_bytes() for p in others.files()]


@pytest.mark.parametrize("names", [("payload.mass", "payload.com"), ("payload.com", "payload.mass")])
def test_numbers_that_are_drawn_together_reach_the_parameters_they_name(names: tuple[str, str], tmp_path: Path) -> None:
    """In the order of the model's parameters they are its lanes as they are; in another order they are put in place."""
    axes = {"payload.mass": {"uniform": [1, 2]}, "payload.com": {"uniform": [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]}}
    arm = pb.load("puma560").with_payload("link6", 1.0)
    study = pb.Study(arm, {n: axes[n] for n in names}, samples=1100, quantity="gravity_forces")
    found = study.run(tmp_path / "out").numpy()
    assert ((found["payload.com"] >= [0.1, 0.2, 0.3]) & (found["payload.com"] <= [0.2, 0.3, 0.4])).all()
    for k in (0, 600, 1099):
        own = pb.load("puma560").with_payload("link6", found["payload.mass"][k], found["payload.com"][k])
        np.testing.assert_allclose(found["gravity"][k], own.gravity_forces(np.zeros(6)), rtol=1e-12, atol=1e-12)


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    study, whole = payloads(), payloads().run(tmp_path / "whole")

    def stop(finished: int, cases: int, failed: int) -> None:
        if finished >= 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "part", progress=stop)
    before = {p: p.stat().st_mtime_ns for p in sorted((tmp_path / "part" / "chunks").iterdir())}
    assert 2 <= len(before) < study.cases.chunks
    damaged = next(iter(before))
    damaged.write_bytes(damaged.read_bytes()[:100])
    results = study.run(tmp_path / "part")
    assert all(p.stat().st_mtime_ns == at for p, at in before.items() if p != damaged)
    assert [p.read_bytes() for p in results.files()] == [p.read_bytes() for p in whole.files()]


def test_failed_cases_are_rows_with_their_error(tmp_path: Path) -> None:
    study = pb.Study(None, {"x": {"grid": [0, 1, 20]}}, function=sometimes, chunk=6)
    results = study.run(tmp_path / "out", workers=2)
    assert [case for case, _ in results.failures()] == [3, 8, 13, 18]
    assert results.failures()[0][1] == "ValueError: no such machine"
    y = results.numpy()["y"]
    assert np.isnan(y[[3, 8, 13, 18]]).all()
    assert np.isfinite(np.delete(y, [3, 8, 13, 18])).all()
    again = study.run(tmp_path / "again", workers=1)
    np.testing.assert_array_equal(again.numpy()["y"], y)
    heavy = payloads()
    heavy = pb.Study(heavy.model, {"payload.mass": [1.0, -1.0, 2.0]}, quantity="gravity_forces").run(tmp_path / "heavy")
    assert heavy.failures() == [(1, "InputError: parameter 'payload.mass' is -1 kg; expected at least 0")]


def test_bounds_of_axes_prove_parameters_possible_only_where_all_of_them_are(tmp_path: Path) -> None:
    arm = pb.load("puma560")
    masses = arm.with_parameters("link2.mass", "link2.com").parameters
    center, rng = masses.nominal, np.random.default_rng(3)
    for _ in range(40):
        low = center - rng.uniform(0, 2, 4) * np.abs(center)
        high = low + rng.uniform(0, 2, 4)
        worst = np.array([[(low, high)[k >> j & 1][j] for j in range(4)] for k in range(16)])
        proven = masses.all_possible(low, high)
        assert proven == (low[0] >= 0)
        if proven:
            masses.checked(worst)
        else:
            with pytest.raises(pb.InputError, match=r"link2\.mass"):
                masses.checked(worst)
    several = arm.with_parameters("link2.inertia").parameters
    assert not several.all_possible(several.nominal, several.nominal)
    assert not masses.all_possible(center, np.array([1e40, 0, 0, 0]))
    # where nothing is proven, cases are looked at one by one
    for axis, failed in ([3.0, -1.0, 2.0], [1]), ({"normal": [0.0, 1.0]}, None), ({"uniform": [-1.0, 1.0]}, None):
        samples = None if isinstance(axis, list) else 64
        found = pb.Study(arm, {"link2.mass": axis}, samples=samples, quantity="gravity_forces", at={"q": 0.3}).run()
        wrong = np.flatnonzero(found.numpy()["link2.mass"] < 0).tolist()
        assert [case for case, _ in found.failures()] == (wrong if failed is None else failed)


def test_sobol_indices_of_ishigami_are_the_known_ones(tmp_path: Path) -> None:
    study = pb.Study(None, {f"x{k}": {"uniform": [-np.pi, np.pi]} for k in (1, 2, 3)}, samples=2048, design="saltelli",
                     function=ishigami, chunk=10240)  # fmt: skip
    found = study.run(tmp_path / "out", workers=1).sobol_indices("y")
    a, b = 7.0, 0.1
    V = a**2 / 8 + b * np.pi**4 / 5 + b**2 * np.pi**8 / 18 + 0.5
    V1, V2, V13 = 0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8, b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    np.testing.assert_allclose(found.first, [V1 / V, V2 / V, 0], atol=0.02)
    np.testing.assert_allclose(found.total, [(V1 + V13) / V, V2 / V, V13 / V], atol=0.02)


def test_designs_fill_the_cube_and_chunks_do_not_matter_to_balanced_ones() -> None:
    vary = {"a": {"uniform": [0, 1]}, "b": {"triangular": [0, 0.2, 1]}, "c": [1, 2]}
    for design in ("latin-hypercube", "sobol"):
        whole = cases_of(vary, 64, design, 3, 1000).values(0)
        parts = [cases_of(vary, 64, design, 3, 24).values(k) for k in range(6)]
        np.testing.assert_array_equal(np.concatenate([p["a"] for p in parts]), whole["a"])
        assert np.all(np.histogram(whole["a"][:64, 0], 64, (0, 1))[0] == 1)
        np.testing.assert_array_equal(whole["c"][:, 0], np.repeat([1, 2], 64))
    many = cases_of({"x": {"covariance": [[4, 1], [1, 1]], "mean": [1, 2], "names": ["u", "v"]}}, 20000, "random", 1,
                    20000).values(0)  # fmt: skip
    sample = np.column_stack([many["u"], many["v"]])
    np.testing.assert_allclose(np.cov(sample.T), [[4, 1], [1, 1]], atol=0.15)


def test_tolerances_of_a_four_bar_spread_its_coupler_curve(tmp_path: Path) -> None:
    """The deviation of the coupler is what exact derivatives say, to first order."""
    linkage = pb.load("four-bar")
    names = [n for n in linkage.with_parameters("*.origin.x").parameters.names
             if linkage.with_parameters(n).parameters.nominal[0] != 0]  # fmt: skip
    variant = linkage.with_parameters(*names)
    q = linkage.assemble()
    independent, sigma = linkage.constraints.independent, 1e-4

    def coupler(case: pb.studies.Case) -> dict[str, Any]:
        place = case.model.constraints.assemble_dependent(q, independent)  # type: ignore[union-attr]
        return {"point": case.model.pose(place, linkage.body_names[1])[:3, 3]}  # type: ignore[union-attr]

    vary = {n: {"normal": [variant.parameters.nominal[k], sigma]} for k, n in enumerate(names)}
    study = pb.Study(linkage, vary, samples=256, design="latin-hypercube", function=coupler)
    spread = study.run(tmp_path / "out", workers=1).numpy()["point"].std(axis=0)
    slopes = pb.derivative(variant, f"pose:{linkage.body_names[1]}", q)[:3, 3]
    np.testing.assert_allclose(spread, sigma * np.sqrt((slopes**2).sum(axis=1)), rtol=0.15, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vary": {"payload.mass": {"uniform": [3, 1]}}}, r"has no support; low must be below high"),
        ({"vary": {"payload.mas": [1.0]}}, r"'payload.mas' cannot be varied .*did you mean 'payload.mass'"),
        ({"vary": {"payload.com": [[0, 0, 0]], "payload.com.x": [1.0]}}, r"two axes vary one thing"),
        ({"vary": {"payload.mass": {"unifrom": [1, 3]}}}, r"did you mean 'uniform'"),
        ({"vary": {"q.1": [0.0], "q.joint2": [1.0]}}, r"two axes vary one thing: 'q.1' and 'q.joint2'"),
        ({"vary": {"v.0": [1.0]}, "at": {"q": [0.0, 1.0]}}, r"q has shape \(2,\)"),
        ({"vary": {"v.0": [1.0]}, "at": {"q": [0.0, 1.0, 2, 3, 4, np.nan]}}, r"q\[5\] is nan"),
        ({"vary": {"v.0": [1.0]}, "at": {"q": "abc"}}, r"q"),
        ({"vary": {"v.0": [1.0]}, "seed": "x"}, r"seed is 'x'; expected a whole number"),
        ({"vary": {"v.0": [1.0]}, "chunk": float("inf")}, r"chunk is inf; expected a whole number"),
        ({"vary": {"q": [[0.0, 1.0]]}}, r"axis 'q' has 2 numbers for 6"),
        ({"vary": {"payload.mass": [1.0]}, "keep": ["tao"]}, r"no result 'tao' .did you mean 'tau'"),
        ({"vary": {"payload.mass": [1.0]}, "samples": 5}, r"no axis is a distribution"),
        ({"vary": {"kp": [1.0]}, "quantity": None, "rollout": {"steps": 1, "method": "rk5"}}, r"did you mean 'rk4'"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_computed(tmp_path: Path, change: Any, message: str) -> None:
    arm = pb.load("puma560").with_payload("link6", 1.0)
    options = {"quantity": "inverse_dynamics", "samples": None, **change}
    if any(isinstance(axis, dict) for axis in options["vary"].values()):
        options["samples"] = 10
    with pytest.raises(InputError, match=message):
        pb.Study(arm, **options).run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    payloads().run(tmp_path / "out")
    with pytest.raises(InputError, match=r"holds the results of another study"):
        payloads(seed=1).run(tmp_path / "out")
    with pytest.raises(InputError, match=r"has 600 finished cases"):
        payloads().run(tmp_path / "out", resume=False)


def test_rollouts_vary_gains_masses_and_starts_in_one_kernel(tmp_path: Path) -> None:
    model = pb.load("double-pendulum")
    first = model.with_parameters("*.mass").parameters.names[0]
    vary = {first: {"uniform": [0.5, 1.5]}, "kp": {"uniform": [5, 50]}, "q0.0": [0.1, 0.4]}
    study = pb.Study(model, vary, samples=20, rollout={"steps": 50, "controller": {"kd": 1.0}}, keep=["q_end", "v_end"])
    found = study.run(tmp_path / "out").numpy()
    k = 31
    own = study.model.parameters.at([found[first][k]])  # type: ignore[union-attr]
    law = pb.PD(own, np.zeros(2), found["kp"][k], 1.0)
    wanted = pb.rollout(own, np.array([found["q0.0"][k], 0.0]), np.zeros(2), law, 50, keep="last")
    np.testing.assert_allclose(found["q_end"][k], wanted.q, rtol=1e-12, atol=1e-14)


def sprung(model: pb.Model, stiffness: float, damping: float = 1.0) -> Any:
    return lambda t, q, v: -stiffness * q - damping * v


def idle(model: pb.Model) -> Any:
    return lambda t, q, v: np.zeros(model.nv)


def heavy(model: pb.Model) -> Any:
    return lambda t, q, v: model.gravity_forces(q)


def broken(model: pb.Model) -> Any:
    raise KeyError("gain")


def test_wrenches_vary_whole_or_by_component(tmp_path: Path) -> None:
    arm = pb.load("puma560")
    q = np.linspace(0.1, 0.6, 6)
    vary = {"wrench.link6": {"uniform": [[-1] * 6, [1] * 6]}, "link6.mass": {"uniform": [0.1, 0.3]},
            "wrench.link3.fz": [0.0, 5.0]}  # fmt: skip
    study = pb.Study(arm, vary, samples=20, quantity="inverse_dynamics", at={"q": q})
    found = study.run(tmp_path / "out").numpy()
    for k in (0, 39):
        own = study.model.parameters.at([found["link6.mass"][k]])  # type: ignore[union-attr]
        loads = {"link6": found["wrench.link6"][k], "link3": [0, 0, 0, 0, 0, found["wrench.link3.fz"][k]]}
        wanted = own.inverse_dynamics(q, np.zeros(6), np.zeros(6), wrenches=loads)
        np.testing.assert_allclose(found["tau"][k], wanted, rtol=1e-11, atol=1e-12)
    pulled = pb.Study(pb.load("double-pendulum"), {"wrench.tip.fx": [0.0, 3.0]}, keep=["q_end"],
                      simulate={"duration": 0.1, "method": "rk4", "dt": 0.01})  # fmt: skip
    ends = pulled.run(tmp_path / "pulled", workers=1).numpy()["q_end"]
    run = pb.simulate(pb.load("double-pendulum"), 0.1, wrenches={"tip": [0, 0, 0, 3, 0, 0]}, method="rk4", dt=0.01)
    np.testing.assert_array_equal(ends[1], run.q[-1])
    assert np.abs(ends[1] - ends[0]).max() > 1e-3
    rolled = pb.Study(pb.load("double-pendulum"), {"wrench.tip.fx": [0.0, 3.0]}, keep=["q_end"],
                      rollout={"steps": 10, "dt": 0.01})  # fmt: skip
    np.testing.assert_allclose(rolled.run().numpy()["q_end"], ends, rtol=1e-12, atol=1e-14)
    with pytest.raises(InputError, match=r"expected wrench.FRAME or wrench.FRAME.fz"):
        pb.Study(arm, {"wrench.link6.up": [1.0]}, quantity="inverse_dynamics")
    with pytest.raises(InputError, match=r"'wrench.link6' cannot be varied in this study"):
        pb.Study(arm, {"wrench.link6": [[0.0] * 6]}, quantity="mass_matrix")


@pytest.mark.parametrize("kind", ["rollout", "simulate"])
def test_controllers_vary_by_named_gains_and_from_a_list(kind: str, tmp_path: Path) -> None:
    model = pb.load("double-pendulum")
    how = {"rollout": {"steps": 20, "dt": 0.005}, "simulate": {"duration": 0.1, "method": "rk4", "dt": 0.005}}[kind]
    start = np.array([0.3, -0.2])

    def end(law: Any) -> Any:
        if kind == "rollout":
            return pb.rollout(model, start, np.zeros(2), law, 20, 0.005, keep="last").q
        return pb.simulate(model, 0.1, start, np.zeros(2), law, method="rk4", dt=0.005).q[-1]

    options = {kind: {**how, "q0": start, "controller": sprung}}
    gains = pb.Study(model, {"controller.stiffness": [1.0, 20.0], "controller.damping": {"uniform": [0, 2]}}, samples=2,
                     keep=["q_end"], **options)  # type: ignore[arg-type] # fmt: skip
    found = gains.run(tmp_path / "gains", workers=2).numpy()
    k = 3
    wanted = end(sprung(model, found["controller.stiffness"][k], found["controller.damping"][k]))
    np.testing.assert_allclose(found["q_end"][k], np.squeeze(wanted), rtol=1e-12)
    laws = pb.Study(model, {"controller": [0, 1, 5, 2]}, keep=["q_end"],
                    **{kind: {**how, "q0": start, "controller": [idle, heavy, broken]}})  # type: ignore[arg-type] # fmt: skip
    results = laws.run(tmp_path / "laws", workers=1)
    ends = results.numpy()["q_end"]
    np.testing.assert_allclose(ends[1], np.squeeze(end(heavy(model))), rtol=1e-12)
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    assert results.failures() == [(2, "InputError: controller is 5; expected 0 to 2, a place in the list"),
                                  (3, "KeyError: 'gain'")]  # fmt: skip
    with pytest.raises(InputError, match=r"'controller.NAME' sets an argument of a single function"):
        pb.Study(model, {"controller.stiffness": [1.0]}, **{kind: {**how, "controller": [idle]}})  # type: ignore[arg-type]


FILE = """\
study: 1
name: payloads
model: puma560
payload: {frame: link6, mass: 1}
vary:
  payload.mass: {uniform: [0, 3]}
  q.joint2: {grid: [-90deg, 90deg, 5]}
samples: 64
design: sobol
chunk: 100
do: {quantity: gravity_forces}
keep: [gravity, "peak(gravity)"]
"""


def test_study_files_run_plot_and_say_what_is_wrong(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from polybody.cli import app
    from polybody.studies.file import read_study, schema

    path = tmp_path / "payloads.yaml"
    path.write_text(FILE)
    run = CliRunner().invoke
    said = json.loads(run(app, ["study", str(path), "--dry-run", "--json"]).stdout)
    assert (said["cases"], said["chunks"]) == (320, 4)
    done = run(app, ["study", str(path), "--json"])
    assert json.loads(done.stdout)["complete"], done.output
    again = run(app, ["study", str(path), "--json"])
    assert again.exit_code == 1
    assert run(app, ["study", str(path), "--resume", "--json"]).exit_code == 0
    drawn = run(app, ["study", "plot", str(tmp_path / "payloads.results"), "--json"])
    names = [Path(p).name for p in json.loads(drawn.stdout)["written"]]
    assert names == ["histograms.png", "scatter-matrix.png", "parallel-coordinates.png", "tornado.png", "report.html"]
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")
    jsonschema.validate(yaml.safe_load(FILE), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**yaml.safe_load(FILE), "sampels": 3}, schema())
    path.write_text(FILE.replace("samples", "sampels"))
    with pytest.raises(InputError, match=r"payloads.yaml:8: no key 'sampels' .did you mean 'samples'"):
        read_study(path)
    path.write_text(FILE.replace("quantity: gravity_forces", 'function: "os:getcwd"'))
    with pytest.raises(InputError, match=r"allow it with --allow-code"):
        read_study(path)


DRIVER = """
import sys, polybody as pb
sys.path.insert(0, {root!r})
from tests.studies.test_study import payloads
if __name__ == "__main__":
    import time
    payloads(chunk=16).run({folder!r}, {options}, progress=lambda *a: (print(*a, flush=True), time.sleep(0.05)))
"""


def driver(folder: Path, options: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).resolve().parents[2])
    script = folder.parent / "driver.py"
    script.write_text(DRIVER.format(root=root, folder=str(folder), options=options))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(root) / "src"), root])}
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)


def test_a_killed_driver_leaves_whole_chunks_only(tmp_path: Path) -> None:
    process = driver(tmp_path / "killed", "workers=1")
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = len(list((tmp_path / "killed" / "chunks").glob("part-*")))
    assert 3 <= there < payloads(chunk=16).cases.chunks
    results = payloads(chunk=16).run(tmp_path / "killed")
    wanted = payloads(chunk=16).run(tmp_path / "wanted")
    assert [p.read_bytes() for p in results.files()] == [p.read_bytes() for p in wanted.files()]
    assert sorted(results.numpy()["case"].tolist()) == list(range(600))



def chain(values: dict[str, Any]) -> pb.Model:
    build = pb.Builder("chain")
    before = "world"
    for k in range(round(values["links"])):
        build.body(f"b{k}", 1.0, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1))
        build.joint(f"j{k}", "revolute", before, f"b{k}", origin=(1.0 if k else 0.0, 0, 0), axis=(0, 1, 0))
        before = f"b{k}"
    return build.model()


def test_a_template_makes_machines_of_different_structure(tmp_path: Path) -> None:
    study = pb.Study(chain, {"links": [1, 2, 3]}, quantity="gravity_forces", keep=["gravity[0]"])
    found = study.run(tmp_path / "out", workers=1).numpy()["gravity[0]"]
    np.testing.assert_allclose(np.abs(found), 9.81 * np.array([0.5, 0.5 + 1.5, 0.5 + 1.5 + 2.5]))


XACRO = """<robot name="chain" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="links" default="1"/> <xacro:arg name="mass" default="1"/>
  <link name="l0"/>
  <xacro:macro name="segment" params="k">
    <link name="l${k}"><inertial><origin xyz="0.5 0 0"/><mass value="$(arg mass)"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j${k}" type="continuous"><parent link="l${k - 1}"/><child link="l${k}"/>
      <origin xyz="${0 if k == 1 else 1} 0 0"/><axis xyz="0 1 0"/></joint>
    <xacro:if value="${k &lt; int('$(arg links)')}"><xacro:segment k="${k + 1}"/></xacro:if>
  </xacro:macro>
  <xacro:segment k="1"/>
</robot>
"""


def test_study_files_name_a_xacro_template_or_code(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    from polybody.studies.file import read_study

    (tmp_path / "chain.xacro").write_text(XACRO)
    path, text = tmp_path / "chains.yaml", (
        "study: 1\ntemplate: chain.xacro\nvary: {links: [1, 2, 3], mass: [1, 2.5]}\n"
        'do: {quantity: gravity_forces}\nkeep: ["gravity[0]"]\n'
    )
    path.write_text(text)
    found = read_study(path).study.run(tmp_path / "out", workers=1).numpy()
    wanted = 9.81 * np.outer([0.5, 0.5 + 1.5, 0.5 + 1.5 + 2.5], [1, 2.5]).ravel()
    np.testing.assert_allclose(np.abs(found["gravity[0]"]), wanted)
    (tmp_path / "mass.xacro").write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"/>')
    (tmp_path / "chain.xacro").write_text(XACRO.replace('<link name="l0"/>',
                                                        '<xacro:include filename="mass.xacro"/><link name="l0"/>'))
    before = read_study(path).study.digest
    (tmp_path / "mass.xacro").write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"> </robot>')
    assert read_study(path).study.digest != before, "a file that is included is part of the study"
    path.write_text(text.replace("mass:", "mas:"))
    with pytest.raises(InputError, match=r"no argument 'mas' .did you mean 'mass'"):
        read_study(path)
    path.write_text(text.replace("chain.xacro", "os:getcwd"))
    with pytest.raises(InputError, match=r"template runs code of 'os:getcwd'; allow it with --allow-code"):
        read_study(path)
    path.write_text(text + "model: puma560\n")
    with pytest.raises(InputError, match=r"'model' stands beside 'template'"):
        read_study(path)
    path.write_text("study: 1\nmodel: double-pendulum\nvary: {controller: [0]}\n"
                    "do: {rollout: {steps: 2, controller: ['os:getcwd']}}\n")  # fmt: skip
    with pytest.raises(InputError, match=r"controller runs code of 'os:getcwd'"):
        read_study(path)
