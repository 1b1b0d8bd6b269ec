"""`orbical scan -t choice` and `orbical orders`, from questions in a file to tables."""

from __future__ import annotations

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import check, orders, scan


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A scan of a model that prefers the first of three options, as the commands make it."""
    (tmp_path / "first.py").write_text(
        "def model(question, options):\n"
        "    return [[2.0 * (p == 0) + len(t) for p, t in enumerate(row)] for row in options]\n"
    )
    rows = [["Q one?", "aa", "bb", "ccc", "C"], ["Q two?", "aaa", "bb", "cc", "B"]]
    with (tmp_path / "questions.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


APP = typer.Typer()
for command in (check.check, orders.orders, scan.scan):
    APP.command()(command)


def called(*words: str):
    return CliRunner().invoke(APP, list(words))


def test_questions_are_scanned_in_all_orders_by_default_and_tabulated(run):
    done = called(
        "scan", "-t", "choice", "-d", "questions.csv", "-m", "m=first:model", "-o", "o.zarr"
    )
    assert done.exit_code == 0, done.output
    assert "positions of answers under permutations:3" in done.output
    assert ob.load("o.zarr").group.spec == "permutations:3"
    shown = called("orders", "o.zarr")
    assert shown.exit_code == 0, shown.output
    for words in ("Questions answered correctly", "averaged over orders", "cyclic", "log bias"):
        assert words in shown.output
    lines = {words[0]: words for words in map(str.split, shown.output.splitlines()) if words}
    assert lines["m"][1].endswith("%")  # as in the table of positions, not 0 beside 66.7%
    assert lines["all"][2].endswith("%")
    rows = json.loads(called("orders", "o.zarr", "--json").output)
    bias = ob.nero.position_bias(ob.load("o.zarr"))
    stated = [row["bias"] for row in rows if row["table"] == "positions"]
    assert stated == pytest.approx(bias["bias"].values[0].tolist())
    assert called("orders", "o.zarr", "--csv").output.startswith("table,model,position")
    assert called("check", "o.zarr", "--max-changed", "0.1").exit_code == 1


def test_what_is_drawn_is_shown_with_its_standard_error(run, monkeypatch):
    monkeypatch.setattr("orbical.nero.orders._ANSWERS", 20)  # ten of fifteen pairs of orders
    called("scan", "-t", "choice", "-d", "questions.csv", "-m", "m=first:model", "-o", "o.zarr")
    rows = called("orders", "o.zarr").output.splitlines()
    assert [row.split()[0] for row in rows if "±" in row] == ["2", "4"]
    monkeypatch.undo()
    monkeypatch.chdir(run)
    assert "±" not in called("orders", "o.zarr").output


def test_other_scans_are_refused(run):
    import torch

    ob.scan(lambda x: x.flatten(1)[:, :3], torch.rand(2, 1, 4, 4), group="cyclic:4",
            task="classification", out="c.zarr", progress=False)  # fmt: skip
    failed = called("orders", "c.zarr")
    assert failed.exit_code != 0
    assert "options that the group reorders" in str(failed.exception) + failed.output


def test_a_number_of_orders_is_a_number(run):
    assert "--random" in str(called("orders", "o.zarr", "--random", "x").exception)


def test_a_scan_that_would_leave_nothing_says_how_to_keep_it(run):
    failed = called("scan", "-t", "choice", "-d", "questions.csv", "-m", "m=first:model", "-q")
    assert "pass --out FOLDER, or leave out --quiet" in str(failed.exception)


@pytest.mark.filterwarnings("error:invalid value:RuntimeWarning")
def test_one_sample_is_counted_as_one(run):
    (run / "one.csv").write_text("Q one?,aa,bb,C c,A\n")
    shown = called("scan", "-t", "choice", "-d", "one.csv", "-m", "m=first:model")
    assert "1 sample, permutations:3" in shown.output
