"""The store: nothing is lost on a kill, damage is found, another scan is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import orbical as ob
from orbical.cli.shell_text import error_text_for_shell
from orbical.errors import InputError, Interrupted, ModelError, StoreError
from orbical.scanning.forward_passes import PassResults
from orbical.store import ModelEntry, file_access, open_store, zarr_store
from orbical.store.file_access import locked


@pytest.fixture(scope="module")
def digits():
    images, labels = ob.datasets.digits()
    return images[:40], labels[:40]


def linear(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def scan(models, data, out, **settings):
    settings = {
        "group": "rotations:9",
        "task": "classification",
        "batch_size": 8,
        "chunk": 8,
    } | settings
    return ob.scan(models, data, out=out, progress=False, **settings)


@pytest.fixture(scope="module")
def scanned_once(tmp_path_factory, digits):
    path = tmp_path_factory.mktemp("scanned") / "run.zarr"
    scan(linear(), digits, path)
    return path


@pytest.fixture
def scanned(tmp_path, scanned_once):
    """The path of a finished scan of `linear()`, to do with as a test likes."""
    return shutil.copytree(scanned_once, tmp_path / "run.zarr")


def content(path):
    """All files of a store with their hashes, but for the record's time stamp."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "zarr.json"
    }


def killed(number, how):
    """Kill that many scans in a process of its own; return what it saw."""
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, script, str(number), how], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    print(seen, file=sys.stderr)
    return seen


