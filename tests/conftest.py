"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal
from typing import Any

# Tests' matrices are small: BLAS' own threads only wait for each other. Set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Answers are the same to the last bit in either tier; who waits for code once has it from the cache ever after.
os.environ.setdefault("POLYBODY_TIER", "optimised")

from hypothesis import settings

# A shell starts background jobs with Ctrl-C ignored, and children inherit it: tests of interrupts would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that a change is judged by what it changes; POLYBODY_EXPLORE=1 looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if os.environ.get("POLYBODY_EXPLORE") else "steady")


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
