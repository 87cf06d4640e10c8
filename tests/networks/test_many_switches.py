"""Converters with many diodes: runs, energy, and exported C, which writes their modes as data."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import polybody as pb


def bridge(net: pb.Network, label: str, shift: float, low: str, high: str) -> None:
    """A three-phase bridge of six diodes behind inductances, between two rails."""
    for k, phase in enumerate("abc"):
        name = f"{phase}{label}"
        net.part(f"V{name}", "voltage_source", f"s{name}", f"n{label}",
                 voltage=f"100*sin(2*pi*50*time - {2 * np.pi * k / 3 + shift!r})")
        net.part(f"R{name}", "resistor", f"s{name}", f"r{name}", resistance=0.1)
        net.part(f"L{name}", "inductor", f"r{name}", name, inductance=1e-4)
        net.part(f"D{name}p", "diode", name, high)
        net.part(f"D{name}m", "diode", low, name)


def three_phase() -> pb.Network:
    net = pb.Network("three phase")
    bridge(net, "", 0.0, "ground", "p")
    net.part("C", "capacitor", "p", capacitance=1e-3)
    net.part("R", "resistor", "p", resistance=20)
    return net


def twelve_pulse() -> pb.Network:
    net = pb.Network("twelve pulse")
    bridge(net, "1", 0.0, "ground", "mid")
    bridge(net, "2", np.pi / 6, "mid", "p")
    net.part("C", "capacitor", "p", capacitance=1e-3)
    net.part("R", "resistor", "p", resistance=40)
    return net


def test_a_three_phase_rectifier_turns_off_at_zero_current_and_conserves_energy(tmp_path: Path) -> None:
    """A diode that turns off with a current of +1e-13 A would turn on again at once: 100,000 times."""
    run = pb.simulate(three_phase(), 0.028, method="radau", rtol=1e-7, atol=1e-9)
    assert 10 < run.audit.switches < 40
    assert run.audit.energy_error_relative < 1e-8
    for key in ("Dap.i", "Dcm.i"):
        assert run[key].min() > -0.01  # what a diode lets through while it blocks: 1e-5 S at 175 V
    if shutil.which("gcc") is None:
        pytest.skip("exported C is compiled and run: no C compiler")
    from test_network_export import Library

    library = Library(three_phase(), tmp_path / "c", {}, combinations=2)
    library.advance(0.028)
    for key in ("C.v", "La.i", "Lb.i", "Lc.i"):
        assert abs(library.values()[key] - run.final[key]) < 1e-5 * (1 + abs(run.final[key])), key


@pytest.mark.skipif(shutil.which("gcc") is None, reason="exported C is compiled and run: no C compiler")
def test_twelve_diodes_are_exported_as_data(tmp_path: Path) -> None:
    """4096 combinations of modes, one of them written."""
    from test_network_export import Library

    library = Library(twelve_pulse(), tmp_path / "c", {})
    text = (tmp_path / "c" / "net.h").read_text()
    assert "NET_COMBINATIONS = 1" in text
    library.advance(0.005)
    run = pb.simulate(twelve_pulse(), 0.005, method="radau", rtol=1e-8, atol=1e-10)
    assert run.audit.switches > 5
    for key in ("C.v", "La1.i", "Lb1.i", "La2.i", "Lc2.i"):
        assert abs(library.values()[key] - run.final[key]) < 1e-5 * (1 + abs(run.final[key])), key
