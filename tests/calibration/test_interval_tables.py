"""Every public function with an interval or a p-value has a row in the table of coverage."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import interval_tables

import orbical
from orbical.calibration import list_measures

ONLY_CHECK_ARGUMENTS = {"calibration.check_draws", "calibration.checked_level"}
PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"


def functions_with_intervals() -> Iterator[str]:
    """Names of public functions and methods that take a level, or tell of a p-value."""
    for package in pkgutil.iter_modules(orbical.__path__):
        if package.name[0] != "_":
            module = importlib.import_module(f"orbical.{package.name}")
            for name in getattr(module, "__all__", ()):
                yield from _of(f"{package.name}.{name}", getattr(module, name))


def _of(name: str, one: object) -> Iterator[str]:
    if inspect.isclass(one):
        for method, function in vars(one).items():
            if inspect.isfunction(function) and method[0] != "_":
                yield from _of(f"{name}.{method}", function)
    elif inspect.isfunction(one):
        text = (one.__doc__ or "").lower()
        if "level" in inspect.signature(one).parameters or "p-value" in text:
            yield name


def test_every_function_with_an_interval_has_a_row() -> None:
    rows = {row.function for row in interval_tables.rows()}
    found = {*functions_with_intervals()} - ONLY_CHECK_ARGUMENTS
    assert found - rows - {*interval_tables.SHOWN_BY} == set()
    assert {*interval_tables.SHOWN_BY.values()} - rows == set()


def test_every_measure_with_an_interval_has_a_row() -> None:
    rows = {row.what for row in interval_tables.rows()}
    assert {one.name for one in list_measures() if one.interval != "none"} - rows == set()


def test_the_page_has_every_row_and_no_other() -> None:
    shown = PAGE.read_text(encoding="utf-8").splitlines()
    expected = [line.split(" |")[0] for line in interval_tables.table({})]
    start = shown.index(next(line for line in shown if line.startswith(expected[0])))
    assert [line.split(" |")[0] for line in shown[start : start + len(expected)]] == expected
    assert not shown[start + len(expected)].startswith("|")


def test_no_cell_of_the_page_is_missing_has_few_data_sets_or_is_wrong_unsaid() -> None:
    shown = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [cell.strip() for line in shown if line.startswith("| `") for cell in line.split("|")]
    assert sum("%" in cell for cell in cells) == sum(
        len(row.cells) for row in interval_tables.rows()
    )
    assert [cell for cell in cells if "?" in cell or "[" in cell or "**" in cell] == []


def test_the_page_has_the_sentences_of_its_template() -> None:
    template = interval_tables.TEMPLATE.read_text(encoding="utf-8")
    shown, place = PAGE.read_text(encoding="utf-8"), 0
    for sentence, *_ in Formatter().parse(template):
        place = shown.find(sentence, place)
        assert place >= 0, sentence
        place += len(sentence)


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(interval_tables, "BLOCK", 20)
    results = tmp_path / "results.jsonl"
    interval_tables.run(results, 20, 1, "oracle_bound")
    lines = results.read_text().splitlines()
    results.write_text("\n".join(lines[:3]) + "\n")
    interval_tables.run(results, 20, 1, "oracle_bound")
    again = interval_tables.read_results(results)
    assert len(again) == len(lines)
    assert all(one.right == 1 for one in again.values())


def test_the_page_says_which_cells_have_fewer_data_sets(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(interval_tables, "powers", lambda workers: [])
    monkeypatch.setattr(interval_tables, "most_power", lambda low, high: 0.5)
    right = interval_tables.Share(0.95, 0.0, 0.05)
    blocks = {"calibrated": 8, "sharp": 3}
    results = {
        ("calibration.oracle_bound", world, block): right
        for world, count in blocks.items()
        for block in range(count)
    }
    text = interval_tables.page(results, 1)
    assert "Cells with fewer data sets, 1 of 2, have their number in brackets;" in text
    line = next(one for one in text.splitlines() if one.startswith("| `calibration.oracle_bound`"))
    assert line.startswith("| `calibration.oracle_bound` | 95.0 % | ? | ? | 95.0 % [375] |")
