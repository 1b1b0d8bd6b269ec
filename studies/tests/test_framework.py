"""The framework of the studies: what it writes, what it refuses, and what studies may import."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import orbical
import orbical_studies
from orbical.errors import InputError
from orbical_studies import STUDIES, Entry, framework
from orbical_studies.__main__ import main
from orbical_studies.framework import Paths, Results, Study, TrainingSettings, option
from orbical_studies.framework.command import run_study
from orbical_studies.framework.page import render
from orbical_studies.framework.training import arrays_file, train

PACKAGE = Path(orbical_studies.__file__).parent


@dataclass(frozen=True)
class Settings(framework.Settings):
    days: int = option(7, "days to observe, 100% of them", least=1)
    ports: tuple[str, ...] = option(("Brest", "Vigo"), "where", choices=("Brest", "Vigo", "Bari"))
    seed: int | None = option(None, "of the draw", kind=int)
    mirrored: bool = option(False, "mirror the data")
    constant: float = 9.81


given: list[Settings] = []


def observe(settings: Settings, results: Results) -> None:
    given.append(settings)
    rows = [{"port": port, "day": 1_000_000, "height": 2 / 3} for port in settings.ports]
    results.write("heights", [*rows, {"port": "None"}])


def facts(results: Results) -> dict[str, object]:
    return {"rows": results["heights"].set_index("port")}


TIDES = Study("tides", "How high?", Settings(), {"observe": observe}, report="report_of_tides")
TEMPLATE = (
    "{{ rows.height | spread(1) }} {{ (rows.height.max() > 1) | verdict }}\n{{ rows | table }}\n"
)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Make a checkout with one template, and a report."""
    for folder in ("studies/pages", "docs/studies"):
        (tmp_path / folder).mkdir(parents=True)
    found = Paths.in_checkout("tides", tmp_path)
    found.template.write_text(TEMPLATE)
    monkeypatch.setattr(Paths, "in_checkout", lambda name: found)
    report = ModuleType(TIDES.report)
    vars(report)["facts"] = facts
    monkeypatch.setitem(sys.modules, TIDES.report, report)
    given.clear()
    return found


def test_a_study_runs_its_steps_and_writes_its_page(paths: Paths) -> None:
    run_study(TIDES, ["--days", "3", "--ports", "Bari", "Vigo", "--seed", "4", "--mirrored"])
    assert given == [Settings(days=3, ports=("Bari", "Vigo"), seed=4, mirrored=True)]
    results = paths.work / "results"
    assert (results / "heights.csv").read_text() == (
        "port,day,height\nBari,1000000,0.666667\nVigo,1000000,0.666667\nNone,,\n"
    )
    text = (paths.work / "page.md").read_text()
    assert text.startswith("0.7 ± 0.0 not confirmed here\n| port | day | height |\n")
    assert "| None |  |  |" in text
    assert not paths.results.exists()
    assert not paths.page.exists()
    run_study(TIDES, ["page", "--results", str(results)])
    assert paths.page.read_text() == text
    assert len(given) == 1


def test_a_study_as_it_is_writes_where_its_results_are_committed(paths: Paths) -> None:
    run_study(TIDES, [])
    assert (paths.results / "heights.csv").is_file()
    assert paths.page.is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--days", "0"], "days: expected at least 1, got 0"),
        (["--ports", "Rome"], "ports: expected one of Brest, Vigo, Bari, got Rome"),
        (["page"], "results: there is no file"),
    ],
)
def test_errors_are_one_line_and_status_2(
    paths: Paths, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_study(TIDES, arguments)
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"error: {message}")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (TEMPLATE + "{{ depth }}", "'depth' is undefined"),
        (TEMPLATE + "{{ rows.depths }}", "no attribute 'depths'"),
        ("No numbers.", "does not use rows"),
    ],
)
def test_a_template_and_its_study_must_agree(paths: Paths, template: str, message: str) -> None:
    results = Results(paths.results)
    observe(Settings(), results)
    paths.template.write_text(template)
    with pytest.raises(InputError, match=message):
        render(TIDES, results, paths.template)


