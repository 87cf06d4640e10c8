"""LaTeX, HTML, Python source and `polybody derive`: whole, well-formed, and the same numbers."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import sympy
from typer.testing import CliRunner

import polybody as pb
from browser import find_chromium
from polybody.cli import app
from polybody.symbolic.mathml import MathML, write
from polybody.symbolic.pieces import pieces

RUN = CliRunner()


class Plain:
    """A writer of SymPy's own syntax: pieces can be read back."""

    def whole(self, expression):
        return str(expression)

    def factor(self, expression):
        return f"({expression})*"

    def operator(self, sign):
        return {"−": " - ", "+": " + "}.get(sign, sign)

    def power(self, exponent):
        return f"**{exponent}"


@pytest.mark.parametrize("short", [12, 25, 60])
def test_pieces_joined_are_the_whole(short):
    sym = pb.load("stanford-arm").symbolic("masses")
    x, y, z = sympy.symbols("x y z")
    hard = [-(x + y * (x - z)) ** 3 * (x + 2 * y) * z / 7, -x * (y + z + sympy.sin(x + y)), -(x - y + z), x / (y + z)]
    for expression in [*sym.velocity_forces(), *sym.mass_matrix(), *hard]:
        text = "".join(pieces(expression, Plain(), short))
        text = re.sub(r"\*(?=\s|$|\))", "", text)
        assert sympy.expand(sympy.sympify(text) - expression) == 0


class Balanced(HTMLParser):
    """Counts elements and sees that each is closed in order."""

    def __init__(self):
        super().__init__()
        self.stack, self.counts, self.external = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.external += [value for key, value in attrs if key in ("src", "href")]
        if tag != "meta":
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def test_html_page_is_well_formed_and_needs_nothing_from_outside():
    page = Balanced()
    page.feed(pb.load("three-link").symbolic().html())
    assert page.stack == []
    assert page.external == []
    assert page.counts["math"] > 30
    assert "script" not in page.counts


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("model", ["three-link", "stanford-arm"])
def test_html_page_fits_a_browser_window(model, tmp_path):
    """The page measures itself in Chromium: no formula is wider than its column, and mathematics is laid out."""
    page = pb.load(model).symbolic().html()
    probe = (
        "<script>addEventListener('load', () => { const wide = [...document.querySelectorAll('.value')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).length; const msub = document.querySelector('msub');"
        "document.title = `wide=${wide} page=${document.documentElement.scrollWidth <= innerWidth} "
        "sub=${msub.getBoundingClientRect().height > 5}`; });</script></body>"
    )
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", probe), encoding="utf-8")
    done = subprocess.run(
        [str(find_chromium()), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=1000,800", "--virtual-time-budget=5000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "<title>wide=0 page=true sub=true</title>" in done.stdout, done.stdout[:300] + done.stderr[-500:]


def test_mathml_of_each_kind_of_expression():
    x, y, dotted = sympy.symbols("q1 omega p1_dot")
    text = write(-sympy.Rational(3, 2) * x**2 * sympy.sin(y) ** 2 + sympy.sqrt(x) / (x + y) - dotted)
    for part in ("<msub><mi>q</mi><mi>1</mi></msub>", "<mi>ω</mi>", "<msqrt>", "<mfrac>", "&#x307;", "<mi>sin</mi>"):
        assert part in text
    assert text.count("<mrow>") == text.count("</mrow>")
    assert MathML().operator("(") != MathML().operator("+")


def test_latex_document_is_balanced_and_has_every_section():
    text = pb.load("six-dof-arm").symbolic("none").latex()
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 4
    assert text.count(r"\bigl(") == text.count(r"\bigr)")
    assert text.count("{") == text.count("}")
    assert r"\dot{q}_{1} &= p_{1}" in text
    assert "c_{1x}" in pb.load("two-link").symbolic().latex()


def test_python_source_alone_gives_the_models_numbers():
    model = pb.load("six-dof-arm")
    sym = model.symbolic(["masses", "gravity"])
    space: dict = {}
    exec(sym.python_source("inverse_dynamics", "forward_dynamics", "equations", "pose:tip"), space)
    rng = np.random.default_rng(1)
    q, p, a = rng.uniform(-1, 1, size=(3, 4, 6))
    own, v = sym.to_model(q, p)
    tau = model.inverse_dynamics(own, v, a)
    np.testing.assert_allclose(space["inverse_dynamics"](q, p, a), tau, atol=1e-11)
    np.testing.assert_allclose(space["forward_dynamics"](q, p, tau), a, atol=1e-9)
    M, bias = space["equations"](q, p)
    np.testing.assert_allclose(M, model.mass_matrix(own), atol=1e-11)
    np.testing.assert_allclose(bias, model.bias_forces(own, v), atol=1e-11)
    np.testing.assert_allclose(space["pose_tip"](q), model.pose(own, "tip"), atol=1e-12)
    values = list(space["PARAMETERS"].values())
    doubled = space["inverse_dynamics"](q, p, a, [2 * x for x in values[:-1]] + values[-1:])
    assert not np.allclose(doubled, tau)


def test_derive_prints_the_equations():
    done = RUN.invoke(app, ["derive", "two-link"])
    assert done.exit_code == 0, done.output
    assert "M_22 = I2zz + c2x**2*m2" in done.output
    assert "derivative 2 of 2" in done.output


def test_derive_writes_files_and_refuses_to_overwrite(tmp_path):
    latex, html, module = (str(tmp_path / name) for name in ("a.tex", "a.html", "a.py"))
    options = ["--latex", latex, "--html", html, "--python", module, "--symbols", "masses,g"]
    assert RUN.invoke(app, ["derive", "two-link", *options]).exit_code == 0
    assert "m_{2}" in (tmp_path / "a.tex").read_text(encoding="utf-8")
    again = RUN.invoke(app, ["derive", "three-link", "--html", html, "--latex", str(tmp_path / "b.tex")])
    assert again.exit_code == 1
    assert "--force" in again.output
    assert not (tmp_path / "b.tex").exists()
    assert "two-link" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert RUN.invoke(app, ["derive", "three-link", "--html", html, "--force"]).exit_code == 0
    assert "three-link" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_derive_says_what_is_too_large_and_what_is_wrong():
    done = RUN.invoke(app, ["derive", "humanoid"])
    assert done.exit_code == 1
    assert "too large for closed form" in done.output
    done = RUN.invoke(app, ["derive", "six-dof-arm", "--joints", "shoulder=simple"])
    assert done.exit_code == 1
    assert "not holonomic" in done.output
    done = RUN.invoke(app, ["derive", "two-link", "--symbols", "weights"])
    assert done.exit_code == 1
    assert "masses" in done.output
