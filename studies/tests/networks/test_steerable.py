"""The steerable network: what turns, turns; its answers are invariant; order and padding."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, MissingExtra
from orbical_studies.networks.steerable import (
    Couplings,
    Edges,
    SteerableLayer,
    SteerableMPNN,
    coupling_paths,
)

o3 = pytest.importorskip("e3nn.o3", reason="e3nn is not installed")

TASK = ob.tasks.Regression(
    {"pos": ob.actions.Points(), "numbers": ob.actions.Rows(), "mask": ob.actions.Rows()}
)
SMALL = {"hidden": 12, "channels": (8, 6, 4), "layers": 2}


def some(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Crooked molecules of 5, 7 and 4 atoms in any order, padded to 7."""
    generator = torch.Generator().manual_seed(3)
    pos = 1.5 * torch.randn(3, 7, 3, generator=generator, dtype=torch.float64)
    mask = torch.arange(7) < torch.tensor([[5], [7], [4]])
    numbers = torch.tensor([6, 7, 8])[torch.randint(3, (3, 7), generator=generator)] * mask
    return {"pos": (pos * mask[..., None]).to(dtype), "numbers": numbers, "mask": mask}


def made(**settings) -> SteerableMPNN:
    torch.manual_seed(0)
    return SteerableMPNN(**(SMALL | settings)).double()


def test_turned_and_mirrored_molecules_get_one_answer():
    mirror = ob.groups.from_matrices(space=[np.eye(3), -np.eye(3)])
    group = ob.groups.product(ob.groups.rotations3d(12), mirror)
    ob.testing.assert_equivariant(made(), some(), group=group, task=TASK)


def test_single_precision_is_invariant_within_its_tolerance():
    ob.testing.assert_equivariant(
        made().float(), some(torch.float32), group="rotations3d:8", task=TASK
    )


def test_reordered_atoms_are_the_same_molecule_padding_among_them():
    ob.testing.assert_equivariant(made(), some(), group=ob.groups.permutations(7, 20), task=TASK)


def test_shifted_molecules_get_one_answer():
    network, batch = made(), some()
    shifted = batch | {"pos": batch["pos"] + torch.tensor([30.0, -20.0, 10.0])}
    assert torch.allclose(network(shifted), network(batch), atol=1e-10)


def harmonics_turn(degree: int, turn: torch.Tensor) -> torch.Tensor:
    """How harmonics of a degree turn, measured: `Y(turn x) = D Y(x)` at many points."""
    points = torch.randn(50, 3, dtype=torch.float64)
    before = o3.spherical_harmonics(degree, points, True)
    after = o3.spherical_harmonics(degree, points @ turn.T, True)
    return torch.linalg.lstsq(before, after).solution.T


def test_features_of_a_layer_turn_as_harmonics_do_mirrors_among_them():
    torch.manual_seed(0)
    channels = (4, 3, 2)
    layer = SteerableLayer(channels, basis=5).double()
    state = [
        torch.randn(4, count, 2 * degree + 1, dtype=torch.float64)
        for degree, count in enumerate(channels)
    ]
    senders, receivers = (~torch.eye(4, dtype=torch.bool)).nonzero().T
    vectors = torch.randn(12, 3, dtype=torch.float64)
    basis = torch.rand(12, 5, dtype=torch.float64)

    def answers(features, along):
        edges = Edges(torch.zeros(1, 4), senders, receivers, along)
        harmonics = o3.spherical_harmonics([0, 1, 2], along, True, "component")
        return layer(features, edges, harmonics, basis, torch.ones(12).double())

    turn = -o3.rand_matrix(dtype=torch.float64)  # with a mirror
    turns = [harmonics_turn(degree, turn) for degree in range(3)]
    moved = answers(
        [values @ by.T for values, by in zip(state, turns, strict=True)], vectors @ turn.T
    )
    for new, old, by in zip(moved, answers(state, vectors), turns, strict=True):
        torch.testing.assert_close(new, old @ by.T, atol=1e-10, rtol=0)
    assert float(moved[1].detach().abs().max()) > 0.1