def test_a_data_frame_is_written_as_rows_are(tmp_path: Path) -> None:
    results = Results(tmp_path)
    rows = [{"group": "C4", "n": 4, "error": 1 / 3}, {"group": "C1", "n": 1}]
    first = results.write("rows", rows).read_text()
    assert results.write("frame", pd.DataFrame(rows)).read_text() == first
    assert results["rows"].equals(results["frame"])


def test_outside_a_checkout_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a checkout"):
        Paths.in_checkout("esd", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_finished_trainings_are_not_run_again(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Trial:
        seed: int

        def __str__(self) -> str:
            return f"plain/seed {self.seed}"

    ran = []

    def run(scale: float, trial: Trial) -> tuple[dict, dict]:
        ran.append(trial.seed)
        return {"accuracy": scale * trial.seed}, {"logits": pd.array([1.0]).to_numpy(dtype=float)}

    settings = TrainingSettings(only="seed 1")
    train([Trial(0), Trial(1)], settings, tmp_path, lambda: 0.5, run)
    train([Trial(0), Trial(1)], replace(settings, only=""), tmp_path, lambda: 0.5, run)
    assert ran == [1, 0]
    assert arrays_file(tmp_path, Trial(0)).is_file()


def test_listing_the_studies_imports_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert all(name in capsys.readouterr().out for name in [*STUDIES][:1])
    code = (
        "import sys; from orbical_studies.__main__ import main; main([]);"
        "import orbical_studies.framework.command;"
        "print({'torch', 'pandas', 'matplotlib', 'jinja2'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.endswith("set()\n")


def test_an_unknown_study_is_refused_with_the_nearest_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["esds"])
    assert "did you mean 'esd'" in capsys.readouterr().err


def is_public(dotted: str) -> bool:
    """Whether every part of a dotted name of orbical is exported by the part before it."""
    owner: object = orbical
    for part in dotted.split(".")[1:]:
        if not isinstance(owner, ModuleType):
            return False
        exported = getattr(owner, "__all__", None)
        if exported is None:  # a module without a list: what it defines itself
            found = vars(owner).get(part)
            if part.startswith("_") or getattr(found, "__module__", None) != owner.__name__:
                return False
        elif part not in exported:
            return False
        owner = getattr(owner, part)
    return True


def imports_of(path: Path) -> list[str]:
    """List the names of orbical that a module imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] == "orbical"]


PARTS = sorted({path.name for path in PACKAGE.iterdir()} - {"__pycache__"})


@pytest.mark.parametrize("part", PARTS)
def test_studies_import_public_names_only(part: str) -> None:
    files = [PACKAGE / part] if part.endswith(".py") else sorted((PACKAGE / part).rglob("*.py"))
    private = {f"{path.name}: {n}" for path in files for n in imports_of(path) if not is_public(n)}
    assert private == set()


def test_what_is_public_is_told_apart() -> None:
    assert is_public("orbical.figures.styled")
    assert is_public("orbical.errors.InputError")
    assert not is_public("orbical.figures.style.styled")
    assert not is_public("orbical.errors.difflib")


@pytest.mark.parametrize("entry", STUDIES.values(), ids=STUDIES)
def test_every_study_of_the_list_is_one(entry: Entry) -> None:
    module = importlib.import_module(f"orbical_studies.{entry.module}")
    assert isinstance(module.study, framework.Study)


@pytest.mark.parametrize("entry", STUDIES.values(), ids=STUDIES)
def test_every_deferred_step_of_a_study_is_there(entry: Entry) -> None:
    steps = importlib.import_module(f"orbical_studies.{entry.module}").study.steps.values()
    for step in (step for step in steps if isinstance(step, partial)):
        module, _, name = step.args[0].partition(":")
        assert callable(getattr(importlib.import_module(module), name))
