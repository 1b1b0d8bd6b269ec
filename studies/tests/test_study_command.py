"""`orbical study`: one command a study, which reads its own options."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from orbical import studies
from orbical.cli import study as command
from orbical.errors import InputError


@pytest.fixture
def app() -> typer.Typer:
    program = typer.Typer()
    program.command("other")(lambda: None)  # a program of one command has no command names
    command.register(program)
    return program


def test_the_studies_are_listed_with_their_purpose(app: typer.Typer) -> None:
    shown = CliRunner().invoke(app, ["study", "--help"])
    assert shown.exit_code == 0
    for name in studies.STUDIES:
        assert name in shown.output


def test_options_go_to_the_study_untouched(
    app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(studies.study("esd"), "main", given.append)
    CliRunner().invoke(app, ["study", "esd", "run", "--only", "mnist", "--workers", "2", "--help"])
    assert given == [["run", "--only", "mnist", "--workers", "2", "--help"]]


def test_an_unknown_study_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'esd'"):
        studies.study("esds")
