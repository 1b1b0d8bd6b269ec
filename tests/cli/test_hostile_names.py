"""Names from a store of somebody else: no command lets them act on a terminal or a parser."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import orbical as ob
from orbical import cli
from orbical.cli.printing import Sheet, latex, print_json

NAME = "=1+1\x1b]0;title\x07[/]\n[link=x]\x9b31m\u202e"
SHOWN = "=1+1?]0;title?[/]?[link=x]?31m?"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A scan of two models, one of them with a name that nobody means well with."""
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for _ in range(2)]
    path = tmp_path_factory.mktemp("hostile") / "run.zarr"
    ob.scan(
        {NAME: nets[0], "b": nets[1]},
        (images[:12], labels[:12]),
        group="rotations:4",
        task="classification",
        keep="inputs",
        out=path,
        progress=False,
    )
    return path


def run(*words):
    cli._register()
    done = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    for sign in done.output:
        assert sign == "\n" or unicodedata.category(sign) != "Cc", ascii(done.output)
    assert "\u202e" not in done.output
    return done.output


@pytest.mark.parametrize("words", [["info"], ["calibration"], ["bounds", "--orbits", "orbits.npy"]])
def test_no_command_prints_control_characters(store, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    np.save("orbits.npy", np.arange(12) // 2)
    assert "1+1" in run(words[0], store, *words[1:])


def test_a_name_stays_on_one_line(store, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert f"{SHOWN} = torch.nn" in run("info", store)


def test_a_table_as_csv_has_a_row_a_line_and_no_formula(store):
    text = run("calibration", store, "--csv")
    names = {row["model"] for row in csv.DictReader(io.StringIO(text))}
    assert names == {f"'{SHOWN}", "b"}


def test_junit_is_xml_whatever_a_model_is_called(store, tmp_path):
    assert SHOWN in run("check", store, "--min-accuracy", "0.9", "--junit", tmp_path / "out.xml")
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert {case.get("classname") for case in root} == {SHOWN, "b"}


def test_latex_and_json_hold_no_control_characters(capsys):
    assert "\x1b" not in latex(Sheet("", [NAME], [[NAME]]))
    print_json({NAME: 1})
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert json.loads(printed) == {NAME: 1}
