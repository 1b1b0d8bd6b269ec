"""Networks of molecules: invariance to rotations, mirrors, shifts and order; graphs; padding."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical_studies import data
from orbical_studies.networks import parameters_of
from orbical_studies.networks.molecules import (
    COVALENT_RADII,
    GIN,
    InvariantMPNN,
    RadialBasis,
    bond_graph,
    radius_graph,
)

TASK = ob.tasks.Regression(
    {"pos": ob.actions.Points(), "numbers": ob.actions.Rows(), "mask": ob.actions.Rows()}
)
NETWORKS = [GIN, InvariantMPNN]


def chains(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Crooked chains of 5, 7 and 4 atoms, neighbours 1.4 to 1.5 Å apart, padded to 7."""
    generator = torch.Generator().manual_seed(3)
    steps = torch.randn(3, 7, 3, generator=generator, dtype=torch.float64)
    steps[..., 0] = steps[..., 0].abs() + 1.5  # forward, so that none comes back to another
    length = 1.4 + 0.1 * torch.rand(3, 7, 1, generator=generator, dtype=torch.float64)
    pos = (steps / steps.norm(dim=-1, keepdim=True) * length).cumsum(1)
    mask = torch.arange(7) < torch.tensor([[5], [7], [4]])
    elements = torch.tensor([6, 7, 8])
    numbers = elements[torch.randint(3, (3, 7), generator=generator)] * mask
    return {"pos": (pos * mask[..., None]).to(dtype), "numbers": numbers, "mask": mask}


def made(kind: type[torch.nn.Module], **settings) -> torch.nn.Module:
    torch.manual_seed(0)
    return kind(**settings).double()


@pytest.mark.parametrize("kind", NETWORKS)
def test_turned_and_mirrored_molecules_get_one_answer(kind):
    mirror = ob.groups.from_matrices(space=[np.eye(3), -np.eye(3)])
    group = ob.groups.product(ob.groups.rotations3d(24), mirror)
    ob.testing.assert_equivariant(made(kind), chains(), group=group, task=TASK)


@pytest.mark.parametrize("kind", NETWORKS)
def test_reordered_atoms_are_the_same_molecule_padding_among_them(kind):
    ob.testing.assert_equivariant(
        made(kind), chains(), group=ob.groups.permutations(7, 40), task=TASK
    )


@pytest.mark.parametrize("kind", NETWORKS)
def test_shifted_molecules_get_one_answer(kind):
    network, batch = made(kind), chains()
    shifted = batch | {"pos": batch["pos"] + torch.tensor([30.0, -20.0, 10.0])}
    assert torch.allclose(network(shifted), network(batch), atol=1e-10)


@pytest.mark.parametrize("kind", NETWORKS)
def test_single_precision_is_invariant_within_its_tolerance(kind):
    ob.testing.assert_equivariant(
        made(kind).float(), chains(torch.float32), group="rotations3d:16", task=TASK
    )


@pytest.mark.parametrize("kind", NETWORKS)
def test_padding_changes_neither_answers_nor_gradients_whatever_it_holds(kind):
    network, batch = made(kind), chains()
    wide = {
        "pos": torch.nn.functional.pad(batch["pos"], (0, 0, 0, 3), value=torch.nan),
        "numbers": torch.nn.functional.pad(batch["numbers"], (0, 3), value=92),
        "mask": torch.nn.functional.pad(batch["mask"], (0, 3)),
    }
    assert torch.allclose(network(wide), network(batch), atol=1e-12)
    for row, size in enumerate(batch["mask"].sum(1).tolist()):
        alone = {name: values[row : row + 1, :size] for name, values in batch.items()}
        del alone["mask"]
        assert torch.allclose(network(alone)[0], network(batch)[row], atol=1e-12)
    network(wide).square().sum().backward()
    assert all(bool(values.grad.isfinite().all()) for values in network.parameters())


def test_the_invariant_network_sees_a_bent_chain_and_the_bond_graph_does_not():
    straight = torch.tensor([[[0.0, 0, 0], [1.5, 0, 0], [3.0, 0, 0]]])
    bent = torch.tensor([[[0.0, 0, 0], [1.5, 0, 0], [1.5, 1.5, 0]]])
    numbers = torch.tensor([[6, 6, 8]])
    for kind, sees in ((GIN, False), (InvariantMPNN, True)):
        network = made(kind).float()
        difference = network({"pos": straight, "numbers": numbers}) - network(
            {"pos": bent, "numbers": numbers}
        )
        assert (float(difference.detach().abs().max()) > 1e-4) is sees


@pytest.mark.parametrize("kind", NETWORKS)
def test_elements_and_bonds_matter(kind):
    network, batch = made(kind), chains()
    other = batch["numbers"].clone()
    other[0, 0] = 8 if other[0, 0] != 8 else 6
    apart = network(batch) - network(batch | {"numbers": other})
    assert float(apart[0].detach().abs().max()) > 1e-3
    assert float(apart[1:].detach().abs().max()) == 0
    torn = batch["pos"].clone()
    torn[1, 3:] += torch.tensor([1.5, 0, 0])
    assert float((network(batch) - network(batch | {"pos": torn}))[1].detach().abs().max()) > 1e-4


