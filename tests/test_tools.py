"""The tools of developers, in `tools/`."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1] / "tools"


def test_packages_are_found_where_pip_finds_them() -> None:
    places = runpy.run_path(str(TOOLS / "install_packages.py"))["places"]
    listed = (
        ":env:.find-links='/nearer'\n"
        "global.extra-index-url='https://one.example/simple\\nfile:///two'\n"
        "global.find-links='/wheels'\n"
        "global.timeout='9'\n"
    )
    options = places(listed)
    assert [option.removeprefix("--") for option in options] == [
        *("find-links", "/nearer"),
        *("extra-index-url", "https://one.example/simple"),
        *("extra-index-url", "file:///two"),
    ]
    assert places("") == []


def test_mutants_are_tested_by_the_files_that_name_what_they_change() -> None:
    likely_tests = runpy.run_path(str(TOOLS / "mutants.py"))["likely_tests"]
    found = likely_tests(TOOLS.parent, "src/orbical/bounds/certified.py")
    assert found[0] == "src/orbical/bounds/certified.py"
    assert {*found[1:5]} >= {"tests/bounds/test_neighbors.py", "tests/test_statistical_claims.py"}
    assert not [name for name in found if "browser" in name]


def test_annotations_are_not_mutated() -> None:
    never_run = runpy.run_path(str(TOOLS / "mutants.py"))["never_run"]
    text = "def f(x: A | B, y=1 | 2) -> C | D:\n    z: E = x | y\n    return z\n"
    lines = text.splitlines()
    assert "".join(lines[line - 1][column] for line, column in sorted(never_run(text))) == (
        "A | BC | DE"
    )
