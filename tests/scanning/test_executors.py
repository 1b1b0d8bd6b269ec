"""Scans that are run by other processes give the bits of a scan in this one."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import time
import types
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from PIL import Image

import orbical as ob
from orbical.cli.scan import executor_of_options
from orbical.errors import InputError, ModelError, StoreError
from orbical.scanning import executors, workers


class Net(torch.nn.Module):
    """A small network; in a worker process it may kill that process, once."""

    def __init__(self, killer: str | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(1, 24, 5)
        self.last = torch.nn.Linear(24 * 16, 10)
        self.killer = killer

    def forward(self, x):
        if self.killer and len(x) > 8:
            try:
                os.close(os.open(self.killer, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.last(self.conv(x).relu().flatten(1))


@pytest.fixture(scope="module")
def digits():
    images, labels = ob.datasets.digits()
    return images[:24], labels[:24]


def scan(models, data, out, **settings):
    chosen = dict(group="rotations:6", task="classification", batch_size=16, chunk=7)
    chosen |= dict(out=out, threads=1, progress=False)
    return ob.scan(models, data, **(chosen | settings))


def same_bits(one, other):
    assert one.complete
    assert other.complete
    assert {*one.data.variables} == {*other.data.variables}
    for name in one.data.variables:
        left, right = np.asarray(one.data[name]), np.asarray(other.data[name])
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes() or list(left) == list(right), name


@pytest.mark.parametrize("kind", ["tensor", "array", "map", "permuted", "dataset"])
def test_an_executor_gives_the_bits_of_one_process(digits, tmp_path, kind):
    images, labels = digits
    np.save(tmp_path / "x.npy", images.numpy())
    shuffled = images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    data = {
        "tensor": (images, labels),
        "array": (images.numpy(), labels.numpy()),
        "map": (np.load(tmp_path / "x.npy", mmap_mode="r"), labels),
        "permuted": (shuffled, labels),
        "dataset": torch.utils.data.TensorDataset(images, labels),
    }[kind]
    models = {"a": Net(), "b": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))}
    alone = scan(models, data, tmp_path / "alone.zarr", keep="inputs")
    with ThreadPoolExecutor(2) as executor:
        result = scan(models, data, tmp_path / "run.zarr", executor=executor, keep="inputs")
    same_bits(alone, result)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"alone.zarr", "run.zarr", "x.npy"}, "no recipe is left"


@pytest.fixture(scope="module")
def prepared():
    """Processes that begin as copies of one that has imported torch, which takes seconds."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["orbical.scanning.workers", "orbical.tasks.classification"])
    return context


@pytest.mark.system
def test_a_killed_worker_process_is_replaced(digits, tmp_path, prepared):
    alone = scan(Net(), digits, tmp_path / "alone.zarr")
    with ProcessPoolExecutor(1, prepared) as executor:
        model = Net(str(tmp_path / "killed"))
        result = scan(model, digits, tmp_path / "run.zarr", executor=executor)
    assert (tmp_path / "killed").exists()
    same_bits(alone, result)


class Dying:
    """An executor whose workers all die."""

    def submit(self, call, *arguments):
        future = Future()
        if call is workers.run_in_worker:
            future.set_exception(executors.BrokenExecutor("dead"))
        else:
            future.set_result(call(*arguments))
        return future


def test_workers_that_always_die_end_the_scan(digits, tmp_path):
    with pytest.raises(
        ModelError, match=r"4 times in a row, workers died.*finished units are kept"
    ):
        scan(Net(), digits, tmp_path / "run.zarr", executor=Dying())
    assert ob.load(tmp_path / "run.zarr").share_done == 0


def test_a_second_driver_is_refused(digits, tmp_path):
    path = tmp_path / "run.zarr"

    class Nested(Dying):
        def submit(self, call, *arguments):
            if call is workers.run_in_worker and not hasattr(self, "refused"):
                with pytest.raises(StoreError, match="is being written by another scan") as found:
                    scan(Net(), digits, path)
                self.refused = found
            future = Future()
            future.set_result(call(*arguments))
            return future

    executor = Nested()
    assert scan(Net(), digits, path, executor=executor).complete
    assert executor.refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(executor="tcp://host:8786"), "executor: expected a dask.distributed.Client"),
        (dict(executor=Dying(), out=None), "out: expected a folder or a URL"),
        (dict(executor=Dying(), devices=["cpu"]), "devices: expected no devices with an executor"),
        (dict(devices="some"), "devices: expected 'all' or a list"),
        (dict(threads=0), "threads: expected"),
    ],
)
def test_bad_executors_are_refused(digits, tmp_path, settings, words):
    with pytest.raises(InputError, match=words):
        scan(Net(), digits, **({"out": tmp_path / "run.zarr"} | settings))
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_sent_is_named(digits, tmp_path):
    lock = torch._C.Generator()  # what cannot be pickled

    class Holder(Net):
        def __init__(self):
            super().__init__()
            self.lock = iter(lambda: lock, None)

        def __reduce__(self):
            raise TypeError("cannot pickle a lock")

    with pytest.raises(InputError, match=r"model 'net': cannot be sent to other processes.*lock"):
        scan({"net": Holder()}, digits, tmp_path / "run.zarr", executor=Dying())
    assert not list(tmp_path.iterdir())


