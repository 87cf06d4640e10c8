"""Equations and pictures of networks: what they must contain, and how large they may be."""

from __future__ import annotations

import re

import numpy as np
import pytest

import polybody as pb
from polybody.networks.equations import sheet, tree_reasons
from polybody.networks.motion import Motion
from polybody.studio.block_diagram import block_svg
from polybody.studio.circuit_drawing import circuit_svg
from polybody.studio.network_drawing import network_svg


def filter_with_coil():
    net = pb.Network("filter")
    net.part("V", "voltage_source", "a", voltage=1)
    net.part("R", "resistor", "a", "b", resistance=2)
    net.part("C1", "capacitor", "b", capacitance=1e-3)
    net.part("C2", "capacitor", "b", capacitance=1e-3)
    net.part("L", "inductor", "b", inductance=1e-2)
    return net


def test_matrices_are_orthogonal_and_the_tree_says_why():
    net = filter_with_coil()
    motion = Motion(net)
    graph = motion.system({}).assembly.graph.system
    assert not (graph.cutset_matrix() @ graph.circuit_matrix().T).any()
    assert np.linalg.matrix_rank(graph.incidence) == len(graph.vertices)
    why = tree_reasons(net)
    assert why["V"] == "an across driver: always in the tree"
    assert why["C2"].startswith("its across variable follows from others")
    assert why["L"] == "its through variable is a state"


@pytest.mark.parametrize("form", ["text", "latex", "html"])
def test_equations_of_parts_and_of_bodies_are_printed(form):
    said = filter_with_coil().equations(form)
    assert {"text": "C1.i = C1.capacitance*der(C1.v)", "latex": r"\dot{v}_{\mathrm{C1}}",
            "html": "<mover><mi>v</mi><mo>˙</mo></mover>"}[form] in said
    chain = pb.network(pb.load("planar-3r")).equations(form)
    assert "W_G" in chain.replace("\\_", "_")


def test_unknown_form_is_refused():
    with pytest.raises(pb.InputError, match="expected one of text, latex, html"):
        filter_with_coil().equations("pdf")


def test_high_index_is_told_with_the_parts_whose_equations_are_differentiated():
    net = pb.Network("gears")
    net.part("Ja", "inertia", "a", inertia=0.1)
    net.part("G", "gear", "a", "b", ratio=3)
    net.part("Jb", "inertia", "b", inertia=0.5)
    lines = [line for section in sheet(net).sections for line in section.lines]
    assert "index 2: equations of G are differentiated" in lines


def width(svg):
    return int(re.match(r'<svg [^>]*width="(\d+)"', svg)[1])


@pytest.mark.parametrize("name", ["stewart", "delta", "humanoid", "3-rrr", "two-arms"])
def test_large_graphs_fit_a_page_and_show_every_edge(name):
    net = pb.network(pb.load(name))
    graph = net.graph()
    svg = network_svg(net, graph)
    assert width(svg) <= 1600
    for edge in graph.edges:
        assert f"<title>{edge.name}</title>" in svg


def test_block_diagram_has_the_blocks_of_figure_four():
    svg = block_svg(pb.network(pb.load("planar-3r")))
    for k in (1, 2, 3):
        assert svg.count(f">link{k}<") == 3  # in the boxes of K⁻ᵀ, W_G and K⁻¹
        assert f"u_G(link{k})" in svg
        assert f"y(joint{k})" in svg
    for block in ("K⁻ᵀ_b", "W_G", "K⁻¹_b"):
        assert svg.count(f">{block}<") == 3
    closed = block_svg(pb.network(pb.load("four-bar")))
    assert "joined afterwards, by their circuits: " in closed


@pytest.mark.parametrize("name", ["stewart", "delta", "humanoid", "3-rrr"])
def test_block_diagrams_of_large_mechanisms_fit_a_page_and_tell_all_bodies_apart(name):
    net = pb.network(pb.load(name))
    svg = block_svg(net)
    assert width(svg) <= 1600
    labels = re.findall(r">u_G\(([^)]*)\)<", svg)
    assert len(set(labels)) == len(labels) == len(net.parts.bodies)
    tree = [joint for joint in net.parts.joints if f">x({joint})<" in svg]
    assert len(tree) == len(net.parts.bodies)


def test_circuit_is_drawn_with_every_part():
    motion = Motion(filter_with_coil())
    svg = circuit_svg("filter", motion.system({}).assembly.graph)
    for name in ("V", "R", "C1", "C2", "L"):
        assert f"<title>{name}: " in svg
