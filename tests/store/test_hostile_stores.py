"""Stores that were mixed, tampered with or half overwritten: nothing of others is used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from attacks_on_stores import everything, linear, same, sealed_root, small_store

import orbical as ob
from orbical.errors import StoreError
from orbical.store import file_access, open_store, repair, verify
from orbical.store.checksums_and_units import json_digest
from orbical.store.file_access import remove_leftovers, temporary_folder


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Two scans of one layout, of the same samples by the same models, but in other places."""
    folder = tmp_path_factory.mktemp("two")
    small_store(folder / "a.zarr")
    images, labels = ob.datasets.digits()
    ob.scan(
        {"plain": linear(5), "other": linear(6)},
        (images[:6], labels[:6]),
        group="rotations:3",
        task="classification",
        out=folder / "b.zarr",
        chunk=2,
        progress=False,
    )
    return folder


@pytest.fixture
def stores(originals, tmp_path):
    return [shutil.copytree(originals / name, tmp_path / name) for name in ("a.zarr", "b.zarr")]


def files_of_unit(path, model, chunk):
    lead = f"c/{chunk}/" if model is None else f"c/{model}/{chunk}"
    arrays = [file for file in path.rglob("*") if file.is_file() and lead in file.as_posix()]
    return [mark_of(path, model, chunk), *arrays]


def mark_of(path, model, chunk):
    return next((path / "units").glob(f"{'shared' if model is None else model}.{chunk}.*"))


@pytest.mark.parametrize(("model", "chunk"), [(0, 1), (1, 2)])
def test_a_unit_of_another_scan_is_not_taken_for_ones_own(stores, model, chunk):
    own, foreign = stores
    expected = everything(ob.load(own))
    for file in files_of_unit(foreign, model, chunk):
        shutil.copy(file, own / file.relative_to(foreign))
    with pytest.raises(StoreError, match="is damaged"):  # beside the mark of its own arrays
        everything(ob.load(own))
    own_mark = next(
        one
        for one in (own / "units").glob(f"{model}.{chunk}.*")
        if not (foreign / "units" / one.name).exists()
    )
    own_mark.unlink()
    with pytest.warns(UserWarning, match="no valid mark of this scan"):
        scan = ob.load(own)
    assert not scan.done[model, chunk]
    assert np.isnan(scan.data["score"].values[model, 2 * chunk : 2 * chunk + 2]).all()
    assert [damage.why for damage in verify(open_store(own))] == ["of another scan or model"]
    done = repair(open_store(own))
    assert (done.restored, done.unfinished) == ([], [(model, chunk)])
    assert same(everything(small_store(own)), expected)


def test_a_unit_of_another_model_of_the_scan_is_not_taken_either(stores):
    own, _ = stores
    unit, own_mark = files_of_unit(own, 1, 0), mark_of(own, 0, 0)
    for file in unit[1:]:
        shutil.copy(file, file.as_posix().replace("/c/1/0", "/c/0/0"))
    mark = json.loads(unit[0].read_text())
    del mark["checksum"]
    mark["model"] = 0
    content = json.dumps({**mark, "checksum": json_digest(mark)})
    own_mark.write_text(content)  # by the name of the one, and then of the other
    with pytest.warns(UserWarning, match="no valid mark of this scan"):
        assert not ob.load(own).done[0, 0]
    own_mark.unlink()
    own_mark.with_name(unit[0].name.replace("1.0", "0.0", 1)).write_text(content)
    with pytest.warns(UserWarning, match="no valid mark of this scan"):
        assert not ob.load(own).done[0, 0]


def test_all_units_of_another_scan_leave_nothing_finished(stores):
    own, foreign = stores
    for name in [p.name for p in own.iterdir() if p.name != "zarr.json"]:
        if (own / name).is_dir():
            shutil.rmtree(own / name)
            shutil.copytree(foreign / name, own / name)
    with pytest.warns(UserWarning, match="9 units"):
        assert ob.load(own).share_done == 0.0


def renamed(name):
    def change(document):
        metadata = document["consolidated_metadata"]["metadata"]
        metadata[name] = metadata["weight"]

    return change


def chunk_named(cell):
    def change(document):
        about = json.loads(document["attributes"]["orbical"])
        about["files"]["weight"][cell] = "00000000-1"
        document["attributes"]["orbical"] = json.dumps(about)

    return change


