"""Whatever a file holds, it is read or refused in bounded time and memory, and opens nothing outside its folder."""

from __future__ import annotations

import os
import re
import time
import tracemalloc
import warnings
from pathlib import Path

import pytest

import polybody as pb
from polybody.description import limits
from polybody.description.checks import check_description
from polybody.description.reading import read_description, scan_description

#: of processor time: the machine that runs tests may be busy
SECONDS = 8.0
HEAD = "polybody: 1\nname: x\n"
ONE = HEAD + "bodies: {a: {mass: 1, inertia: [1, 1, 1]}}\njoints: {j: {kind: revolute, parent: world, child: a}}\n"
TWO = (
    HEAD + "bodies: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}\n"
    "joints: {j: {kind: revolute, parent: world, child: a}, k: {kind: revolute, parent: a, child: b}}\n"
)
N = 5000


def link(i: int) -> str:
    return f'<link name="link_{i}"/>\n'


def joint(name: str, parent: str, child: str, more: str = "") -> str:
    return f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>{more}</joint>\n'


def robot(*parts: str) -> str:
    return f"<robot name='r'>{''.join(parts)}</robot>"


LINKS = "".join(link(i) for i in range(N))
CHAIN = "".join(joint(f"j{i}", f"link_{i - 1}", f"link_{i}") for i in range(1, N))
BODIES = "bodies:\n" + "".join(f"  link_{i}: {{mass: 1}}\n" for i in range(N))

