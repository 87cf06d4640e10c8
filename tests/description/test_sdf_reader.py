"""SDF: poses as its frame semantics say, loops cut at the right joint, and MuJoCo's dynamics of the same machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from polybody.algebra.rotations import quaternion_matrix, rpy_matrix
from polybody.description.cutting import Edge, spanning_tree
from polybody.description.reading import scan_description

INERTIAL = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"
pytestmark = pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")


def written(folder: Path, body: str, version: str = "1.9", name: str = "robot.sdf") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<sdf version="{version}"><model name="robot">\n{body}\n</model></sdf>')
    return path


def link(name: str, pose: str = "", more: str = "") -> str:
    return f'<link name="{name}">{pose and f"<pose {more}>{pose}</pose>"}{INERTIAL}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "<axis/>", pose: str = "") -> str:
    placed = f"<pose>{pose}</pose>" if pose else ""
    return f'<joint name="{name}" type="{kind}">{placed}<parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def refused(path: Path) -> str:
    with pytest.raises(pb.InputError) as caught:
        pb.load(path)
    return str(caught.value)


def pose(values: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rpy_matrix(values[3:]), values[:3]
    return T


def numbers(values: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in values)


def test_random_trees_have_the_mass_matrix_and_bias_that_mujoco_gives_them(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(4)
    parents, kinds = [-1, 0, 1, 0, 3], ["revolute", "prismatic", "revolute", "universal", "continuous"]
    sdf, places, mj, children = "", [], {}, {i: [k for k, p in enumerate(parents) if p == i] for i in range(-1, 5)}
    for i, (parent, kind) in enumerate(zip(parents, kinds, strict=True)):
        place, inside, anchor = rng.normal(0, 0.6, (3, 6))
        places.append(pose(place))
        A = rng.normal(size=(3, 3))
        I = A @ A.T + 20 * np.eye(3)
        mass, axes = float(rng.uniform(1, 3)), rng.normal(size=(2, 3))
        diagonal, turn = (
            [
                f"<{k}>{float(I[a, b])!r}</{k}>"
                for k, (a, b) in {
                    "ixx": (0, 0),
                    "iyy": (1, 1),
                    "izz": (2, 2),
                    "ixy": (0, 1),
                    "ixz": (0, 2),
                    "iyz": (1, 2),
                }.items()
            ],
            inside,
        )
        sdf += (
            f'<link name="l{i}"><pose>{numbers(place)}</pose><inertial><pose>{numbers(turn)}</pose>'
            f"<mass>{mass!r}</mass><inertia>{''.join(diagonal)}</inertia></inertial></link>"
        )
        # the first axis is said in the model's axes, the second in the joint's own
        said = f'<axis><xyz expressed_in="__model__">{numbers(axes[0])}</xyz></axis>'
        said += f"<axis2><xyz>{numbers(axes[1])}</xyz></axis2>" if kind == "universal" else ""
        sdf += joint(f"j{i}", "world" if parent < 0 else f"l{parent}", f"l{i}", kind, said, numbers(anchor))
        R, J = places[i][:3, :3], pose(anchor)
        hinges = [(R.T @ axes[0]), J[:3, :3] @ axes[1]][: 2 if kind == "universal" else 1]
        X = np.eye(4) if parent < 0 else places[parent]
        relative = np.linalg.inv(X) @ places[i]
        Rc = pose(inside)
        full = Rc[:3, :3] @ I @ Rc[:3, :3].T
        mj[i] = (relative, [h / np.linalg.norm(h) for h in hinges], J[:3, 3], kind, mass, Rc[:3, 3], full)

    def body(i: int) -> str:
        T, hinges, at, kind, mass, com, I = mj[i]
        q = np.empty(4)
        mujoco.mju_mat2Quat(q, T[:3, :3].ravel())
        word = "slide" if kind == "prismatic" else "hinge"
        joints = "".join(f'<joint type="{word}" axis="{numbers(h)}" pos="{numbers(at)}"/>' for h in hinges)
        entries = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        return (
            f'<body pos="{numbers(T[:3, 3])}" quat="{numbers(q)}">{joints}<inertial pos="{numbers(com)}" '
            f'mass="{mass!r}" fullinertia="{numbers(np.array(entries))}"/>{"".join(map(body, children[i]))}</body>'
        )

    reference = mujoco.MjModel.from_xml_string(
        f"<mujoco><compiler autolimits='true'/><worldbody>{body(0)}</worldbody></mujoco>"
    )
    model = pb.load(written(tmp_path, sdf))
    assert (model.nv, model.joint_names) == (6, ["j0", "j1", "j2", "j3", "j4"])
    order = [0, 1, 2, 4, 3, 5]  # ours of the universal joint runs from the child outwards
    data = mujoco.MjData(reference)
    for _ in range(5):
        q, v = rng.normal(size=(2, 6))
        data.qpos[:], data.qvel[:] = q[order], v[order]
        mujoco.mj_forward(reference, data)
        M = np.column_stack([_column(mujoco, reference, data, k) for k in range(6)])
        assert_allclose(model.mass_matrix(q)[np.ix_(order, order)], M, rtol=0, atol=1e-9 * np.abs(M).max())
        bias = model.bias_forces(q, v)[order]
        assert_allclose(bias, data.qfrc_bias, rtol=0, atol=1e-9 * np.abs(bias).max())


def _column(mujoco, model, data, k):  # type: ignore[no-untyped-def]
    unit, result = np.eye(model.nv)[k], np.zeros(model.nv)
    mujoco.mj_mulM(model, data, result, unit)
    return result


def test_frames_stand_where_the_semantics_put_them(tmp_path: Path) -> None:
    body = (
        link("base", "1 0 0 0 0 0")
        + '<frame name="tip" attached_to="base"><pose degrees="true">0 0 2 0 0 90</pose></frame>'
    )
    body += '<frame name="beyond" attached_to="tip"><pose>1 0 0 0 0 0</pose></frame>'
    body += '<link name="arm"><pose relative_to="beyond">0 0 0.5 0 0 0</pose>' + INERTIAL + "</link>"
    body += '<frame name="elsewhere" attached_to="arm"><pose relative_to="__model__">0 0 0 0 0 0</pose></frame>'
    body += joint("root", "world", "base", "fixed", "") + joint("hinge", "base", "arm")
    model = pb.load(written(tmp_path, body))
    q = model.neutral()
    assert_allclose(model.pose(q, "tip")[:3, 3], [1, 0, 2], atol=1e-15)
    assert_allclose(model.pose(q, "beyond")[:3, 3], [1, 1, 2], atol=1e-15)
    assert_allclose(model.pose(q, "arm")[:3, 3], [1, 1, 2.5], atol=1e-15)
    assert_allclose(model.pose(q, "elsewhere"), np.eye(4), atol=1e-15)
    turned = model.pose([np.pi], "elsewhere")[:3, 3]  # it moves with the arm: half a turn about (1, 1)
    assert_allclose(turned, [2, 2, 0], atol=1e-14)


def test_nested_and_included_models_are_named_by_their_scopes(tmp_path: Path) -> None:
    written(tmp_path, link("finger", "0 0 1 0 0 0"), name="gripper/model.sdf")
    body = (
        link("base")
        + f"""
        <include><uri>model://gripper</uri><name>left</name><pose>0 1 0 0 0 0</pose></include>
        <include merge="true"><uri>gripper/model.sdf</uri><pose>0 0 5 0 0 0</pose></include>
        <model name="inner" placement_frame="hook"><pose>3 0 0 0 0 0</pose>{link("part", "0 0 1 0 0 0")}
          <frame name="hook" attached_to="part"><pose>0 0 1 0 0 0</pose></frame></model>"""
    )
    for i, child in enumerate(("base", "left::finger", "finger", "inner::part")):
        body += joint(f"j{i}", "world", child, "fixed", "")
    body += joint("last", "world", "extra") + link("extra")
    model = pb.load(written(tmp_path, body))
    q = model.neutral()
    assert_allclose(model.pose(q, "left::finger")[:3, 3], [0, 1, 1])
    assert_allclose(model.pose(q, "finger")[:3, 3], [0, 0, 6])
    assert_allclose(model.pose(q, "inner::hook")[:3, 3], [3, 0, 0])
    assert_allclose(model.pose(q, "inner::part")[:3, 3], [3, 0, -1])


def test_loops_are_cut_where_the_fewest_equations_remain(tmp_path: Path) -> None:
    body = link("a", "0 0 0 0 0 0") + link("b", "1 0 0 0 0 0") + link("c", "1 1 0 0 0 0")
    body += joint("ja", "world", "a") + joint("jb", "a", "b", "ball", "") + joint("jc", "b", "c")
    body += joint("jd", "world", "c", "revolute", "<axis/>", "0 0 0 0 0 0")
    model = pb.load(written(tmp_path, body))
    assert [loop.name for loop in model.description.loops] == ["jb"]
    assert_allclose(model.constraints.residual(model.neutral()), 0, atol=1e-15)


def test_four_bar_is_the_shipped_one(tmp_path: Path) -> None:
    inertia = "<inertia><ixx>{}</ixx><iyy>{}</iyy><izz>{}</izz></inertia>"
    bar = f"<inertial><pose>{{}} 0 0 0 0 0</pose><mass>{{}}</mass>{inertia}</inertial>"
    crank, rod = bar.format(0.1, 0.4, 2e-5, 0.00134333, 0.00134333), bar.format(0.25, 1, 5e-5, 0.0208583, 0.0208583)
    axis = "<axis><xyz>0 0 1</xyz></axis>"
    body = f"""<link name="crank"><pose degrees="true">0 0 0 0 0 90</pose>{crank}</link>
        <link name="coupler"><pose relative_to="end"/>{rod}</link>
        <link name="rocker"><pose degrees="true">0.4 0 0 0 0 90</pose>{rod}</link>
        <frame name="end" attached_to="crank"><pose>0.2 0 0 0 0 {float(-np.arctan2(0.8, 0.6))!r}</pose></frame>"""
    body += joint("crank_joint", "world", "crank", "revolute", axis) + joint("k", "crank", "coupler", "revolute", axis)
    body += joint("r", "world", "rocker", "revolute", axis)
    body += joint("pin", "rocker", "coupler", "revolute", axis, "0.5 0 0 0 0 0")
    model, shipped = pb.load(written(tmp_path, body)).with_gravity((0, -9.81, 0)), pb.load("four-bar")
    assert model.mobility().true == 1
    q = shipped.assemble([0.4, 0, 0], hold=["crank_joint"])
    q = shipped.assemble(q)
    assert_allclose(model.mass_matrix(q), shipped.mass_matrix(q), rtol=1e-12)
    assert_allclose(model.gravity_forces(q), shipped.gravity_forces(q), rtol=1e-12)


def test_bases_are_as_the_file_says_or_as_asked(tmp_path: Path) -> None:
    body = link("base", "0 0 1 0 0 0") + link("arm") + joint("hinge", "base", "arm")
    free = written(tmp_path, body)
    assert pb.load(free).joint_names == ["root_joint", "hinge"]
    assert pb.load(free, base="fixed").joint_names == ["hinge"]
    assert_allclose(pb.load(free, base="fixed").pose([0.3], "base")[:3, 3], [0, 0, 1])
    static = written(tmp_path, "<static>true</static>" + body, name="static.sdf")
    assert pb.load(static, base="floating").nv == 7


def test_screws_mimics_limits_and_springs(tmp_path: Path) -> None:
    def axis(inside: str) -> str:
        return f"<axis><xyz>0 0 1</xyz>{inside}</axis>"

    limits = "<limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>3</velocity></limit>"
    spring = "<spring_stiffness>4</spring_stiffness><spring_reference>0.2</spring_reference>"
    spring = f"<dynamics><damping>0.5</damping>{spring}</dynamics>"
    mimic = '<mimic joint="a"><multiplier>2</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>'
    body = "".join(link(x) for x in "abcd")
    body += joint("a", "world", "a", "revolute", axis(limits + spring)).replace('name="a" type', 'name="a" type')
    body = body.replace('<link name="a">', '<link name="link_a">').replace("<child>a</child>", "<child>link_a</child>")
    body += joint("f", "link_a", "b", "revolute", axis(mimic))
    body += joint("s", "b", "c", "screw", "<screw_thread_pitch>0.01</screw_thread_pitch>" + axis(""))
    body += joint("t", "c", "d", "screw", "<thread_pitch>-100</thread_pitch>" + axis(""))
    model = pb.load(written(tmp_path, body, "1.11"))
    assert model.followers == {"f": ("a", 2.0, 0.5 - 0.2)}
    pitches = {j.name: j.pitch for j in model.description.joints}
    assert_allclose([pitches["s"], pitches["t"]], [0.01 / (2 * np.pi), 0.01])
    assert_allclose(model.passive_forces([0.5, 0, 0], [0.1, 0, 0])[0], -4 * 0.3 - 0.5 * 0.1)
    bounds = model.joint_limits()
    assert (bounds["lower"][0], bounds["upper"][0], bounds["velocity"][0]) == (-1, np.inf, 3)


def test_problems_are_listed_together_with_their_lines(tmp_path: Path) -> None:
    body = link("base") + "\n" + joint("one", "bse", "base") + "\n" + joint("two", "world", "base", "gearbox") + "\n"
    body += '<frame name="f" attached_to="base"><pose>0 0 zero 0 0 0</pose></frame>\n'
    body += '<frame name="g"><pose relative_to="nowhere"/></frame>'
    description, problems = scan_description(written(tmp_path, body))
    assert description is None
    told = "\n".join(str(problem) for problem in problems)
    for line in (
        "robot.sdf:3: joint 'one', <parent>: no frame 'bse' (did you mean 'base'?)",
        "robot.sdf:4: joint 'two' has type 'gearbox'",
        "robot.sdf:5: frame 'f': <pose> is '0 0 zero 0 0 0'; expected 6 finite numbers",
        "robot.sdf:6: frame 'g': no frame 'nowhere'",
    ):
        assert line in told, told


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (
            link("a", "0 0 0 0 0 0", 'relative_to="f"') + '<frame name="f"><pose relative_to="a"/></frame>',
            "in a circle",
        ),
        (link("a") + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>', "circle"),
        ("<include><uri>robot.sdf</uri></include>", "includes itself"),
        ("<include><uri>../secret.sdf</uri></include>", "no file"),
        ("<include><uri>/etc/passwd</uri></include>", "no file"),
        ("<include><uri>https://example.org/x.sdf</uri></include>", "no file"),
        (link("a") + link("a"), "two elements are named 'a'"),
        (link("a") + '<frame name="world"/>', "two elements are named 'world'"),
        (link("a") + joint("j", "world", "a", "revolute", "<axis><xyz>0 0 0</xyz></axis>"), "no direction"),
        ("", "no <link>"),
    ],
)
def test_hostile_and_broken_files_are_refused_by_name(tmp_path: Path, body: str, word: str) -> None:
    (tmp_path / "secret.sdf").write_text('<sdf version="1.9"><model name="x"><link name="hidden"/></model></sdf>')
    assert word in refused(written(tmp_path / "inside", body))


def test_old_versions_are_refused(tmp_path: Path) -> None:
    assert "1.7 and later" in refused(written(tmp_path, link("a"), "1.6"))


def test_what_is_not_modelled_is_named(tmp_path: Path) -> None:
    body = link("a").replace("</link>", "<kinematic>true</kinematic><gravity>false</gravity></link>") + "<plugin/>"
    with pytest.warns(pb.PolybodyWarning, match="not modelled: plugins, kinematic links, links without gravity"):
        pb.load(written(tmp_path, body))


def test_spanning_tree_keeps_what_carries_something() -> None:
    ring = [Edge("world", "a", 1), Edge("a", "b", 1), Edge("b", "world", 1)]
    assert spanning_tree(ring) == [True, False, True]
    driven = [ring[0], Edge("a", "b", 1, carries=True), ring[2]]
    assert spanning_tree(driven).count(False) == 1
    assert spanning_tree(driven)[1]


def test_quaternion_poses_are_read(tmp_path: Path) -> None:
    q = np.array([0.1, -0.2, 0.3, 0.9])
    q /= np.linalg.norm(q)
    model = pb.load(written(tmp_path, link("a", f"1 2 3 {numbers(q)}", 'rotation_format="quat_xyzw"')), base="fixed")
    assert_allclose(model.pose([], "a")[:3, :3], quaternion_matrix(q), atol=1e-15)


def _place(model: pb.Model, name: str) -> np.ndarray:
    return next(j for j in model.description.joints if j.name == name).origin[:3, 3]


@pytest.mark.parametrize("merge", [False, True])
def test_parts_are_placed_on_frames_of_the_model_around_them(merge: bool, tmp_path: Path) -> None:
    palm = '<frame name="mount"><pose>0 0 0.5 0 0 0</pose></frame>'
    palm += link("palm", "0 0 2 0 0 0", 'relative_to="__model__"')
    written(tmp_path, palm, name="palm.sdf")
    said = f'''<include merge="{str(merge).lower()}"><uri>palm.sdf</uri><name>hand</name>
      <placement_frame>mount</placement_frame><pose relative_to="flange">0 1 0 0 0 0</pose></include>
      <frame name="flange" attached_to="base"><pose>1 0 0 0 0 0</pose></frame>'''
    held = joint("hold", "world", "base", "fixed", "") + joint("j", "base", "palm" if merge else "hand::palm")
    model = pb.load(written(tmp_path, link("base") + said + held))
    assert_allclose(_place(model, "j"), [1, 1, 1.5], atol=1e-15)


def test_placements_inside_placements(tmp_path: Path) -> None:
    inner = '<model name="n" placement_frame="p"><pose>1 0 0 0 0 0</pose>' + link("l")
    inner += '<frame name="p"><pose>0 3 0 0 0 0</pose></frame></model>'
    path = tmp_path / "robot.sdf"
    outer = f'<model name="o" placement_frame="n::p"><pose>5 0 0 0 0 0</pose>{inner}</model>'
    path.write_text(f'<sdf version="1.9">{outer}</sdf>')
    assert_allclose(_place(pb.load(path, base="fixed"), "root_joint"), [5, -3, 0], atol=1e-15)


def test_a_world_names_its_only_model_and_places_models_on_its_frames(tmp_path: Path) -> None:
    path = tmp_path / "world.sdf"
    hold = joint("hold", "world", "arm::base", "fixed", "")
    path.write_text('<sdf version="1.9"><world name="w"><model name="arm"><pose relative_to="table"/>'
                    f'{link("base")}</model><frame name="table"><pose>0 0 1 0 0 0</pose></frame>{hold}</world></sdf>')
    model = pb.load(path)
    assert model.nv == 0
    assert_allclose(_place(model, "hold"), [0, 0, 1])
    path.write_text('<sdf version="1.9"><world name="w"><model name="a"/></world><world name="x"/></sdf>')
    assert "one world is read" in refused(path)


def test_joints_inside_static_models_do_not_move(tmp_path: Path) -> None:
    nested = f"<model name='n'><static>true</static>{link('leaf')}</model>"
    body = "<static>1</static>" + link("wall") + link("door") + nested + joint("hinge", "wall", "door")
    assert pb.load(written(tmp_path, body)).nv == 0
    assert pb.load(written(tmp_path, link("wall") + link("door") + joint("hinge", "wall", "door"))).nv == 7


def test_what_would_be_lost_is_named(tmp_path: Path) -> None:
    automatic = '<link name="a"><inertial auto="true"/></link>'
    assert "auto='true'" in refused(written(tmp_path, automatic))
    path = tmp_path / "robot.sdf"
    path.write_text(f'<sdf version="1.9"><model name="r" canonical_link="nope">{link("a")}</model></sdf>')
    assert "no link 'nope'" in refused(path)
    decaying = link("a").replace("</link>", "<velocity_decay><linear>1</linear></velocity_decay></link>")
    with pytest.warns(pb.PolybodyWarning, match="velocity_decay"):
        pb.load(written(tmp_path, decaying))


def test_a_loop_is_not_cut_where_another_joint_follows(tmp_path: Path) -> None:
    parts = [link(name) for name in ("base", "a", "b")] + [joint("hold", "world", "base", "fixed", "")]
    parts += [joint("free", "base", "a"), joint("lead", "a", "b")]
    parts += [joint("follow", "base", "b", inside="<axis><mimic joint='lead'/></axis>")]
    description, problems = scan_description(written(tmp_path, "".join(parts)))
    assert not problems
    assert [loop.name for loop in description.loops] == ["free"]


def test_cycles_of_fixed_joints_are_one_rigid_body(tmp_path: Path) -> None:
    """Three links welded in a triangle, on a hinge: the third weld says nothing new, and is named."""
    parts = link("a", "1 0 0 0 0 0.2") + link("b", "1 1 0 0.3 0 0") + link("c", "0 1 0.5 0 0 0")
    welds = joint("ab", "a", "b", "fixed", "") + joint("bc", "b", "c", "fixed", "")
    hinge = joint("h", "world", "a", inside="<axis><xyz>0 1 0</xyz></axis>")
    plain = pb.load(written(tmp_path, parts + welds + hinge))
    path = written(tmp_path, parts + welds + joint("ca", "c", "a", "fixed", "") + hinge, name="cycle.sdf")
    with pytest.warns(pb.PolybodyWarning, match=r"closing cycles of fixed joints.*: bc"):
        model = pb.load(path)
    assert not model.description.loops
    q = np.array([0.7])
    assert_allclose(model.mass_matrix(q), plain.mass_matrix(q), rtol=1e-12)
    assert_allclose(model.pose(q, "c"), plain.pose(q, "c"), atol=1e-12)


def test_what_an_include_says_of_its_model_is_named_or_refused(tmp_path: Path) -> None:
    written(tmp_path, link("tip"), name="part.sdf")
    whole = "<include><uri>part.sdf</uri>{}</include>"
    with pytest.warns(pb.PolybodyWarning, match=r"not modelled: plugins"):
        pb.load(written(tmp_path, whole.format('<plugin name="p" filename="f"/>')))
    assert "<params> changes what is included and is not read" in refused(
        written(tmp_path, whole.format('<e:params xmlns:e="http://sdformat.org/schemas/e"/>'))
    )
