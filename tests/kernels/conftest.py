"""Tests import their helpers by name, and keep compiled code away from the user's own cache."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cache_of_kernels(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


# Not for the session: all tests that come later in the process would be without the cache that processes share.
@pytest.fixture(autouse=True, scope="module")
def _own_cache(cache_of_kernels):
    patch = pytest.MonkeyPatch()
    patch.setenv("POLYBODY_CACHE", str(cache_of_kernels))
    yield
    patch.undo()
