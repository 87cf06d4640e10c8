"""The C library of a model: built by gcc with every warning an error, against the compiled kernels."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from c_library import built, call, gcc
from pinocchio_bridge import robot_file
from polybody.cli import app

QUANTITIES = ["inverse_dynamics", "forward_dynamics", "mass_matrix", "coriolis_matrix", "inverse_dynamics_derivatives"]


def load(which: str):
    if which == "stanford-arm":
        return pb.load(which), "link6"
    if which == "floating ur5":
        return pb.load(robot_file("ur5_robot.urdf"), base="floating"), "wrist_3_link"
    name = {"ur5": "ur5_robot.urdf", "panda": "panda.urdf"}[which]
    model = pb.load(robot_file(name))
    return model, "wrist_3_link" if which == "ur5" else "panda_hand"


@gcc
@pytest.mark.parametrize("which", ["ur5", "panda", "stanford-arm", "floating ur5"])
@pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
def test_library_built_by_gcc_agrees_with_kernels(which, tmp_path):
    model, frame = load(which)
    small = which == "stanford-arm"
    chosen = [*QUANTITIES, f"pose:{frame}", *(["forward_dynamics_derivatives"] if small else [])]
    library = built(model, tmp_path / "c", chosen, 2 if small else 0)
    rng = np.random.default_rng(4)
    n, square = model.nv, (model.nv, model.nv)
    for _ in range(5):
        q, v, a = model.random_configuration(rng), rng.normal(size=n), rng.normal(size=n)
        tau = rng.normal(size=n)
        pairs = [
            (call(library.robot_inverse_dynamics, (q, v, a), (n,)), [model.inverse_dynamics(q, v, a)]),
            (call(library.robot_forward_dynamics, (q, v, tau), (n,)), [model.forward_dynamics(q, v, tau)]),
            (call(library.robot_mass_matrix, (q,), square), [model.mass_matrix(q)]),
            (call(library.robot_coriolis_matrix, (q, v), square), [model.coriolis_matrix(q, v)]),
            (call(library.robot_inverse_dynamics_derivatives, (q, v, a), *[square] * 3),
             model.inverse_dynamics_derivatives(q, v, a)),
            (call(getattr(library, f"robot_pose_{frame}"), (q,), (4, 4)), [model.pose(q, frame)]),
        ]  # fmt: skip
        if small:
            found = call(library.robot_forward_dynamics_derivatives, (q, v, tau), *[square] * 3)
            pairs.append((found, model.forward_dynamics_derivatives(q, v, tau)))
        for found, wanted in pairs:
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12 * (1 + np.abs(other).max()))


@gcc
def test_selftest_fails_where_the_library_is_wrong(tmp_path):
    folder = tmp_path / "c"
    pb.export_c(pb.load("two-link"), folder, ["inverse_dynamics"])
    source = folder / "two_link.c"
    source.write_text(source.read_text(encoding="utf-8").replace("tau[0] = ", "tau[0] = 1e-9 + "), encoding="utf-8")
    done = subprocess.run(["make", "-C", str(folder), "test"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "off by" in done.stdout


def test_library_allocates_nothing_and_keeps_no_state(tmp_path):
    pb.export_c(pb.load("stanford-arm"), tmp_path / "c")
    source = (tmp_path / "c" / "stanford_arm.c").read_text(encoding="utf-8")
    assert "malloc" not in source
    assert not [line for line in source.splitlines() if line.startswith("static") and "(" not in line]


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path):
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    model = pb.load("two-link")
    with pytest.raises(pb.InputError, match=r"not empty.*--force"):
        pb.export_c(model, folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    pb.export_c(model, folder, force=True)
    assert (folder / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert (folder / "two_link.h").exists()


@pytest.mark.parametrize(
    ("quantities", "name", "message"),
    [
        (["torque"], None, "no quantity 'torque'.*inverse"),
        (["inverse_dynamic"], None, "did you mean 'inverse_dynamics'"),
        (["pose:hand"], None, "no frame 'hand'"),
        (["inverse_dynamics"], "double", "none of its keywords"),
        (["inverse_dynamics"], "two-link", "C wants letters"),
    ],
)
def test_bad_requests_write_nothing(quantities, name, message, tmp_path):
    with pytest.raises(pb.InputError, match=message):
        pb.export_c(pb.load("two-link"), tmp_path / "c", quantities, name=name)
    assert not list(tmp_path.iterdir())


def test_command_line_writes_the_folder(tmp_path):
    done = CliRunner().invoke(app, ["export-c", "two-link", str(tmp_path / "c"), "-q", "mass_matrix", "-q", "pose:tip"])
    assert done.exit_code == 0, done.output
    header = (tmp_path / "c" / "two_link.h").read_text(encoding="utf-8")
    assert "two_link_mass_matrix(const double *q, double *M)" in header
    assert "two_link_pose_tip" in header
    again = CliRunner().invoke(app, ["export-c", "two-link", str(tmp_path / "c")])
    assert again.exit_code == 1
    assert "--force" in again.output


@gcc
@pytest.mark.parametrize(
    "name", ["selftest", "SelfTest", "Makefile", "double", "a /* b */ c", "*/ #error", "x" * 300, "μ|π", "math"]
)
@pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
def test_any_name_gives_a_folder_that_builds(name, tmp_path):
    """Eight files, whatever the model is called, and a self-test that passes with every warning an error."""
    build = pb.Builder(name)
    build.body("b", mass=1.0, com=(0.5, 0, 0))
    build.joint("j | k", "revolute", "world", "b", axis=(0, 1, 0))
    files = pb.export_c(build.model(), tmp_path / "c", ["mass_matrix"])
    assert len({path.name.lower() for path in files}) == len(list((tmp_path / "c").iterdir())) == 8
    done = subprocess.run(["make", "test"], cwd=tmp_path / "c", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all 4 states agree" in done.stdout


def test_a_chosen_name_that_is_taken_is_refused(tmp_path):
    with pytest.raises(pb.InputError, match="another file of that name"):
        pb.export_c(pb.load("two-link"), tmp_path / "c", name="selftest")
    with pytest.raises(pb.InputError, match="at most 60"):
        pb.export_c(pb.load("two-link"), tmp_path / "c", name="x" * 61)
    assert not list(tmp_path.iterdir())