HOSTILE = {
    "aliases.yaml": (
        HEAD + "bodies: {a: {visuals: &v [" + "{shape: sphere}, " * 2000 + "]}, "
        + ", ".join(f"b{i}: {{visuals: *v}}" for i in range(5000)) + "}\n",
        "more than 500000 values",
    ),
    "alias-depth.yaml": (HEAD + "x: &a " + "[" * 13 + "]" * 13 + "\ny: " + "[" * 9 + "*a" + "]" * 9, "nested more"),
    "digits.yaml": (ONE.replace("mass: 1", "mass: " + "1" * 40_000 + "x"), "has 40001 characters; a number has"),
    "segments.yaml": (
        HEAD + "flexible_links: {f: {length: 1, mass_per_length: 1, EI: 1, segments: 100000000}}\n",
        "100000000 segments of flexible links; at most 10000",
    ),
    "many-segments.yaml": (
        HEAD + "flexible_links: {"
        + ", ".join(f"f{i}: {{length: 1, mass_per_length: 1, EI: 1, segments: 9000}}" for i in range(9000)) + "}\n",
        "18000 segments of flexible links",
    ),
    "count.yaml": (ONE.replace("polybody: 1", "polybody: " + "1" * 5000), "whole number of at most nine digits"),
    "transmission.yaml": (
        ONE + "transmissions: {t: {joints: [" + "j," * 200_000 + "], matrix: [[1]]}}\n", "couples 200000 joints",
    ),
    "long-name.yaml": (HEAD + '? "' + "b" * 9_000_000 + '"\n: {mas: 1}\n', "no key 'bbbbbb"),
    "misspelt.yaml": (
        HEAD + BODIES + "joints:\n"
        + "".join(f"  j{i}: {{kind: fixed, parent: lnik_{i}, child: link_{i}}}\n" for i in range(N)),
        "'lnik_0' is not a body .did you mean 'link_0'",
    ),
    "misspelt-keys.yaml": (HEAD + BODIES.replace("mass", "mas"), "no key 'mas' .did you mean 'mass'"),
    "cycle.yaml": (
        HEAD + BODIES + "joints:\n  g: {kind: fixed, parent: world, child: link_0}\n"
        + "".join(f"  j{i}: {{kind: fixed, parent: link_{i}, child: link_{(i + 1) % N}}}\n" for i in range(N)),
        r"cycle: link_0 - link_1 - .* 4990 more .* - link_0",
    ),
    "doubled.yaml": (
        HEAD + BODIES + "joints:\n  g: {kind: fixed, parent: world, child: link_0}\n"
        + "".join(f"  j{i}: {{kind: fixed, parent: link_{i // 2}, child: link_{i // 2 + 1}}}\n" for i in range(N)),
        "checking stopped at 100 errors",
    ),
    "misspelt.urdf": (robot(LINKS, CHAIN.replace('parent link="link', 'parent link="lnik')), "did you mean 'link_0'"),
    "doubled.urdf": (
        robot(LINKS, *(joint(f"j{i}", f"link_{i // 2}", f"link_{i // 2 + 1}") for i in range(N - 1))),
        "the child of joint",
    ),
    "mimics.urdf": (
        robot(LINKS, *(joint(f"j{i}", f"link_{i - 1}", f"link_{i}", f"<mimic joint='x{i}'/>") for i in range(1, N))),
        "ignored: 'j1' .of 'x1'.",
    ),
    "cycle.urdf": (robot(LINKS, CHAIN, joint("j0", f"link_{N - 1}", "link_0")), "4990 more"),
    "elements.urdf": (robot("<link/>" * 1_400_000), "more than 400000 elements"),
    "visuals.urdf": (
        robot("<link name='a'>" + "<visual><geometry><sphere radius='1'/></geometry></visual>" * 130_000 + "</link>"),
        "130000 visuals",
    ),
    "links.urdf": (robot("".join(link(i) for i in range(100_000))), "100000 links; at most 10000"),
    "spaces.urdf": (" " * 10_000_000, "empty"),
    "comments.urdf": ("<!---->" * 1_400_000, "more than 400000 elements"),
    "rates.yaml": (
        "polybody: 1\nvelocity_relations:\n" + "".join(
            f"  r{k}: {{{', '.join(f'j{i}: sin(j{i})' for i in range(30))}}}\n" for k in range(6_000)
        ),
        "180000 expressions are .* characters together",
    ),
}  # fmt: skip
#: what must be read, in time that grows with its length alone
LONG = {
    "mimics.urdf": robot(*(link(i) for i in range(6000)), *(
        joint(f"j{i}", f"link_{i - 1}", f"link_{i}", f"<mimic joint='j{i - 1}' multiplier='1.01'/>" if i > 1 else "")
        for i in range(1, 6000)
    )).replace("revolute", "continuous"),
    "frames.sdf": "<sdf version='1.9'><model name='m'><link name='l0'/>" + "".join(
        f"<frame name='f{k}' attached_to='{'l0' if k == 5999 else f'f{k + 1}'}'/>" for k in range(6000)
    ) + "</model></sdf>",
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_chains_of_names_are_followed_in_linear_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LONG[name], encoding="utf-8")
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pb.load(path)
    assert time.process_time() - started < SECONDS
    assert model.nv == (1 if "mimics" in name else 6)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_answered_in_bounded_time_and_memory(name: str, tmp_path: Path) -> None:
    text, message = HOSTILE[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert path.stat().st_size <= 10_000_000
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        description, problems = scan_description(path)
    if description is not None:
        problems += check_description(description)
    assert time.process_time() - started < SECONDS
    told = "\n".join([*map(str, problems), *(str(w.message) for w in caught)])
    assert re.search(message, told), told[:500]
    assert len(problems) <= 2 * limits.PROBLEMS + 2
    assert len(told) < 500_000


def test_memory_of_reading_grows_with_the_number_of_links(tmp_path: Path) -> None:
    used = []
    for n in (200, 800):
        path = tmp_path / f"{n}.urdf"
        joints = (joint(f"j{i}", f"link_{i - 1}", f"link_{i}") for i in range(1, n))
        path.write_text(robot(*(link(i) for i in range(n)), *joints), encoding="utf-8")
        tracemalloc.start()
        check_description(read_description(path))
        used.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert used[1] < 6 * used[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and devices with names")
@pytest.mark.parametrize("suffix", ["yaml", "urdf", "xml"])
def test_pipes_and_devices_are_refused_at_once(suffix: str, tmp_path: Path) -> None:
    pipe, zero = tmp_path / f"pipe.{suffix}", tmp_path / f"zero.{suffix}"
    os.mkfifo(pipe)
    zero.symlink_to("/dev/zero")
    for path in (pipe, zero):
        with pytest.raises(pb.InputError, match="not a file but a folder, a pipe or a device"):
            pb.load(path)


def mjcf(body: str, more: str = "") -> str:
    return f"<mujoco>{more}\n<worldbody>{body}</worldbody></mujoco>"


BALL = "<body><joint/><geom size='1'/></body>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (mjcf(f"<replicate count='100000'>{BALL}</replicate>"), "<replicate> expands to more than"),
        (mjcf(f"<replicate count='999'><replicate count='999'>{BALL}</replicate></replicate>"), "expands to more than"),
        (mjcf("<body name='b'><flexcomp name='f' count='3000 3000 1' type='grid'/></body>"), "expands to more than"),
        (mjcf(BALL * 30_000), "expands to more than"),
        (mjcf(BALL, "<size nuser_body='100000000'/>"), "nuser_body='100000000'>: expected a number of at most 1000"),
        (mjcf(BALL, "<size nkey='1e9'/>"), "nkey='1e9'>: expected a number"),
        (mjcf(BALL, "<asset><hfield name='h' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>"), "cells"),
        (mjcf(BALL, "<asset><texture name='t' builtin='flat' width='99999' height='99999'/></asset>"), "cells"),
        (mjcf("<body>" * 250 + "</body>" * 250, "<include file='deeper'/>"), "nested more than"),
        (mjcf(BALL, f"<asset><mesh name='m' vertex='{'1 0 0 ' * 20_000}'/></asset>"), "more than 45000 numbers"),
        (mjcf(BALL, "<equality><connect body1='a' body2='b' anchor=''/></equality>"), "anchor=''> is empty"),
        (mjcf(f"\n<body><joint/><geom size='x'/></body>{BALL}"), r"model\.xml:3"),
    ],
)
def test_mjcf_that_would_compile_to_something_huge_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "deeper").write_text(mjcf("<body>" * 200 + "<include file='more'/>" + "</body>" * 200))
    (tmp_path / "more").write_text("<mujocoinclude>" + "<body>" * 200 + "</body>" * 200 + "</mujocoinclude>")
    started = time.process_time()
    with pytest.raises(pb.InputError, match=message):
        read_description(tmp_path / "model.xml")
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("secret", ["../secret.xml", "{outside}/secret.xml", "link/secret.xml", "link.txt"])
@pytest.mark.parametrize("part", ["part2", "part.txt", "part.xml"])
def test_includes_of_any_name_stay_in_the_folder(secret: str, part: str, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret.xml").write_text(f"<mujoco><worldbody>{BALL}</worldbody></mujoco>")
    (tmp_path / "secret.xml").write_text(f"<mujoco><worldbody>{BALL}</worldbody></mujoco>")
    (inside / "link").symlink_to(outside)
    (inside / "link.txt").symlink_to(outside / "secret.xml")
    (inside / "model.xml").write_text(f"<mujoco><include file='{part}'/></mujoco>")
    (inside / part).write_text(f"<mujoco><include file='{secret.format(outside=outside)}'/></mujoco>")
    with pytest.raises(pb.InputError, match=r"leaves the folder|relative to the file's folder"):
        read_description(inside / "model.xml")


def test_files_of_attached_models_stay_in_the_folder_and_are_read_from_memory(tmp_path: Path) -> None:
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    mesh = "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    inside = tmp_path / "inside"
    (inside / "parts" / "shapes").mkdir(parents=True)
    (tmp_path / "corner.obj").write_text(mesh)
    (inside / "parts" / "shapes" / "corner.obj").write_text(mesh)
    arm = "<mujoco model='arm'><compiler meshdir='{}'/><asset><mesh file='corner.obj'/></asset><worldbody>"
    arm += "<body name='a'><joint/><geom type='mesh' mesh='corner'/></body></worldbody></mujoco>"
    attach = "<asset><model name='arm' file='parts/arm.xml'/></asset>"
    (inside / "model.xml").write_text(
        mjcf("<body name='r'><geom size='1'/><attach model='arm' body='a' prefix='l_'/></body>", attach)
    )
    (inside / "parts" / "arm.xml").write_text(arm.format("shapes"))
    masses = {body.name: body.mass for body in read_description(inside / "model.xml").bodies}
    assert masses["l_a"] == pytest.approx(1000 / 6)
    (inside / "parts" / "arm.xml").write_text(arm.format("../.."))
    with pytest.raises(pb.InputError, match="leaves the folder"):
        read_description(inside / "model.xml")
    (inside / "parts" / "arm.xml").write_text(f"<mujoco>{attach.replace('parts/', '')}</mujoco>")
    with pytest.raises(pb.InputError, match="is a part of itself"):
        read_description(inside / "model.xml")


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.yaml", "polybody: 1\nname: x\ngravity: [0, 0, 1e308]\nbodies: {b: {mass: 1}}\njoints: {j: {kind: revolute, "
         "parent: world, child: b}}\n", "gravity"),
        ("a.yaml", "polybody: 1\nname: x\nflexible_links: {f: {length: 1e200, mass_per_length: 1, EI: 1, "
         "segments: 2}}\n", "f"),
        ("a.sdf", '<sdf version="1.9"><model name="m"><include><uri>' + "a" * 999 + "</uri></include></model></sdf>",
         "no file"),
        ("a.sdf", '<sdf version="1.9"><model name="m"><link name="a"/><frame name="world"/></model></sdf>', "world"),
    ],
)  # fmt: skip
def test_numbers_and_names_that_overflow_are_refused(tmp_path: Path, name: str, text: str, word: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(pb.InputError, match=word):
        pb.load(path)
