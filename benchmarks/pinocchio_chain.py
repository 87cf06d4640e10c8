"""Pinocchio's rnea and aba on a serial chain, in a process of its own: seconds a state, as JSON.

    python benchmarks/pinocchio_chain.py LINKS STATES.npz

Long chains need `spare_memory.c` preloaded (it says why); `times` does both. The results come back too, to be compared.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rivals import best, chain

CALLS = {"inverse_dynamics": "rnea", "forward_dynamics": "aba"}


def times(links: int, states: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, Any] | None:
    """{quantity: {"seconds": a state, "result": rows}} on the states' rows; None where no C compiler lends memory."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if 4 * 8 * links**3 > 4e9:
            library = _spare_memory(Path(folder))
            if library is None:
                return None
            environment["LD_PRELOAD"] = str(library)
        file = Path(folder) / "states.npz"
        np.savez(file, *states)
        script = [sys.executable, __file__, str(links), str(file)]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _spare_memory(folder: Path) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library, source = folder / "spare_memory.so", Path(__file__).with_name("spare_memory.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def main(links: int, file: str) -> None:
    import pinocchio as pin

    _, model = chain(links)
    data = model.createData()
    with np.load(file) as stored:
        rows = [stored[name] for name in stored.files]
    answers = {}
    for quantity, name in CALLS.items():
        call = getattr(pin, name)
        states = list(zip(*rows, strict=True))
        seconds = best(lambda call=call, states=states: [call(model, data, *s) for s in states]) / len(states)
        answers[quantity] = {"seconds": seconds, "result": [call(model, data, *s).tolist() for s in states]}
    print(json.dumps(answers))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
