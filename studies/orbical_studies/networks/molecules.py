"""Backbones for molecules: one that sees which atoms are bonded, one that sees how far they are.

Both take a batch `{"pos": [n, a, 3], "numbers": [n, a]}`, and maybe `"mask": [n, a]`, as
`orbical.datasets` gives it, and answer features `[n, hidden]` for a head of `orbical.training`:

    model = torch.nn.Sequential(InvariantMPNN(), training.EvidentialHead(64))

Both see positions through distances alone, so they are invariant to rotations, mirrors and
translations; sums over atoms make them invariant to their order. Graphs are dense, `[n, a, a]`: for
small molecules that is as fast as lists of edges, and needs plain torch only.

What a network sees of molecules is its `graph(batch)`, checked; what it answers is
`on_graph(graph)`, in which nothing is checked and nothing waits for an accelerator. A training that
sees the same molecules many times makes their graphs once. `bond_hashes` numbers molecules by what
a network on bonds can tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from orbical.errors import InputError

COVALENT_RADII = {
    **{1: 0.31, 2: 0.28, 3: 1.28, 4: 0.96, 5: 0.84, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57, 10: 0.58},
    **{11: 1.66, 12: 1.41, 13: 1.21, 14: 1.11, 15: 1.07, 16: 1.05, 17: 1.02, 18: 1.06},
    **{35: 1.20, 53: 1.39},
}
"""Covalent radii in Å by atomic number (Cordero et al. 2008)."""

QM9_ELEMENTS = (1, 6, 7, 8, 9)
USUAL_ATOMS = 18.0
"""The mean number of atoms in QM9, to which sums over atoms are held."""


class Graph(NamedTuple):
    """What a network sees of molecules.

    Attributes:
        elements: `[n, a]`, the place of each atom's element among those known, -1 for padding.
        edges: `[n, a, a]`, what lies between two atoms: 1 for a bond and 0 for none, or their
            distance and -1 where there is no pair.
    """

    elements: Tensor
    edges: Tensor


def distances(pos: Tensor, pairs: Tensor) -> Tensor:
    """Distances `[n, a, a]` of points `[n, a, 3]` where pairs `[n, a, a]` are true, elsewhere 1.

    From differences, which a shift of the molecule does not make inexact as it does
    `torch.cdist`; and with gradients that are finite where a point meets itself.

    >>> ends = torch.tensor([[[0.0, 0, 0], [0, 3, 4]]])
    >>> distances(ends, ~torch.eye(2, dtype=torch.bool)[None])
    tensor([[[1., 5.],
             [5., 1.]]])
    """
    squares = (pos[:, :, None] - pos[:, None]).square().sum(-1)
    return torch.where(pairs, squares, 1.0).sqrt()


def atom_pairs(mask: Tensor) -> Tensor:
    """Mark the pairs `[n, a, a]` of two different atoms, of a mask `[n, a]` of what is an atom.

    >>> atom_pairs(torch.tensor([[True, True, False]])).int()
    tensor([[[0, 1, 0],
             [1, 0, 0],
             [0, 0, 0]]], dtype=torch.int32)
    """
    different = ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    return mask[:, :, None] & mask[:, None] & different


def radius_graph(pos: Tensor, radius: float, mask: Tensor | None = None) -> Tensor:
    """Join atoms that are at most a radius apart: the dense graph of a batch.

    Args:
        pos: `[n, a, 3]`.
        radius: in the unit of the positions; infinity gives the complete graph.
        mask: `[n, a]`, true for atoms, false for padding; None for atoms alone.

    Returns:
        `[n, a, a]`, true where two atoms are joined: symmetric, no atom with itself.

    >>> line = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]])
    >>> radius_graph(line, 1.5).int()
    tensor([[[0, 1, 0],
             [1, 0, 0],
             [0, 0, 0]]], dtype=torch.int32)
    """
    everywhere = torch.ones(pos.shape[:2], dtype=torch.bool, device=pos.device)
    pairs = atom_pairs(everywhere if mask is None else mask)
    return pairs & (distances(pos, pairs) <= radius)


def bond_graph(
    pos: Tensor, numbers: Tensor, mask: Tensor | None = None, stretch: float = 1.15
) -> Tensor:
    """Join atoms that are bonded, as their distance says: `d_ij < stretch (r_i + r_j)`.

    With the default stretch, of 10,000 molecules of QM9 all but 2 have the bonds that their SMILES
    strings draw, by the degrees of their atoms.

    Args:
        pos: `[n, a, 3]` in Å.
        numbers: `[n, a]`, atomic numbers, 0 for padding.
        mask: `[n, a]`, true for atoms; None for where numbers are above 0.
        stretch: how much longer than the sum of the covalent radii a bond may be.

    Returns:
        `[n, a, a]`, true where two atoms are bonded: symmetric, no atom with itself.

    >>> water = torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]])
    >>> bond_graph(water, torch.tensor([[8, 1, 1]])).int()
    tensor([[[0, 1, 1],
             [1, 0, 0],
             [1, 0, 0]]], dtype=torch.int32)
    """
    mask = numbers > 0 if mask is None else mask
    table = torch.zeros(119, dtype=pos.dtype, device=pos.device)
    table[[*COVALENT_RADII]] = pos.new_tensor([*COVALENT_RADII.values()])
    _check_elements(numbers, mask, table > 0)
    radii = table[numbers.clamp(0, len(table) - 1)]
    pairs = atom_pairs(mask)
    return pairs & (distances(pos, pairs) < stretch * (radii[:, :, None] + radii[:, None]))


class Elements(nn.Module):
    """What an atom is, by its atomic number: one learned vector for each element of QM9.

    >>> numbers = torch.tensor([[6, 1, 0]])
    >>> known = Elements(4)
    >>> known.at(known.index(numbers, numbers > 0)).shape
    torch.Size([1, 3, 4])
    """

    places: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(len(QM9_ELEMENTS), width)
        places = torch.full((119,), -1)
        places[[*QM9_ELEMENTS]] = torch.arange(len(QM9_ELEMENTS))
        self.register_buffer("places", places, persistent=False)

    def index(self, numbers: Tensor, mask: Tensor) -> Tensor:
        """Places `[n, a]` of atomic numbers among the elements known, -1 where masked; checked."""
        _check_elements(numbers, mask, self.places >= 0)
        found = self.places[numbers.clamp(0, len(self.places) - 1)]
        return torch.where(mask, found, -1)

    def at(self, index: Tensor) -> Tensor:
        """Vectors `[n, a, width]` of places `[n, a]`, 0 where a place is -1."""
        weight = self.vectors.weight
        known = torch.arange(len(weight), device=index.device)
        return (index[..., None] == known).to(weight.dtype) @ weight


class GIN(nn.Module):
    """A graph isomorphism network on the bond graph: it sees which atoms are bonded, no more.

        h_i' = h_i + MLP(norm((1 + eps) h_i + sum over bonds of h_j))

    and features `sum_i h_i / 18`. Isomers that differ by their shape alone get one answer.

    Args:
        hidden: width of the features.
        layers: number of layers.
        inner: width inside of the MLPs.

    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> GIN()(water).shape
    torch.Size([1, 64])

    Paper: Xu et al. 2019; the equivariance paper's section 6.1.2, with layer norms in place of
    batch norms, which padding would enter, and a residual sum.
    """

    def __init__(self, hidden: int = 64, layers: int = 4, inner: int = 100) -> None:
        super().__init__()
        self.features = hidden
        self.atoms = Elements(hidden)
        self.own = nn.Parameter(torch.zeros(layers))
        self.updates = nn.ModuleList(
            nn.Sequential(
                *(nn.LayerNorm(hidden), nn.Linear(hidden, inner), nn.SiLU()),
                nn.Linear(inner, hidden),
            )
            for _ in range(layers)
        )

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Features `[n, hidden]` of molecules."""
        return self.on_graph(self.graph(batch))

    def graph(self, batch: Mapping[str, Tensor]) -> Graph:
        """Check molecules, and find their bonds."""
        pos, numbers, mask = _fields(batch, self.atoms.vectors.weight.dtype)
        index = self.atoms.index(numbers, mask)
        return Graph(index, bond_graph(pos, numbers, mask).to(pos.dtype))

    def on_graph(self, graph: Graph) -> Tensor:
        """Features `[n, hidden]` of molecules whose bonds are known."""
        state = self.atoms.at(graph.elements)
        mask = (graph.elements >= 0)[..., None].to(state.dtype)
        for own, update in zip(self.own, self.updates, strict=True):
            state = state + update((1 + own) * state + graph.edges @ state) * mask
        return state.sum(1) / USUAL_ATOMS


