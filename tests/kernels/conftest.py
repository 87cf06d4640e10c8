"""Tests import their helpers by name, and keep compiled code away from the user's own cache."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("POLYBODY_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
