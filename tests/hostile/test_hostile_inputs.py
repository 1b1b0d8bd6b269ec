"""Hostile inputs: whatever a file or a text holds, the answer is a result or an error of orbical.

The fuzzers are seeded, print their counts, and are large under `slow`.
"""

from __future__ import annotations

import io
import resource
import shutil
import zipfile

import numpy as np
import pytest
import torch
from attacks import COUNTS, FUZZERS, attempts

import orbical as ob
from orbical.cli.arguments import load_data
from orbical.errors import InputError, StoreError


@pytest.mark.parametrize("what", FUZZERS)
def test_hostile_inputs_never_end_in_a_traceback(what, tmp_path):
    assert attempts(COUNTS[what][0], FUZZERS[what](tmp_path), what)["refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("what", FUZZERS)
def test_many_hostile_inputs_never_end_in_a_traceback(what, tmp_path):
    attempts(COUNTS[what][1], FUZZERS[what](tmp_path), what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("translations:1e308:1e-300", "expected at most 1,048,576 elements, got inf"),
        ("permutations:100000000:2", "expected at most 8,388,608 rows for 2 permutations"),
    ],
)
def test_groups_that_would_not_fit_into_memory_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        ob.groups.parse(text)


SCAN = ["scan", "--data", "digits", "--group", "flips", "-m", "a=b:c"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["groups", ""], "group: unknown name ''"),
        (["calibration", "a.npz", "--bins", "99999999999"], "bins: expected an integer from 1 to"),
        (
            ["check", "a.npz", "--max-ece", "1", "--bins", "99999999999"],
            "bins: expected an integer",
        ),
        (["groups", "decibels:1e8:1e8"], "group: expected elements of finite numbers"),
        (
            ["scan", "-d", "digits", "-m", "a=b:c", "--classes", "~no-such-user/x"],
            "--classes: '~no-such-user/x'",
        ),
    ],
)
def test_options_that_cannot_be_used_are_named(words, said, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from orbical.cli import _register, app

    _register()
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", probs=np.full((7, 3), 1 / 3), labels=np.arange(7) % 3)
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, InputError)
    assert said in str(error)


@pytest.mark.parametrize("name", ["rotations", "scales", "gains", "brightness", "shear", "affine"])
@pytest.mark.parametrize("numbers", ["1e308:-43:1", "-43:1e308:3", "-1e308:1e308:3", "1e19:1e20:5"])
def test_numbers_beyond_the_integers_of_numpy_are_refused_or_used(name, numbers):
    assert attempts(1, lambda rng: ob.groups.parse(f"{name}:{numbers}"), name)


def test_an_npz_file_of_an_unknown_compression_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    content = io.BytesIO()
    np.savez(content, x=np.zeros((2, 1, 4, 4)))
    changed = bytearray(content.getvalue())
    for start in (changed.find(b"PK\x03\x04") + 8, changed.find(b"PK\x01\x02") + 10):
        changed[start] = 97  # a method that Python does not know
    path.write_bytes(bytes(changed))
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((")
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))


def test_an_npz_file_that_states_more_than_it_holds_is_refused_before_memory_is_used(tmp_path):
    path = tmp_path / "data.npz"
    header = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 5)}
    np.lib.format.write_array_header_1_0(header, fields)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", header.getvalue() + bytes(800))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load_data(str(path))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_labels_without_a_dimension_are_refused():
    images, _ = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(InputError, match="expected one for each of 3 samples, got a single"):
        ob.scan(net, (images[:3], np.array(1)), group="flips", task="classification")


def test_a_store_in_a_zip_or_a_file_is_refused(tmp_path):
    file = tmp_path / "run.zarr"
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(StoreError, match="unpack it first"):
        ob.load(file)
    shutil.rmtree(tmp_path)


def test_the_home_of_an_unknown_user_is_no_folder_of_a_model() -> None:
    """`orbical why run.zarr --model '~nouser/x'` ended with a traceback."""
    from orbical.predictors import model_path

    assert model_path("~nouser/x") is None
