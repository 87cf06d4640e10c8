"""xacro files: expanded as the package does it, errors at their own lines, and nothing of a hostile file gets out."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import polybody as pb
from polybody.description.reading import scan_description
from polybody.description.records import same_description
from polybody.description.xacro.expressions import require_plain

pytest.importorskip("xacro")

NAMESPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
ARM = f"""<?xml version="1.0"?>
<robot name="arm" {NAMESPACE}>
  <xacro:arg name="prefix" default=""/>
  <xacro:arg name="length" default="0.5"/>
  <xacro:property name="L" value="$(arg length)"/>
  <xacro:include filename="$(find my_robot)/urdf/parts.xacro"/>
  <link name="world"/>
  <xacro:segment name="$(arg prefix)one" parent="world" length="${{L}}"/>
  <xacro:if value="${{L > 0.1}}">
    <xacro:segment name="$(arg prefix)two" parent="$(arg prefix)one" length="${{2*L}}"/>
  </xacro:if>
</robot>
"""
PARTS = f"""<robot {NAMESPACE}>
  <xacro:macro name="segment" params="name parent length">
    <link name="${{name}}">
      <inertial>
        <origin xyz="0 0 ${{length/2}}"/>
        <mass value="${{2*length}}"/>
        <inertia ixx="${{length**2/6}}" iyy="${{length**2/6}}" izz="0.001" ixy="0" ixz="0" iyz="0"/>
      </inertial>
    </link>
    <joint name="${{name}}_joint" type="revolute">
      <parent link="${{parent}}"/>
      <child link="${{name}}"/>
      <axis xyz="0 1 0"/>
      <limit lower="${{-pi}}" upper="${{pi}}" effort="1" velocity="1"/>
    </joint>
  </xacro:macro>
</robot>
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "my_robot"
    (folder / "urdf").mkdir(parents=True)
    (folder / "package.xml").write_text("<package><name>my_robot</name></package>")
    (folder / "urdf" / "arm.xacro").write_text(ARM)
    (folder / "urdf" / "parts.xacro").write_text(PARTS)
    return folder


def one_file(package: Path, body: str, name: str = "robot.xacro") -> Path:
    path = package / "urdf" / name
    path.write_text(f'<robot name="r" {NAMESPACE}>\n{body}\n<link name="base"/></robot>')
    return path


def refused(path: Path, **options: object) -> str:
    with pytest.raises(pb.InputError) as caught:
        pb.load(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
def test_expanded_file_equals_the_urdf_written_by_hand(package: Path) -> None:
    def segment(name: str, parent: str, length: float) -> str:
        I = length**2 / 6
        return f"""<link name="{name}"><inertial><origin xyz="0 0 {length / 2}"/><mass value="{2 * length}"/>
            <inertia ixx="{I}" iyy="{I}" izz="0.001"/></inertial></link>
            <joint name="{name}_joint" type="revolute"><parent link="{parent}"/><child link="{name}"/>
            <axis xyz="0 1 0"/><limit lower="-3.141592653589793" upper="3.141592653589793" effort="1" velocity="1"/>
            </joint>"""

    by_hand = package / "urdf" / "hand.urdf"
    parts = segment("left_one", "world", 0.3) + segment("left_two", "left_one", 0.6)
    by_hand.write_text(f'<robot name="arm"><link name="world"/>{parts}</robot>')
    model = pb.load(package / "urdf" / "arm.xacro", arguments={"prefix": "left_", "length": 0.3})
    assert same_description(
        pb.load(by_hand).description, type(model.description)(**{**vars(model.description), "source": None})
    )


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
def test_bodies_know_the_line_of_the_macro_they_come_from(package: Path) -> None:
    model = pb.load(package / "urdf" / "arm.xacro")
    assert [body.source for body in model.description.bodies] == ["parts.xacro:3", "parts.xacro:3"]
    assert pb.load(package / "urdf" / "arm.xacro", arguments={"length": 0.05}).nv == 1


def test_errors_of_reading_name_the_original_file_and_line(package: Path) -> None:
    parts = package / "urdf" / "parts.xacro"
    parts.write_text(PARTS.replace('<mass value="${2*length}"/>', ""))
    description, problems = scan_description(package / "urdf" / "arm.xacro")
    assert description is None
    assert {problem.source for problem in problems if "mass" in problem.message} == {"parts.xacro:4"}


def test_errors_of_expansion_name_the_original_file_and_line(package: Path) -> None:
    (package / "urdf" / "parts.xacro").write_text(PARTS.replace("${2*length}", "${2*lenght}"))
    said = refused(package / "urdf" / "arm.xacro")
    assert said.startswith("parts.xacro:6: ")
    assert "lenght" in said


def test_unknown_arguments_get_the_nearest_name(package: Path) -> None:
    assert "no argument 'prefx' (did you mean 'prefix'?)" in refused(
        package / "urdf" / "arm.xacro", arguments={"prefx": "left_"}
    )
    plain = package / "plain.urdf"
    plain.write_text('<robot name="r"><link name="base"/></robot>')
    assert "this one has none" in refused(plain, arguments={"a": 1})
    assert "expected text, a number or a boolean" in refused(
        package / "urdf" / "arm.xacro", arguments={"prefix": ["left_"]}
    )


def test_macros_in_a_file_named_urdf_are_expanded(package: Path) -> None:
    body = '<xacro:property name="n" value="tool"/><joint name="j" type="fixed"><parent link="base"/>' \
        '<child link="${n}"/></joint><link name="${n}"/>'
    model = pb.load(one_file(package, body, "robot.urdf"))
    assert "tool" in model.frame_names


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__", "(lambda: 1)()", "[x for x in ().__class__.__mro__]", "(x for x in [1]).gi_frame",
        "'{0.real}'.format(1)", "python.type('X')", "python.vars()", "str.mro()", "x := 1", "__import__('os')",
        "[f for f in [1]][0].f_back", "await x", "1 +", "a" * 3000,
    ],
)  # fmt: skip
def test_expressions_that_lead_out_of_arithmetic_are_refused(expression: str) -> None:
    with pytest.raises(pb.InputError):
        require_plain(expression)


