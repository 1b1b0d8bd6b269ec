"""Forces and stress as derivatives of the energy: calculators pass, direct predictions fail."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob

pytest.importorskip("ase", reason="ase is not installed")
from ase import Atoms
from ase.build import bulk, molecule
from ase.calculators.calculator import all_changes
from ase.calculators.emt import EMT
from ase.calculators.lj import LennardJones

TASK = ob.tasks.Atoms(["energy", "forces", "stress"])
InputError = ob.errors.InputError


def strained(name="Cu"):
    crystal = bulk(name, cubic=True)
    crystal.rattle(0.05, seed=1)
    crystal.set_cell(crystal.cell @ np.array([[1, 0.02, 0], [0, 1, 0], [0, 0, 1.01]]), True)
    return crystal


class Waves(torch.nn.Module):
    """A periodic energy with forces and stress by differentiation, each entry off by `off`."""

    def __init__(self, off=0.0):
        super().__init__()
        self.off = off

    def forward(self, batch):
        pos, cell = batch["pos"].requires_grad_(), batch["cell"]
        strain = torch.zeros_like(cell).requires_grad_()
        stretch = torch.eye(3) + (strain + strain.mT) / 2
        phase = pos @ stretch @ torch.linalg.inv(cell @ stretch)
        waves = ((2 * torch.pi * phase).sin() * batch["mask"][..., None]).sum((1, 2))
        energy = waves + 0.1 * (cell @ stretch).square().sum((1, 2))
        slope, strained = torch.autograd.grad(energy.sum(), (pos, strain))
        signs = torch.as_tensor(np.random.default_rng(7).choice([-1.0, 1.0], pos.shape[1:]))
        stress = strained / torch.linalg.det(cell).abs()[:, None, None]
        return {"energy": energy, "forces": self.off * signs - slope, "stress": stress + self.off}


def test_calculators_that_differentiate_are_conservative():
    argon = bulk("Ar", cubic=True)
    argon.rattle(0.1, seed=0)
    ob.testing.assert_conservative(LennardJones(sigma=3.4, epsilon=0.01, rc=5.0), [argon])
    error = ob.testing.conservativity_error(EMT(), [strained()], task=TASK, directions=4)
    for name in ("forces", "stress"):
        assert (error.parts[name] <= error.limits[name]).all()
        assert error.limits[name].max() < 1e-4


def test_the_step_follows_the_curvature_so_that_close_atoms_are_decided():
    steep = LennardJones(sigma=1.0, epsilon=0.05, rc=10.0)
    molecules = [molecule(name) for name in ("H2O", "CH3OH", "NH3")]
    ob.testing.assert_conservative(steep, molecules)
    error = ob.testing.conservativity_error(steep, molecules)
    assert error.step < 1e-3
    # The limit is honest at each step: a conservative potential differs by less.
    for step in (1e-2, 1e-3, 1e-4):
        error = ob.testing.conservativity_error(steep, molecules, step=step)
        assert error.step == step
        assert (error.parts["forces"] <= error.limits["forces"]).all()


class Unconverged(EMT):
    """Energies that stop at a multiple of 1e-5 eV, as those of a loose self-consistent cycle."""

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["energy"] = 1e-5 * np.round(self.results["energy"] / 1e-5)


def test_double_precision_that_does_not_decide_is_told_what_helps():
    with pytest.raises(AssertionError, match=r"not decided: .* pass a calculator that converges"):
        ob.testing.assert_conservative(Unconverged(), [molecule("H2O")], tolerance=2e-4)


def test_forces_of_their_own_are_found_with_the_size_of_the_difference():
    crystals = [strained("Cu"), strained("Al")]
    crystals[1].pbc = False
    ob.testing.assert_conservative(Waves(), crystals, task=TASK)
    error = ob.testing.conservativity_error(Waves(0.02), crystals, task=TASK, directions=64)
    # Signs of 0.02 have a root mean square of 0.02, and so has a stress of 0.02 everywhere.
    np.testing.assert_allclose(error.parts["forces"], 0.02, rtol=0.2)
    assert error.parts["stress"][0] == pytest.approx(0.02, rel=0.2)
    assert np.isnan(error.parts["stress"][1])  # not periodic: no volume
    assert error.worst("stress") == 0
    assert error.largest("stress") == error.parts["stress"][0]
    with pytest.raises(AssertionError, match=r"not conservative: forces differ .* eV/Å at sample"):
        ob.testing.assert_conservative(Waves(0.02), crystals, task=TASK)
    ob.testing.assert_conservative(Waves(0.02), crystals, tolerance=0.1)


class Twisted(EMT):
    """Forces that a rotation of the first atom's adds to: no energy has them."""

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results["forces"] = self.results["forces"] + 0.05 * np.cross(
            atoms.positions, [0, 0, 1]
        )


