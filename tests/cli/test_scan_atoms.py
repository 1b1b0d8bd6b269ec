"""`orbical scan --task atoms`, run as a chemist runs it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import orbical as ob
from orbical._console import Console
from orbical.cli.atoms import print_audit

pytest.importorskip("ase", reason="ase is not installed")
from ase.build import molecule
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io import write

POTENTIALS = """
from ase.calculators.calculator import all_changes
from ase.calculators.emt import EMT

calculator = EMT()

class Broken(EMT):
    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"][-1] += [0.25, 0, 0]

class EnergyOnly(EMT):
    implemented_properties = ["energy"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")
    (tmp_path / "potentials.py").write_text(POTENTIALS)
    write(tmp_path / "molecules.xyz", [molecule(name) for name in ("H2O", "SiH4", "CH3CH2OH")])
    return tmp_path


SCAN = ["scan", "--data", "molecules.xyz", "--group", "rotations3d:8", "--task", "atoms"]


def line(said, *words):
    """The line of a table that holds all of these words."""
    return next(row for row in said.splitlines() if all(word in row for word in words))


def test_one_command_names_the_worst_molecule_atom_and_rotation(orbical, folder):
    models = ["--model", "emt=potentials:calculator", "--model", "broken=potentials:Broken"]
    said = orbical(folder, *SCAN, *models, "--out", "run.zarr")
    sound, broken = line(said, "emt ", "forces"), line(said, "broken ", "forces")
    assert float(re.search(r"\de-\d+", sound)[0]) < 1e-12
    assert 0.1 < float(re.search(r"\S+e-01", broken)[0]) < 0.5
    assert "eV/Å" in broken
    assert "H, atom" in broken
    assert "° about (" in broken
    assert line(said, "emt", "energy").startswith("emt    energy, eV ")
    assert "emt, forces: equivariant, off by at most" in said
    assert "broken, forces: not equivariant, off by up to" in said
    assert "1: H4Si" in line(said, "No EMT-potential for Si")
    assert "failed on 1 of 3 samples" in said
    told = orbical(folder, "info", "run.zarr")
    assert "failed on 1 sample;" in told
    assert "No EMT-potential for Si" in told


@pytest.mark.parametrize("name", ["molecules.extxyz", "molecules.db", "molecules.sdf"])
def test_molecules_are_called_by_the_names_of_their_file(orbical, folder, name):
    ethanol = molecule("CH3CH2OH")
    if name.endswith("db"):
        from ase.db import connect

        connect(folder / name).write(ethanol, name="ethanol")
    elif name.endswith("sdf"):
        chem = pytest.importorskip("rdkit.Chem.AllChem")
        known = chem.AddHs(chem.MolFromSmiles("CCO"))
        chem.EmbedMolecule(known, randomSeed=1)
        known.SetProp("_Name", "ethanol")
        with chem.SDWriter(str(folder / name)) as file:
            file.write(known)
    else:
        ethanol.info["name"] = "ethanol"
        write(folder / name, ethanol)
    options = ["--data", name, "--group", "rotations3d:4", "--task", "atoms"]
    said = orbical(folder, "scan", *options, "--model", "broken=potentials:Broken")
    assert "0: ethanol, C2H6O" in line(said, "broken", "forces")
    assert "mean absolute error" not in said


def test_where_the_truth_is_known_the_error_stands_beside_the_violation(orbical, folder):
    known = molecule("CH3CH2OH")
    known.calc = SinglePointCalculator(known, energy=1.0, forces=np.full((len(known), 3), 0.5))
    write(folder / "known.extxyz", known)
    options = ["--data", "known.extxyz", "--group", "rotations3d:4", "--task", "atoms"]
    said = orbical(folder, "scan", *options, "--model", "emt=potentials:calculator")
    known.calc = EMT()
    forces = np.abs(known.get_forces() - 0.5).mean()
    energy = abs(known.get_potential_energy() - 1.0)
    assert "mean absolute error" in said
    assert f" {forces:.3g} " in line(said, "emt", "forces")
    assert f" {energy:.3g} " in line(said, "emt", "energy")


def test_80_columns_split_no_word(folder, capsys):
    """The table said "molecul e" and "rotatio n"."""
    known = molecule("CH3CH2OH")
    known.calc = SinglePointCalculator(known, energy=1.0, forces=np.full((len(known), 3), 0.5))
    scan = ob.scan({"emt": EMT()}, [known], group="rotations3d:4", task="atoms", progress=False)
    print_audit(scan, Console(width=80))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    for word in ("model", "quantity", "largest", "square", "absolute", "molecule", "rotation"):
        assert word in said


def test_without_an_output_folder_the_tables_are_the_result(orbical, folder):
    said = orbical(folder, *SCAN, "--model", "energy=potentials:EnergyOnly")
    assert line(said, "energy", "eV")
    assert "forces" not in said  # not offered, and so not asked for
    assert sorted(path.name for path in folder.glob("*.zarr")) == []


def test_what_cannot_be_asked_is_refused_in_one_line(orbical, folder):
    said = orbical(
        folder, *SCAN, "--model", "emt=potentials:calculator", "--quantities", "dipole", expect=2
    )
    assert "model 'emt': expected quantities that EMT offers" in said
    said = orbical(folder, *SCAN, "--model", "emt=potentials:calculator", "--quiet", expect=2)
    assert "--out: expected a folder with --quiet" in said
