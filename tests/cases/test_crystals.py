"""Crystals: cells turn with the atoms, mirrors included, and stress turns as a tensor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob

pytest.importorskip("ase", reason="ase is not installed")
from ase.build import bulk, molecule
from ase.calculators.emt import EMT

TASK = ob.tasks.Atoms(["energy", "forces", "stress"])
InputError = ob.errors.InputError


def strained():
    crystal = bulk("Cu", cubic=True)
    crystal.rattle(0.05, seed=1)
    crystal.set_cell(crystal.cell @ np.array([[1, 0.02, 0], [0, 1, 0], [0, 0, 1.01]]), True)
    return crystal


@pytest.mark.parametrize("group", ["rotations3d:3", "inversion", "reflections3d"])
def test_energy_forces_and_stress_are_those_of_the_crystal_turned_by_hand(group):
    scan = ob.scan({"emt": EMT()}, [strained()], group=group, task=TASK, progress=False)
    still = strained()
    still.calc = EMT()
    for place, matrix in enumerate(scan.group.parts["space"]):
        turn, shift = matrix[:3, :3], matrix[:3, 3]
        turned = strained()
        turned.set_cell(turned.cell[:] @ turn.T)
        turned.positions = strained().positions @ turn.T + shift
        turned.calc = EMT()
        found = {name: scan.data[name][0, 0, place].values for name in TASK.quantities}
        assert found["energy"] == pytest.approx(turned.get_potential_energy(), abs=1e-9)
        np.testing.assert_allclose(found["forces"], turned.get_forces(), atol=1e-6)
        np.testing.assert_allclose(found["stress"], turned.get_stress(voigt=False), atol=1e-8)
        stress = turn @ still.get_stress(voigt=False) @ turn.T
        np.testing.assert_allclose(found["stress"], stress, atol=1e-8)
    assert float(scan.data["stress_vs_consensus"].max()) < 1e-12
    assert float(scan.data["energy_vs_consensus"].max()) < 1e-10


def chiral(batch):
    """An energy that knows left from right: the signed volume of the cell."""
    energy = torch.linalg.det(batch["cell"])
    return {
        "energy": energy,
        "forces": torch.zeros_like(batch["pos"]),
        "stress": torch.zeros_like(batch["cell"]),
    }


def test_a_model_that_knows_left_from_right_is_seen_by_mirrors_only():
    crystal = [strained()]
    ob.testing.assert_equivariant(chiral, crystal, group="rotations3d:8", task=TASK)
    for group in ("inversion", "reflections3d"):
        with pytest.raises(AssertionError, match="not equivariant"):
            ob.testing.assert_equivariant(chiral, crystal, group=group, task=TASK)


def test_stress_in_the_order_of_voigt_is_the_same_tensor():
    def voigt(batch):
        return {**chiral(batch), "stress": torch.arange(6.0).expand(len(batch["pos"]), 6)}

    data = [strained()]
    scan = ob.scan(voigt, data, group="inversion", task=TASK, progress=False)
    whole = [[0, 5, 4], [5, 1, 3], [4, 3, 2]]
    np.testing.assert_array_equal(scan.data["stress"][0, 0, 1], whole)


def test_a_calculator_that_fails_in_a_test_says_why():
    with pytest.raises(ob.errors.ModelError, match=r"failed on sample 0 at .*NotImplementedError"):
        ob.testing.assert_equivariant(EMT(), [bulk("Fe")], group="inversion", task=TASK)


def fields(**changed):
    given = strained()
    batch = {
        "pos": given.positions[None],
        "numbers": given.numbers[None],
        "cell": np.array(given.cell)[None],
        "pbc": given.pbc[None],
    }
    return batch | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cell": np.ones((1, 3))}, r"cell of shape \(1, 3, 3\), got shape \(1, 3\)"),
        ({"cell": np.ones((2, 3, 3))}, r"cell of shape \(1, 3, 3\), got shape \(2, 3, 3\)"),
        ({"pbc": np.ones((1, 2), bool)}, r"pbc of shape \(1, 3\), got shape \(1, 2\)"),
        ({"cell": np.full((1, 3, 3), np.nan)}, "a finite cell, got NaN or infinity in molecule 0"),
        ({"cell": np.ones((1, 3, 3))}, "a cell that spans the 3 periodic directions, got fewer"),
        ({"cell": np.zeros((1, 3, 3))}, "a cell that spans the 3 periodic directions, got fewer"),
    ],
)
def test_cells_that_cannot_be_used_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        ob.scan(EMT(), fields(**changed), group="inversion", task=TASK, progress=False)


def test_a_left_handed_cell_is_a_cell():
    mirrored = fields(cell=-np.array(strained().cell)[None])
    ob.scan(EMT(), mirrored, group="inversion", task=TASK, progress=False)


def test_stress_without_a_cell_is_refused_before_any_calculation():
    """Every calculation failed, with the empty message of ASE."""
    with pytest.raises(InputError, match="stress: expected a cell with a volume, got none in mole"):
        ob.scan(EMT(), [strained(), molecule("H2O")], group="inversion", task=TASK, progress=False)


def test_quantities_of_different_numbers_of_molecules_are_all_named():
    """An energy of the wrong shape was blamed on the forces, which were right."""

    def short(batch):
        return {**chiral(batch), "energy": torch.zeros(1), "stress": batch["cell"]}

    said = r"of the same molecules, got energy \(1,\), forces \(2, 4, 3\), stress \(2, 3, 3\)"
    with pytest.raises(ob.errors.ModelError, match=said):
        ob.scan(short, fields(), group="inversion", task=TASK, progress=False)


def test_an_empty_list_is_named():
    with pytest.raises(InputError, match="got an empty list"):
        ob.scan(EMT(), [], group="inversion", task=TASK, progress=False)


def test_energies_as_labels_of_another_task_are_named():
    """They were "a single number"."""
    data = fields(), {"energy": np.zeros(1)}
    with pytest.raises(InputError, match=r"got fields \['energy'\]; .* for the task atoms"):
        ob.scan(chiral, data, group="inversion", task="regression", progress=False)


def test_true_forces_are_a_list_with_an_entry_for_each_structure():
    """Structures of different sizes had to be padded, or their forces joined by hand."""
    some = [strained(), strained() * (1, 1, 2)]
    truth = [np.full((len(one), 3), 0.5) for one in some]
    scan, same = (
        ob.scan(EMT(), (some, {"forces": forces}), group="inversion", task="atoms", progress=False)
        for forces in (truth, np.concatenate(truth))
    )
    np.testing.assert_array_equal(scan.data["forces_vs_truth"], same.data["forces_vs_truth"])


def test_a_network_that_wants_another_batch_is_told_its_fields():
    """It read "raised KeyError for inputs [(2, 3, 3), ...]"."""

    class Ragged(torch.nn.Module):
        def forward(self, batch):
            return batch["batch"]

    with pytest.raises(ob.errors.ModelError, match=r"KeyError for inputs cell \(2, 3, 3\), mask"):
        ob.scan(Ragged(), fields(), group="inversion", task=TASK, progress=False)