def test_sizes_are_near_those_of_the_paper_and_alike():
    sizes = [parameters_of(kind()) for kind in NETWORKS]
    assert all(50_000 < size < 53_000 for size in sizes)
    assert max(sizes) < 1.02 * min(sizes)


def test_forces_of_the_invariant_network_are_its_slopes():
    network, batch = made(InvariantMPNN), chains()

    def energy(pos):
        return network(batch | {"pos": pos}).sum()

    assert torch.autograd.gradcheck(energy, batch["pos"].requires_grad_(), atol=1e-6)


def test_messages_fade_towards_the_radius():
    network = made(InvariantMPNN, radius=3.0)
    numbers = torch.tensor([[6, 6]])

    def answer(apart):
        pos = torch.tensor([[[0.0, 0, 0], [apart, 0, 0]]], dtype=torch.float64)
        return network({"pos": pos, "numbers": numbers}).detach()

    far = answer(50.0)
    assert torch.equal(answer(3.0), far)
    assert float((answer(2.99) - far).abs().max()) < 1e-4
    assert float((answer(1.5) - far).abs().max()) > 1e-3
    assert not RadialBasis(4, 3.0)(torch.tensor([3.0, 4.0])).any()


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_head_fits_on_and_training_lowers_the_loss(kind):
    torch.manual_seed(0)
    batch = chains(torch.float32)
    truth = torch.tensor([1.0, -2.0, 0.5])
    model = torch.nn.Sequential(kind(), ob.training.EvidentialHead(64).fit_scale(truth))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(40):
        loss = ob.losses.nig_nll(*model(batch), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.5


def test_a_radius_graph_is_that_of_a_tree_of_points():
    spatial = pytest.importorskip("scipy.spatial")
    generator = torch.Generator().manual_seed(0)
    pos = 4 * torch.rand(3, 20, 3, generator=generator, dtype=torch.float64)
    mask = torch.arange(20) < torch.tensor([[20], [13], [1]])
    found = radius_graph(pos, 1.7, mask)
    assert not (found & ~(mask[:, :, None] & mask[:, None])).any()
    for one, here, edges in zip(pos, mask, found, strict=True):
        tree = spatial.cKDTree(one[here].numpy())
        expected = {tuple(pair) for pair in tree.query_pairs(1.7)}
        given = {(int(i), int(j)) for i, j in edges.nonzero() if i < j}
        assert given == expected
        assert torch.equal(edges, edges.T)
    assert radius_graph(pos, float("inf")).sum() == 3 * 20 * 19


def test_covalent_radii_are_those_of_ase():
    data = pytest.importorskip("ase.data", reason="ase is not installed")
    for number, radius in COVALENT_RADII.items():
        assert radius == pytest.approx(data.covalent_radii[number])


def test_bonds_of_drawn_molecules_are_found_again():
    chem = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")
    from rdkit.Chem import AllChem

    for smiles in ("CCO", "c1ccccc1O", "CC#N", "C1CC1F", "O=C1NC(=O)C=C1", "CS(=O)(=O)Cl"):
        drawn = chem.AddHs(chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(drawn, randomSeed=1)
        AllChem.MMFFOptimizeMolecule(drawn)
        pos = torch.tensor(np.array([drawn.GetConformer().GetPositions()]))
        numbers = torch.tensor([[atom.GetAtomicNum() for atom in drawn.GetAtoms()]])
        expected = torch.from_numpy(chem.GetAdjacencyMatrix(drawn)).bool()
        assert torch.equal(bond_graph(pos, numbers)[0], expected), smiles


def test_bonds_of_qm9_are_those_of_its_smiles(tmp_path):
    chem = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")
    if importlib.util.find_spec("qm9pack") is None:
        pytest.skip("qm9pack is not installed")
    found = data.qm9("validation", ["gap"], cache=tmp_path, count=10_000)
    degrees = bond_graph(**found.inputs).sum(2)
    different = 0
    for place, smiles in enumerate(found.smiles):
        here = found.inputs["mask"][place]
        pairs = zip(found.inputs["numbers"][place, here], degrees[place, here], strict=True)
        drawn = chem.AddHs(chem.MolFromSmiles(smiles)).GetAtoms()
        expected = sorted((atom.GetAtomicNum(), atom.GetDegree()) for atom in drawn)
        different += sorted((int(number), int(degree)) for number, degree in pairs) != expected
    assert different == 2


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("number", [26, 0, -4, 500])
def test_unknown_elements_are_refused(kind, number):
    network, batch = made(kind), chains()
    strange = batch["numbers"].clone()
    strange[1, 4] = number
    with pytest.raises(InputError, match=f"atomic number {number} at atom 4 of molecule 1"):
        network(batch | {"numbers": strange})


def test_a_network_knows_the_elements_of_qm9():
    salt = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0, 1.3]]]), "numbers": torch.tensor([[17, 1]])}
    with pytest.raises(InputError, match="atomic number 17"):
        GIN()(salt)
