"""A steerable network of molecules: its atoms hold scalars, vectors and tensors that rotate.

`SteerableMPNN` has the inputs and outputs of the networks in `networks.molecules`. Those exchange
numbers, which no rotation changes; here atoms exchange features of degree 0, 1 and 2 that rotate as
the spherical harmonics of these degrees do, so that a message contains the direction of its sender.
Only invariants reach the output. Coupling coefficients and harmonics are those of e3nn (the extra
`equivariant`); the rest is plain torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orbical.errors import MissingExtra

from .molecules import USUAL_ATOMS, Elements, RadialBasis, _fields, radius_graph

USUAL_NEIGHBORS = 12.0
"""Sums over the neighbors of an atom are divided by its root."""


class Path(NamedTuple):
    """A way to make a feature of degree `out` from one of degree `given` and a harmonic."""

    given: int
    harmonic: int
    out: int


def coupling_paths(degrees: int) -> list[Path]:
    """List the couplings of features with harmonics, all of degree below a number.

    A coupling exists for `|given - harmonic| <= out <= given + harmonic`; the sum of the three is
    even, so that under mirrors a feature of degree l behaves as the harmonics of degree l do.

    >>> [tuple(path) for path in coupling_paths(2)]
    [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    """
    span = range(degrees)
    return [
        Path(given, harmonic, out)
        for given in span
        for harmonic in span
        for out in span
        if abs(given - harmonic) <= out <= given + harmonic and (given + harmonic + out) % 2 == 0
    ]


class Edges(NamedTuple):
    """The pairs of near atoms that a steerable network sees.

    Attributes:
        elements: `[n, a]`, the index of each atom's element among those known, -1 for padding.
        senders: `[e]`, indices of atoms among the `n a` of the batch.
        receivers: `[e]`.
        vectors: `[e, 3]`, from the receiver to the sender.
    """

    elements: Tensor
    senders: Tensor
    receivers: Tensor
    vectors: Tensor


class Couplings(nn.Module):
    """All couplings of features of one degree with harmonics, as one matrix product.

    Args:
        paths: The couplings, all from the same degree.
        degrees: Number of degrees of the harmonics.

    Path by path there would be eleven small products instead of three: on an accelerator their
    number costs time, not their size.
    """

    symbols: Tensor
    path_of: Tensor

    def __init__(self, paths: Sequence[Path], degrees: int) -> None:
        super().__init__()
        self.paths = tuple(paths)
        self.register_buffer("symbols", _symbols(self.paths, degrees), persistent=False)
        sizes = torch.tensor([2 * path.out + 1 for path in self.paths])
        path_of = torch.arange(len(self.paths)).repeat_interleave(sizes)
        self.register_buffer("path_of", path_of, persistent=False)

    def forward(self, sent: Tensor, harmonics: Tensor, weights: Tensor) -> Tensor:
        """Compute messages `[e, k, channels]`, the components of all paths one after the other.

        Args:
            sent: Features `[e, 2 l + 1, channels]`.
            harmonics: `[e, degrees^2]`.
            weights: Of each path and channel, `[e, paths channels]`.
        """
        turned = torch.einsum("ej,jki->eki", harmonics, self.symbols.to(harmonics.dtype))
        weight = weights.unflatten(-1, (len(self.paths), -1)).index_select(1, self.path_of)
        return weight * (turned @ sent)


class SteerableLayer(nn.Module):
    """One layer of messages that rotate.

        m_ij^(l) = sum over paths (l', l'', l) of w(|r_ij|) C(h_j^(l'), Y^(l'')(r_ij))
        h_i^(l) <- h_i^(l) + gate_i^(l) A^(l) [h_i^(l), sum_j m_ij^(l)]

    with couplings C by Wigner's 3j symbols, weights w of each path and channel by a small network
    of the distance, linear maps A of channels alone, and gates by a network of the invariants:
    scalars, and the lengths of the sums.

    Args:
        channels: Number of features of each degree, from 0 up.
        basis: Number of functions that describe a distance.

    Features of degree l have the shape `[atoms, channels, 2 l + 1]`.
    """

    def __init__(self, channels: Sequence[int], basis: int) -> None:
        super().__init__()
        self.channels = tuple(channels)
        self.paths = coupling_paths(len(self.channels))
        self.paths_from = [
            [path for path in self.paths if path.given == degree]
            for degree in range(len(self.channels))
        ]
        self.couplings = nn.ModuleList(
            Couplings(paths, len(self.channels)) for paths in self.paths_from
        )
        weights = sum(self.channels[path.given] for path in self.paths)
        self.radial = nn.Sequential(nn.Linear(basis, 64), nn.SiLU(), nn.Linear(64, weights))
        self.send = nn.ModuleList(nn.Linear(c, c, bias=False) for c in self.channels)
        gathered = [
            sum(self.channels[path.given] for path in self.paths if path.out == degree)
            for degree in range(len(self.channels))
        ]
        self.mix = nn.ModuleList(
            nn.Linear(own + new, own, bias=False)
            for own, new in zip(self.channels[1:], gathered[1:], strict=True)
        )
        scalars, answers = self.channels[0] + gathered[0], sum(self.channels)
        self.scalar_norm, self.length_norm = nn.LayerNorm(scalars), nn.LayerNorm(sum(gathered[1:]))
        self.update = nn.Sequential(
            *(nn.Linear(scalars + sum(gathered[1:]), answers), nn.SiLU()),
            nn.Linear(answers, answers),
        )
        for part in self.modules():  # unit sizes stay, also through products of several maps
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=part.in_features**-0.5)

    def forward(
        self,
        state: list[Tensor],
        edges: Edges,
        harmonics: Tensor,
        basis: Tensor,
        window: Tensor,
    ) -> list[Tensor]:
        """Update the features of all atoms, given basis `[e, k]` and window `[e]` of distances."""
        weights = self.radial(basis) * window[:, None]
        gathered = self._gathered(state, edges, harmonics, weights)
        scalars = torch.cat([state[0][..., 0], gathered[0][..., 0]], -1)
        lengths = torch.cat([values.square().mean(-1) for values in gathered[1:]], -1)
        invariants = torch.cat([self.scalar_norm(scalars), self.length_norm(lengths)], -1)
        change = self.update(invariants).split(self.channels, -1)
        mixed = [
            gate.sigmoid()[..., None] * linear(torch.cat([own, new], 1).mT).mT
            for gate, linear, own, new in zip(
                change[1:], self.mix, state[1:], gathered[1:], strict=True
            )
        ]
        return [
            state[0] + change[0][..., None],
            *(own + new for own, new in zip(state[1:], mixed, strict=True)),
        ]

    def _gathered(
        self, state: list[Tensor], edges: Edges, harmonics: Tensor, weights: Tensor
    ) -> list[Tensor]:
        """Sum the messages to each atom, by degree."""
        found: list[list[Tensor]] = [[] for _ in self.channels]
        shares = weights.split(
            [len(paths) * own for paths, own in zip(self.paths_from, self.channels, strict=True)],
            -1,
        )
        for paths, couple, linear, values, weight in zip(
            self.paths_from, self.couplings, self.send, state, shares, strict=True
        ):
            messages = couple(linear(values.mT)[edges.senders], harmonics, weight)
            arrived = _summed(messages, edges.receivers, len(values))
            parts = arrived.split([2 * path.out + 1 for path in paths], 1)
            for path, part in zip(paths, parts, strict=True):
                found[path.out].append(part)
        return [torch.cat(parts, -1).mT for parts in found]


class SteerableMPNN(nn.Module):
    """A message-passing network with steerable features and invariant outputs.

    Args:
        hidden: Width of the output.
        layers: Number of layers.
        channels: Features of degree 0, 1, 2, ... of each atom; in the notation of e3nn the
            default is `64x0e + 32x1o + 16x2e`.
        radius: In Å, beyond which atoms exchange no messages.
        basis: Number of functions that describe a distance.

    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> net = SteerableMPNN()
    >>> turned = water | {"pos": water["pos"].roll(1, -1)}
    >>> net(water).shape, torch.allclose(net(water), net(turned), atol=1e-5)
    (torch.Size([1, 128]), True)

    Paper: the equivariance paper's section 6.1.2 for spectra (a network with steerable vectors,
    Brandstetter et al. 2022, of 37 million parameters); Batzner et al. 2022 for the messages.
    """

    def __init__(
        self,
        hidden: int = 128,
        layers: int = 3,
        channels: Sequence[int] = (64, 32, 16),
        radius: float = 5.0,
        basis: int = 16,
    ) -> None:
        super().__init__()
        _e3nn()
        self.features = hidden
        self.channels = tuple(channels)
        self.atoms = Elements(channels[0])
        self.basis = RadialBasis(basis, radius)
        self.layers = nn.ModuleList(SteerableLayer(channels, basis) for _ in range(layers))
        self.answer = nn.Sequential(
            *(nn.Linear(sum(channels), hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        )

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Compute features `[n, hidden]` of molecules."""
        graph = self.graph(batch)
        scalars = self.atoms.at(graph.elements).flatten(0, 1)[..., None]
        state = [scalars] + [
            scalars.new_zeros(len(scalars), count, 2 * degree + 1)
            for degree, count in enumerate(self.channels)
            if degree
        ]
        harmonics = _e3nn().spherical_harmonics(
            [*range(len(state))], graph.vectors, normalize=True, normalization="component"
        )
        distance = graph.vectors.norm(dim=-1)
        basis, window = self.basis(distance), self.basis.window(distance)
        for layer in self.layers:
            state = layer(state, graph, harmonics, basis, window)
        lengths = [values.square().mean(-1) for values in state[1:]]
        known = (graph.elements >= 0).flatten()[:, None]
        found = self.answer(torch.cat([state[0][..., 0], *lengths], -1)) * known
        return found.unflatten(0, graph.elements.shape).sum(1) / USUAL_ATOMS

    def graph(self, batch: Mapping[str, Tensor]) -> Edges:
        """Check molecules, and list the pairs of atoms within the radius."""
        pos, numbers, mask = _fields(batch, self.atoms.vectors.weight.dtype)
        index = self.atoms.index(numbers, mask)
        sample, receiver, sender = radius_graph(pos, self.basis.radius, mask).nonzero().unbind(1)
        first = sample * pos.shape[1]
        vectors = pos[sample, sender] - pos[sample, receiver]
        return Edges(index, first + sender, first + receiver, vectors)


def _summed(messages: Tensor, receivers: Tensor, atoms: int) -> Tensor:
    """Add up messages `[e, ...]` by the atom that receives them."""
    total = messages.new_zeros(atoms, *messages.shape[1:])
    return total.index_add(0, receivers, messages) / USUAL_NEIGHBORS**0.5


def _symbols(paths: Sequence[Path], degrees: int) -> Tensor:
    """Return Wigner's 3j symbols of paths from one degree, `[degrees^2, k, 2 given + 1]`."""
    parts = []
    for given, harmonic, out in paths:
        # A harmonic and a feature of unit size make a message of unit size.
        symbol = _e3nn().wigner_3j(given, harmonic, out, dtype=torch.float64) * (2 * out + 1) ** 0.5
        part = symbol.new_zeros(degrees**2, 2 * out + 1, 2 * given + 1)
        part[harmonic**2 : (harmonic + 1) ** 2] = symbol.permute(1, 2, 0)
        parts.append(part)
    return torch.cat(parts, 1)


def _e3nn() -> Any:
    try:
        from e3nn import o3
    except ImportError:
        raise MissingExtra("e3nn", "equivariant", "the steerable network") from None
    return o3
