"""The tools of developers, in `tools/`."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import orbical

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


def test_mutants_are_tested_by_the_tests_that_call_what_they_change(tmp_path: Path) -> None:
    tool = runpy.run_path(str(TOOLS / "mutants.py"))
    path = TOOLS.parent / "src" / "orbical" / "bounds" / "price_and_ceiling.py"
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if text.startswith("def ")) + 1
    name = lines[line - 1].removeprefix("def ").partition("(")[0]
    assert tool["function_at"](path.read_text(), line) == name
    assert tool["function_at"](path.read_text(), 1) == ""
    bench = object.__new__(tool["Bench"])
    bench.calls = {
        "near": (2.0, [f"price_and_ceiling.py:{name}"]),
        "nearer": (1.0, [f"price_and_ceiling.py:{name}", "other.py:g"]),
        "beside": (0.1, ["price_and_ceiling.py:other"]),
        "endless": (1000.0, [f"price_and_ceiling.py:{name}"]),
    }
    assert [*bench.times({"function": f"price_and_ceiling.py:{name}"})] == ["nearer", "near"]
    assert [*bench.times({"function": "price_and_ceiling.py:"})] == ["beside", "nearer", "near"]


def test_calls_of_fixtures_count_for_the_tests_that_follow(tmp_path: Path) -> None:
    tool = runpy.run_path(str(TOOLS / "mutants.py"))
    recorder = tool["Recorder"](tmp_path / "calls.json")
    codes = {}
    for name in ("fixture", "first", "second"):
        space: dict[str, object] = {}
        exec(compile(f"def {name}(): pass", "/x/src/orbical/file.py", "exec"), space)
        codes[name] = space[name].__code__  # type: ignore[attr-defined]
    reports = [SimpleNamespace(nodeid=n, when="call", outcome="passed") for n in ("a", "b")]
    for report, setup, call in zip(reports, ("fixture", None), ("first", "second"), strict=True):
        if setup:
            recorder.note(SimpleNamespace(f_code=codes[setup]), "call", None)
        recorder.pytest_runtest_call()
        recorder.note(SimpleNamespace(f_code=codes[call]), "call", None)
        recorder.pytest_runtest_logreport(report)
    calls = {
        test: [name.rpartition(":")[2] for name in names]
        for test, (_, names) in recorder.calls.items()
    }
    assert calls == {"a": ["first", "fixture"], "b": ["fixture", "second"]}


def test_annotations_are_not_mutated() -> None:
    never_run = runpy.run_path(str(TOOLS / "mutants.py"))["never_run"]
    text = "def f(x: A | B, y=1 | 2) -> C | D:\n    z: E = x | y\n    return z\n"
    lines = text.splitlines()
    assert "".join(lines[line - 1][column] for line, column in sorted(never_run(text))) == (
        "A | BC | DE"
    )


def test_the_address_of_the_project_is_written_wherever_it_stands() -> None:
    tool = runpy.run_path(str(TOOLS / "set_address.py"))
    for name in tool["FILES"]:
        text = (TOOLS.parent / name).read_text(encoding="utf-8")
        first = tool["with_address"](name, text, "https://one.example/code", "https://one.example")
        again = tool["with_address"](name, first, "https://two.example/code", "https://two.example")
        assert first != text, name
        assert "in a checkout of this repository" not in first
        if name.endswith((".toml", ".yml", ".cff")):
            assert "one.example" not in again
            assert "https://two.example/code" in again, name
        if name == "README.md":  # as an index shows it
            assert not re.findall(r"\]\((?!https://one)", first)
    urls = tomllib.loads(
        tool["with_address"]("pyproject.toml", project(), "https://c", "https://s")
    )
    assert urls["project"]["urls"] == {"Documentation": "https://s", "Repository": "https://c"}


def project() -> str:
    """Return the text of `pyproject.toml`."""
    return (TOOLS.parent / "pyproject.toml").read_text(encoding="utf-8")


def test_the_citation_names_the_version() -> None:
    citation = (TOOLS.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {orbical.__version__}\n" in citation


def test_a_python_that_does_not_run_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = runpy.run_path(str(TOOLS / "release_check.py"))["interpreter"]
    for version, status in (("8.1", 0), ("8.2", 127)):
        (tmp_path / f"python{version}").write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / f"python{version}").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = [interpreter(version) for version in ("8.1", "8.2", "8.3")]
    assert found == [str(tmp_path / "python8.1"), None, None]
