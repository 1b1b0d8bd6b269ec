"""The worst cases of a search in the session, in a report and from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from talking import ask
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import _register, app
from orbical.errors import InputError, OrbicalError
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session

COUNT = 12


def nets() -> dict[str, torch.nn.Module]:
    """Make two networks; only the first is searched."""
    torch.manual_seed(0)
    return {name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)) for name in "ab"}


def net() -> torch.nn.Module:
    """Return the first, for the command line."""
    return nets()["a"]


def digits(first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return some digits, for the command line."""
    images, labels = ob.datasets.digits()
    return images[first : first + COUNT], labels[first : first + COUNT]


others = digits(first=COUNT)


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> ob.Scan:
    return ob.scan(
        nets(),
        digits(),
        group="rotations:6",
        task="classification",
        keep="inputs",
        out=tmp_path_factory.mktemp("worst") / "run.zarr",
        progress=False,
    )


@pytest.fixture(scope="module")
def worst(scan: ob.Scan) -> object:
    return ob.worst_case({"a": nets()["a"]}, scan, rounds=4, progress=False)


def test_a_session_answers_where_each_sample_is_worst(scan: ob.Scan, worst: object) -> None:
    session = Session(scan, worst=worst)
    assert session.state()[0]["worst"] is True
    header, arrays = ask(session, "worst")
    assert (header["models"], header["coords"]) == (["a", "b"], ["angle"])
    assert header["reference"] == "truth"
    np.testing.assert_array_equal(arrays["samples"], np.arange(COUNT))
    np.testing.assert_allclose(arrays["score"][0], worst["score"].sel(place="refined")[0])
    np.testing.assert_allclose(arrays["missed"][0], worst["missed"][0])
    np.testing.assert_allclose(arrays["coords"][0, :, 0], worst["angle"][0])
    assert np.isnan(arrays["score"][1]).all()
    assert (arrays["nearest"][1] == -1).all()


def test_without_a_search_there_is_nothing_to_ask(scan: ob.Scan) -> None:
    session = Session(scan)
    assert session.state()[0]["worst"] is False
    with pytest.raises(InputError, match="worst: expected a search"):
        ask(session, "worst")


def test_a_report_holds_the_worst_cases_of_its_samples(scan: ob.Scan, worst: object) -> None:
    view = Session(scan, worst=worst).scan_view()
    assert "worst" in report_to_write(view, samples=None, methods=("pca",))[1]


def test_a_search_of_something_else_is_refused(scan: ob.Scan, worst: object) -> None:
    swapped = worst.assign(score=worst["score"][:, ::-1].drop_vars("sample") + 0.1)
    cases = [
        (worst.rename(score="other"), "worst: expected the result of orbical.worst_case"),
        (worst.assign_attrs(group="rotations:8"), "worst: expected a search along rotations:6"),
        (worst.assign_coords(model=["c"]), "worst: expected a search of the models a, b"),
        (worst.assign_coords(sample=worst["sample"] + 1), "on at most 12 samples"),
        (swapped, "worst: expected a search of the data of the scan"),
        ("none.nc", "worst: 'none.nc' cannot be read as a netCDF file of worst cases"),
    ]
    for given, message in cases:
        with pytest.raises(OrbicalError, match=message):
            Session(scan, worst=given)
    with pytest.raises(InputError, match="worst: expected none with several scans"):
        Session({"one": scan, "two": scan}, worst=worst)


def test_the_command_writes_a_file_that_the_view_shows(scan: ob.Scan, tmp_path: Path) -> None:
    _register()
    out = tmp_path / "worst.nc"
    command = ["worst-case", str(scan.path), "-m", "a=test_worst_cases:net()", "-o", str(out)]
    done = CliRunner().invoke(app, [*command, "--rounds", "2"])
    assert done.exit_code == 0, done.output
    assert "at the worst element found" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["worst.nc"]
    _, arrays = ask(Session(scan, worst=out), "worst")
    assert np.isfinite(arrays["score"][0]).all()
    again = [*command, "--overwrite", "--rounds", "1", "-d"]
    assert CliRunner().invoke(app, [*again, "test_worst_cases:digits()"]).exit_code == 0
    with pytest.raises(InputError, match="--data: expected the data of the scan, 12 samples"):
        CliRunner().invoke(app, [*again, "test_worst_cases:others"], catch_exceptions=False)
    with pytest.raises(InputError, match="--out: expected a free name"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    with pytest.raises(InputError, match=r"--out: expected a name that ends in \.nc"):
        CliRunner().invoke(app, [*command, "-o", "worst.csv"], catch_exceptions=False)
