"""Parts of a scan: independent processes that fill one store."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, StoreError
from orbical.scanning.recipe import recipe_part
from orbical.store import file_access, verification
from orbical.store.verification import units_without_mark
from orbical.store.zarr_store import open_store


def scan(out, part=None, net=None, **settings):
    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    return ob.scan(
        {"net": linear} if net is None else net,
        (images[:20], labels[:20]),
        group="rotations:4",
        task="classification",
        chunk=3,
        out=out,
        part=part,
        progress=False,
        **settings,
    )


@pytest.mark.system
def test_three_parts_at_once_of_which_one_is_killed_give_the_bits_of_one_process(tmp_path):
    program = Path(__file__).with_name("three_parts.py")
    subprocess.run([sys.executable, str(program), str(tmp_path)], check=True, timeout=600)
    one, other = (ob.load(tmp_path / name) for name in ("run.zarr", "alone.zarr"))
    assert one.complete
    assert not one.verify()
    for name in other.arrays:
        assert np.asarray(one.arrays[name]).tobytes() == np.asarray(other.arrays[name]).tobytes()
    assert not list((tmp_path / "run.zarr/units").glob("part*"))


def test_a_part_looks_at_its_own_units_while_others_do_so_too(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    scan(path)
    looked, repair = [], verification.repair

    def free(store, fixed, own):
        assert file_access._is_free(path / "units")
        looked.extend(chunk for chunk in range(7) if own(chunk))
        return repair(store, fixed, own)

    monkeypatch.setattr("orbical.store.repair", free, raising=False)
    read = []
    monkeypatch.setattr(
        verification, "is_sound_chunk", lambda content, known: read.append(len(content)) or True
    )
    scan(path, "3/3")
    assert looked == [2, 5]
    arrays = len(ob.load(path)._store.results)
    assert len(read) < 3 * arrays + 20  # two units, and what is written once


def test_a_part_leaves_the_units_of_others(tmp_path):
    path = tmp_path / "run.zarr"
    first = scan(path, "1/3")
    assert first.done.tolist() == [[True, False, False, True, False, False, True]]
    assert not scan(path, "3/3").complete
    assert scan(path, "2/3").complete
    more = {"net": first, "other": lambda x: x.flatten(1)[:, :10]}
    del more["net"]
    assert scan(path, "1/2", more).done[1].tolist() == [True, False] * 3 + [True]


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "run.zarr"
    refused = {}

    def net(x):
        for part in ("2/3", "1/2", None):
            if part not in refused and path.exists():
                refused[part] = None
                thread = threading.Thread(target=attempt, args=(part,))
                thread.start()
                thread.join()
        return x.flatten(1)[:, :10]

    def attempt(part):
        try:
            scan(path, part, {"net": lambda x: x.flatten(1)[:, :10]})
        except StoreError as error:
            refused[part] = str(error)

    scan(path, "1/2", {"net": net})
    assert "expected a part of 2, as in other processes" in refused["2/3"]
    assert "part 1/2 of" in refused["1/2"]
    assert "is being scanned by another process" in refused["1/2"]
    assert "is being written by another scan" in refused[None]
    assert scan(path, "2/2", {"net": net}).complete


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "-1/3", "1/0", 3, "1/3/5"])
def test_impossible_parts_are_refused(tmp_path, part):
    with pytest.raises(InputError, match=r"part: expected 'auto' or i/n with i from 1 to n"):
        scan(tmp_path / "run.zarr", part)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(overwrite=True), "part: expected neither an executor nor overwrite"),
        (dict(devices=["cpu"]), "part: expected neither an executor nor overwrite"),
        (dict(out=None), "out: expected a folder or a URL .* see, got none"),
        (dict(out="memory://run.zarr"), "out: expected a folder or a URL .* see, got 'mem"),
    ],
)
def test_parts_are_refused_where_they_share_nothing(tmp_path, settings, words):
    with pytest.raises(InputError, match=words):
        scan(**{"out": tmp_path / "run.zarr", "part": "1/2"} | settings)


def array(**numbers):
    return {f"SLURM_ARRAY_TASK_{name}": str(number) for name, number in numbers.items()}


def engine(**numbers):
    return {f"SGE_TASK_{name}": str(number) for name, number in numbers.items()}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (array(ID=1, MIN=1, MAX=16, STEP=1, COUNT=16), "1/16"),
        (array(ID=15, MIN=0, MAX=15, STEP=1, COUNT=16), "16/16"),
        (array(ID=7, MIN=1, MAX=7, STEP=2, COUNT=4), "4/4"),
        (array(ID=5, MIN=5, MAX=5, STEP=1, COUNT=1), "1/1"),
        (dict(RANK="2", WORLD_SIZE="3"), "3/3"),
        (dict(SLURM_PROCID="2", SLURM_NTASKS="3"), "3/3"),
        (array(ID=2, MIN=1, MAX=4, STEP=1) | dict(SLURM_PROCID="0", SLURM_NTASKS="1"), "2/4"),
        (engine(ID=5, FIRST=1, LAST=7, STEPSIZE=2), "3/4"),
        (dict(LSB_JOBINDEX="3", LSB_JOBINDEX_END="16"), "3/16"),
        (dict(PBS_ARRAY_INDEX="3", ORBICAL_PARTS="16"), "3/16"),
        (dict(JOB_COMPLETION_INDEX="0", ORBICAL_PARTS="4"), "1/4"),
        (dict(AWS_BATCH_JOB_ARRAY_INDEX="9", AWS_BATCH_JOB_ARRAY_SIZE="10"), "10/10"),
        (dict(SGE_TASK_ID="undefined", LSB_JOBINDEX="0", RANK="0", WORLD_SIZE="2"), "1/2"),
    ],
)
def test_schedulers_name_the_part(environment, expected):
    assert str(recipe_part("auto", environment)) == expected


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "got none of these"),
        (dict(RANK="0", WORLD_SIZE="2") | array(ID=1), "got a SLURM job array and torchrun"),
        (array(ID=3, MIN=0, MAX=7, STEP=1, COUNT=3), "expected a job array of regular numbers"),
        (dict(RANK="3", WORLD_SIZE="3"), "i from 1 to n"),
        (dict(PBS_ARRAY_INDEX="3"), "the number of parts of a PBS array in ORBICAL_PARTS"),
    ],
)
def test_environments_that_name_no_part_are_refused(environment, words):
    with pytest.raises(InputError, match=words):
        recipe_part("auto", environment)


def test_units_that_others_finish_while_a_store_is_opened_are_not_called_lost(tmp_path):
    path = tmp_path / "run.zarr"
    scan(path, "1/2")
    store = open_store(path)
    scan(path, "2/2")
    assert units_without_mark(store) == []
    next((path / "units").glob("0.1.*")).unlink()
    assert units_without_mark(store) == [(0, 1)]