class RadialBasis(nn.Module):
    """What a distance is: smooth bumps, narrow where atoms are bonded, wide where they are far.

        b_k(d) = w(d) exp(-((exp(-d / 2 Å) - c_k) / s)^2),   w(d) = (1 + cos(pi d / radius)) / 2

    with evenly spaced c_k, so that everything fades smoothly towards the radius.

    >>> RadialBasis(16, 10.0)(torch.tensor([1.0, 10.0])).abs().sum(-1) > 1e-6
    tensor([ True, False])
    """

    centers: Tensor

    def __init__(self, count: int, radius: float) -> None:
        super().__init__()
        self.radius = radius
        self.register_buffer("centers", torch.linspace(0, 1, count), persistent=False)

    def window(self, distance: Tensor) -> Tensor:
        """The factor w, from 1 at distance 0 to 0 at the radius and beyond."""
        share = (distance / self.radius).clamp(max=1.0)
        return (1 + torch.cos(torch.pi * share)) / 2

    def forward(self, distance: Tensor) -> Tensor:
        """Values `[..., count]` of distances `[...]`."""
        near = torch.exp(-distance / 2)[..., None] - self.centers
        bumps = torch.exp(-(near * (len(self.centers) - 1)).square())
        return self.window(distance)[..., None] * bumps


