"""Graphs of different sizes in one batch: padded with a mask, or ragged without padding.

Scans keep samples padded, so that every array has one shape. Many networks take the ragged form,
which PyTorch Geometric made usual: rows of all nodes one after the other, `batch` with the graph of
each, and `ptr` with the place where each graph begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from .errors import InputError

NODES = ("pos", "numbers", "z", "x", "forces")
"""The usual names of fields with a row for each node."""

EDGES = ("edge_index", "edge_attr", "edge_weight")
"""The usual names of fields with a row for each edge."""

NO_EDGE = -1


def is_ragged(data: object) -> bool:
    """Check for a dictionary of graphs without padding."""
    return isinstance(data, Mapping) and bool({"ptr", "batch"} & {*data})


def is_graph(thing: object) -> bool:
    """Check for a graph, or a batch of graphs, of PyTorch Geometric, without importing it."""
    return any(
        kind.__name__ == "BaseData" and kind.__module__.startswith("torch_geometric.")
        for kind in type(thing).__mro__
    )


def ragged_fields(data: Any) -> dict[str, Any] | None:
    """Return the fields of a ragged batch, or of graphs of PyG as one; None for other data."""
    if is_ragged(data):
        return dict(data)
    graphs = data if isinstance(data, list | tuple) else [data]
    if not graphs or not all(map(is_graph, graphs)):
        return None
    whole = graphs[0]
    if len(graphs) > 1 or "ptr" not in whole:
        from torch_geometric.data import Batch

        whole = Batch.from_data_list(list(graphs))
    fields: dict[str, Any] = whole.to_dict()
    return fields


def to_ragged(
    batch: Mapping[str, Tensor], nodes: Iterable[str] = NODES, edges: Iterable[str] = EDGES
) -> dict[str, Tensor]:
    """Return a padded batch of graphs without its padding.

    Args:
        batch: fields with a leading graph dimension: of nodes `[N, n, ...]`, of edges
            `[N, e, ...]` (`edge_index [N, e, 2]`, with -1 for padding), and of graphs `[N, ...]`;
            `mask [N, n]` marks real nodes.
        nodes: the names of fields with a row for each node.
        edges: the names of fields with a row for each edge.

    Returns:
        Fields of nodes `[total, ...]`, of edges `[edges, ...]` (`edge_index [2, edges]`, which
        counts nodes through the whole batch), of graphs as they were; `batch [total]`, the graph of
        each node, and `ptr [N + 1]`, where each graph begins.

    Example:
        >>> pos = torch.arange(12.0).reshape(2, 2, 3)
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> ragged = to_ragged({"pos": pos, "mask": mask, "cell": torch.zeros(2, 3, 3)})
        >>> ragged["pos"].shape, ragged["batch"].tolist(), ragged["ptr"].tolist()
        (torch.Size([3, 3]), [0, 1, 1], [0, 1, 3])
    """
    nodes, edges = {*nodes}, {*edges}
    mask = real_nodes(batch, nodes)
    count, size = mask.shape
    kept = mask.reshape(-1)
    found = {
        name: field.flatten(0, 1)[kept] if name in nodes else field
        for name, field in batch.items()
        if name not in {"mask", *edges}
    }
    if "edge_index" in batch:
        pairs = batch["edge_index"]
        real = (pairs >= 0).all(-1)
        # Where each place of the padded batch went: nodes are counted through all graphs.
        number = (kept.cumsum(0) - 1).reshape(count, size)
        rows = torch.arange(count, device=pairs.device)[:, None, None]
        found["edge_index"] = number[rows, pairs.clamp_min(0)][real].T
        for name in edges & {*batch} - {"edge_index"}:
            found[name] = batch[name][real]
    graph = torch.arange(count, device=mask.device)
    sizes = mask.sum(1)
    found["batch"] = graph.repeat_interleave(sizes)
    found["ptr"] = torch.nn.functional.pad(sizes.cumsum(0), (1, 0))
    return found


def real_nodes(batch: Mapping[str, Tensor], nodes: Iterable[str] = NODES) -> Tensor:
    """Return which places `[N, n]` of a padded batch are nodes: the mask, or all."""
    if "mask" in batch:
        return batch["mask"].bool()
    first = next((field for name, field in batch.items() if name in nodes), None)
    if first is None:
        expected = f"a field with a row for each node ({', '.join(sorted(nodes))})"
        raise InputError("data", expected, f"fields {sorted(batch)}", remedy="name it with nodes=")
    return torch.ones(first.shape[:2], dtype=torch.bool, device=first.device)


def from_ragged(
    given: Mapping[str, Any], nodes: Iterable[str] = NODES, edges: Iterable[str] = EDGES
) -> dict[str, Tensor]:
    """Pad a ragged batch, the inverse of `to_ragged`; fields of nodes and edges are padded with 0.

    Args:
        given: the fields, with `ptr` or `batch`.
        nodes: the names of fields with a row for each node.
        edges: the names of fields with a row for each edge.

    Returns:
        The fields with a leading graph dimension, and `mask`.

    Raises:
        InputError: if the graphs are not one after the other, or a field has another length.

    Example:
        >>> padded = from_ragged({"pos": torch.ones(3, 3), "batch": torch.tensor([0, 1, 1])})
        >>> padded["pos"].shape, padded["mask"].sum(1).tolist()
        (torch.Size([2, 2, 3]), [1, 2])
    """
    nodes, edges = {*nodes}, {*edges}
    fields = {name: torch.as_tensor(field) for name, field in given.items()}
    ptr = _graph_starts(fields, nodes)
    mask = padding_mask(ptr.diff())
    found = {"mask": mask}
    for name, field in fields.items():
        if name in nodes:
            found[name] = to_padded(field, mask)
        elif name not in {"ptr", "batch", *edges}:
            _check_rows(name, field, len(mask), "graph")
            found[name] = field
    if "edge_index" in fields:
        found |= _padded_edges(fields, edges, ptr)
    return found


def _graph_starts(fields: Mapping[str, Tensor], nodes: set[str]) -> Tensor:
    """Return where each graph begins, and where the last one ends, `[N + 1]`."""
    if "ptr" in fields:
        ptr = fields["ptr"].long()
        if ptr.ndim != 1 or len(ptr) < 2 or int(ptr[0]) != 0 or bool((ptr.diff() < 1).any()):
            expected = "ptr [graphs + 1] that starts at 0 and increases"
            raise InputError("data", expected, ptr.tolist()[:8])
    else:
        graph = fields["batch"].long()
        if graph.ndim != 1 or not len(graph):
            raise InputError("data", "batch [nodes], the graph of each node", graph)
        if int(graph[0]) != 0 or not bool(torch.isin(graph.diff(), torch.tensor([0, 1])).all()):
            expected, got = "batch sorted, 0, 0, 1, 1, 1, 2, without a gap", graph.tolist()[:8]
            raise InputError("data", expected, got, remedy="sort the nodes by graph")
        ptr = torch.nn.functional.pad(graph.bincount().cumsum(0), (1, 0))
    for name in nodes & {*fields}:
        _check_rows(name, fields[name], int(ptr[-1]), "node")
    return ptr


def _check_rows(name: str, field: Tensor, count: int, what: str) -> None:
    if field.ndim == 0 or len(field) != count:
        raise InputError("data", f"{name} with a row for each of {count} {what}s", field)


def _padded_edges(fields: Mapping[str, Tensor], edges: set[str], ptr: Tensor) -> dict[str, Tensor]:
    """Return the fields of edges by graph; `edge_index` counts the nodes of each graph."""
    pairs = fields["edge_index"].long()
    if pairs.ndim != 2 or len(pairs) != 2 or bool(((pairs < 0) | (pairs >= ptr[-1])).any()):
        raise InputError("data", f"edge_index [2, edges] of nodes below {int(ptr[-1])}", pairs)
    graph = torch.bucketize(pairs, ptr[1:], right=True)
    if not torch.equal(graph[0], graph[1]):
        raise InputError("data", "edges within graphs", "one between two of them")
    order = graph[0].argsort(stable=True)
    real = padding_mask(graph[0].bincount(minlength=len(ptr) - 1))
    local = (pairs - ptr[graph[0]])[:, order].T
    found = {"edge_index": to_padded(local, real, NO_EDGE)}
    for name in edges & {*fields} - {"edge_index"}:
        found[name] = to_padded(fields[name][order], real)
    return found


def padding_mask(sizes: Tensor) -> Tensor:
    """Return which places `[N, largest]` of a padded batch are real.

    >>> padding_mask(torch.tensor([1, 2])).tolist()
    [[True, False], [True, True]]
    """
    return torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]


def to_padded(rows: Tensor, mask: Tensor, value: float = 0) -> Tensor:
    """Put rows `[total, ...]` where a mask `[N, n]` is true, and a value elsewhere."""
    padded = rows.new_full((*mask.shape, *rows.shape[1:]), value)
    padded[mask] = rows
    return padded
