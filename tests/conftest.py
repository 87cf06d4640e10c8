"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

# Tests' matrices are small: BLAS' own threads only wait for each other. Set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiling would be much of the suite's time, for code that is run a few times. Kernels are interpreted instead, which
# gives the same bits (kernels/test_tiers.py), except in the tests that `OPTIMISED` names.
os.environ.setdefault("POLYBODY_TIER", "fast")

import pytest
from hypothesis import settings

# A shell starts background jobs with Ctrl-C ignored, and children inherit it: tests of interrupts would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that a change is judged by what it changes; POLYBODY_EXPLORE=1 looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if os.environ.get("POLYBODY_EXPLORE") else "steady")


TESTS = Path(__file__).parent
TIER = os.environ["POLYBODY_TIER"]

#: Folders, files and single tests that wait for optimised code: where machine code is what is tested, each kind of it
#: against an answer that does not come from it, or where so many states are computed that interpreting takes longer.
OPTIMISED = (
    "engines",  # other engines' answers
    "faults",  # of caches on disk, of interrupted compilation
    "kernels",
    "studies",  # they wait for optimised code unless told otherwise
    # straight-line code and its derivatives: the texts on numbers, differences
    "formulations/test_network_constraints.py::test_every_shipped_model_as_a_network_accelerates_as_the_compiled_engine_says",
    "formulations/test_unison.py::test_all_five_formulations_and_the_compiled_kernels_agree_on_shipped_models",
    "linearization/test_linearize.py::test_compiled_influence_equals_the_text_over_batches",
    "model/test_compiled_answers.py::test_compiled_equals_interpreted[0-0]",
    "model/test_compiled_answers.py::test_compiled_equals_interpreted[1-1]",
    "model/test_compiled_answers.py::test_compiled_equals_interpreted[2-0]",
    "model/test_compiled_answers.py::test_compiled_equals_interpreted[3-1]",
    "model/test_compiled_answers.py::test_derivatives_equal_central_differences_along_the_tangent[0]",
    "model/test_regressors.py::test_compiled_regressor_equals_its_text_with_every_term_and_out",
    "model/test_together.py",
    # machines with loops: differences along closed states
    "model/test_loop_derivatives.py::test_forward_derivatives_equal_differences_along_closed_states",
    # networks: a tableau of their equations, the expanded model
    "networks/test_random_networks.py",
    "networks/test_random_pieces.py",
    # rolled code: the text on numbers
    "model/test_long_chains.py",
    # float32: float64
    "model/test_single_loops.py",
    "model/test_single_precision.py",
    # loops of steps: Python's steps, runs one by one
    "simulation/test_compiled.py",
    "simulation/test_compiled_long_chains.py::test_steps_of_a_row_of_66_four_bars_are_those_of_python",
    "simulation/test_compiled_long_chains.py::test_steps_of_long_trees_are_those_of_python",
    "simulation/test_compiled_radau.py",
    "simulation/test_rollout.py",
    "simulation/test_rollout_with_loops.py",
    # many states, memory, what is compiled and kept
    "cli/test_cli_count_and_cache.py::test_cache_is_shown_and_cleared",
    "model/test_batch_memory.py",
    "model/test_large_batches.py::test_a_formulation_compiled_for_a_batch_equals_its_text_on_numbers",
    "simulation/test_compiled_friction.py::test_other_values_of_parameters_compile_nothing_beside_friction",
    # equal bits of first and later runs: without compiled code the first are answered by texts
    "simulation/test_runs_one_after_another.py",
    "simulation/test_trust.py::test_momentum_error_is_the_same_whenever_it_is_asked_for",
)


def entries_of(item: pytest.Item) -> set[str]:
    """What `OPTIMISED` may call a test."""
    path = item.path.relative_to(TESTS)
    file = path.as_posix()
    return {path.parts[0], file, f"{file}::{item.name.partition('[')[0]}", f"{file}::{item.name}"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test of all first. Then optimised code: models that files share would else be interpreted already."""

    def turn(item: pytest.Item) -> int:
        entries = entries_of(item)
        return 0 if "test_lint.py" in entries else 1 if entries.intersection(OPTIMISED) else 2

    items.sort(key=turn)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The tier of this test, from the first of its fixtures on."""
    os.environ["POLYBODY_TIER"] = "optimised" if entries_of(item).intersection(OPTIMISED) else TIER
    try:
        return (yield)
    finally:
        os.environ["POLYBODY_TIER"] = TIER


def pytest_configure() -> None:
    for entry in OPTIMISED:
        path, _, test = entry.partition("::")
        name = test.partition("[")[0]
        if not (TESTS / path).exists() or (name and f"def {name}(" not in (TESTS / path).read_text(encoding="utf-8")):
            raise pytest.UsageError(f"tests/conftest.py: there is no {entry}, which is said to wait for optimised code")


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails the session (make test-all)")


def pytest_sessionfinish(session: Any) -> None:
    """With --no-skips, say so and fail where anything was skipped, modules that were not collected included."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")  # workers of xdist have none
    if session.config.getoption("--no-skips") and reporter is not None:
        skipped = reporter.stats.get("skipped", [])
        if skipped and session.exitstatus in (0, 5):
            session.exitstatus = 1
            reporter.write_line(f"\n--no-skips: {len(skipped)} skipped, none allowed", red=True)