class DistanceMessages(nn.Module):
    """One layer of messages between atoms that are near, weighed by a window of their distance.

        m_ij = w(d_ij) silu(A silu(B h_i + C h_j + D b(d_ij)))
        h_i' = h_i + MLP([h_i, sum_j m_ij])

    >>> _ = torch.manual_seed(0)
    >>> layer = DistanceMessages(8, 4)
    >>> state, basis = torch.randn(1, 3, 8), torch.rand(1, 3, 3, 4)
    >>> layer(state, basis, torch.ones(1, 3, 3)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, hidden: int, basis: int) -> None:
        super().__init__()
        self.receiver = nn.Linear(hidden, hidden)
        self.sender = nn.Linear(hidden, hidden, bias=False)
        self.distance = nn.Linear(basis, hidden, bias=False)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.update = nn.Sequential(
            *(nn.Linear(2 * hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        )

    def forward(self, state: Tensor, basis: Tensor, window: Tensor) -> Tensor:
        """States `[n, a, hidden]` of states, basis `[n, a, a, k]` and window `[n, a, a]`."""
        # The first linear map of (h_i, h_j, b_ij) taken apart: no pair of states is copied.
        pairs = self.receiver(state)[:, :, None] + self.sender(state)[:, None]
        messages = self.message(pairs + self.distance(basis))
        gathered = (window[:, :, None] @ messages)[:, :, 0]
        return state + self.update(torch.cat([state, gathered], -1))


class InvariantMPNN(nn.Module):
    """A message-passing network on distances: invariant to E(3), and it sees the shape.

    Layers of `DistanceMessages` on the radius graph, and features `sum_i h_i / 18`. Within the
    radius it is smooth in the positions, so that its gradients are forces.

    Args:
        hidden: width of the features.
        layers: number of layers.
        radius: in Å, beyond which atoms exchange no messages. The default joins almost all pairs
            of a molecule of QM9.
        basis: number of functions that describe a distance.

    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> net = InvariantMPNN()
    >>> turned = water | {"pos": water["pos"].roll(1, -1)}
    >>> torch.allclose(net(water), net(turned), atol=1e-6)
    True

    Paper: the equivariance paper's section 6.1.2, whose network takes squared distances as they
    are, on the complete graph.
    """

    def __init__(
        self, hidden: int = 64, layers: int = 2, radius: float = 10.0, basis: int = 16
    ) -> None:
        super().__init__()
        self.features = hidden
        self.atoms = Elements(hidden)
        self.basis = RadialBasis(basis, radius)
        self.layers = nn.ModuleList(DistanceMessages(hidden, basis) for _ in range(layers))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Features `[n, hidden]` of molecules."""
        return self.on_graph(self.graph(batch))

    def graph(self, batch: Mapping[str, Tensor]) -> Graph:
        """Check molecules, and measure their distances."""
        pos, numbers, mask = _fields(batch, self.atoms.vectors.weight.dtype)
        index, pairs = self.atoms.index(numbers, mask), atom_pairs(mask)
        return Graph(index, torch.where(pairs, distances(pos, pairs), -1.0))

    def on_graph(self, graph: Graph) -> Tensor:
        """Features `[n, hidden]` of molecules whose distances are known."""
        state = self.atoms.at(graph.elements)
        basis = self.basis(graph.edges)
        window = self.basis.window(graph.edges) * (graph.edges >= 0)
        for layer in self.layers:
            state = layer(state, basis, window)
        return self.pooled(state, graph.elements >= 0)

    @staticmethod
    def pooled(state: Tensor, mask: Tensor) -> Tensor:
        """Sum the states of the atoms `[n, a, hidden]`."""
        return (state * mask[..., None]).sum(1) / USUAL_ATOMS