def test_a_worker_with_other_versions_is_refused_by_name(digits, tmp_path, monkeypatch):
    own = (("python", "3.0"), *workers.ticket_versions()[1:])
    monkeypatch.setattr(workers, "ticket_versions", lambda: own)
    with pytest.raises(InputError, match=r"worker .*:\d+: executor: expected python 3.*got 3.0"):
        scan(Net(), digits, tmp_path / "run.zarr", executor=Dying())
    assert not list(tmp_path.iterdir())


def test_a_worker_that_cannot_find_the_data_is_named(digits, tmp_path):
    np.save(tmp_path / "x.npy", digits[0].numpy())
    data = np.load(tmp_path / "x.npy", mmap_mode="r"), digits[1]
    (tmp_path / "x.npy").rename(tmp_path / "y.npy")
    with pytest.raises(InputError, match=r"worker .*:\d+: cannot find the data.*x.npy"):
        scan(Net(), data, tmp_path / "run.zarr", executor=Dying())


def test_a_worker_elsewhere_finds_data_by_the_paths_of_the_driver(tmp_path, monkeypatch):
    for name in ("driver/photos", "worker"):
        (tmp_path / name).mkdir(parents=True)
    for number in range(9):
        image = Image.fromarray(np.full((8, 8), 20 * number, np.uint8))
        image.save(tmp_path / "driver" / "photos" / f"{number}.png")
    monkeypatch.chdir(tmp_path / "driver")
    alone = scan(Net(), ob.data.ImageFolder("photos", mode="L"), "alone.zarr", chunk=3)
    with ThreadPoolExecutor(1) as pool:

        class Elsewhere(Dying):
            def submit(self, call, *arguments):
                def work():
                    with contextlib.chdir(tmp_path / "worker"):
                        return call(*arguments)

                return pool.submit(work)

        result = scan(
            *(Net(), ob.data.ImageFolder("photos", mode="L"), tmp_path / "run.zarr"),
            **dict(chunk=3, executor=Elsewhere()),
        )
    same_bits(alone, result)


def test_warnings_of_probes_reach_the_driver(digits, tmp_path):
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.warns(UserWarning, match="gives different outputs"),
    ):
        scan(lambda x: torch.rand(len(x), 10), digits, tmp_path / "run.zarr", executor=executor)


def test_ctrl_c_does_not_reach_the_workers_of_the_command_while_they_start():
    with executor_of_options(2, None) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN


@pytest.mark.system
def test_each_device_has_a_process(digits, tmp_path, prepared, monkeypatch):
    monkeypatch.setattr(executors.multiprocessing, "get_context", lambda method: prepared)
    alone = scan(Net(), digits, tmp_path / "alone.zarr")
    result = scan(Net(), digits, tmp_path / "run.zarr", devices=["cpu"])
    same_bits(alone, result)


def test_a_worker_that_cannot_import_the_model_is_named(digits, tmp_path, monkeypatch):
    module = types.ModuleType("only_in_the_driver")
    module.net = Net()
    monkeypatch.setitem(sys.modules, "only_in_the_driver", module)

    class Elsewhere(Dying):
        def submit(self, call, *arguments):
            sys.modules.pop("only_in_the_driver", None)
            return super().submit(call, *arguments)

    with pytest.raises(InputError, match=r"worker .*:\d+: model 'a': .* cannot be imported"):
        scan({"a": "only_in_the_driver:net"}, digits, tmp_path / "r.zarr", executor=Elsewhere())
    assert not list(tmp_path.iterdir())


def test_a_scheduler_that_is_gone_is_named():
    client = types.SimpleNamespace(
        asynchronous=False,
        scheduler=types.SimpleNamespace(address="tcp://host:8786"),
        scheduler_info=lambda n_workers: {},  # of a client that gave up
    )
    with pytest.raises(ModelError, match=r"tcp://host:8786 is gone; finished units are kept"):
        executors.DaskExecutor(client).lack()


def test_a_pool_started_here_ends_its_idle_processes_without_killing_them(monkeypatch):
    monkeypatch.setattr(executors, "_GRACE_S", 60)  # a busy machine needs longer to end a process
    with ProcessPoolExecutor(1, get_context("fork")) as given:
        pool = executors.Pool(given)
        assert not executors._forks(pool._executor)
        assert pool.submit(None, pow, 2, 3).result() == 8
        (process,) = pool._executor._processes.values()
        pool.close()
        end = time.monotonic() + 60
        while process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)  # another thread may have collected it and not yet said so
        assert process.exitcode == 0


def test_a_worker_with_another_model_is_refused_by_name(digits, tmp_path):
    class Elsewhere(Dying):
        def submit(self, call, ticket, *rest):
            if call is workers.prepare_worker:
                (entry,) = rest[0]
                rest = ((dataclasses.replace(entry, fingerprint="other"),),)
            return super().submit(call, ticket, *rest)

    with pytest.raises(ModelError, match=r"worker .*:\d+: model 'model' differs from that of"):
        scan(Net(), digits, tmp_path / "run.zarr", executor=Elsewhere())
    assert not list(tmp_path.iterdir())


def test_a_worker_that_reads_other_data_is_refused_by_name(digits, tmp_path):
    np.save(tmp_path / "x.npy", digits[0].numpy())
    data = np.load(tmp_path / "x.npy", mmap_mode="r"), digits[1]

    class Elsewhere(Dying):
        def submit(self, call, *arguments):
            np.save(tmp_path / "x.npy", 1 - digits[0].numpy())
            return super().submit(call, *arguments)

    with pytest.raises(InputError, match=r"worker .*:\d+: data: expected the samples of"):
        scan(Net(), data, tmp_path / "run.zarr", executor=Elsewhere())
