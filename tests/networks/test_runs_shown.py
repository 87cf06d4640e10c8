"""Runs of networks as plots, reports, folders and scenes; Bode plots."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.studio.network_results import network_channels, record_of
from polybody.studio.results import read_run

DRIVE = """\
polybody: 1
name: drive
network:
  parts:
    V: {kind: voltage_source, nodes: a, voltage: 2 V}
    M: {kind: dc_motor, winding: a, shaft: s, torque_constant: 0.05 N m/A, resistance: 1.2 ohm, inductance: 3 mH}
    J: {kind: inertia, nodes: s, inertia: 1e-3 kg m^2}
    K: {kind: rotational_spring, nodes: s, stiffness: 0.1 N m/rad}
"""
ARM = DRIVE.replace("name: drive", "name: arm").replace("network:\n", "network:\n  models: {arm: two-link}\n").replace(
    "nodes: s, inertia", "nodes: arm.JOINT, inertia").replace("shaft: s", "shaft: arm.JOINT").replace(
    "nodes: s, stiffness", "nodes: arm.JOINT, stiffness")


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    file = tmp_path / "drive.yaml"
    file.write_text(DRIVE)
    return file


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    file = tmp_path / "arm.yaml"
    file.write_text(ARM.replace("JOINT", pb.load("two-link").joint_names[0]))
    return file


def test_plots_have_one_axes_per_unit_with_the_domain_s_units(drive: Path, tmp_path: Path) -> None:
    run = pb.simulate(pb.load_network(drive), 0.2)
    figure = run.plot("electrical", tmp_path / "electrical.svg")
    assert {axes.get_ylabel() for axes in figure.axes} == {"V", "A"}
    assert (tmp_path / "electrical.svg").stat().st_size > 1000
    assert {axes.get_ylabel() for axes in run.plot().axes} == {"A", "rad/s", "rad"}
    assert run.plot("K.angle").axes[0].get_ylabel() == "rad"
    assert run.plot("energy").axes[0].get_ylabel() == "J"
    with pytest.raises(pb.PolybodyError, match=r"did you mean 'M\.winding\.i'|M\.winding\.i"):
        run.plot("M.windng.i")
    with pytest.raises(pb.PolybodyError, match="no hydraulic part"):
        run.plot("hydraulic")
    run.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "energy audit passed" in text
    assert "http" not in text.split("<script")[0].replace("http-equiv", "")
    assert "<svg" in run._repr_html_()


def test_every_variable_is_in_some_channel_with_its_unit(arm: Path) -> None:
    run = pb.simulate(pb.load_network(arm), 0.05)
    told = {item.label: item.unit for channel, _ in network_channels(run) for item in channel.items}
    assert set(run.names) <= set(told)
    assert told["M.winding.i"] == "A"
    assert told["K.angle"] == "rad"
    assert all(told[name] == "rad" for name in told if name.endswith(".q"))


def test_a_model_of_a_network_is_seen_in_motion_with_the_network_s_variables(arm: Path, tmp_path: Path) -> None:
    run = pb.simulate(pb.load_network(arm), 0.05)
    record = record_of(run)
    assert_allclose(record.q, run.configuration("arm"))
    # M a + C v + g = tau of the network: accelerations of the record agree with the model's own
    found = record.model.forward_dynamics(record.q, record.v, record.tau)
    assert_allclose(record.accelerations[5:-5], found[5:-5], atol=2e-3 * np.abs(found).max())
    page = run.share(tmp_path / "page.html")
    assert Path(page).stat().st_size > 10_000
    folder = run.save(tmp_path / "run")
    again = read_run(folder)
    assert [channel.key for channel, _ in again.more] == [channel.key for channel, _ in record.more]
    assert_allclose(again.more[0][1], record.more[0][1])


def test_damaged_channels_of_a_run_are_named(arm: Path, tmp_path: Path) -> None:
    folder = pb.simulate(pb.load_network(arm), 0.02).save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["channels"][0]["items"] = facts["channels"][0]["items"][:-1]
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(pb.PolybodyError, match="channel 'states' has shape"):
        read_run(folder)
    facts["channels"] = [{"key": 1}]
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(pb.PolybodyError, match="a channel lacks"):
        read_run(folder)


def test_the_command_line_simulates_shows_and_plots_networks(drive: Path, arm: Path, tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    out = tmp_path / "run"
    done = invoke(app, ["simulate", str(drive), "-t", "0.05", "--output", str(out)])
    assert done.exit_code == 0, done.output
    assert {"values.csv", "report.html", "run.json", "electrical-through.svg"} <= {p.name for p in out.iterdir()}
    done = invoke(app, ["view", str(out), "--html", str(tmp_path / "x.html")])
    assert done.exit_code != 0
    assert "no bodies to view" in done.output + str(done.exception)
    done = invoke(app, ["simulate", str(arm), "-t", "0.05", "--output", str(tmp_path / "arm")])
    assert done.exit_code == 0, done.output
    done = invoke(app, ["view", str(tmp_path / "arm"), "--html", str(tmp_path / "y.html")])
    assert done.exit_code == 0, done.output
    # written again over itself: the folder is known as a run
    done = invoke(app, ["simulate", str(drive), "-t", "0.05", "--output", str(out), "--force"])
    assert done.exit_code == 0, done.output


def test_bode_plots_of_responses_and_ports(drive: Path, tmp_path: Path) -> None:
    net = pb.load_network(drive)
    K, R, L, J, k = 0.05, 1.2, 3e-3, 1e-3, 0.1
    figure = pb.bode(net, "V.voltage", "J.w", path=tmp_path / "b.svg")
    line = figure.axes[0].lines[0]
    s = 1j * line.get_xdata()
    exact = K / ((R + L * s) * (J * s + k / s) + K**2)
    assert_allclose(line.get_ydata(), 20 * np.log10(np.abs(exact)), atol=1e-8)
    done = CliRunner().invoke(app, ["network", str(drive), "--impedance", "s", "--omega", "1", "1e3", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    s = 1j * np.array(told["omega"])
    # the shaft with its voltage source at rest: spring, inertia, and the winding seen through the motor
    wanted = 1 / (J * s + k / s + K**2 / (R + L * s))
    assert_allclose(np.array(told["real"]) + 1j * np.array(told["imaginary"]), wanted, rtol=1e-9)
    assert told["unit"] == "(rad/s)/(N m)"
    done = CliRunner().invoke(app, ["network", str(drive), "--bode", "V.voltage", "J.w", "--plot",
                                    str(tmp_path / "c.svg")])
    assert done.exit_code == 0, done.output
    assert "dB" in done.output
    assert (tmp_path / "c.svg").is_file()
    for wrong in (["--plot", "x.svg"], ["--bode", "V.voltage", "J.ww"], ["--impedance", "s", "--omega", "3", "1"]):
        assert CliRunner().invoke(app, ["network", str(drive), *wrong]).exit_code != 0
    with pytest.raises(pb.PolybodyError, match="expects an input and an output"):
        pb.bode(net)


def test_nodes_and_variables_complete_in_the_shell(drive: Path) -> None:
    from types import SimpleNamespace
    from typing import Any

    from polybody.cli.completion import nodes, responses

    ctx: Any = SimpleNamespace(params={"model": str(drive)}, args=[])
    assert nodes(ctx, "") == ["a", "s"]
    assert nodes(ctx, "a,") == ["a,a", "a,s"]
    assert responses(ctx, "V.") == ["V.voltage", "V.v", "V.i"]


def test_runs_and_the_networks_they_were_made_with_can_be_pickled():
    import pickle

    net = pb.Network("charge")
    net.part("V", "voltage_source", "a", voltage=1)
    net.part("R", "resistor", "a", "b", resistance=2)
    net.part("C", "capacitor", "b", capacitance=1e-3)
    run = pb.simulate(net, 0.01)
    back = pickle.loads(pickle.dumps(run))
    assert np.array_equal(back["C.v"], run["C.v"])
    assert pb.simulate(back.network, 0.01).final["C.v"] == run.final["C.v"]