def _fields(batch: Mapping[str, Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return positions in the network's precision, numbers and mask."""
    pos, numbers = batch["pos"], batch["numbers"]
    mask = batch.get("mask", numbers > 0).bool()
    # What stands in padding, be it NaN, reaches neither answers nor gradients.
    return pos.to(dtype).masked_fill(~mask[..., None], 0.0), numbers, mask


def _check_elements(numbers: Tensor, mask: Tensor, known: Tensor) -> None:
    inside = (numbers >= 0) & (numbers < len(known))
    wrong = mask & ~(inside & known[numbers.clamp(0, len(known) - 1)])
    if bool(wrong.any()):
        molecule, atom = (int(place) for place in wrong.nonzero()[0])
        raise InputError(
            "numbers",
            f"elements {known.nonzero()[:, 0].tolist()}",
            f"the atomic number {int(numbers[molecule, atom])} at atom {atom} of "
            f"molecule {molecule}",
        )


ROUNDS = 4
"""Rounds of coloring that tell bond graphs apart: as many as GIN has layers."""


def bond_hashes(inputs: dict[str, Tensor], chunk: int = 4096) -> NDArray[np.int64]:
    """Color bond graphs as GIN sees them: equal numbers for graphs that no GIN tells apart.

    Color refinement (Weisfeiler and Lehman) with sums, modulo 2^64, of scrambled colors of
    neighbors: what the network's own sums can know at most, after as many rounds.

    >>> import torch
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> bent = water | {"pos": water["pos"].roll(1, -1) * 1.02}
    >>> bool(bond_hashes(water) == bond_hashes(bent))
    True
    """
    pieces = zip(inputs["pos"].split(chunk), inputs["numbers"].split(chunk), strict=True)
    return np.concatenate([_colors(bond_graph(pos, n).numpy(), n.numpy()) for pos, n in pieces])


def _colors(bonds: NDArray[np.bool_], numbers: NDArray) -> NDArray[np.int64]:
    sample, atom, other = bonds.nonzero()
    color = _scrambled(numbers.astype(np.uint64))
    for _ in range(ROUNDS):
        around = np.zeros_like(color)
        np.add.at(around, (sample, atom), _scrambled(color[sample, other]))
        color = _scrambled(color * np.uint64(3) + around)
    return np.where(numbers > 0, color, np.uint64(0)).sum(1, dtype=np.uint64).view(np.int64)


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits: the finalizer of splitmix64, which maps one to one."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
