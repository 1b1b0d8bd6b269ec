"""What is known about data and units, each of which a random change of the code once survived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import orbical as ob
from orbical.scanning.description import _differing
from orbical.scanning.recipe_tickets import _is_dense
from orbical.store.checksums_and_units import UnitFile, _unit_is_sound


@pytest.fixture
def scan(tmp_path: Path) -> ob.Scan:
    x = torch.rand(4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    options = {"group": "cyclic:4", "task": "classification", "progress": False}
    return ob.scan(net, (x, torch.arange(4) % 3), out=tmp_path / "run.zarr", **options)


def test_data_are_confirmed_by_the_same_fingerprint_alone(scan: ob.Scan) -> None:
    data = replace(scan.record.data, stamp=None, fingerprint="version 1")
    assert data.confirms(replace(data))
    assert not data.confirms(replace(data, fingerprint="version 2"))
    assert data.contradicts(replace(data, fingerprint="version 2"))


@pytest.mark.parametrize(
    "wrong", [{"files": {"score": 3}}, {"failures": "none"}, {"batch_size": "8"}, {"data": 3}]
)
def test_a_unit_with_a_wrong_type_is_not_sound(wrong: dict[str, object]) -> None:
    unit = UnitFile(0, 0, "origin", {"score": "hash"}, [], 8)
    assert _unit_is_sound(unit)
    assert not _unit_is_sound(replace(unit, **wrong))


def test_what_differs_is_named_where_only_one_has_parts() -> None:
    old, new = {"group": {"name": "cyclic"}, "task": "a"}, {"group": None, "task": "a"}
    assert _differing(old, new) == ({"group": {"name": "cyclic"}}, {"group": None})
    assert _differing(new, old) == ({"group": None}, {"group": {"name": "cyclic"}})


def test_arrays_are_written_to_files_and_single_numbers_are_not() -> None:
    assert _is_dense(torch.zeros(3))
    assert not _is_dense(torch.tensor(1.0))
    assert not _is_dense(torch.zeros(3, requires_grad=True))
