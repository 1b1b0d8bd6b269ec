"""Molecules from lists, files and databases, as padded arrays with what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical.errors import InputError

ase = pytest.importorskip("ase", reason="ase is not installed")
from ase import Atoms  # noqa: E402
from ase.build import bulk, molecule  # noqa: E402
from ase.calculators.emt import EMT  # noqa: E402
from ase.io import write  # noqa: E402


def some():
    return [molecule("H2O"), molecule("C6H6")]


def calculated():
    found = some()
    for one in found:
        one.calc = EMT()
        one.get_forces()
    return found


@pytest.mark.parametrize("name", ["some.xyz", "some.extxyz", "some.traj", "some.db"])
def test_a_file_gives_back_the_molecules_written(name, tmp_path):
    if name.endswith(".db"):
        from ase.db import connect

        with connect(tmp_path / name) as database:
            for one in some():
                database.write(one)
    else:
        write(tmp_path / name, some())
    inputs, truth = ob.datasets.molecules(tmp_path / name)
    assert truth is None
    assert inputs["numbers"].shape == (2, 12)
    assert inputs["mask"].sum(1).tolist() == [3, 12]
    assert not inputs["pbc"].any()
    np.testing.assert_allclose(inputs["pos"][1], some()[1].positions, atol=1e-7)
    np.testing.assert_array_equal(inputs["pos"][0, 3:], 0)


def test_every_molecule_of_an_sdf_file_is_read_with_its_hydrogens(tmp_path):
    chem = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")
    from rdkit.Chem import AllChem

    writer = chem.SDWriter(str(tmp_path / "two.sdf"))
    drawn = []
    for smiles in ("CCO", "c1ccccc1"):
        one = chem.AddHs(chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(one, randomSeed=1)
        writer.write(one)
        drawn.append(one)
    writer.close()
    inputs, _ = ob.datasets.molecules(str(tmp_path / "two.sdf"))
    assert inputs["mask"].sum(1).tolist() == [9, 12]
    np.testing.assert_allclose(
        inputs["pos"][0, :9], drawn[0].GetConformer().GetPositions(), atol=1e-4
    )


def test_energies_and_forces_of_a_file_are_the_truth(tmp_path):
    written = calculated()
    write(tmp_path / "known.extxyz", [*written, molecule("CH4")])
    _, truth = ob.datasets.molecules(tmp_path / "known.extxyz")
    assert float(truth["energy"][0]) == pytest.approx(written[0].get_potential_energy())
    np.testing.assert_allclose(truth["forces"][0, :3], written[0].get_forces(), atol=1e-6)
    assert truth["energy"][2].isnan()
    assert truth["forces"][0, 3:].isnan().all()


def test_a_crystal_keeps_its_cell(tmp_path):
    write(tmp_path / "copper.extxyz", bulk("Cu"))
    inputs, _ = ob.datasets.molecules(tmp_path / "copper.extxyz")
    assert inputs["pbc"].all()
    np.testing.assert_allclose(inputs["cell"][0], np.array(bulk("Cu").cell), atol=1e-7)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match="expected a file, got"):
        ob.datasets.molecules(tmp_path / "absent.xyz")
    with pytest.raises(InputError, match="a file that ends in"):
        ob.datasets.molecules(tmp_path / "some.txt")
    (tmp_path / "bad.xyz").write_text("2\n\nH 0 0 0\nQq 0 0 1\n")
    with pytest.raises(InputError, match=r"bad.xyz' cannot be read"):
        ob.datasets.molecules(tmp_path / "bad.xyz")
    (tmp_path / "none.xyz").write_text("")
    with pytest.raises(InputError, match=r"none.xyz'"):
        ob.datasets.molecules(tmp_path / "none.xyz")
    (tmp_path / "bad.db").write_text("this is no database")
    with pytest.raises(InputError, match=r"bad.db' cannot be read"):
        ob.datasets.molecules(tmp_path / "bad.db")


def test_lists_that_hold_no_molecules_are_refused():
    with pytest.raises(InputError, match="at least one, got none"):
        ob.datasets.molecules([])
    with pytest.raises(InputError, match="at least one atom, got none in molecule 1"):
        ob.datasets.molecules([molecule("H2O"), Atoms()])
    with pytest.raises(InputError, match="got int"):
        ob.datasets.molecules([1, 2])
