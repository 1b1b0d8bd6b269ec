"""`orbical scan --task atoms`, run as a chemist runs it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import orbical as ob
from orbical._text import in_column
from orbical.cli.scan_summaries import print_audit
from orbical.nero import violations

pytest.importorskip("ase", reason="ase is not installed")
from ase.build import molecule
from ase.calculators.calculator import Calculator, all_changes
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
    assert 0.1 < float(re.search(r" (0\.\d+) ", broken)[1]) < 0.5
    assert "eV/Å" in broken
    assert "H, atom" in line(said, "broken ", "forces", "° about (")
    assert line(said, "emt", "energy").startswith("emt    energy, eV")
    assert "emt, forces: equivariant in 16 of 24 calculations, off by at most" in said
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
    assert "0: ethanol, C2H6O" in line(said, "broken", "forces", "° about (")
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
    assert line(said, "emt", "forces").endswith(f" {in_column(forces)}")
    assert line(said, "emt", "energy").endswith(f" {in_column(energy)}")


def test_80_columns_split_no_word_and_no_row(folder, capsys, monkeypatch):
    """The table said "molecul e", and a rotation took six lines or none."""
    known = molecule("CH3CH2OH")
    known.calc = SinglePointCalculator(known, energy=1.0, forces=np.full((len(known), 3), 0.5))
    scan = ob.scan({"emt": EMT()}, [known], group="rotations3d:4", task="atoms", progress=False)
    monkeypatch.setenv("COLUMNS", "80")
    print_audit(scan)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    for word in ("model", "quantity", "largest", "square", "absolute", "molecule", "rotation"):
        assert word in said
    where = [one for one in violations(scan) if "° about (" in one.rotation]
    assert where
    for one in where:
        assert line(said, one.quantity, one.molecule, one.atom, one.rotation)


def test_without_an_output_folder_the_tables_are_the_result(orbical, folder):
    said = orbical(folder, *SCAN, "--model", "energy=potentials:EnergyOnly")
    assert line(said, "energy", "eV")
    assert "forces" not in said  # not offered, and so not asked for
    assert sorted(path.name for path in folder.glob("*.zarr")) == []


class Handed(Calculator):
    """Its energy knows left from right, and its forces are half axial; some calculations fail."""

    implemented_properties = ("energy", "forces")

    def __init__(self, axial=1.0, fails=False):
        super().__init__()
        self.axial, self.fails = axial, fails

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        x = self.atoms.positions - self.atoms.positions.mean(0)
        if self.fails and x[0, 0] > 0:
            raise RuntimeError("did not converge")
        self.results["energy"] = 10 * np.linalg.det(x[:3]) if self.axial else 1.0
        self.results["forces"] = self.axial * np.cross(x, x[[1]]) + (1 - self.axial) * x


@pytest.fixture(scope="module")
def handed():
    """Models of chiral molecules under inversion, as a potential that confuses hands."""
    some = molecule("CH3CH2OH"), molecule("CH3OH")
    for atoms in some:
        atoms.rattle(0.1, seed=0)
    models = {"axial": Handed(), "even": Handed(0.0), "failing": Handed(0.0, fails=True)}
    with pytest.warns(UserWarning, match="failed"):
        return ob.scan(models, [*some], group="inversion", task="atoms", progress=False)


def test_energies_that_depend_on_handedness_are_named_in_a_sentence(handed):
    """A sentence was printed for forces alone, so "equivariant" was all one read."""
    said = {(one.model, one.quantity): str(one) for one in violations(handed)}
    off = handed.data["energy_per_atom_vs_consensus"].sel(model="axial").values.max()
    assert f"axial, energy: not invariant, off by up to {off:.2g} eV per" in said["axial", "energy"]
    assert " eV), at " in said["axial", "energy"]
    assert "even, energy: invariant, off by at most 0 eV" in said["even", "energy"]


def test_forces_whose_consensus_is_zero_have_a_size(handed):
    """Axial forces cancel under inversion; the model was then passed over in silence."""
    axial = next(one for one in violations(handed) if one.quantity == "forces")
    assert axial.size == pytest.approx(
        np.sqrt(np.nanmean(handed.data["forces"].sel(model="axial").values ** 2)), rel=1e-5
    )
    assert "axial, forces: not equivariant" in str(axial)
    assert axial.rotation == "element 1: inversion"  # and not the identity, which ties with it


def test_a_molecule_with_one_answer_says_nothing_about_equivariance(handed, capsys):
    """Half of the calculations failed, and the rest agreed with themselves: "equivariant"."""
    assert not [one for one in violations(handed) if one.model == "failing"]
    print_audit(handed)
    assert (
        "failing: not decided, no molecule has results at two elements" in capsys.readouterr().out
    )
    part = handed.data["energy"].sel(model="failing").isnull().sum()
    assert int(part) == 2


def test_a_gap_of_each_quantity_can_be_checked(handed):
    """`max_gap` was that of the forces, and let energies pass that depend on handedness."""
    found = {f.model: f for f in ob.check(handed, max_energy_gap=1e-6, models=["axial", "even"])}
    assert found["even"].value < 1e-6 < found["axial"].value
    assert {row.outcome for row in found.values()} == {"inconclusive"}  # of two molecules
    off = handed.data["energy_vs_consensus"].sel(model="axial").values
    assert found["axial"].value == pytest.approx(np.sqrt((off**2).mean()))
    assert "gap of the energy in eV" in str(found["axial"])
    (failing,) = ob.check(handed, max_energy_gap=1, models=["failing"])
    assert "2 samples, 2 with failures" in str(failing)
    assert failing.outcome == "fail"  # nothing is known: each molecule has a single answer
    assert handed.data["invariance_gap"].sel(model="failing").isnull().all()
    gaps = ob.check(handed, max_gap=1, models=["axial"])
    assert [row.what for row in gaps] == ["gap of the energy in eV", "gap of the forces in eV/Å"]
    assert gaps[0].value == found["axial"].value
    own = ob.check(handed, max_gap=1, max_energy_gap=2, models=["axial"])
    assert [(row.name, row.limit) for row in own] == [("max_gap", 1), ("max_energy_gap", 2)]
    each = ob.check(handed, max_gap=1, max_energy_gap=2, max_forces_gap=3, models=["axial"])
    assert [row.name for row in each] == ["max_energy_gap", "max_forces_gap"]
    assert gaps[1].value == pytest.approx(float(ob.nero.summary(handed)["invariance_gap"][0]))
    with pytest.raises(ob.errors.InputError, match="max_stress_gap: expected a scan with stress"):
        ob.check(handed, max_stress_gap=1)


def test_what_cannot_be_asked_is_refused_in_one_line(orbical, folder):
    said = orbical(
        folder, *SCAN, "--model", "emt=potentials:calculator", "--quantities", "dipole", expect=2
    )
    assert "model 'emt': expected quantities that EMT offers" in said
    said = orbical(folder, *SCAN, "--model", "emt=potentials:calculator", "--quiet", expect=2)
    assert "--out: expected a folder for the scan, because --quiet prints no tables" in said
