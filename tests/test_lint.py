"""Style, types and contracts of imports: what `make lint` asks, beside the other tests instead of before them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [["pyright", "--pythonpath", sys.executable], ["ruff", "check", "."], ["lint-imports", "--no-cache"]],
    ids=["types", "style", "contracts"],
)
def test_the_linters_have_nothing_to_say(command: list[str]) -> None:
    program = next((path for path in BIN.glob(f"{command[0]}*") if path.stem == command[0]), None)
    if program is None:
        pytest.skip(f"{command[0]} is not installed here")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src"))
    done = subprocess.run([program, *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