@pytest.mark.parametrize("expression", ["2*pi + sin(x)", "[a*2 for a in (1, 2)][0]", "x if y else z", "cfg.arm['m']"])
def test_plain_expressions_are_allowed(expression: str) -> None:
    require_plain(expression)


def test_files_cannot_run_code_or_read_outside_their_package(package: Path, tmp_path: Path) -> None:
    proof, secret = tmp_path / "proof", tmp_path / "secret.yaml"
    secret.write_text("word: hunter2")
    attempts = {
        f"""<xacro:property name="p" value="$(eval open('{proof}', 'w'))"/><link name="${{p}}"/>""": "open",
        """<link name="${[c for c in ().__class__.__base__.__subclasses__()]}"/>""": "__class__",
        f"""<link name="${{xacro.load_yaml('{secret}')['word']}}"/>""": "outside the package",
        """<xacro:include filename="../../secret.yaml"/>""": "outside the package",
        f"""<xacro:include filename="{secret}"/>""": "outside the package",
        """<xacro:include filename="$(find ..)/secret.yaml"/>""": "no such package",
        """<link name="$(env HOME)"/>""": "HOME",
    }
    for body, word in attempts.items():
        said = refused(one_file(package, body))
        assert word in said, said
        assert "hunter2" not in said
    assert not proof.exists()


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_links_out_of_the_package_are_followed_and_refused(package: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.xacro").write_text(PARTS)
    (package / "urdf" / "link.xacro").symlink_to(tmp_path / "elsewhere.xacro")
    assert "outside the package" in refused(one_file(package, '<xacro:include filename="link.xacro"/>'))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "without end"),
        ('<xacro:include filename="robot.xacro"/>', "more than 100 files"),
        ('<link name="${[0] * 10**12}"/>', ""),
        ('<link name="${9**9**9**9}"/>', ""),
    ],
)
def test_expansions_without_end_end_with_a_message(package: Path, body: str, word: str) -> None:
    assert word in refused(one_file(package, body))


def test_document_types_are_refused_in_included_files(package: Path) -> None:
    (package / "urdf" / "bomb.xacro").write_text(
        f'<!DOCTYPE robot [<!ENTITY a "aaaa">]><robot {NAMESPACE}>&a;</robot>'
    )
    assert "document type" in refused(one_file(package, '<xacro:include filename="bomb.xacro"/>'))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("""<link name="${'\\ud800'}"/>""", "UTF-8"),
        ("<link name='q'><xacro:attribute name='polybody_source' value='99:5'/></link>", "2 root links"),
        ("<link name='q'><xacro:attribute name='polybody_source' value='x:5'/></link>", "2 root links"),
        ("""<link name="$(env PYTHONPATH)"/>""", "is not set"),
        ("""<link name="$(env PATH)"/>""", "is not set"),
    ],
)
def test_texts_attributes_and_environment_of_hostile_files_end_with_a_message(
    tmp_path: Path, body: str, word: str
) -> None:
    file = tmp_path / "robot.xacro"
    file.write_text(f'<robot name="r" {NAMESPACE}>{body}<link name="z"/></robot>')
    with pytest.raises(pb.InputError, match=word):
        pb.load(file)


def test_dirname_is_the_folder_of_the_file_that_says_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    (tmp_path / "a.xacro").write_text(f'{head}<xacro:include filename="$(dirname)/parts/b.xacro"/></robot>')
    (tmp_path / "parts" / "b.xacro").write_text(
        f'{head}<xacro:include filename="$(dirname)/c.xacro"/><xacro:property name="here" value="$(dirname)"/></robot>'
    )
    (tmp_path / "parts" / "c.xacro").write_text(f'{head}<link name="only"/></robot>')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pb.load(tmp_path / "a.xacro").description.bodies[0].name == "only"


def test_files_that_an_expansion_may_read_are_found_whatever_the_arguments(tmp_path: Path) -> None:
    from polybody.description.xacro.packages import files_of

    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    (tmp_path / "a.xacro").write_text(
        f'{head}<xacro:arg name="kind" default="x"/><xacro:include filename="arm_$(arg kind).xacro"/>'
        "<xacro:property name=\"sizes\" value=\"${xacro.load_yaml('sizes.yaml')}\"/></robot>"
    )
    for name in ("arm_x.xacro", "arm_y.xacro", "sizes.yaml", "other.xacro"):
        (tmp_path / name).write_text(f"{head}</robot>")
    (tmp_path / "arm_y.xacro").write_text(f'{head}<xacro:include filename="deep.xacro"/></robot>')
    (tmp_path / "deep.xacro").write_text(f"{head}</robot>")
    found = {path.name for path in files_of(tmp_path / "a.xacro", {})}
    assert found == {"a.xacro", "arm_x.xacro", "arm_y.xacro", "sizes.yaml", "deep.xacro"}