def test_messages_of_all_paths_at_once_are_those_of_each_path():
    paths = [path for path in coupling_paths(3) if path.given == 1]
    draw = torch.Generator().manual_seed(0)
    sent, harmonics, weights = (
        torch.randn(shape, generator=draw, dtype=torch.float64)
        for shape in ((6, 3, 5), (6, 9), (6, len(paths) * 5))
    )
    found = Couplings(paths, 3)(sent, harmonics, weights)
    ends = found.split([2 * path.out + 1 for path in paths], 1)
    for path, message, weight in zip(paths, ends, weights.split(5, 1), strict=True):
        symbol = (2 * path.out + 1) ** 0.5 * o3.wigner_3j(*path, dtype=torch.float64)
        harmonic = harmonics[:, path.harmonic**2 : (path.harmonic + 1) ** 2]
        coupled = torch.einsum("eic,ej,ijk->ekc", sent, harmonic, symbol)
        torch.testing.assert_close(message, weight[:, None] * coupled)


def test_couplings_are_those_that_rotations_and_mirrors_allow():
    irreps = [o3.Irrep("0e"), o3.Irrep("1o"), o3.Irrep("2e")]
    allowed = {
        (given, harmonic, out)
        for given, one in enumerate(irreps)
        for harmonic, other in enumerate(irreps)
        for out, third in enumerate(irreps)
        if third in list(one * other)
    }
    assert {tuple(path) for path in coupling_paths(3)} == allowed


def test_padding_changes_neither_answers_nor_gradients_whatever_it_holds():
    network, batch = made(), some()
    wide = {
        "pos": torch.nn.functional.pad(batch["pos"], (0, 0, 0, 3), value=torch.nan),
        "numbers": torch.nn.functional.pad(batch["numbers"], (0, 3), value=92),
        "mask": torch.nn.functional.pad(batch["mask"], (0, 3)),
    }
    assert torch.allclose(network(wide), network(batch), atol=1e-12)
    for row, size in enumerate(batch["mask"].sum(1).tolist()):
        alone = {name: values[row : row + 1, :size] for name, values in batch.items()}
        assert torch.allclose(network(alone)[0], network(batch)[row], atol=1e-12)
    network(wide).square().sum().backward()
    assert all(bool(values.grad.isfinite().all()) for values in network.parameters())


def test_it_sees_angles_and_torsions_but_not_beyond_the_radius():
    numbers = torch.tensor([[6, 6, 8]])
    straight = torch.tensor([[[0.0, 0, 0], [1.5, 0, 0], [3.0, 0, 0]]]).double()
    bent = torch.tensor([[[0.0, 0, 0], [1.5, 0, 0], [1.5, 1.5, 0]]]).double()
    network = made(radius=2.0)  # the ends do not meet: the middle atom alone can tell

    def answer(pos):
        return network({"pos": pos, "numbers": numbers[:, : pos.shape[1]]}).detach()

    assert float((answer(straight) - answer(bent)).abs().max()) > 1e-5
    apart = torch.tensor([[[0.0, 0, 0], [1.99, 0, 0]]]).double()
    assert float((answer(apart) - answer(apart * 30)).abs().max()) < 1e-4


def test_slopes_are_those_of_differences():
    network, batch = made(layers=1), some()

    def total(pos):
        return network(batch | {"pos": pos}).sum()

    assert torch.autograd.gradcheck(total, batch["pos"].requires_grad_(), atol=1e-5)


def test_a_single_atom_has_an_answer():
    one = {"pos": torch.zeros(1, 1, 3).double(), "numbers": torch.tensor([[8]])}
    assert bool(made()(one).isfinite().all())


def test_wrong_input_is_named():
    network = made()
    with pytest.raises(InputError, match="atomic number 26"):
        network({"pos": torch.zeros(1, 1, 3), "numbers": torch.tensor([[26]])})


def test_without_e3nn_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("e3nn"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match=r"'e3nn'.*orbical\[equivariant\]"):
        SteerableMPNN()