def test_a_calculator_with_forces_of_no_energy_is_refused():
    with pytest.raises(AssertionError, match=r"1 of 1 samples beyond the tolerance 0.001"):
        ob.testing.assert_conservative(Twisted(), [molecule("H2O")])


class Springs(torch.nn.Module):
    """Springs to the center; `share` is the part of the gradient that the forces have."""

    def __init__(self, share=1.0, offset=0.0):
        super().__init__()
        self.stiffness = torch.nn.Parameter(torch.tensor(2.0))
        self.share, self.offset = share, offset

    def forward(self, batch):
        pos = batch["pos"].requires_grad_()
        energy = self.stiffness * (pos.square() * batch["mask"][..., None]).sum((1, 2))
        (slope,) = torch.autograd.grad(energy.sum(), pos)
        return {"energy": energy + self.offset, "forces": -self.share * slope}


def test_networks_are_checked_in_their_precision():
    molecules = [molecule("H2O"), molecule("CH4")]
    ob.testing.assert_conservative(Springs().double(), molecules)
    ob.testing.assert_conservative(Springs(), molecules)
    assert ob.testing.conservativity_error(Springs(), molecules).step == 1e-2
    with pytest.raises(AssertionError, match="not conservative"):
        ob.testing.assert_conservative(Springs(0.9), molecules)
    # A large energy leaves single precision no digits for differences: nothing is claimed.
    with pytest.raises(AssertionError, match=r"not decided: .* pass a model in double precision"):
        ob.testing.assert_conservative(Springs(offset=1e5), molecules)
    ob.testing.assert_conservative(Springs(offset=1e5).double(), molecules)


def test_the_difference_of_a_conservative_model_stays_within_the_stated_precision():
    crystals = [bulk("Cu", cubic=True) for _ in range(40)]
    for seed, one in enumerate(crystals):
        one.rattle(0.1, seed=seed)
    for model in (Waves(), Springs(), Springs(offset=3e3), Springs().double()):
        error = ob.testing.conservativity_error(model, crystals)
        assert np.mean(error.parts["forces"] <= error.limits["forces"]) >= 0.95


def test_bad_arguments_are_refused():
    check = ob.testing.conservativity_error
    with pytest.raises(InputError, match=r"task: expected orbical.tasks.Atoms with energy"):
        check(EMT(), [molecule("H2O")], task=ob.tasks.Atoms("forces"))
    with pytest.raises(InputError, match="step: expected a length in Å > 0"):
        check(EMT(), [molecule("H2O")], step=0.0)
    with pytest.raises(InputError, match="directions"):
        check(EMT(), [molecule("H2O")], directions=0)
    with pytest.raises(InputError, match="tolerance: expected a number > 0"):
        ob.testing.assert_conservative(EMT(), [molecule("H2O")], tolerance=-1)
    with pytest.raises(InputError, match=r"x: .*finite positions"):
        check(EMT(), [Atoms("H", [[0, 0, np.nan]])])
