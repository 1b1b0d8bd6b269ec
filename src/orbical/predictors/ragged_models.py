"""Models of graphs of different sizes, which take one batch without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor

from .._imports import import_extra, name_of
from .._ragged import EDGES, NODES, real_nodes, to_padded, to_ragged
from .._trees import Tree, tree_map
from ..errors import InputError
from .model_objects import TorchPredictor
from .predictor import PartialOutputs, Raw, Wrapper

__all__ = ["RaggedPredictor", "to_pyg", "to_ragged"]

Pack = Callable[[dict[str, Tensor]], object]


class RaggedPredictor(Wrapper):
    """A model that takes graphs of different sizes in one batch, without padding.

    It receives a dictionary: the fields of all nodes one after the other (`pos [total, 3]`,
    `numbers [total]`), `edge_index [2, edges]` if there is one, the fields of graphs (`cell
    [N, 3, 3]`), `batch [total]` with the graph of each node, and `ptr [N + 1]` with the place where
    each graph begins. Outputs with a row for each node are padded for the scan, those with a row
    for each graph are taken as they are.

    Args:
        model: any model that `orbical.scan` takes: `model(batch) -> {energy, forces, stress}`.
        pack: a function from that dictionary to what the model takes; `orbical.predictors.to_pyg`
            for a `torch_geometric.data.Batch`.
        nodes: the names of the fields, and of the outputs, with a row for each node.
        edges: the names of the fields with a row for each edge.

    Example:
        >>> import torch
        >>> def springs(batch):
        ...     energy = torch.zeros(len(batch["cell"])).double()
        ...     energy.index_add_(0, batch["batch"], batch["pos"].square().sum(1))
        ...     return {"energy": energy, "forces": -2 * batch["pos"]}
        >>> import orbical as ob
        >>> from ase.build import molecule
        >>> scan = ob.scan(RaggedPredictor(springs), [molecule("H2O"), molecule("CH4")],
        ...                group="rotations3d:8", task="atoms", progress=False)
        >>> float(scan.data["forces_vs_consensus"].max()) < 1e-12
        True
    """

    def __init__(
        self,
        model: object,
        pack: Pack | None = None,
        nodes: Iterable[str] = NODES,
        edges: Iterable[str] = EDGES,
    ) -> None:
        from . import as_predictor

        if pack is not None and not callable(pack):
            raise InputError("pack", "a function of a ragged batch", repr(pack))
        super().__init__(as_predictor(model), f"ragged {'' if pack is None else name_of(pack)}")
        self.pack = pack
        self.nodes, self.edges = frozenset(nodes), frozenset(edges)

    def __call__(self, batch: Tree) -> Raw:
        """Return the model's outputs for a padded batch, padded alike."""
        if not isinstance(batch, dict):
            raise InputError(
                "data",
                "graphs, a dictionary of fields",
                type(batch).__name__,
                remedy="pass pos and mask",
            )
        ragged = to_ragged(batch, self.nodes, self.edges)
        if isinstance(self.model, TorchPredictor):
            ragged = tree_map(self.model.cast, ragged)  # a packed batch is not looked into
        raw = self.model(ragged if self.pack is None else self.pack(ragged))
        mask = real_nodes(batch, self.nodes)
        if isinstance(raw, PartialOutputs):
            return PartialOutputs(self._padded(raw.outputs, mask), raw.errors)
        return self._padded(raw, mask)

    def _padded(self, raw: object, mask: Tensor, name: str = "") -> Raw:
        """Pad the outputs with a row for each node, by their names or their length."""
        if isinstance(raw, Mapping):
            return {key: self._padded(value, mask, str(key)) for key, value in raw.items()}
        if isinstance(raw, tuple | list):
            return tuple(self._padded(value, mask) for value in raw)
        total = int(mask.sum())
        if not isinstance(raw, Tensor) or raw.ndim == 0 or len(raw) != total:
            return raw  # of graphs, or the task says what is wrong
        # If every graph has one node, the length does not tell.
        return to_padded(raw, mask) if name in self.nodes or total != len(mask) else raw


def to_pyg(batch: dict[str, Tensor]) -> Any:
    """Return a ragged batch as a `torch_geometric.data.Batch`; needs the extra `graphs`.

    Args:
        batch: fields of nodes, edges and graphs, with `batch` and `ptr`.

    Returns:
        The batch, with the same fields; atomic numbers `numbers` are also `z`.

    Example:
        >>> import torch
        >>> ragged = {"pos": torch.zeros(3, 3), "numbers": torch.tensor([1, 1, 8]),
        ...           "batch": torch.zeros(3).long(), "ptr": torch.tensor([0, 3])}
        >>> to_pyg(ragged).z.tolist(), to_pyg(ragged).num_graphs
        ([1, 1, 8], 1)
    """
    data = import_extra("torch_geometric.data", "graphs", "a batch of PyTorch Geometric")
    fields = {"z": batch["numbers"], **batch} if "numbers" in batch else batch
    return data.Batch(**fields)
