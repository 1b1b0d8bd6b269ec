"""An exactly equivariant e3nn network and a plain one, on vectors and on real molecules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob

o3 = pytest.importorskip("e3nn.o3", reason="e3nn is not installed")


class Equivariant(torch.nn.Module):
    """Pairs of vectors to a vector, through e3nn's tensor product."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        vectors = o3.Irreps("2x1o")
        middle = o3.Irreps("8x0e + 8x1e + 4x2e")
        self.square = o3.FullyConnectedTensorProduct(vectors, vectors, middle)
        self.out = o3.FullyConnectedTensorProduct(middle, vectors, "1x1o")

    def forward(self, pair):
        flat = pair.flatten(1)
        return self.out(self.square(flat, flat), flat)


class Plain(torch.nn.Module):
    """The same map by a multi-layer perceptron: no symmetry built in."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(6, 32), torch.nn.SiLU(), torch.nn.Linear(32, 3)
        )

    def forward(self, pair):
        return self.net(pair)


TASK = ob.tasks.Regression(input=ob.actions.Vectors(), representation="vector")


def test_the_equivariant_network_has_a_gap_at_float_precision_and_the_plain_one_has_not():
    pairs = torch.randn(50, 2, 3, generator=torch.Generator().manual_seed(1))
    scan = ob.scan(
        {"e3nn": Equivariant(), "plain": Plain()},
        pairs,
        group="rotations3d:128",
        task=TASK,
        progress=False,
    )
    size = np.abs(scan.data["mean"]).max(("sample", "element", "component")).values
    gap = scan.data["invariance_gap"].max("sample").values / size
    assert gap[0] < 1e-5
    assert gap[1] > 0.1
    assert float(scan.data["action_defect"].max()) < 1e-6


def test_the_assertion_passes_and_fails_with_the_worst_element():
    pairs = torch.randn(8, 2, 3, generator=torch.Generator().manual_seed(1))
    group = ob.groups.rotations3d(64)
    ob.testing.assert_equivariant(Equivariant(), pairs, group=group, task=TASK)
    error = ob.testing.equivariance_error(Plain(), pairs, group=group, task=TASK)
    with pytest.raises(AssertionError) as caught:
        ob.testing.assert_equivariant(Plain(), pairs, group=group, task=TASK)
    assert f"(element {error.worst})" in str(caught.value)
    assert group.name(error.worst) in str(caught.value)


def test_a_reflection_tells_vectors_from_pseudo_vectors():
    """The cross product is even under inversion: right as 1e, wrong as 1o."""
    pairs = torch.randn(8, 2, 3, dtype=torch.float64)
    mirror = ob.groups.from_matrices(space=[np.eye(3), -np.eye(3), np.diag([1.0, 1, -1])])

    def cross(pair):
        return torch.linalg.cross(pair[:, 0], pair[:, 1])

    def task(irreps):
        return ob.tasks.Regression(input=ob.actions.Vectors(), representation=irreps)

    ob.testing.assert_equivariant(cross, pairs, group=mirror, task=task("1e"))
    with pytest.raises(AssertionError):
        ob.testing.assert_equivariant(cross, pairs, group=mirror, task=task("1o"))


class Dipole(torch.nn.Module):
    """A dipole from charges that depend on distances: invariant charges, equivariant vector."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.charge = torch.nn.Sequential(
            torch.nn.Linear(9, 16), torch.nn.SiLU(), torch.nn.Linear(16, 1)
        )

    def forward(self, batch):
        pos, numbers = batch["pos"], batch["numbers"]
        present = (numbers > 0).to(pos)
        distance = torch.cdist(pos, pos)
        near = (
            torch.exp(-distance[..., None] * torch.linspace(0.2, 2, 8)) * present[:, None, :, None]
        )
        charge = (
            self.charge(torch.cat([near.sum(2), numbers[..., None] / 10], -1))[..., 0] * present
        )
        return (charge[..., None] * pos).sum(1)


class Coordinates(Dipole):
    """The same, but the charges also see where x is: a deliberately broken network."""

    def forward(self, batch):
        return super().forward(batch) + batch["pos"][..., :1].square().sum(1)


@pytest.fixture(scope="module")
def molecules():
    molecule = pytest.importorskip("ase.build", reason="ase is not installed").molecule
    atoms = [molecule(name) for name in ("H2O", "CH4", "CH3CH2OH", "C6H6", "NH3", "CO2")]
    most = max(map(len, atoms))
    pos = np.zeros((len(atoms), most, 3), np.float32)
    numbers = np.zeros((len(atoms), most), np.int64)
    for row, one in enumerate(atoms):
        pos[row, : len(one)] = one.positions - one.get_center_of_mass()
        numbers[row, : len(one)] = one.numbers
    return {"pos": pos, "numbers": numbers}


def test_molecules_turn_and_their_atomic_numbers_do_not(molecules):
    task = ob.tasks.Regression(
        input={"pos": ob.actions.Points(), "numbers": ob.actions.Rows()}, representation="vector"
    )
    scan = ob.scan(
        {"dipole": Dipole(), "broken": Coordinates()},
        molecules,
        group="rotations3d:64",
        task=task,
        keep="inputs",
        progress=False,
    )
    gap = scan.data["invariance_gap"].max("sample").values
    assert gap[0] < 1e-5
    assert gap[1] > 0.1
    np.testing.assert_array_equal(scan.data["input_numbers"], molecules["numbers"])


def test_reordered_atoms_are_the_same_molecule(molecules):
    few = {key: values[:2, :5] for key, values in molecules.items()}
    task = ob.tasks.Regression(
        input={"pos": ob.actions.Points(), "numbers": ob.actions.Rows()}, representation="vector"
    )
    ob.testing.assert_equivariant(
        Dipole(),
        {key: torch.as_tensor(values) for key, values in few.items()},
        group=ob.groups.product(ob.groups.rotations3d(4), ob.groups.permutations(5, 20)),
        task=task,
    )
