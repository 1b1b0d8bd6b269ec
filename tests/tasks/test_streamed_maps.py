"""Maps that are summed as they come: the same results as from all of them, and none is kept."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import Interrupted
from orbical.scanning import units
from orbical.tasks import _maps

CLASSES = 4
CASES = {
    "rotations": ("rotations:7", {}, (20, 20)),
    "exact": ("dihedral:4", {}, (12, 12)),
    "scales": ("scales:0.5:2:5", {}, (14, 18)),
    "window": ("translations:4:2", {"input": ob.actions.Window(12)}, (20, 20)),
    "volumes": ("rotations3d:5", {"input": ob.actions.Volumes()}, (8, 8, 8)),
}


def outputs_along(task, group, sides, seed):
    """Return random probabilities `[K, 3, C, ...]` as a model would give them, and labels."""
    random = torch.Generator().manual_seed(seed)
    seen = sides if task.window is None else (task.window,) * 2
    logits = torch.randn(len(group), 3, CLASSES, *seen, generator=random)
    labels = torch.randint(0, CLASSES, (3, *sides), generator=random)
    labels[0, 0] = task.ignore_index
    return (4 * logits).softmax(2), task.check_target(labels, 3)


@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("case", CASES)
def test_blocks_give_what_the_whole_orbit_gives(case, size, labeled):
    spec, settings, sides = CASES[case]
    group, task = ob.groups.as_group(spec), ob.tasks.Segmentation(**settings)
    outputs, target = outputs_along(task, group, sides, seed=size)
    target = target if labeled else None
    weights = torch.as_tensor(group.weights)
    whole = task.summarize(outputs, target, group, weights)
    along = task.along(target, group, weights)
    for start in range(0, len(group), size):
        along.add(outputs[start : start + size], group[start : start + size])
    found = along.summary()
    assert found.keys() == whole.keys() == task.variables(labeled).keys()
    for name, values in whole.items():
        if name in ("invariance_gap", "consensus_probabilities"):
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6, err_msg=name)
        else:  # counted, or computed for each element
            np.testing.assert_array_equal(found[name], values, err_msg=name)
    home = task.output.move(group.inverse(), outputs)
    seen = task.output.valid(group.inverse(), outputs)
    expected = task.average(home, weights, seen)
    np.testing.assert_allclose(whole["consensus_probabilities"], expected, atol=1e-6)
    gap = (weights[:, None] * task.deviation(home, expected, seen)).sum(0).sqrt()
    np.testing.assert_allclose(whole["invariance_gap"], gap, rtol=1e-5)


def test_no_probabilities_are_kept_unless_asked_for():
    group, task = ob.groups.rotations(6), ob.tasks.Segmentation()
    outputs, target = outputs_along(task, group, (16, 16), 0)
    for keep, kept in (((), False), (("probabilities",), True)):
        along = task.along(target, group, torch.as_tensor(group.weights), keep)
        block = outputs.clone()
        alive = weakref.ref(block)
        along.add(block, group)
        del block
        gc.collect()
        assert (alive() is not None) == kept
        assert ("probabilities" in along.summary()) == kept


def maps_of(images):
    return 6 * torch.cat([images, 1 - images, images.flip(-1)], 1)


def scanned(data, **settings):
    return ob.scan(
        maps_of, data, group="rotations:8", task="segmentation", progress=False, **settings
    )


def dense_data(count=10):
    random = torch.Generator().manual_seed(4)
    images = torch.rand(count, 1, 16, 16, generator=random)
    return images, torch.randint(0, 3, (count, 16, 16), generator=random)


@pytest.mark.parametrize("batch", [1, 3, 16, 64])
def test_batches_and_units_do_not_change_results(batch):
    data = dense_data()
    usual, other = scanned(data).data, scanned(data, batch_size=batch, chunk=4).data
    for name, values in usual.data_vars.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_dense_unit_has_many_samples_and_a_group_fills_a_batch():
    images = torch.rand(40, 1, 64, 64)
    run = scanned(images).record.run
    assert run.chunk == 40
    assert 1 < run.batch_size < 40
    large = torch.rand(3, 1, 512, 512)
    assert scanned(large).record.run.batch_size == 1


def test_a_resumed_dense_scan_has_the_same_bits(tmp_path):
    data = dense_data()
    whole = scanned(data, out=tmp_path / "whole.zarr", chunk=3).data

    def stop(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    again = {"out": tmp_path / "part.zarr", "chunk": 3}
    with pytest.raises(Interrupted):
        ob.scan(maps_of, data, group="rotations:8", task="segmentation", progress=stop, **again)
    part = ob.load(again["out"])  # the true maps come with the units
    done = np.repeat(part.done[0], 3)[: len(data[1])]
    assert 0 < done.sum() < len(done)
    np.testing.assert_array_equal(part.data["label_map"][done], data[1][done])
    assert not (part.data["label_map"][~done] == data[1][~done].numpy()).all()
    resumed = scanned(data, **again).data
    for name, values in whole.data_vars.items():
        np.testing.assert_array_equal(resumed[name], values, err_msg=name)


def test_a_batch_that_a_kernel_cannot_take_is_halved():
    sizes = []

    class Picky(torch.nn.Module):
        def forward(self, images):
            if len(images) > 10:
                raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")
            sizes.append(len(images))
            return maps_of(images)

    settings = {"group": "rotations:8", "task": "segmentation", "progress": False}
    found = ob.scan(Picky(), dense_data(), batch_size=64, **settings)
    np.testing.assert_array_equal(found.data["score"], scanned(dense_data()).data["score"])
    assert max(sizes) <= 10


@pytest.mark.parametrize("kept", [0, 10**8])
def test_the_memory_of_the_probes_limits_the_batch(monkeypatch, kept):
    each, total = 3 * 10**6, 2 * 10**9
    cuda = {
        "max_memory_allocated": kept + 8 * each,
        "memory_allocated": kept,  # what libraries keep does not grow with the batch
        "get_device_properties": SimpleNamespace(total_memory=total),
    }
    for name, found in cuda.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, found=found: found)
    sweep = SimpleNamespace(device=torch.device("cuda"), group=ob.groups.rotations(24))
    recipe = SimpleNamespace(first=torch.zeros(2, 3, 8, 8))
    assert (
        units._unit_batch_limit_by_memory(sweep, recipe) == total // units._SHARE_OF_MEMORY // each
    )


@pytest.mark.parametrize("copies", [2, 5, 32])
def test_copies_of_cells_count_the_same(monkeypatch, copies):
    random = torch.Generator().manual_seed(copies)
    cell = torch.randint(1, 7, (3, 2, 5, 7), generator=random)
    judged = torch.rand(cell.shape, generator=random) > 0.3
    values = torch.randint(0, 2**40, cell.shape, generator=random)
    once = _maps._map_sums_by_cell(cell, judged, 6, None, values)
    monkeypatch.setattr(_maps, "_copies", lambda cell, cells: copies)
    for found, expected in zip(
        _maps._map_sums_by_cell(cell, judged, 6, None, values), once, strict=True
    ):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("batch", [1, 7, 24, 30, 40, 79, 200])
@pytest.mark.parametrize("count", [1, 7, 10])
def test_as_few_passes_as_even_parts_of_the_samples_can_have(batch, count):
    sizes = []

    def noted(images):
        sizes.append(len(images))
        return maps_of(images)

    images, labels = dense_data(count)
    given = {"group": "rotations:8", "task": "segmentation", "progress": False}
    ob.scan(noted, (images, labels), batch_size=batch, **given)
    passes, most = sizes[2:], min(batch, count)  # after the probes
    parts = range(-(-count // most), count + 1)
    expected = min(part * -(-8 // max(1, batch // -(-count // part))) for part in parts)
    assert (sum(passes), len(passes)) == (8 * count, expected)
    assert max(passes) <= batch


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("task", ["segmentation", "dense_regression"])
def test_an_accelerator_counts_what_a_processor_counts(task):
    images, labels = dense_data(4)
    truth = labels if task == "segmentation" else labels[:, None].float()
    if task == "dense_regression":
        truth[0, 0, 3] = torch.nan
    net = torch.nn.Conv2d(1, 3 if task == "segmentation" else 1, 3, padding=1)
    found = [
        ob.scan(net.to(device), (images, truth), group="rotations:8", task=task, device=device,
                progress=False).data
        for device in ("cpu", "cuda")
    ]  # fmt: skip
    for name, values in found[0].data_vars.items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-3, atol=1e-3, err_msg=name)
