"""A scan reads molecules from the path of a file, as the command does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ase.build import molecule
from ase.calculators.emt import EMT
from ase.io import write

import orbical as ob
from orbical.errors import InputError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    water, methane = molecule("H2O"), molecule("CH4")
    water.info["name"], methane.info["name"] = "water", "methane"
    write(tmp_path / "mols.extxyz", [water, methane])
    return tmp_path / "mols.extxyz"


def scanned(data: object, group: str | None = "rotations3d:4") -> ob.Scan:
    return ob.scan(EMT(), data, group=group, task="atoms", progress=False)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_scanned_as_what_it_holds(file: Path, kind: type) -> None:
    found, expected = scanned(kind(file)), scanned(ob.datasets.molecules(file))
    assert found.record.data == expected.record.data
    assert found.names == expected.names == ["water", "methane"]
    energy = (scan.data["energy_vs_consensus"].values for scan in (found, expected))
    assert np.array_equal(*energy)


def test_a_task_of_points_reads_the_fields_of_a_file(file: Path) -> None:
    assert sorted(ob.data.open_path(file).read(0, 2)[0]) == [
        "cell",
        "mask",
        "numbers",
        "pbc",
        "pos",
    ]


def test_a_wrong_suffix_lists_the_files_of_molecules(tmp_path: Path) -> None:
    (tmp_path / "mols.abc").write_text("2")
    with pytest.raises(InputError, match=r"\.xyz, .*mols\.abc"):
        scanned(tmp_path / "mols.abc")
    with pytest.raises(InputError, match=r"\.npz, .*\.xyz, .*mols\.abc"):
        ob.data.open_path(tmp_path / "mols.abc")


def test_the_group_that_molecules_lack_is_one_of_space(file: Path) -> None:
    with pytest.raises(InputError, match="group of space, such as 'rotations3d:8'"):
        scanned(file, group=None)
