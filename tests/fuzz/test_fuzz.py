"""Every reader meets two thousand inputs that it does not expect; `make fuzz MINUTES=…` runs as long as is wanted."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from fuzz_inputs import KINDS, input_of
from fuzz_targets import attempt

COUNT = {"mechanism": 450, "urdf": 350, "sdf": 250, "mjcf": 300, "dh": 250, "expression": 350, "run": 200,
         "study": 100, "network": 100}  # fmt: skip
SECONDS = 10.0


@pytest.mark.parametrize("kind", KINDS)
def test_reader_refuses_or_answers(kind: str, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT[kind]):
        started = time.process_time()
        try:
            outcomes[attempt(kind, input_of(kind, seed), tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"{kind} {seed}: {type(error).__name__}: {error}") from error
        assert time.process_time() - started < SECONDS, f"{kind} {seed} takes too long"
    assert min(outcomes["read"], outcomes["refused"]) > COUNT[kind] / 20, outcomes
