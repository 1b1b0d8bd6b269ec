"""Damaged stores: no reader takes a loss for a result, and what can be restored is restored."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import attacks_on_stores
import numpy as np
import pytest
import torch
import xarray as xr
from attacks_on_stores import READERS, attack, everything, linear, orbits_beside, same, small_store

import orbical as ob
from orbical.errors import InputError, Interrupted, StoreError
from orbical.store.file_access import locked
from orbical.store.zarr_store import open_store


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "run.zarr"
    small_store(path)
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run.zarr")


def orbical(*words):
    """Run a command in this process; return its exit status and what it printed."""
    from typer.testing import CliRunner

    from orbical.cli import _register, app

    _register()
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


REFUSING = {
    "load": lambda path: ob.load(path),
    "info": lambda path: orbical("info", path),
    "check": lambda path: orbical("check", path, "--min-score", 0.0),
    "calibration": lambda path: orbical("calibration", path),
    "bounds": lambda path: orbical("bounds", path, "--orbits", orbits_beside(path)),
    "report": lambda path: orbical("report", path, "-o", path.parent / "report.html"),
    "view": lambda path: ob.view(path),
}


@pytest.mark.parametrize("reader", REFUSING)
def test_every_reader_refuses_a_lost_chunk(path, reader):
    """A lost chunk used to read as NaN, and a gate that failed passed."""
    (path / "score/c/0/1/0").unlink()
    with pytest.raises(StoreError) as caught:
        REFUSING[reader](path)
    said = str(caught.value)
    assert "score/c/0/1/0 (model 'plain', samples 2 to 3) is missing" in said
    assert "run the same scan again" in said
    assert f"orbical info --repair {path}" in said


def test_a_chunk_lost_after_opening_is_refused_when_it_is_read(path):
    scan = ob.load(path)
    (path / "score/c/0/1/0").unlink()
    with pytest.raises(StoreError, match=r"samples 2 to 3\) is missing"):
        scan.data["score"].load()
    with pytest.raises(StoreError, match="is missing"):
        scan.arrays["score"][0, 2]


@pytest.mark.parametrize("how", ["damaged", "removed", "emptied"])
def test_a_unit_without_a_valid_mark_is_not_done_and_is_computed_again(path, how):
    expected, flag = everything(ob.load(path)), next((path / "units").glob("0.1.*"))
    content = flag.read_bytes()
    if how == "removed":
        flag.unlink()
    else:
        flag.write_bytes(content.replace(b'"score"', b'"scope"') if how == "damaged" else b"")
    with pytest.warns(UserWarning, match=r"'plain', samples 2 to 3\); run the same scan again"):
        scan = ob.load(path)
    assert not scan.complete
    assert np.isnan(scan.data["score"].values[0, 2:4]).all(), "read as missing"
    status, said = orbical("info", "--verify", path)
    assert status == 1
    assert f"units/{flag.name} (model 'plain', samples 2 to 3) is missing or damaged" in said
    assert "unfinished  model 'plain', samples 2 to 3" in orbical("info", "--repair", path)[1]
    assert not (path / "score/c/0/1/0").exists()
    assert same(everything(small_store(path)), expected)


def test_repair_calls_a_lost_unit_unfinished_and_the_scan_computes_it_again(path):
    expected = everything(ob.load(path))
    (path / "score/c/0/1/0").unlink()
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert orbical("info", "--verify", path)[0] == 1
    after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert before == after, "--verify only reads"
    with locked(path), pytest.raises(StoreError, match="being written"):
        orbical("info", "--repair", path)
    status, said = orbical("info", "--repair", path)
    assert status == 0
    assert "unfinished  model 'plain', samples 2 to 3" in said
    assert ob.load(path).done.tolist() == [[True, False, True], [True, True, True]]
    assert same(everything(small_store(path)), expected)


@pytest.mark.parametrize("name", ["score", "group/plane", "group", "weight"])
@pytest.mark.parametrize("how", [Path.unlink, lambda file: file.write_text("{}")])
def test_changed_metadata_of_an_array_are_seen_and_restored(path, name, how):
    expected = everything(ob.load(path))
    how(path / name / "zarr.json")
    with pytest.raises(StoreError, match=f"{name}/zarr.json is damaged"):
        ob.load(path)
    assert f"restored    {name}/zarr.json" in orbical("info", "--repair", path)[1]
    assert same(everything(ob.load(path)), expected)


def edit(path, change):
    """Change the root of a store as somebody would who knows how: its hash matches again."""
    from orbical.store import zarr_store as stores
    from orbical.store.checksums_and_units import json_digest

    document = json.loads((path / "zarr.json").read_text())
    attributes = document["attributes"]
    about = json.loads(attributes["orbical"])
    change(about["record"], document["consolidated_metadata"]["metadata"])
    del attributes[stores._HASH]
    attributes["orbical"] = json.dumps(about)
    attributes[stores._HASH] = json_digest(document)
    (path / "zarr.json").write_text(json.dumps(document))


def test_a_root_that_was_edited_without_its_hash_is_refused(path):
    root = path / "zarr.json"
    text = root.read_text()
    root.write_text(text.replace("plain", "prime"))
    assert root.read_text() != text
    with pytest.raises(StoreError, match="the checksum of its root does not match"):
        ob.load(path)


def test_a_store_edited_to_be_enormous_is_refused_before_anything_is_allocated(path):
    def enlarge(record, arrays):
        record["data"]["samples"] = 10**9
        for entry in arrays.values():
            dims = entry.get("dimension_names") or ()
            if "sample" in dims:
                entry["shape"][dims.index("sample")] = 10**9

    edit(path, enlarge)
    with pytest.raises(StoreError, match="its sizes are impossible"):
        ob.load(path)


@pytest.mark.parametrize(
    ("part", "words"),
    [("shape", "the shape of score does not fit the record"), ("chunk", "too large")],
)
def test_arrays_that_do_not_fit_the_record_are_refused(path, part, words):
    def enlarge(_, arrays):
        grid = arrays["score"]["chunk_grid"]["configuration"]["chunk_shape"]
        (arrays["score"]["shape"] if part == "shape" else grid)[1] = 10**9

    edit(path, enlarge)
    with pytest.raises(StoreError, match=words):
        ob.load(path)


def test_a_store_deleted_during_a_scan_is_named(tmp_path):
    path, net = tmp_path / "run.zarr", linear()

    def deletes(images):
        if path.exists():
            shutil.rmtree(path)
        return net(images)

    images, labels = ob.datasets.digits()
    with pytest.raises(StoreError, match="deleted during the scan"):
        ob.scan(
            deletes,
            (images[:4], labels[:4]),
            group="rotations:3",
            task="classification",
            out=path,
            progress=False,
        )


def test_xarray_alone_opens_a_complete_data_set(original, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = xr.open_zarr(original)
    assert data["model"].values.tolist() == ["plain", "other"]
    assert {"label", "angle", "weight"} <= {*data.coords}
    assert data["angle"].attrs == {"units": "degrees", "long_name": "angle of rotation"}
    assert data.attrs["group"] == "rotations:3"
    np.testing.assert_array_equal(data["score"], ob.load(original).data["score"])
    data.to_netcdf(tmp_path / "run.nc", engine="scipy")
    again = xr.open_dataset(tmp_path / "run.nc", engine="scipy")
    np.testing.assert_array_equal(again["score"], data["score"])
    np.testing.assert_array_equal(again["label"], data["label"])
    ob.load(original).data.to_netcdf(tmp_path / "loaded.nc", engine="scipy")


def test_names_of_samples_are_a_coordinate(tmp_path):
    ase = pytest.importorskip("ase.build")
    from ase.calculators.emt import EMT

    path = tmp_path / "run.zarr"
    molecules = [ase.molecule(name) for name in ("N2", "CO")]
    for number, molecule in enumerate(molecules):
        molecule.info["name"] = f"molecule {number}"
    scan = ob.scan(
        {"emt": EMT()}, molecules, group="rotations3d:3", task="atoms", out=path, progress=False
    )
    if scan.names is not None:
        assert xr.open_zarr(path)["name"].values.tolist() == scan.names


def test_a_consensus_over_many_classes_is_stored_on_request():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 300))
    images, labels = ob.datasets.digits()

    def scan(**settings):
        data = (images[:3], labels[:3])
        return ob.scan(
            net, data, group="rotations:3", task="classification", progress=False, **settings
        )

    assert "consensus" not in scan().data
    assert scan(keep="consensus").data["consensus"].shape == (1, 3, 300)
    with pytest.raises(InputError, match="scan with keep='consensus'"):
        ob.bounds.OrbitTable.from_scan(scan(), orbit=[0, 1, 2])


def test_chunks_do_not_depend_on_the_batch(tmp_path):
    images, labels = ob.datasets.digits()
    chunks = {
        ob.scan(
            linear(),
            (images[:50], labels[:50]),
            group="rotations:3",
            task="classification",
            batch_size=size,
            progress=False,
        ).record.run.chunk
        for size in (1, 7, 200)
    }
    assert chunks == {50}


def test_a_durable_scan_syncs_every_file_before_its_unit_is_done(tmp_path, monkeypatch):
    synced = []

    def note(handle):
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", note)
    images, labels = ob.datasets.digits()
    path = tmp_path / "run.zarr"
    ob.scan(
        linear(),
        (images[:4], labels[:4]),
        group="rotations:3",
        task="classification",
        out=path,
        chunk=2,
        durable=True,
        progress=False,
    )
    chunks = {str(path / open_store(path).chunk_key("score", 0, chunk)) for chunk in (0, 1)}
    assert chunks <= {*synced}
    assert str(path / "units") in synced
    flags = [place for place, file in enumerate(synced) if "units/0.0." in file]
    assert max(synced.index(file) for file in synced if "/c/0/0" in file) < flags[0]


@pytest.mark.parametrize("when", ["while a model runs", "while a unit is written", "before"])
def test_ctrl_c_twice_ends_with_the_message(tmp_path, monkeypatch, when):
    from orbical.scanning import units
    from orbical.store.zarr_store import Store

    finish, calls = Store.finish, []

    def interrupt(*_):
        os.kill(os.getpid(), signal.SIGINT)

    def interrupted_finish(store, *rest, **more):
        interrupt()
        interrupt()
        return finish(store, *rest, **more)

    def model(images):
        calls.append(1)
        if when == "while a model runs" and len(calls) > 4:
            try:
                interrupt()
            finally:
                interrupt()  # the second, while the first is being handled
        return images.flatten(1)[:, :10]

    def interrupted_probe(*_):
        try:
            interrupt()
        finally:
            interrupt()

    if when == "while a unit is written":
        monkeypatch.setattr(Store, "finish", interrupted_finish)
    if when == "before":
        monkeypatch.setattr(units, "probe_model_for_scan", interrupted_probe)
    images, labels = ob.datasets.digits()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted, match="run the same scan again to continue"):
            ob.scan(
                model,
                (images[:8], labels[:8]),
                group="rotations:3",
                task="classification",
                chunk=2,
                out=tmp_path / "run.zarr",
                progress=False,
            )
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_second_ctrl_c_does_not_disturb_what_the_first_left_to_do():
    from orbical._interrupts import stoppable

    put_away = []

    def work():
        with stoppable(kept=True):
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                put_away.append("the unit")

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted):
            work()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert put_away


def test_flipped_bits_and_removed_files_are_never_silent(path):
    assert_loud(attack(path, 30))


def test_no_reader_is_silent_or_ends_in_a_traceback(path):
    others = [name for name in READERS if name != "data"]
    assert_loud(attack(path, 2 * len(others), 7, others))


@pytest.mark.slow
def test_a_thousand_damages_through_all_readers(path):
    others = [name for name in READERS if name != "data"]
    assert_loud(sum((attack(path, 200, seed, others) for seed in range(1000, 1005)), Counter()))


def assert_loud(seen):
    print(f"{seen.total():,} readings of damaged stores: {dict(seen)}", file=sys.stderr)
    assert not [name for name in seen if "silent" in name or "traceback" in name], seen


def test_the_attackers_see_what_is_silent(path):
    """A chunk that is changed with its checksum is what they look for."""
    expected = everything(ob.load(path))
    store = open_store(path)
    values = np.asarray(store.arrays["score"][0, 0:2])
    store.write("score", 0, 1 - values, 0)
    unit = store.unit((0, 0))
    files = {name: store.known[store.chunk_key(name, 0, 0)] for name in unit.files}
    from dataclasses import replace

    from orbical.store.checksums_and_units import write_unit

    write_unit(path, replace(unit, files=files), 1, durable=False)
    assert attacks_on_stores.outcome(path, expected) == "silent"
