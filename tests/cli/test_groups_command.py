"""`orbical groups`: the list, one group, and its drawing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import orbical as ob
from orbical import cli
from orbical.errors import InputError
from orbical.groups.group_names import CATALOG


def run(*words):
    cli._register()
    done = CliRunner().invoke(cli.app, ["groups", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_the_list_has_every_group_with_size_measure_and_exactness():
    said = run()
    assert {*(line.split(":")[0].split()[0] for line in said.splitlines() if line)} >= {*CATALOG}
    row = next(line for line in said.splitlines() if line.startswith("icosahedral"))
    assert row.split() == ["icosahedral", "60", "degree", "5", "space", "Haar"]
    assert "color moves ColorImages." in said
    listed = json.loads(run("--json"))
    assert len(listed) == len(CATALOG)
    assert all(one["measure"] and one["size"] >= 1 for one in listed)


def test_a_group_is_shown_with_its_elements():
    said = run("pointgroup:mm2")
    assert "closed      yes" in said
    assert "usage       pointgroup:NAME" in said
    assert "0  operation 1   (identity)" in said
    assert "m [010]" in said
    assert "weight 0.1667" in run("sphere:2")
    assert "and 4 more; --json prints all" in run("rotations:64")
    assert "degree 3" in run("cyclic")  # its example, cyclic:4
    assert "homographies:20:5:100: 25 elements" in run("homographies")  # :100: is no emoji


def test_exactness_is_shown_only_where_it_is_defined():
    assert "exact to    no degree of all rotations" in run("sphere:3")
    assert "exact to" not in run("hue:6")  # colors have no rotations to average over


def test_a_product_is_shown_too():
    facts = json.loads(run("dihedral:4*time_reversal", "--json"))
    assert facts["size"] == 16
    assert facts["moves"] == ["plane", "time"]
    assert len(facts["elements"]) == 16
    assert sum(one["weight"] for one in facts["elements"]) == pytest.approx(1)


def test_a_group_is_drawn(tmp_path):
    said = run("octahedral", "--draw", str(tmp_path / "cube.png"))
    assert (tmp_path / "cube.png").read_bytes().startswith(b"\x89PNG")
    assert "drawing" in said


def test_a_name_that_does_not_exist_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'octahedral'"):
        run("octahedra")


@pytest.mark.parametrize(
    "text",
    ["flips", "affine:8", "homographies:20:3:50", "tetrahedral:full", "translations3d:1", "trivial",
     "se3:4:1", "hue:5", "permutations:3", "shifts:2", "time_reversal", "rotations:3*hue:2"],
)  # fmt: skip
def test_every_kind_of_group_has_a_picture(text):
    (panel,) = ob.figures.group_picture(text).axes
    assert text.split("*")[0] in panel.get_title()


def test_a_picture_needs_a_group():
    with pytest.raises(InputError, match="at least one group"):
        ob.figures.group_picture()
