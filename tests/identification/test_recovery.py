"""Base parameters come back from noisy recordings within their reported deviations; `recovery.py` runs all machines."""

from __future__ import annotations

import pytest

from identification.recovery import recovered


@pytest.mark.parametrize("name", ["puma560", "five-bar", "humanoid"])
def test_base_parameters_are_recovered_within_three_deviations(name: str) -> None:
    within, total, rms = recovered(name, range(4))
    assert within >= 0.985 * total
    assert 0.5 < rms < 1.5  # deviations that are neither too small nor too large
