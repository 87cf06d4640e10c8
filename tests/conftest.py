"""Settings of the whole suite."""

from __future__ import annotations

import os

# Tests' matrices are small: BLAS' own threads only wait for each other. Set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

# The same examples every time, so that a change is judged by what it changes; POLYBODY_EXPLORE=1 looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("explore" if os.environ.get("POLYBODY_EXPLORE") else "steady")