@pytest.mark.system
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_scans_killed_in_the_middle_lose_nothing_and_continue_to_the_same_bits(how):
    seen = killed(2, how)
    assert seen["kills"] == 2
    assert seen["in the middle"] > 0
    assert seen["units lost"] == seen["orphans"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_many_kills_lose_nothing(how):
    seen = killed(12, how)
    assert seen["kills"] == 12
    assert seen["in the middle"] > 4
    assert seen["units lost"] == seen["orphans"] == 0


def test_ctrl_c_keeps_the_unit_that_was_just_finished(tmp_path, digits):
    net, asked = linear().eval(), []

    def stopped_in_the_second_unit(images):
        asked.append(len(images))
        if sum(asked[3:]) > 8 * 9:  # after three first looks, a unit is 8 samples x 9 elements
            raise KeyboardInterrupt
        return net(images)

    path = tmp_path / "run.zarr"
    with pytest.raises(Interrupted, match="stopped at 20%"):
        scan(stopped_in_the_second_unit, digits, path)
    assert ob.load(path).done.sum() == 1


def test_interruption_in_memory_says_that_it_is_lost(digits):
    calls = []

    def interrupt(x):
        calls.append(1)
        if len(calls) > 10:
            raise KeyboardInterrupt
        return x.flatten(1)[:, :10]

    with pytest.raises(Interrupted, match="in memory and is lost"):
        scan(interrupt, digits, None)


def test_a_finished_scan_is_not_computed_again(tmp_path, digits):
    calls = []

    class Counting(torch.nn.Module):
        def forward(self, x):
            calls.append(len(x))
            return x.flatten(1)[:, :10]

    scan(Counting(), digits, tmp_path / "run.zarr")
    first = sum(calls)
    scan(Counting(), digits, tmp_path / "run.zarr")
    assert sum(calls) - first == 2 * 2 * 4, "only the probe asks again"


def test_a_model_can_be_added_later(tmp_path, digits):
    path = tmp_path / "run.zarr"
    scan({"one": linear(1)}, digits, path)
    both = scan({"two": linear(2)}, digits, path)
    assert both.models == list(both.data["model"]) == ["one", "two"]
    assert list(xr.open_zarr(path)["model"].values) == ["one", "two"]
    assert both.complete
    together = scan({"one": linear(1), "two": linear(2)}, digits, tmp_path / "other.zarr")
    np.testing.assert_array_equal(both.data["score"], together.data["score"])
    np.testing.assert_array_equal(both.data["consensus"], together.data["consensus"])


def damage(path, variable, how):
    files = [file for file in (path / variable / "c").rglob("*") if file.is_file()]
    how(files[len(files) // 2])


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def truncate(file):
    file.write_bytes(file.read_bytes()[:-7])


@pytest.mark.parametrize("variable", ["score", "correct", "consensus", "action_defect"])
@pytest.mark.parametrize("how", [flip_a_bit, truncate, Path.unlink])
def test_damaged_units_are_found_and_computed_again(scanned, digits, variable, how):
    expected, values = content(scanned), ob.load(scanned).data[variable].values
    damage(scanned, variable, how)
    with pytest.warns(UserWarning, match="1 units are damaged and will be computed again"):
        again = scan(linear(), digits, scanned)
    assert again.complete
    assert content(scanned) == expected
    np.testing.assert_array_equal(again.data[variable], values)


def test_a_chunk_read_in_this_thread_is_what_zarr_reads(scanned):
    found = ob.load(scanned)
    for name, array in found.arrays.items():
        by_model = array.metadata.dimension_names[0] == "model"
        models = range(array.shape[0]) if by_model else [None]
        for chunk, model in itertools.product(range(found.record.chunks), models):
            rows = found.record.rows(chunk)
            known = np.asarray(array[rows if model is None else (model, rows)])
            read = found.read(name, chunk, model)
            assert read.dtype == known.dtype
            np.testing.assert_array_equal(read, known)


def test_a_chunk_written_in_this_thread_is_what_zarr_writes(tmp_path, digits, monkeypatch):
    settings = {"keep": "outputs,inputs,probabilities", "chunk": 16}  # the last unit is smaller
    scan(linear(), digits, tmp_path / "own.zarr", **settings)
    monkeypatch.setattr(zarr_store.Store, "_local_files", lambda store, name: None)
    scan(linear(), digits, tmp_path / "zarr.zarr", **settings)
    own, zarrs = (
        {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("c/**/*[0-9]")
         if file.is_file()}
        for path in (tmp_path / "own.zarr", tmp_path / "zarr.zarr")
    )  # fmt: skip
    assert len(own) > 30
    assert own == zarrs


def test_true_maps_are_written_before_the_results_are_there(tmp_path, monkeypatch):
    path, seen = tmp_path / "run.zarr", []
    wait = PassResults.wait

    def waiting(unit, *given):
        seen.append(sorted(file.name for file in (path / "label_map").glob("c/*")))
        wait(unit, *given)

    monkeypatch.setattr(PassResults, "wait", waiting)
    maps = torch.randint(0, 3, (4, 8, 8))
    net = torch.nn.Conv2d(1, 3, 1)
    scan(net, (torch.rand(4, 1, 8, 8), maps), path, task="segmentation", chunk=2)
    assert seen == [["0"], ["0", "1"]]
    assert ob.load(path).verify() == []


@pytest.mark.parametrize("how", [flip_a_bit, truncate, Path.unlink])
def test_a_damaged_chunk_is_refused_in_this_thread_too(scanned, how):
    found = ob.load(scanned)
    damage(scanned, "score", how)
    with pytest.raises(StoreError, match=r"is (missing|damaged); run the same"):
        [found.read("score", chunk, 0) for chunk in range(found.record.chunks)]


@pytest.mark.parametrize("how", [flip_a_bit, truncate, Path.unlink])
@pytest.mark.parametrize("variable", ["label", "angle", "group/plane", "model"])
def test_what_is_written_once_is_restored_by_the_scan(scanned, digits, variable, how):
    expected, reference = content(scanned), ob.load(scanned).data.load()
    damage(scanned, variable, how)
    with pytest.raises(StoreError, match=rf"{variable}/c/\S+ is (missing|damaged); run the same"):
        ob.load(scanned).data.load()
    with pytest.warns(UserWarning, match="1 files were lost or damaged and have been restored"):
        again = scan(linear(), digits, scanned)
    assert again.complete
    assert content(scanned) == expected
    assert again.data.identical(reference)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(group="rotations:10"), "another group: it holds spec rotations:9"),
        (dict(data="other"), "other data"),
        (dict(models={"model": linear(5)}), "another model under the name 'model'"),
        (dict(models={"model": lambda x: x.flatten(1)[:, :10]}), "another model"),
        (dict(keep="probabilities"), "another keep"),
        (
            dict(task=ob.tasks.Classification(ob.actions.Images("bicubic"))),
            "another task: it holds {'input': {'interpolation': 'bilinear'",
        ),
        (dict(resume=False), "continue it with resume=True, or replace it with overwrite=True"),
    ],
)
def test_another_scan_is_refused_and_the_store_is_left_alone(scanned, digits, change, words):
    before = content(scanned)
    data = (1 - digits[0], digits[1]) if change.pop("data", None) else digits
    with pytest.raises(StoreError) as caught:
        scan(change.pop("models", linear()), data, scanned, **change)
    assert words in str(caught.value)
    assert "overwrite=True" in str(caught.value)
    options = {"overwrite": "--overwrite", "resume": "--resume"}
    assert "with --overwrite" in error_text_for_shell(caught.value, options, {})
    assert content(scanned) == before


