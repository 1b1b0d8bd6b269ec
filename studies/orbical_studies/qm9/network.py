"""A backbone for molecules with four small networks a property, and molecules made ready for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical.training import Evidence

from ..networks.molecules import GIN, DistanceMessages, Graph, InvariantMPNN, atom_pairs
from .settings import NETWORKS

FLOOR, LEAST = 1e-6, 1e-12
"""Floors of nu and alpha - 1, and of beta: energies are known to a millionth of their spread."""

CHUNK = 2048


class OrientedMPNN(InvariantMPNN):
    """The invariant network without its symmetry: it also sees in which direction atoms lie.

    To what describes a distance it adds the three components of the direction, so that it can
    learn whatever the invariant network can, and has to learn that directions do not matter.

    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> net = OrientedMPNN()
    >>> turned = water | {"pos": water["pos"].roll(1, -1)}
    >>> bool((net(water) - net(turned)).abs().max() > 1e-5)
    True
    """

    def __init__(self, hidden: int = 64, layers: int = 2, basis: int = 16) -> None:
        super().__init__(hidden, layers, basis=basis)
        self.layers = nn.ModuleList(DistanceMessages(hidden, basis + 3) for _ in range(layers))

    def graph(self, batch: Mapping[str, Tensor]) -> Graph:
        """Check molecules, and take the vectors from atom to atom, `[n, a, a, 3]`."""
        checked = super().graph(batch)
        place = batch["pos"].to(checked.edges.dtype)
        apart = place[:, None] - place[:, :, None]
        return Graph(checked.elements, torch.where(checked.edges[..., None] >= 0, apart, 0.0))

    def on_graph(self, graph: Graph) -> Tensor:
        """Features `[n, hidden]` of molecules whose vectors are known."""
        state = self.atoms.at(graph.elements)
        mask = graph.elements >= 0
        pairs = atom_pairs(mask)
        length = torch.where(pairs, graph.edges.square().sum(-1), 1.0).sqrt()
        window = self.basis.window(length) * pairs
        direction = graph.edges / length[..., None] * window[..., None]
        basis = torch.cat([self.basis(length), direction], -1)
        for layer in self.layers:
            state = layer(state, basis, window)
        return self.pooled(state, mask)


BACKBONES: dict[str, type[GIN | InvariantMPNN | OrientedMPNN]] = dict(
    zip(NETWORKS, (GIN, InvariantMPNN, OrientedMPNN), strict=True)
)


class Decoders(nn.Module):
    """Evidential outputs of each target, every parameter by a network 64-64-1 of its own.

    All of them side by side as one: `4 d` networks cost the launches of a single one.

    >>> _ = torch.manual_seed(0)
    >>> found = Decoders(64, targets=11)(torch.zeros(2, 64))
    >>> found.gamma.shape, bool((found.alpha > 1).all())
    (torch.Size([2, 11]), True)

    Paper: the equivariance paper's section 6.1.2 and appendix E.
    """

    def __init__(self, features: int, targets: int, width: int = 64) -> None:
        super().__init__()
        self.width = width
        self.inner = nn.Linear(features, 4 * targets * width)
        self.weight = nn.Parameter(torch.randn(4 * targets, width) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(4 * targets))

    def forward(self, features: Tensor) -> Evidence:
        """Answer for features `[n, features]`: four parameters `[n, targets]`."""
        hidden = functional.silu(self.inner(features)).unflatten(-1, (-1, self.width))
        raw = (hidden * self.weight).sum(-1) + self.bias
        gamma, *others = raw.chunk(4, -1)
        nu, alpha, beta = (functional.softplus(values) for values in others)
        return Evidence(gamma, nu + FLOOR, 1 + FLOOR + alpha, beta + LEAST)


class Model(nn.Module):
    """A backbone and its decoders; it answers molecules, or graphs of its backbone.

    >>> _ = torch.manual_seed(0)
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> Model("GIN", targets=2)(water).variance.shape
    torch.Size([1, 2])
    """

    def __init__(self, network: str, targets: int) -> None:
        super().__init__()
        self.backbone = BACKBONES[network]()
        self.heads = Decoders(self.backbone.features, targets)

    def forward(self, batch: dict[str, Tensor]) -> Evidence:
        """Answer for molecules."""
        return self.on_graph(self.backbone.graph(batch))

    def on_graph(self, graph: Graph) -> Evidence:
        """Answer for molecules whose graph is known."""
        found: Evidence = self.heads(self.backbone.on_graph(graph))
        return found


class Shelf(NamedTuple):
    """Molecules ready for a model: `graph` padded to the largest, `targets`, `sizes` on the CPU."""

    graph: Graph
    targets: Tensor
    sizes: Tensor

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, places: Tensor, most: int) -> tuple[Graph, Tensor]:
        """Return graphs, padded to `most` atoms, and targets of some molecules."""
        elements, edges = (part[places] for part in self.graph)
        return Graph(elements[:, :most], edges[:, :most, :most]), self.targets[places]


@torch.inference_mode()
def shelf(model: Model, pos: Tensor, numbers: Tensor, targets: Tensor) -> Shelf:
    """Make the graphs of molecules once, for many epochs."""
    graphs = [
        model.backbone.graph({"pos": places, "numbers": atoms})
        for places, atoms in zip(pos.split(CHUNK), numbers.split(CHUNK), strict=True)
    ]
    graph = Graph(*(torch.cat(parts) for parts in zip(*graphs, strict=True)))
    return Shelf(graph, targets, (numbers > 0).sum(1).cpu())


@torch.inference_mode()
def answers(model: Model, molecules: Shelf) -> Evidence:
    """Answer for all molecules, those of like size together."""
    order = molecules.sizes.argsort()
    found = []
    for part in order.split(CHUNK):
        places = part.to(molecules.targets.device, non_blocking=True)
        graph, _ = molecules.take(places, int(molecules.sizes[part[-1]]))
        found.append(torch.stack(model.on_graph(graph)))
    back = order.argsort().to(molecules.targets.device)
    return Evidence(*torch.cat(found, 1)[:, back].unbind(0))
