"""What the first model of a process begins: nobody waits for it in vain, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run(code: str, cache: object) -> str:
    """What a fresh process says; its errors are ours."""
    environment = {**os.environ, "POLYBODY_CACHE": str(cache), "POLYBODY_TIER": "auto"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_process_that_only_loads_a_model_ends_as_any_other(tmp_path):
    assert run("import polybody as pb; print(pb.load('stanford-arm').nv)", tmp_path) == "6"


def test_optimised_code_is_begun_only_after_something_was_asked(tmp_path):
    code = """
import time
import polybody as pb
from polybody.kernels import background
begun = pb.load('stanford-arm')
time.sleep(4 * background.PAUSE)
left = [name for name, _ in background._worker.jobs]
begun.mass_matrix(begun.neutral())
print(sorted(left), background.wait(200), background._worker.jobs)
"""
    assert run(code, tmp_path) == "['interpreter', 'runtime'] True []"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("pause", [0.0, 0.005, 0.02, 0.05])
def test_a_child_forked_while_that_is_made_answers_as_its_parent(pause, tmp_path):
    code = f"""
import os, time
import polybody as pb
model = pb.load('stanford-arm')
time.sleep({pause})
child = os.fork()
total = float(model.mass_matrix(model.neutral()).sum())
if child == 0:
    os._exit(int(1000 * total) % 251)
status = os.waitpid(child, 0)[1]
print(os.waitstatus_to_exitcode(status) == int(1000 * total) % 251)
"""
    assert run(code, tmp_path) == "True"
