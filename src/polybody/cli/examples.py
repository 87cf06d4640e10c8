"""An example or two for the help of every command: one table, checked by a test."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("polybody demo", "polybody view runs/stewart"),
    "models": ("polybody models",),
    "info": ("polybody info puma560", "polybody info robot.urdf --base floating --frames"),
    "check": ("polybody check robot.urdf --strict",),
    "convert": ("polybody convert robot.urdf robot.yaml", "polybody convert arm.yaml arm.xml --lossy"),
    "schema": ("polybody schema",),
    "draw": ("polybody draw stewart -o stewart.png", "polybody draw puma560 --q joint2=30deg -o arm.svg"),
    "simulate": ("polybody simulate puma560 --q joint2=30deg -t 2", "polybody simulate four-bar --controller hold"),
    "inverse": ('polybody inverse stanford-arm --to "60deg,60deg,0.1,60deg,60deg,60deg" -t 10',),
    "plot": ("polybody plot runs/puma560",),
    "view": ("polybody view puma560", "polybody view runs/puma560"),
    "render": ("polybody render runs/puma560 -o video.mp4",),
    "linearize": ('polybody linearize puma560 --q "joint2=30deg,joint3=-90deg" --json',),
    "sensitivities": ("polybody sensitivities puma560 link2.mass '*.com' --controller hold -t 0.5 --json",),
    "study": ("polybody study payloads.yaml --dry-run", "polybody study plot payloads.results"),
    "performance": ("polybody performance puma560 --frame dh_6 -o puma.html",),
    "identify": ("polybody identify robot.urdf train.csv --validate validate.csv --json",),
    "excite": ("polybody excite puma560 -o exciting.csv",),
    "loops": ("polybody loops stewart",),
    "grasp": ("polybody grasp two-arms --object object --hand left_hand --hand right_hand",),
    "network": ("polybody network four-bar --svg graph.svg",),
    "derive": ("polybody derive three-link --html equations.html",),
    "export-c": ("polybody export-c puma560 puma -q inverse_dynamics -q rk4_step",),
    "export-fmu": ("polybody export-fmu puma560 puma.fmu --step 1e-3",),
    "count": ("polybody count puma560",),
    "cache": ("polybody cache",),
}


def epilog(command: str) -> str | None:
    """The examples as the last lines of a command's help."""
    found = EXAMPLES.get(command)
    return None if found is None else "Examples:\n\n" + "\n\n".join(found)


__all__ = ["EXAMPLES", "epilog"]
