"""Warnings point at the line of the user's that led to them."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical._arrays import as_array
from orbical._warnings import silent, warn

NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4)).eval()
IMAGES = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def noisy(x):
    return torch.nn.functional.dropout(NET(x))


def likely(x):
    return NET(x.float()).softmax(-1)


@pytest.mark.parametrize(
    ("model", "images", "words"),
    [
        (noisy, IMAGES, "different outputs for the same batch"),
        (likely, IMAGES, "outputs are read as logits but"),
        (lambda x: NET(x.float()), (255 * IMAGES).byte(), "pixels are passed to the models as"),
    ],
)
def test_those_of_a_scan_point_at_the_scan(model, images, words):
    with pytest.warns(UserWarning, match=words) as caught:
        ob.scan(model, images, group="cyclic:4", task="classification", progress=False)
    assert {one.filename for one in caught} == {__file__}


def test_those_of_saved_outputs_point_at_the_call_through_decorators_too():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
    with pytest.warns(UserWarning, match="if these are probabilities") as caught:
        torch.no_grad()(ob.calibration.nll)(logits=probs, labels=np.zeros(40, int))
    assert {one.filename for one in caught} == {__file__}


def test_what_another_thread_leaves_out_is_still_said_here():
    inside, done = threading.Event(), threading.Event()

    def leave_out():
        with silent():
            inside.set()
            done.wait(60)
            warn("not to be said")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread = threading.Thread(target=leave_out)
        thread.start()
        assert inside.wait(60)
        warn("to be said")
        done.set()
        thread.join()
    assert [str(one.message) for one in caught] == ["to be said"]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", ">f8", "uint16"])
def test_arrays_that_are_only_to_be_read_are_taken_without_a_word_or_a_copy(dtype, monkeypatch):
    # Changed filters would hold for all threads, and what was said once would be said again.
    monkeypatch.setattr(warnings, "catch_warnings", None)
    kept = np.arange(3).astype(dtype)
    shown = kept.view()
    shown.flags.writeable = False
    with_memory = as_array("values", shown)
    assert with_memory.tolist() == kept.tolist()
    shares = with_memory.data_ptr() == kept.ctypes.data
    assert shares == (dtype not in (">f8", "uint16"))  # torch has neither
    assert as_array("values", np.broadcast_to(np.float32(1), (2, 3))).stride() == (0, 0)
