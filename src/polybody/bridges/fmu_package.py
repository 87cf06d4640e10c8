"""What every FMU (FMI 3.0) of polybody has in common: its target, its sources, its description in XML, its binary.

The C text that does not depend on what is inside is in `fmi3/`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from polybody.errors import InputError, warn
from polybody.names import listed

COMPILERS = ("cc", "gcc", "clang")
#: Names as FMI's structured convention has them; with any other name the FMU's names are "flat".
_STRUCTURED = re.compile(r"(der\()?[A-Za-z_]\w*(\[\d+\])?(\.[A-Za-z_]\w*(\[\d+\])?)*\)?", re.ASCII)
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SYSTEMS = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}


def fmu_target(path: str | os.PathLike[str], step: float, force: bool) -> Path:
    """The path of an FMU to be written, checked, and its step."""
    target = Path(path)
    if target.suffix.lower() != ".fmu":
        raise InputError(f"{target}: the name of an FMU ends with .fmu")
    if target.exists() and not force:
        raise InputError(f"{target} exists already; use --force (force=True) to replace it")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{target}: the folder {str(target.absolute().parent)!r} does not exist")
    if not (np.isfinite(step) and step > 0):
        raise InputError(f"step is {step!r}; expected a positive number of seconds")
    return target


def pack(target: Path, name: str, write: Callable[[Path], None], binary: bool | None) -> Path:
    """The FMU of the files that `write` puts into a folder; with a binary where one is requested or possible."""
    with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=".polybody-") as folder:
        root = Path(folder) / "fmu"
        write(root)
        if binary is not False:
            _compile(root, name, demanded=bool(binary))
        packed = Path(folder) / "packed.fmu"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(root.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(root).as_posix())
        os.replace(packed, target)
    return target


def write_sources(root: Path, name: str, files: Mapping[str, str]) -> None:
    """The folder `sources`: these files, those of `fmi3/` that all have, and how to build them."""
    sources = root / "sources"
    sources.mkdir(parents=True)
    shared = resources.files("polybody") / "bridges" / "fmi3"
    common = {word: (shared / word).read_text(encoding="utf-8") for word in ("types.h", "complain.h", "interface.h")}
    for word, content in {**common, **files, "buildDescription.xml": _build(name)}.items():
        (sources / word).write_text(content, encoding="utf-8")


class Variables:
    """The variables of a description, and their names."""

    def __init__(self) -> None:
        self.names = ["time"]
        self.rows = ['<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>']

    def add(self, name: str, reference: int, **said: Any) -> None:
        """One more, with what is said about it; empty words are left out."""
        words = " ".join(f"{key}={quoteattr(str(value))}" for key, value in said.items() if value != "")
        self.names.append(name)
        self.rows.append(f"<Float64 name={quoteattr(name)} valueReference=\"{reference}\" {words}/>")

    @property
    def convention(self) -> str:
        """How names are built; two of one name are an error."""
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise InputError(f"two variables of the FMU would be named {listed(twice)}; rename one of them")
        return "structured" if all(_STRUCTURED.fullmatch(name) for name in self.names) else "flat"


def description(
    name: str, title: str, token: str, step: float | None, variables: Variables, units: Mapping[str, str],
    structure: Sequence[str], *, derivatives: bool, drifts: bool = False,
) -> str:  # fmt: skip
    """modelDescription.xml; `units` are {name: <BaseUnit …/>}, `step` that of co-simulation where it is a fixed one.

    `drifts`: whether states may leave constraints among them in model exchange, and are put back where steps end.
    """
    common = f'modelIdentifier="{name}" canGetAndSetFMUState="true" canSerializeFMUState="true" ' \
        f'providesDirectionalDerivatives="{str(derivatives).lower()}"'
    fixed = "" if step is None else f' fixedInternalStepSize="{step!r}"'
    told = [f"<Unit name={quoteattr(unit)}>{text}</Unit>" for unit, text in units.items()]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<fmiModelDescription fmiVersion="3.0" modelName={quoteattr(title)} instantiationToken="{token}" '
            f'generationTool="polybody" variableNamingConvention="{variables.convention}">',
            f'<ModelExchange {common} needsCompletedIntegratorStep="{str(drifts).lower()}"/>',
            f'<CoSimulation {common} canHandleVariableCommunicationStepSize="true"{fixed}/>',
            "<UnitDefinitions>", *told, "</UnitDefinitions>",
            '<LogCategories><Category name="logStatusWarning"/><Category name="logStatusError"/></LogCategories>',
            '<DefaultExperiment startTime="0.0" stopTime="1.0"/>',
            "<ModelVariables>", *variables.rows, "</ModelVariables>",
            "<ModelStructure>", *structure,
            "</ModelStructure>", "</fmiModelDescription>", "",
        ]
    )  # fmt: skip


def _build(name: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f'<BuildConfiguration modelIdentifier="{name}">\n<SourceFileSet language="C99">\n'
        '<SourceFile name="fmu.c"/>\n<SourceFile name="polybody.c"/>\n</SourceFileSet>\n'
        '<Library name="m"/>\n</BuildConfiguration>\n</fmiBuildDescription>\n'
    )


def _compile(root: Path, name: str, *, demanded: bool) -> None:
    """A shared library for this machine in binaries/."""
    compiler = next((found for word in COMPILERS if (found := shutil.which(word))), None)
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if compiler is None or system is None or machine is None:
        if demanded:
            raise InputError(f"no C compiler for a binary ({', '.join(COMPILERS)} are looked for on PATH)")
        return
    folder = root / "binaries" / f"{machine}-{system[0]}"
    folder.mkdir(parents=True)
    flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    command = [compiler, *flags, "-o", str(folder / f"{name}{system[1]}")]
    command += [str(root / "sources" / file) for file in ("fmu.c", "polybody.c")] + ["-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        if demanded:
            raise InputError(f"{compiler} could not make the binary: {said[0]}")
        shutil.rmtree(root / "binaries")
        warn(f"{compiler} could not make the binary ({said[0]}); the FMU holds its source only")


__all__ = ["COMPILERS", "Variables", "description", "fmu_target", "pack", "write_sources"]
