"""`orbical report` as a user runs it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import _register, app
from orbical.errors import InputError

runner = CliRunner()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("scans") / "run.zarr"
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    ob.scan(
        net,
        (images[:40], labels[:40]),
        group="rotations:8",
        task="classification",
        keep="inputs",
        out=path,
        progress=False,
    )
    return path


def run(*words):
    if not app.registered_commands:
        _register()
    return runner.invoke(app, ["report", *map(str, words)])


def test_a_report_is_written_where_asked(store, tmp_path):
    done = run(store, "-o", tmp_path / "digits.html", "--samples", "12", "--title", "My digits")
    assert done.exit_code == 0, done.output
    assert "digits.html" in done.output
    text = (tmp_path / "digits.html").read_text("utf-8")
    assert "<title>My digits</title>" in text
    assert "12 of 40 samples" in text


def test_inputs_that_the_scan_did_not_keep_are_passed_as_data(tmp_path):
    images = torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(0)).numpy()
    np.savez(tmp_path / "images.npz", x=images)
    ob.scan(
        lambda batch: batch.mean((1, 2))[:, :2],
        images,
        group="flips",
        task="classification",
        out=tmp_path / "run.zarr",
        progress=False,
    )
    sizes = []
    for words in ([], ["--data", tmp_path / "images.npz"]):
        done = run(tmp_path / "run.zarr", "-o", tmp_path / "page.html", "--overwrite", *words)
        assert done.exit_code == 0, done.output
        sizes.append((tmp_path / "page.html").stat().st_size)
    assert sizes[0] < sizes[1]
    np.savez(tmp_path / "others.npz", x=images[::-1])
    done = run(tmp_path / "run.zarr", "-o", tmp_path / "other.html", "-d", tmp_path / "others.npz")
    assert "expected the data of the scan" in str(done.exception)
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize("earlier", ["page.html", "page/index.html"])
def test_an_earlier_report_is_replaced_only_if_asked(store, tmp_path, earlier):
    page = tmp_path / earlier
    page.parent.mkdir(exist_ok=True)
    page.write_text("mine")
    done = run(store, "-o", tmp_path / "page.html", "--samples", "4")
    assert "pass --overwrite" in str(done.exception)
    assert page.read_text() == "mine"
    if earlier == "page.html":
        done = run(store, "-o", tmp_path / "page.html", "--samples", "4", "--overwrite")
        assert done.exit_code == 0, done.output
        assert page.read_text("utf-8") != "mine"


def test_all_samples_can_be_asked_for(store, tmp_path):
    done = run(store, "-o", tmp_path / "all.html", "--samples", "all", "--method", "ica")
    assert done.exit_code == 0, done.output
    assert "40 samples" in (tmp_path / "all.html").read_text("utf-8")


def test_mistakes_are_said(store, tmp_path):
    for words, message in [
        (["--samples", "many"], "expected an integer or 'all'"),
        (["-o", str(tmp_path / "report.txt")], "ends in .html"),
        (["--method", "nothing"], "unknown name 'nothing'"),
    ]:
        done = run(store, *words)
        assert isinstance(done.exception, InputError)
        assert message in str(done.exception)
    assert "absent.zarr', which does not exist" in str(run(tmp_path / "absent.zarr").exception)


def test_names_are_read_from_a_file_or_separated_by_commas(store, tmp_path):
    listed = tmp_path / "names.txt"
    listed.write_text("".join(f"photo {i}\n" for i in range(40)))
    ten = ",".join("abcdefghij")
    done = run(store, "-o", tmp_path / "named.html", "--classes", ten, "--names", listed)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("option", "given", "words"),
    [
        ("--classes", "cat,dog", "expected 10 names"),
        ("--names", "cat,dog", "expected 40"),
        ("--classes", "classes.txt", "which is not a file"),
        ("--names", "missing/names", "which is not a file"),
    ],
)
def test_names_that_do_not_fit_are_refused(store, tmp_path, option, given, words):
    done = run(store, "-o", tmp_path / "refused.html", option, given)
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
    assert option.strip("-") in str(done.exception)
    assert not (tmp_path / "refused.html").exists()
