"""Models that write into their inputs, change their outputs' shape, or look at their batch."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import ModelError


@pytest.fixture(scope="module")
def digits():
    images, labels = ob.datasets.digits()
    return images[:40], labels[:40]


def linear(classes=10):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, classes))


def scanned(models, data, **options):
    options = {"group": "rotations:6", "chunk": 8, "batch_size": 16} | options
    return ob.scan(models, data, task="classification", progress=False, **options)


class Late:
    """A model that misbehaves from some call on."""

    def __init__(self, net, after, how):
        self.net, self.after, self.how, self.calls = net, after, how, 0

    def __call__(self, x):
        self.calls += 1
        return self.how(self.net, x) if self.calls > self.after else self.net(x)


def overwriting(net, x):
    answer = net(x)
    x.zero_()
    return answer


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("group", ["rotations:6", "trivial"])
def test_a_model_that_writes_into_its_inputs_changes_nothing_else(digits, after, group):
    images = digits[0].clone()
    first = Late(linear(), after, overwriting)
    both = scanned({"first": first, "second": linear()}, (images, digits[1]), group=group)
    assert first.calls > after
    assert torch.equal(images, digits[0])
    alone = scanned(linear(), digits, group=group)
    for name in ("first", "second"):
        assert np.array_equal(both.data["score"].sel(model=name), alone.data["score"][0])


def test_a_preprocessing_that_writes_into_its_inputs_changes_nothing_else(digits):
    images = digits[0].clone()
    late = Late(lambda x: x / 2, 4, lambda half, x: x.div_(2))
    scan = scanned(linear(), (images, digits[1]), group="trivial", preprocess=late)
    assert torch.equal(images, digits[0])
    plain = scanned(linear(), digits, group="trivial", preprocess=lambda x: x / 2)
    assert np.array_equal(scan.data["score"], plain.data["score"])


@pytest.mark.parametrize("classes", [10, 300])
def test_another_number_of_classes_after_the_first_inputs_is_refused(digits, classes, tmp_path):
    def more(net, x):
        outputs = net(x)
        return torch.cat([outputs, outputs[:, :2] + 9], 1)

    model = Late(linear(classes), 11, more)
    with pytest.raises(ModelError, match=rf"'net': .*\({classes},\) .*got \({classes + 2},\)"):
        scanned({"net": model}, digits, out=tmp_path / "run.zarr")
    assert not ob.load(tmp_path / "run.zarr").complete


@pytest.mark.parametrize("change", range(2, 9))
def test_another_number_of_classes_is_refused_at_any_call(change):
    calls = iter(range(1, 100))

    def model(x):
        return torch.zeros(len(x), 7 if next(calls) < change else 9)

    with pytest.raises(ModelError):
        ob.scan(
            model,
            (torch.rand(11, 3, 12, 9), torch.arange(11) % 7),
            group="flips",
            task="classification",
            chunk=3,
            batch_size=4,
            progress=False,
        )


def test_arrays_of_another_shape_are_not_stored(digits, tmp_path):
    scanned(linear(), digits, out=tmp_path / "run.zarr")
    store = ob.store.open_store(tmp_path / "run.zarr")
    with pytest.raises(ob.errors.StoreError, match=r"consensus .*\(8, 10\).*\(8, 1\)"):
        store.write("consensus", 0, np.zeros((8, 1), np.float32), 0)


class BatchNormalized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.net = torch.nn.BatchNorm2d(1), linear()

    def forward(self, x):
        self.norm.train()  # as in code that never calls eval()
        return self.net(self.norm(x) * 3)


def test_a_model_that_depends_on_its_batch_is_named(digits):
    with pytest.warns(UserWarning, match="'normed' .*in other batches.*batch_size"):
        scanned({"normed": BatchNormalized(), "plain": linear()}, digits)


@pytest.mark.parametrize("samples", [1, 2, 3, 8])
@pytest.mark.parametrize("place", [0, -1])
def test_a_model_that_alters_one_sample_of_its_batch_is_named(digits, samples, place):
    """The halves of a batch end, or begin, with samples that the whole has in its middle."""
    net = linear()

    def altering(x):
        x[place].mul_(-1)
        return net(x)

    with pytest.warns(UserWarning, match="'altering' .*in other batches.*batch_size"):
        scanned({"altering": altering}, tuple(part[:samples] for part in digits))


def test_a_model_that_varies_is_named_as_such(digits):
    net = linear()

    def noisy(x):
        return net(x) + torch.rand(len(x), 10)

    with pytest.warns(UserWarning, match="'noisy' gives different outputs for the same batch"):
        scanned({"noisy": noisy}, digits)


@pytest.mark.parametrize("group", ["rotations:6", "trivial"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_others_raise_no_warning(digits, group, scale):
    outputs = torch.zeros(64, 10)

    def reusing(x):  # writes every output into the same memory
        torch.mul(linear()(x), scale, out=outputs[: len(x)])
        return outputs[: len(x)]

    def halved(x):
        return (linear()(x).bfloat16() * scale).float()

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = scanned({"reusing": reusing, "halved": halved}, digits, group=group)
        plain = scanned(lambda x: linear()(x) * scale, digits, group=group)
    assert np.array_equal(found.data["score"].sel(model="reusing"), plain.data["score"][0])


def test_a_model_that_hangs_ends_the_scan_after_the_timeout(digits, tmp_path):
    forever = threading.Event()
    model = Late(linear(), 12, lambda net, x: forever.wait())
    path = tmp_path / "run.zarr"
    with pytest.raises(ModelError, match=r"'net' took more than 0\.5 s for a batch of \d+ inputs"):
        scanned({"net": model}, digits, out=path, timeout=0.5)
    assert 0 < ob.load(path).share_done < 1
    again = scanned({"net": Late(linear(), 0, lambda net, x: net(x))}, digits, out=path)
    assert np.array_equal(again.data["score"], scanned({"net": linear()}, digits).data["score"])
    forever.set()


def test_a_timeout_changes_no_bit_and_no_error_of_the_model(digits):
    seen = []

    def watched(x):
        seen.append((torch.is_inference_mode_enabled(), threading.current_thread()))
        return linear()(x)

    limited = scanned(watched, digits, timeout=60)
    assert {mode for mode, _ in seen} == {True}
    assert threading.main_thread() not in {thread for _, thread in seen}
    assert np.array_equal(limited.data["score"], scanned(linear(), digits).data["score"])

    def late(x):
        raise TimeoutError("of its own")

    with pytest.raises(ModelError, match="TimeoutError: of its own"):
        scanned(late, digits, timeout=60)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "x"])
def test_a_timeout_is_a_positive_number(digits, timeout):
    with pytest.raises(ob.errors.InputError, match="timeout: expected"):
        scanned(linear(), digits, timeout=timeout)


def test_a_model_that_changes_the_folder_does_not_move_a_relative_result(
    digits, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def moving(net, x):
        os.chdir(tmp_path / "elsewhere")
        return net(x)

    for after in (0, 7):
        scanned(Late(linear(), after, moving), digits, out=f"run{after}.zarr")
        assert ob.load(tmp_path / f"run{after}.zarr").complete
        assert not [*(tmp_path / "elsewhere").iterdir()]
        os.chdir(tmp_path)