@pytest.mark.parametrize(
    "change",
    [
        renamed("../b.zarr"),
        renamed("group/../../b.zarr"),
        renamed("/b.zarr"),
        renamed("..\\b.zarr"),
        renamed("C:b.zarr"),
        renamed(".."),
        renamed(""),
        chunk_named("../../../b.zarr/zarr.json"),
        chunk_named("0\\..\\1"),
    ],
)
def test_names_that_lead_out_of_the_folder_are_refused(stores, change):
    own, other = stores
    before = {file: file.read_bytes() for file in other.rglob("*") if file.is_file()}
    sealed_root(own, change)
    for use in (ob.load, lambda path: repair(open_store(path))):
        with pytest.raises(StoreError, match="impossible names"):
            use(own)
    assert {file: file.read_bytes() for file in other.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("name", ["units", "score", "group/plane"])
def test_a_folder_that_is_a_link_is_refused(stores, name):
    own, other = stores
    shutil.rmtree(own / name)
    (own / name).symlink_to(other / name, target_is_directory=True)
    with pytest.raises(StoreError, match="a folder in it is a link"):
        ob.load(own)


@pytest.mark.parametrize("place", ["score/c", "score/c/0", "score/c/0/1"])
def test_a_folder_of_chunks_that_is_a_link_is_neither_read_nor_repaired(stores, place):
    own, other = stores
    before = {file: file.read_bytes() for file in other.rglob("*") if file.is_file()}
    shutil.rmtree(own / place)
    (own / place).symlink_to(other / place, target_is_directory=True)
    with pytest.raises(StoreError, match="behind a link"):
        ob.load(own)
    repair(open_store(own))
    with pytest.raises(StoreError, match="behind a link"):
        small_store(own)
    assert {file: file.read_bytes() for file in other.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("how", ["link", "pipe"])
def test_a_chunk_or_a_mark_that_is_no_file_is_not_opened(stores, how):
    own, other = stores

    def replace(name):
        (own / name).unlink()
        if how == "link":
            (own / name).symlink_to(other / name)
        else:
            os.mkfifo(own / name)

    replace(mark_of(own, 0, 0).relative_to(own))
    with pytest.warns(UserWarning, match="no valid mark"):
        assert not ob.load(own).done[0, 0]
    replace("score/c/1/1/0")
    with pytest.raises(StoreError, match=r"score/c/1/1/0 .* is not a file but a link"):
        ob.load(own)


@pytest.mark.parametrize("root", ["removed", "damaged"])
def test_a_store_with_a_lost_root_can_be_overwritten(stores, root):
    own, _ = stores
    (own / "zarr.json").unlink() if root == "removed" else (own / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match="not an orbical store, or is too damaged"):
        small_store(own)
    assert_overwritten(own)


def test_an_empty_folder_can_be_overwritten_and_others_cannot(tmp_path):
    path = tmp_path / "run.zarr"
    path.mkdir()
    assert_overwritten(path)
    (tmp_path / "thesis" / "group").mkdir(parents=True)
    (tmp_path / "thesis" / "group" / "zarr.json").write_text('{"attributes": {}}')
    (tmp_path / "thesis" / "chapter.tex").write_text("words")
    with pytest.raises(StoreError, match="is not an orbical store; it is left unchanged"):
        assert_overwritten(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "words"


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_in_the_way_of_a_scan_and_is_kept_is_answered_with_another_folder(
    tmp_path, overwrite
):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("words")
    for path in (tmp_path / "thesis", tmp_path / "thesis" / "chapter.tex"):
        with pytest.raises(StoreError, match="choose another folder"):
            small_store(path, overwrite=overwrite)


def assert_overwritten(path):
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        linear(7),
        (images[:6], labels[:6]),
        group="rotations:3",
        task="classification",
        out=path,
        overwrite=True,
        progress=False,
    )
    assert scan.complete
    assert scan.models == ["model"]


@pytest.mark.system
def test_a_kill_while_a_store_is_overwritten_leaves_a_usable_folder():
    script = Path(__file__).with_name("overwrite_kills.py")
    ran = subprocess.run([sys.executable, script, "5"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[1]) > 20


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_next_scan_removes_what_killed_ones_left_and_nothing_else(tmp_path, overwrite):
    path = tmp_path / "run.zarr"
    images, labels = ob.datasets.digits()

    def scan():
        chosen, group = (images[:6], labels[:6]), "rotations:3"
        options = {"out": path, "overwrite": overwrite, "progress": False}
        return ob.scan(linear(), chosen, group=group, task="classification", **options)

    scan()
    (tmp_path / ".run.zarr.new.empty").mkdir()
    (tmp_path / ".run.zarr.new.full" / "old").mkdir(parents=True)
    (tmp_path / ".other.zarr.new.empty").mkdir()
    with temporary_folder(path) as used:
        scan()
        expected = {path, used, tmp_path / ".other.zarr.new.empty"}
        assert {*tmp_path.iterdir()} == expected


def test_a_new_folder_that_is_taken_for_a_leftover_is_replaced(tmp_path, monkeypatch):
    path, made, make = tmp_path / "run.zarr", [], file_access.tempfile.mkdtemp

    def robbed(**options):
        made.append(make(**options))
        if len(made) == 1:
            remove_leftovers(path)
        return made[-1]

    monkeypatch.setattr(file_access.tempfile, "mkdtemp", robbed)
    with temporary_folder(path) as used:
        assert [str(used)] == made[1:]
        remove_leftovers(path)
        assert used.is_dir()
    assert not [*tmp_path.iterdir()]


def test_a_store_is_as_private_as_its_user_wants(tmp_path):
    before = os.umask(0o077)
    try:
        small_store(tmp_path / "run.zarr")
    finally:
        os.umask(before)
    assert not [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]
