"""Graphs of different sizes: of PyTorch Geometric, or one ragged batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._ragged import NO_EDGE, from_ragged, is_graph, is_ragged, padding_mask
from ..errors import InputError
from .array_source import Arrays
from .source import Source


def from_graphs(data: Any) -> Source | None:
    """Return the source of a ragged batch, or of PyG graphs; None for anything else."""
    if is_ragged(data):
        return Arrays(from_ragged(data))
    module = type(data).__module__.partition(".")[0]
    listed = isinstance(data, list) and len(data) > 0
    if not listed and module != "torch_geometric":
        return None
    if hasattr(data, "to_data_list"):  # a batch
        data = data.to_data_list()
    graphs = list(getattr(data, "dataset", data))  # of a loader its data set
    return Graphs(graphs) if graphs and all(map(is_graph, graphs)) else None


class Graphs(Arrays):
    """Graphs of different sizes: a dictionary of fields with a leading sample dimension.

    Fields with a row for each node (`pos`, `z`, `x`) are padded with zeros, `mask [N, nodes]` marks
    real nodes. `edge_index` is stored as pairs `[N, edges, 2]`, padded with -1, and other fields of
    edges are padded with zeros. `y` is the target.
    """

    def __init__(self, graphs: Sequence[Any]) -> None:
        fields = {name: [graph[name] for graph in graphs] for name in graphs[0].keys()}  # noqa: SIM118
        targets = fields.pop("y", None)
        inputs = {
            name: _graph_field_as_tensor(name, values, graphs)
            for name, values in fields.items()
            if all(isinstance(value, Tensor) for value in values)
        }
        nodes = [int(graph.num_nodes) for graph in graphs]
        inputs["mask"] = padding_mask(torch.tensor(nodes))
        y = None if targets is None else torch.stack([_target_of_graph(value) for value in targets])
        super().__init__(inputs, y)


def _graph_field_as_tensor(name: str, values: Sequence[Tensor], graphs: Sequence[Any]) -> Tensor:
    """Return a field as one tensor; a field of graphs is stacked."""
    if name == "edge_index":
        return pad_sequence([one.T for one in values], batch_first=True, padding_value=NO_EDGE)
    by_row = all(graph.is_node_attr(name) or graph.is_edge_attr(name) for graph in graphs)
    if by_row:
        return pad_sequence(list(values), batch_first=True)
    if len({value.shape for value in values}) > 1:
        raise InputError(
            "data",
            f"{name} of one shape in all graphs, or a row for each node or edge",
            f"{tuple(values[0].shape)} and others",
        )
    return torch.stack(list(values))


def _target_of_graph(value: object) -> Tensor:
    """Return the target of a graph; PyG writes a single one as a row of a batch."""
    target = torch.as_tensor(value)
    return target[0] if target.ndim and target.shape[0] == 1 else target
