"""`polybody count` and `polybody cache`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from polybody.cli import app

RUN = CliRunner()


def test_count_shows_the_papers_tables_beside_this_model():
    answer = json.loads(RUN.invoke(app, ["count", "stanford-arm", "--json"]).stdout)
    saha = next(row for row in answer["general"]["inverse_dynamics"] if row["algorithm"] == "Saha 1999")
    assert (saha["M"], saha["A"]) == (676, 527)
    forward = answer["general"]["forward_dynamics, bias given"]
    walker = next(row for row in forward if row["algorithm"].startswith("Walker"))
    assert (walker["M"], walker["A"]) == (633, 475)  # the errata's additions, the paper prints 480
    own = answer["actual"]["inverse_dynamics"]
    assert 0 < own["M"] < saha["M"]
    assert 0 < own["A"] < saha["A"]
    for rows in answer["general"].values():  # like with like: our text on a general chain of as many joints
        ours, theirs = rows[-1], next(row for row in rows if row["algorithm"] == "Saha 1999")
        assert ours["algorithm"] == "polybody, general chain"
        assert ours["M"] < theirs["M"]
        assert ours["A"] < theirs["A"]
    assert (forward[-1]["M"], forward[-1]["A"]) == (466, 344)  # below Walker & Orin's too
    given, whole = answer["actual"]["forward_dynamics, bias given"], answer["actual"]["forward_dynamics"]
    assert given["M"] < whole["M"]
    assert json.loads(RUN.invoke(app, ["count", "two-link", "--json"]).stdout)["general"] == {}  # no formula holds
    text = RUN.invoke(app, ["count", "planar-3r"]).stdout
    assert "inverse_dynamics" in text
    assert "Balafoutis" in text


def test_cache_is_shown_and_cleared(tmp_path, monkeypatch):
    import polybody as pb

    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    pb.load("two-link").mass_matrix([0.1, 0.2])
    shown = json.loads(RUN.invoke(app, ["cache", "--json"]).stdout)
    assert shown["folder"].startswith(str(tmp_path))
    assert any("mass_matrix" in entry["name"] for entry in shown["entries"])
    cleared = json.loads(RUN.invoke(app, ["cache", "--clear", "--json"]).stdout)
    assert cleared["removed"] >= 1
    assert cleared["entries"] == []
    assert "0 entries" in RUN.invoke(app, ["cache"]).stdout


def test_a_model_that_does_not_exist_is_explained():
    result = RUN.invoke(app, ["count", "stanford-amr"])
    assert result.exit_code == 1
    assert "stanford-arm" in result.output
