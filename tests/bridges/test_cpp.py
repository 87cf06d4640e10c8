"""The C++ header and CMake package of exported models: built, installed, found, and right."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb

EIGEN = next((p for p in (Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3")) if p.is_dir()), None)
pytestmark = pytest.mark.skipif(
    EIGEN is None or not all(shutil.which(tool) for tool in ("cmake", "c++", "cc")), reason="needs CMake, C++ and Eigen"
)

MAIN = r"""
#include <cstdio>
#include "{prefix}.hpp"
int main() {{
  {prefix}::Vector<{prefix}::nq> q;
  {prefix}::Vector<{prefix}::nv> v, a;
  q << {q};
  v << {v};
  a << {a};
  const auto tau = {prefix}::inverse_dynamics(q, v, a);
  const auto M = {prefix}::mass_matrix(q);
  const auto d = {prefix}::forward_dynamics_derivatives(q, v, tau);
  double buffer[{prefix}::nv];
  Eigen::Map<{prefix}::Vector<{prefix}::nv>> mapped(buffer);
  mapped = {prefix}::forward_dynamics(q, v, tau);
  for (int i = 0; i < tau.size(); i++) std::printf("%.17g ", tau(i));
  for (int i = 0; i < M.rows(); i++) for (int k = 0; k < M.cols(); k++) std::printf("%.17g ", M(i, k));
  for (int i = 0; i < d.da_dv.rows(); i++)
    for (int k = 0; k < d.da_dv.cols(); k++) std::printf("%.17g ", d.da_dv(i, k));
  for (int i = 0; i < mapped.size(); i++) std::printf("%.17g ", mapped(i));
  const int failed = {prefix}::rk4_step(q, v, tau, 1e-3);
  std::printf("%.17g\n", q(0));
  return failed;
}}
"""
USE = """cmake_minimum_required(VERSION 3.14)
project(use CXX)
find_package({prefix} REQUIRED)
add_executable(use main.cpp)
target_link_libraries(use {prefix}::cpp)
"""


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_package_is_found_and_computes_what_the_model_does(tmp_path: Path) -> None:
    model = pb.load("stanford-arm")
    names = ["inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_dynamics_derivatives", "rk4_step"]
    pb.export_c(model, tmp_path / "library", names, name="arm")
    prefix = tmp_path / "installed"
    run("cmake", "-S", tmp_path / "library", "-B", tmp_path / "b1", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--build", tmp_path / "b1", "--target", "install")
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, a = rng.normal(size=(2, 6))
    user = tmp_path / "user"
    user.mkdir()
    numbers = {key: ", ".join(repr(float(x)) for x in values) for key, values in {"q": q, "v": v, "a": a}.items()}
    (user / "main.cpp").write_text(MAIN.format(prefix="arm", **numbers))
    (user / "CMakeLists.txt").write_text(USE.format(prefix="arm"))
    run("cmake", "-S", user, "-B", tmp_path / "b2", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "b2")
    found = np.array(run(tmp_path / "b2" / "use").split(), dtype=float)
    tau = model.inverse_dynamics(q, v, a)
    derivative = model.forward_dynamics_derivatives(q, v, tau)[1]
    wanted = np.concatenate([tau, model.mass_matrix(q).ravel(), derivative.ravel(), a])
    assert_allclose(found[:-1], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    assert abs(found[-1] - (q[0] + 1e-3 * v[0])) < 1e-4


SYNTAX = """#include "{name}.hpp"
int main() {{
  using namespace {space};
  double state[nq + nv] = {{0}};
  Eigen::Map<Vector<nq>> q(state);
  Eigen::Map<Vector<nv>> v(state + nq);
  Vector<nv> tau = Vector<nv>::Zero();
  {more}
  return rk4_step(q, v, tau, {given}1e-3);
}}
"""


@pytest.mark.parametrize(
    ("name", "space", "varied"), [("arm", "arm", False), ("arm", "arm", True), ("new", "new_", False),
                                  ("Eigen", "Eigen_", False)]
)  # fmt: skip
def test_steps_take_maps_and_parameters_and_any_name_of_c_is_a_namespace(
    name: str, space: str, varied: bool, tmp_path: Path
) -> None:
    model = pb.load("double-pendulum")
    model = model.with_parameters("rod1.mass", "rod2.com") if varied else model
    pb.export_c(model, tmp_path / "out", ["inverse_dynamics", "energy", "rk4_step"], name=name)
    more = "Vector<4> p; p << 1, 0.1, 0, 0; const auto E = energy(q, v, p); (void)E;" if varied else ""
    given = "p, " if varied else ""
    (tmp_path / "out" / "main.cpp").write_text(SYNTAX.format(name=name, space=space, more=more, given=given))
    run("c++", "-std=c++14", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-isystem{EIGEN}",
        tmp_path / "out" / "main.cpp")  # fmt: skip
