"""Stores in trouble: parts that are lost, names that are no folders, scans that meet."""

from __future__ import annotations

import copy
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, StoreError


@pytest.fixture(scope="module")
def few():
    images, labels = ob.datasets.digits()
    return images[:4], labels[:4]


@pytest.fixture(scope="module")
def sound(few, tmp_path_factory):
    """A finished store, to be copied."""
    path = tmp_path_factory.mktemp("sound") / "run.zarr"
    scan(linear(), few, path)
    return path


def linear(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))


def scan(models, data, out, **settings):
    return ob.scan(
        models,
        data,
        group="rotations:3",
        task="classification",
        out=out,
        progress=False,
        **settings,
    )


@pytest.mark.parametrize("gone", ["models", "run", "all", "hash", "array", "text"])
def test_a_store_that_lost_what_nothing_is_read_without_is_named(tmp_path, few, sound, gone):
    path = shutil.copytree(sound, tmp_path / "run.zarr")
    root = json.loads((path / "zarr.json").read_text())
    attributes = root["attributes"]
    if gone == "array":
        del root["consolidated_metadata"]["metadata"]["score"]
    elif gone in ("all", "hash"):
        attributes["orbical" if gone == "all" else "orbical_checksum"] = "lost"
    elif gone != "text":
        about = json.loads(attributes["orbical"])
        del about["record"][gone]
        attributes["orbical"] = json.dumps(about)
    text = json.dumps(root)
    (path / "zarr.json").write_bytes(b"\xff\xfe" if gone == "text" else text.encode())
    for use in (ob.load, lambda store: scan(linear(), few, store)):
        with pytest.raises(StoreError, match=r"too damaged to read.*left unchanged"):
            use(path)


def test_a_lost_group_is_named_and_written_again_by_the_scan(tmp_path, few, sound):
    path = shutil.copytree(sound, tmp_path / "run.zarr")
    shutil.rmtree(path / "group")
    with pytest.raises(StoreError, match=r"group/\S+ is missing; run the same scan again"):
        ob.load(path)
    with pytest.warns(UserWarning, match="lost or damaged and have been restored"):
        assert scan(linear(), few, path).complete
    assert ob.load(path).verify() == []


def test_a_store_of_an_older_format_is_refused_by_name(tmp_path, few, sound):
    path = shutil.copytree(sound, tmp_path / "run.zarr")
    old = {"zarr_format": 3, "node_type": "group", "attributes": {"orbical": {"format": 2}}}
    (path / "zarr.json").write_text(json.dumps(old))
    for use in (ob.load, lambda store: scan(linear(), few, store)):
        with pytest.raises(StoreError, match="has format 2, this version reads 6; scan again into"):
            use(path)


def test_a_kill_while_room_is_made_for_a_model_is_mended(tmp_path, few, sound, monkeypatch):
    from orbical.store import zarr_store as stores

    path = shutil.copytree(sound, tmp_path / "run.zarr")
    before = ob.load(path).data["score"].values
    with monkeypatch.context() as killed:
        killed.setattr(stores.Store, "seal", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan({"model": linear(), "b": linear(1)}, few, path)
    assert ob.load(path).models == ["model"], "read as before"
    assert ob.load(path).verify() == []
    result = scan({"model": linear(), "c": linear(2)}, few, path)
    assert result.models == ["model", "b", "c"]
    assert result.done.all(1).tolist() == [True, False, True]
    assert scan({"b": linear(1)}, few, path).complete
    assert result.verify() == []
    np.testing.assert_array_equal(result.data["score"].values[:1], before)


def interrupted(store):
    raise KeyboardInterrupt


def test_a_store_that_cannot_be_replaced_is_named_and_stays(tmp_path, few, sound, monkeypatch):
    path = shutil.copytree(sound, tmp_path / "run.zarr")

    def refuse(folder, target):
        raise PermissionError(13, "Permission denied", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(StoreError, match=r"run.zarr' cannot be created \(.*Permission denied"):
            scan(linear(), few, path, overwrite=True)
    assert ob.load(path).complete
    assert [*tmp_path.iterdir()] == [path]


def test_a_store_is_found_by_its_link_and_from_home(tmp_path, few, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert scan(linear(), few, "~/run.zarr").path == tmp_path / "run.zarr"
    (tmp_path / "link").symlink_to("run.zarr")
    (tmp_path / "ahead").symlink_to("later.zarr")
    assert scan({"b": linear(1)}, few, "link").models == ["model", "b"]
    assert scan(linear(1), few, "link/", overwrite=True).models == ["model"]
    assert (tmp_path / "link").is_symlink()
    assert scan(linear(), few, "ahead").path == tmp_path / "later.zarr"
    assert ob.load("~/run.zarr").complete


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (3, "out: expected the path of a folder, or a URL, got 3"),
        ("", "out: expected the path of a folder, or a URL, got ''"),
        ("nosuch://bucket/run.zarr", "expected a folder, or a URL that fsspec knows, got"),
        ("a\0b", "embedded null"),
        ("run.zip", "out: expected the name of a folder, got 'run.zip'; scan into a folder"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_names_no_folder_is_refused(few, tmp_path, monkeypatch, out, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        scan(linear(), few, out)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200
    assert list(tmp_path.iterdir()) == []


def test_a_packed_scan_is_to_be_unpacked(few, tmp_path):
    scan(linear(), few, tmp_path / "run.zarr")
    packed = shutil.make_archive(str(tmp_path / "run"), "zip", tmp_path / "run.zarr")
    with pytest.raises(StoreError, match=r"got the file .*run.zip'; if a scan .* unpack it first"):
        ob.load(packed)
    with pytest.raises(InputError, match=r"path: expected a folder.*, got the archive .*; unpack"):
        ob.load(f"zip://::{packed}")


def test_of_two_scans_that_begin_at_once_one_is_told(tmp_path, few, monkeypatch):
    from orbical.store import creation as stores

    path, fill = tmp_path / "run.zarr", stores._filled_on_creation

    def fill_while_another_is_faster(*rest):
        monkeypatch.setattr(stores, "_filled_on_creation", fill)
        scan(linear(), few, path)
        return fill(*rest)

    monkeypatch.setattr(stores, "_filled_on_creation", fill_while_another_is_faster)
    with pytest.raises(StoreError, match="created by another scan in the meantime"):
        scan(linear(), few, path)
    assert ob.load(path).complete
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.zarr"]


class Filtered(ob.actions.Images):
    """An action of a user's own, set by anything."""

    def __init__(self, setting):
        super().__init__()
        self.setting = setting


def one():
    return 1


@pytest.mark.parametrize(
    ("setting", "other"),
    [
        ((3, 4), (3, 5)),
        (np.float32(2), np.float32(3)),
        (np.arange(3), np.arange(4)),
        (np.arange(100), np.arange(1, 101)),
        (torch.ones(2), torch.zeros(2)),
        ({"a": {1, 2}}, {"a": {1, 3}}),
        (math.nan, math.inf),
        (Path("here"), Path("there")),
        (one, linear),
        (ob.actions.Window(2), ob.actions.Window(3)),
    ],
    ids=lambda setting: type(setting).__name__,
)
def test_a_scan_by_an_action_of_ones_own_is_recorded_and_continued(tmp_path, few, setting, other):
    path = tmp_path / "run.zarr"

    def scan_by(setting):
        task = ob.tasks.Classification(Filtered(setting))
        return ob.scan(linear(), few, group="trivial", task=task, out=path, progress=False)

    assert scan_by(setting).complete
    assert scan_by(copy.deepcopy(setting)).complete
    with pytest.raises(StoreError, match="made with another task"):
        scan_by(other)
