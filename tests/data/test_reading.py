"""A scan reads each sample once, refuses other data where they differ, and stores what is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset

import orbical as ob
from orbical.errors import InputError, StoreError

IMAGES = torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(24) % 10
PROBED = 2


def net(batch):
    return batch.flatten(1)[:, :10]


class Counted(Dataset):
    """Items that count how often each is read."""

    def __init__(self, images=IMAGES, labels=LABELS):
        self.images, self.labels, self.reads = images, labels, Counter()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        self.reads[row] += 1
        return self.images[row], int(self.labels[row])


class CountedStream(Counted, IterableDataset):
    def __iter__(self):
        return (self[row] for row in range(len(self)))


def scan(data, out=None, models=None, **options):
    options = dict(group="rotations:4", task="classification", progress=False, chunk=5) | options
    return ob.scan(models or {"net": net}, data, out=out, **options)


def once(data):
    return data.reads == Counter(range(len(data)))


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("kind", [Counted, CountedStream, "loader"])
def test_each_sample_is_read_once(tmp_path, kind, stored):
    data = Counted() if kind == "loader" else kind()
    given = DataLoader(data, batch_size=4) if kind == "loader" else data
    found = scan(given, tmp_path / "run.zarr" if stored else None, keep="inputs")
    assert once(data)
    same = scan((IMAGES, LABELS))
    assert found.data["label"].values.tolist() == LABELS.tolist()
    for name in ("score", "correct", "action_defect"):
        assert np.array_equal(found.data[name], same.data[name])


def test_a_generator_can_be_scanned():
    pairs = zip(IMAGES, LABELS, strict=True)
    found = scan(ob.data.Stream(pairs, length=24))
    assert np.array_equal(found.data["score"], scan((IMAGES, LABELS)).data["score"])


def test_processes_read_ahead(tmp_path):
    data, same = Counted(), scan((IMAGES, LABELS))
    found = scan(data, tmp_path / "run.zarr", workers=2)
    assert data.reads == Counter(range(PROBED))  # the others were read by other processes
    assert np.array_equal(found.data["score"], same.data["score"])
    stream = CountedStream()
    assert np.array_equal(scan(stream, workers=2).data["score"], same.data["score"])
    with pytest.raises(InputError, match="workers: expected"):
        scan(data, workers=-1)


def test_a_finished_scan_is_read_once_again_unless_the_data_are_known(tmp_path):
    out = tmp_path / "run.zarr"
    scan(Counted(), out, fingerprint="v1")
    unknown, known = Counted(), Counted()
    scan(unknown, out)
    assert once(unknown)
    scan(known, out, fingerprint="v1")
    assert known.reads == Counter(range(PROBED))
    with pytest.raises(StoreError, match=r"other data: .* fingerprint v1, got .* fingerprint v2"):
        scan(Counted(), out, fingerprint="v2")
    with pytest.raises(InputError, match="fingerprint: expected a text"):
        scan(Counted(), out, fingerprint=3)


def test_files_with_the_same_times_and_sizes_are_not_read_again(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", IMAGES.numpy())
    out = tmp_path / "run.zarr"
    scan(tmp_path / "x.npy", out)
    read = []
    original = ob.data.array_source.Arrays.read
    monkeypatch.setattr(
        ob.data.array_source.Arrays, "read", lambda *args: read.append(args[1:]) or original(*args)
    )
    scan(tmp_path / "x.npy", out)
    assert read == [(0, PROBED)]
    changed = IMAGES.clone()
    changed[17] += 1
    np.save(tmp_path / "x.npy", changed.numpy())
    with pytest.raises(StoreError, match="samples 15 to 19 differ"):
        scan(tmp_path / "x.npy", out)


@pytest.mark.parametrize(
    ("row", "words"),
    [(0, "other data: it holds samples 24, fingerprint"), (17, "samples 15 to 19 differ")],
)
def test_other_data_are_refused_where_they_differ(tmp_path, row, words):
    out = tmp_path / "run.zarr"
    scan(Counted(), out)
    changed = IMAGES.clone()
    changed[row] += 1
    for models in ({"net": net}, {"other": net}):  # a finished scan, and one to add a model to
        with pytest.raises(StoreError) as caught:
            scan(Counted(changed), out, models)
        assert words in str(caught.value)
    other = LABELS.clone()
    other[23] = 0
    with pytest.raises(StoreError, match="samples 20 to 23 differ"):
        scan((IMAGES, other), out)
    with pytest.raises(StoreError, match="other data"):
        scan(IMAGES, out)


def test_an_unfinished_scan_is_resumed_with_each_sample_read_once(tmp_path):
    out = tmp_path / "run.zarr"
    calls = []

    def stops(batch):
        calls.append(len(batch))
        if len(calls) == 7:
            raise KeyboardInterrupt
        return net(batch)

    with pytest.raises(KeyboardInterrupt):
        scan(Counted(), out, {"net": stops}, batch_size=20)
    assert 0 < ob.load(out).share_done < 1
    data = Counted()
    found = scan(data, out, batch_size=20)
    assert once(data)
    assert np.array_equal(found.data["score"], scan((IMAGES, LABELS)).data["score"])


def test_labels_that_come_with_samples_are_checked_as_they_come(tmp_path):
    labels = LABELS.clone()
    labels[22] = 10
    with pytest.raises(InputError, match="class indices below 10, as the model has, got 10"):
        scan(Counted(labels=labels), tmp_path / "run.zarr")
    assert ob.load(tmp_path / "run.zarr").share_done == 0.8


def test_a_stream_that_ends_early_keeps_what_is_finished(tmp_path):
    short = ob.data.Stream(CountedStream(), length=30)
    with pytest.raises(InputError, match="stream of 30 samples, got the end after 24"):
        scan(short, tmp_path / "run.zarr")
    assert ob.load(tmp_path / "run.zarr").share_done == pytest.approx(4 / 6)


@pytest.fixture
def photos(tmp_path):
    for number, image in enumerate(IMAGES[:6, 0]):
        place = tmp_path / "photos" / f"{'cat' if number < 3 else 'dog'}-{number}.png"
        place.parent.mkdir(exist_ok=True)
        Image.fromarray((image.numpy() * 255).astype(np.uint8)).save(place)
    return tmp_path / "photos"


def two(batch):
    return batch.flatten(1)[:, :2]


def test_names_classes_and_metadata_are_stored(tmp_path, photos):
    files = sorted(file.name for file in photos.iterdir())
    frame = pd.DataFrame(
        {"path": files, "label": ["cat"] * 3 + ["dog"] * 3, "site": list("nnssww")}
    )
    frame["exposure (s)"] = np.arange(6) / 10
    data = ob.data.Table(frame, root=photos, mode="L")
    found = scan(data, tmp_path / "run.zarr", {"two": two})
    assert found.names == files
    assert found.classes == ["cat", "dog"]
    assert {name: values.tolist() for name, values in found.metadata.items()} == {
        "site": list("nnssww"),
        "exposure_s": [0, 0.1, 0.2, 0.3, 0.4, 0.5],
    }
    plain = xr.open_zarr(tmp_path / "run.zarr")
    assert {"name", "label", "site", "exposure_s", "class_name"} <= {*plain.coords}
    assert plain["class_name"].values.tolist() == ["cat", "dog"]
    assert plain["exposure_s"].attrs["long_name"] == "exposure (s)"
    by_site = ob.nero.aggregate(ob.load(tmp_path / "run.zarr"), by="site")
    assert by_site["site"].values.tolist() == ["n", "s", "w"]
    again = scan(data, tmp_path / "run.zarr", {"two": two})
    assert again.complete


@pytest.mark.parametrize("name", ["angle", "model", "score", "units", "action defect"])
def test_metadata_with_the_name_of_a_result_are_refused(photos, name):
    files = sorted(file.name for file in photos.iterdir())
    frame = pd.DataFrame({"path": files, name: range(6)})
    with pytest.raises(InputError, match=f"names of their own, got '{name}'"):
        scan(ob.data.Table(frame, root=photos, mode="L"), None, {"two": two})


def test_class_names_must_be_those_of_the_model():
    with pytest.raises(InputError, match="model's 10 classes, got 3; pass all of them"):
        scan(ob.data.Stream(IMAGES, 24, classes=["a", "b", "c"]))


def test_unreadable_photos_are_refused_before_any_model_runs(tmp_path, photos):
    (photos / "cat-1.png").write_bytes(b"no image")

    def never(batch):
        raise AssertionError("a model ran")

    with pytest.raises(InputError, match="1 of 6 images"):
        scan(photos, tmp_path / "run.zarr", {"never": never})
    assert not (tmp_path / "run.zarr").exists()
