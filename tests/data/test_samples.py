"""Data of many kinds: what numbers it holds counts, not how they are kept; the rest is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from orbical.data.samples import Samples, hash_of_rows
from orbical.errors import InputError

IMAGES = np.random.default_rng(0).random((5, 1, 4, 4), np.float32)
LABELS = np.arange(5)


class Items(Dataset):
    """A data set of five items, made by a function of their number."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 5

    def __getitem__(self, row):
        return self.make(row)


class Endless(IterableDataset):
    """A data set without a length."""

    def __iter__(self):
        return iter(IMAGES)


def fingerprint(data):
    return hash_of_rows(*Samples(data).read(0, 5))


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def test_samples_in_memory_are_not_copied():
    images = torch.from_numpy(IMAGES)
    samples = Samples((images, LABELS))
    samples.first(2)
    inputs, targets = samples.read(0, 5)
    assert inputs.data_ptr() == images.data_ptr()
    assert np.shares_memory(targets, LABELS)


@pytest.mark.parametrize(
    "x",
    [
        IMAGES.astype(np.float64),
        IMAGES.astype(">f4"),
        IMAGES.astype(np.longdouble),
        IMAGES[::-1].copy()[::-1],
        read_only(IMAGES),
        IMAGES.tolist(),
        [*IMAGES],
        [*torch.from_numpy(IMAGES)],
        Items(lambda row: IMAGES[row]),
        Items(lambda row: (torch.from_numpy(IMAGES[row]),)),
        TensorDataset(torch.from_numpy(IMAGES)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_same_numbers_are_the_same_data_however_they_are_kept(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        samples = Samples(x)
        assert len(samples) == 5
        assert samples.source.labels is None
        assert torch.equal(samples.inputs(1, 4), torch.from_numpy(IMAGES[1:4]))
        assert fingerprint(x) == fingerprint(IMAGES)


def test_numbers_of_two_bytes_stay_what_they_are():
    x = torch.from_numpy(IMAGES).bfloat16()
    assert torch.equal(Samples(x).inputs(0, 5), x)
    assert fingerprint(x) != fingerprint(x + 1)
    assert fingerprint(Items(lambda row: x[row])) == fingerprint(x)


def test_equal_bytes_of_another_type_or_shape_are_other_data():
    """Twelve zeros of four bytes each."""
    zeros = np.zeros((4, 3), np.int32)
    hashes = {
        hash_of_rows(zeros, None),
        hash_of_rows(zeros.view(np.float32), None),
        hash_of_rows(zeros.reshape(3, 4), None),
        hash_of_rows(zeros.view(np.int8), None),
        hash_of_rows(zeros[:2], zeros[2:]),
        hash_of_rows(zeros[:2], zeros[2:].view(np.float32)),
    }
    assert len(hashes) == 6


def test_items_of_a_data_set_may_have_fields():
    samples = Samples(Items(lambda row: ({"a": IMAGES[row], "b": (row, row)}, LABELS[row])))
    found = samples.inputs(1, 3)
    assert torch.equal(found["a"], torch.from_numpy(IMAGES[1:3]))
    assert found["b"][1].tolist() == [1, 2]
    assert samples.read(0, 5)[1].tolist() == LABELS.tolist()


def raises(row):
    if row == 3:
        raise OSError("the disk\nis gone")
    return IMAGES[row]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "data: expected arrays with a leading sample dimension, got NoneType"),
        (IMAGES.astype(object), "expected numbers, got an array of object"),
        (IMAGES.astype(complex), "complex128; pass real and imaginary parts as channels"),
        ((), "leading sample dimension, got nothing"),
        ([], "expected at least one sample, got none"),
        (
            [IMAGES[0], IMAGES[0, 0], IMAGES[0]],
            "expected samples of the same shape, got a list of 3",
        ),
        (
            (IMAGES, [1, [2], 3, 4, 5]),
            "labels: expected samples of the same shape, got a list of 5; pass several labels",
        ),
        (torch.from_numpy(IMAGES) + 0j, "got a complex tensor"),
        (torch.from_numpy(IMAGES).to_sparse(), "sparse_coo"),
        (torch.from_numpy(IMAGES).to("meta"), "meta"),
        (np.ma.masked_array(IMAGES, IMAGES > 0.5), "got a masked array"),
        (DataLoader(Items(lambda row: IMAGES[row]), shuffle=True), "pass DataLoader(..., shuffle"),
        (Endless(), "Endless, which is empty or has no length"),
        (Items(raises), "data: Items raised OSError for sample 3: the disk is gone"),
        (Items(lambda row: IMAGES[row, :, : 4 - row]), "got (1, 3, 4) for sample 1"),
        (Items(lambda row: (IMAGES[row], "cat")), "expected numbers, got an array of <U3"),
    ],
)
def test_what_holds_no_numbers_is_refused(data, words):
    with pytest.raises(InputError) as caught:
        Samples(data).inputs(0, 5)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