@pytest.mark.parametrize("damage", ["{", '{"attributes": {"orbical": "{}"}}'])
def test_a_root_that_cannot_be_read_can_be_replaced(scanned, digits, damage):
    (scanned / "zarr.json").write_text(damage)
    with pytest.raises(StoreError, match=r"too damaged.*or replace this one with overwrite=True"):
        scan(linear(), digits, scanned)
    assert scan(linear(), digits, scanned, overwrite=True).complete


def test_functions_are_known_by_their_answers(tmp_path, digits):
    path = tmp_path / "run.zarr"
    scan(lambda x: x.flatten(1)[:, :10], digits, path)
    scan(lambda x: x.flatten(1)[:, 0:10], digits, path)
    with pytest.raises(StoreError, match="another model"):
        scan(lambda x: x.flatten(1)[:, 10:20], digits, path)


class Sharper(torch.nn.Module):
    """A setting that neither the weights nor the printed form show."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def forward(self, images):
        return self.times * images.flatten(1)[:, :10]


def test_a_setting_that_is_no_weight_makes_another_model(tmp_path, digits):
    path = tmp_path / "run.zarr"
    scan(Sharper(1.0), digits, path)
    scan(Sharper(1.0), digits, path)
    with pytest.raises(StoreError, match="another model"):
        scan(Sharper(9.0), digits, path)


def test_overwrite_starts_anew(scanned, digits):
    again = scan(linear(3), digits, scanned, group="cyclic:4", overwrite=True)
    assert again.group.spec == "cyclic:4"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(lambda x: x[:1, 0, 0], ModelError), (lambda x: x.flatten(1)[:, :3], InputError)],
)
def test_overwriting_loses_nothing_where_the_new_scan_is_impossible(scanned, digits, wrong, error):
    with pytest.raises(error):
        scan({"a": wrong}, digits, scanned, overwrite=True)
    assert ob.load(scanned).complete


def test_a_store_that_is_being_written_is_not_deleted(scanned, digits):
    with locked(scanned), pytest.raises(StoreError, match="being written by another scan"):
        scan({"a": linear()}, digits, scanned, overwrite=True)
    assert ob.load(scanned).complete


def test_an_added_model_must_answer_like_those_in_the_store(tmp_path, digits):
    path = tmp_path / "ten.zarr"
    scan({"ten": linear()}, digits[0], path)
    with pytest.raises(StoreError, match=r"holds consensus of shape \(40, 10\).*return \(40, 5\)"):
        scan({"five": lambda x: x.flatten(1)[:, :5]}, digits[0], path)
    assert ob.load(path).models == ["ten"]


def test_foreign_folders_are_neither_read_nor_deleted(tmp_path, digits):
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.tex").write_text("years of work")
    for settings in (dict(), dict(overwrite=True)):
        with pytest.raises(StoreError, match="not an orbical store"):
            scan(linear(), digits, foreign, **settings)
    assert (foreign / "chapter.tex").read_text() == "years of work"
    with pytest.raises(StoreError, match="not an orbical store"):
        ob.load(foreign)


def test_half_written_and_unreadable_stores_are_explained(scanned, tmp_path):
    record = scanned / "zarr.json"
    record.write_text(record.read_text()[:100])
    with pytest.raises(StoreError, match="too damaged to read"):
        ob.load(scanned)
    with pytest.raises(StoreError, match="does not exist"):
        ob.load(tmp_path / "absent.zarr")


def test_a_store_is_never_seen_half_made(tmp_path, digits, monkeypatch):
    from orbical.store import creation as stores

    def fail(*arguments):
        raise KeyboardInterrupt("pulled the plug")

    monkeypatch.setattr(stores, "data_attributes", fail)
    with pytest.raises(KeyboardInterrupt):
        scan(linear(), digits, tmp_path / "run.zarr")
    assert list(tmp_path.iterdir()) == []


def test_two_scans_cannot_write_one_store(scanned, digits):
    with (
        locked(scanned),
        pytest.raises(StoreError, match="being written by another scan"),
    ):
        scan(linear(), digits, scanned)


def test_a_full_disk_keeps_what_is_done_and_says_so(tmp_path, digits):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        shutil.which("mount")
        and os.geteuid() == 0
        and (
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True
            ).returncode
            == 0
        )
    )
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with pytest.raises(StoreError, match="no space left on the device"):
            scan(linear(), digits, disk / "run.zarr", keep=("probabilities", "outputs"))
        path = disk / "run.zarr"
        done = ob.load(path).share_done if path.exists() else 0.0
        subprocess.run(["mount", "-o", "remount,size=16M", str(disk)], check=True)
        result = scan(linear(), digits, path, keep=("probabilities", "outputs"))
        assert result.complete
        assert done < 1
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_a_path_that_cannot_be_made_is_named(tmp_path, digits):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be created"):
        scan(linear(), digits, tmp_path / "file" / "run.zarr")


def test_a_scan_in_memory_and_on_disk_hold_the_same(tmp_path, digits):
    on_disk = scan(linear(), digits, tmp_path / "run.zarr")
    in_memory = scan(linear(), digits, None)
    loaded = ob.load(tmp_path / "run.zarr")
    for name in on_disk.data.data_vars:
        np.testing.assert_array_equal(on_disk.data[name], in_memory.data[name])
        np.testing.assert_array_equal(on_disk.data[name], loaded.data[name])
    assert loaded.group.fingerprint() == ob.groups.rotations(9).fingerprint()
    assert loaded.group.coords["angle"][1] == 40
    assert loaded.group.layout.kind == "circle"


def test_a_unit_of_nothing_but_fill_values_is_done(tmp_path, digits):
    """A model that is always wrong fills `correct` with the value that also means missing."""

    def always_nine(images):
        return torch.nn.functional.one_hot(torch.full((len(images),), 9), 10) * 5.0

    data = (digits[0], torch.zeros(len(digits[0]), dtype=torch.int64))
    path = tmp_path / "wrong.zarr"
    scan = ob.scan(
        always_nine, data, group="rotations:4", task="classification", out=path, progress=False
    )
    assert not bool(scan.data["correct"].any())
    assert scan.verify() == []
    assert scan.complete


def test_a_resumed_scan_keeps_the_stored_batch_size(tmp_path, digits):
    path = tmp_path / "run.zarr"
    scan({"first": linear()}, digits, path, batch_size=8)
    seen = []

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = linear(1)

        def forward(self, x):
            seen.append(len(x))
            return self.net(x)

    scan({"second": Counting()}, digits, path, batch_size=360)
    assert max(seen) <= 8
    assert {
        unit.batch_size for _, unit in (lambda s: s.read_units([*s.units]))(ob.load(path)._store)
    } == {8, None}


def test_models_that_are_added_at_once_have_places_of_their_own(scanned, digits, monkeypatch):
    monkeypatch.setattr(file_access, "fcntl", None)  # a file system without locks
    adders = [
        threading.Thread(target=scan, args=({f"added {seed}": linear(seed)}, digits, scanned))
        for seed in (1, 2, 3)
    ]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()
    found = ob.load(scanned)
    assert sorted(found.models) == ["added 1", "added 2", "added 3", "model"]
    assert found.complete
    assert found.verify() == []
    for seed in (1, 2, 3):
        alone = scan(linear(seed), digits, None).data["score"].values[0]
        together = found.data["score"].sel(model=f"added {seed}").values
        np.testing.assert_array_equal(together, alone)


def test_a_model_of_a_name_that_another_scan_has_just_added_is_refused(scanned, digits):
    store = open_store(scanned)
    entry = dataclasses.replace(store.record.models[0], name="new")
    other = dataclasses.replace(entry, fingerprint="another")
    open_store(scanned).add_models([entry])
    store.add_models([other])
    assert store.record.models[1] == entry
    with pytest.raises(StoreError, match="another model under the name 'new'"):
        scan({"new": linear(3)}, digits, scanned)


def test_many_units_are_read_when_they_are_used(scanned, monkeypatch):
    """Opening lists names; nothing is read or looked at for each unit."""
    monkeypatch.setattr(zarr_store, "_FEW_UNITS", 1)
    expected = ob.load(scanned).data.load()
    read = []
    files = zarr_store.read_store_files
    monkeypatch.setattr(
        zarr_store, "read_store_files", lambda paths, most: read.extend(paths) or files(paths, most)
    )
    found = ob.load(scanned)
    assert found.complete
    assert read == [scanned / "zarr.json"]  # the root alone
    mark = next((scanned / "units").glob("0.1.*"))
    content = mark.read_bytes()
    mark.write_bytes(content.replace(b'"score"', b'"scope"'))
    with pytest.raises(StoreError, match=r"units/0.1.* \(model 'model'.* is missing or damaged"):
        found.data["score"].load()
    mark.write_bytes(content)
    assert found.data.load().identical(expected)
    assert found.failures == {"model": []}


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e6])
def test_a_model_is_told_apart_by_its_outputs_whatever_their_size(size):
    outputs = size * np.linspace(-1, 1, 16)
    entry = ModelEntry("net", "net.pt", None, True, outputs.tolist())
    assert entry.reproduced_by(outputs * (1 + 1e-5))
    assert not entry.reproduced_by(outputs * 1.01)
