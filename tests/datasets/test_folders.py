from __future__ import annotations

from pathlib import Path

import pytest

from orbical.datasets import data_folder
from orbical.errors import InputError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.delenv("ORBICAL_DATA", raising=False)
    monkeypatch.chdir(folder)
    return folder


def test_the_environment_names_the_folder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout.parent / "shared" / "data").mkdir(parents=True)
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("ORBICAL_DATA", str(elsewhere))
    assert data_folder() == elsewhere


def test_the_folder_beside_the_checkout_is_found_from_inside_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = checkout.parent / "shared" / "data"
    beside.mkdir(parents=True)
    inside = checkout / "docs" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert data_folder() == beside


def test_a_folder_that_is_not_there_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORBICAL_DATA", str(checkout / "nowhere"))
    with pytest.raises(
        InputError, match=r"ORBICAL_DATA: expected an existing folder, got '.*nowhere'"
    ):
        data_folder()


def test_without_any_folder_the_error_says_what_to_set(checkout: Path) -> None:
    with pytest.raises(
        InputError, match="ORBICAL_DATA: expected the folder of the data sets, got no value"
    ):
        data_folder()
