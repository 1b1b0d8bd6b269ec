"""Graphs of different sizes in one batch without padding, and permutations of their nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import orbical as ob
from orbical._ragged import from_ragged, to_ragged

InputError = ob.errors.InputError
SIZES = (3, 1, 4)


def graphs():
    """Three graphs with random fields, one after the other."""
    generator = torch.Generator().manual_seed(0)
    pos = torch.randn(sum(SIZES), 3, generator=generator, dtype=torch.float64)
    return {
        "pos": pos,
        "numbers": torch.tensor([8, 1, 1, 2, 6, 1, 1, 1]),
        "ptr": torch.tensor([0, 3, 4, 8]),
        "edge_index": torch.tensor([[4, 0, 1, 5], [5, 1, 2, 7]]),
        "edge_attr": torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        "cell": torch.eye(3).expand(3, 3, 3) * torch.tensor([1.0, 2, 3])[:, None, None],
    }


def test_what_is_padded_is_what_was_given():
    given = graphs()
    padded = from_ragged(given)
    assert padded["mask"].sum(1).tolist() == [*SIZES]
    assert torch.equal(padded["pos"][2], given["pos"][4:])
    assert padded["numbers"].tolist() == [[8, 1, 1, 0], [2, 0, 0, 0], [6, 1, 1, 1]]
    assert padded["edge_index"].tolist() == [
        [[0, 1], [1, 2]],
        [[-1, -1], [-1, -1]],
        [[0, 1], [1, 3]],
    ]
    back = to_ragged(padded)
    assert back["batch"].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    for name in ("pos", "numbers", "ptr", "cell"):
        assert torch.equal(back[name], given[name])
    order = [1, 2, 0, 3]  # by graph
    assert torch.equal(back["edge_index"], given["edge_index"][:, order])
    assert torch.equal(back["edge_attr"], given["edge_attr"][order])
    by_index = {**given, "batch": back["batch"]}
    del by_index["ptr"]
    assert torch.equal(from_ragged(by_index)["pos"], padded["pos"])


class Pairs(torch.nn.Module):
    """Energy of pairs within graphs; forces, and stress, by differentiation."""

    def __init__(self):
        super().__init__()
        self.decay = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))

    def forward(self, batch):
        pos = batch["pos"].requires_grad_()
        numbers, graph, cell = batch["numbers"], batch["batch"], batch["cell"]
        assert len(pos) == len(numbers) == len(graph) == int(batch["ptr"][-1])
        assert (numbers > 0).all()  # no padding
        apart = (pos[:, None] - pos[None]).square().sum(-1)
        weight = (graph[:, None] == graph[None]) * numbers[:, None] * numbers[None]
        rows = (weight * torch.exp(-self.decay * apart)).sum(1)
        energy = rows.new_zeros(len(cell)).index_add(0, graph, rows)
        (slope,) = torch.autograd.grad(energy.sum(), pos)
        return {"energy": energy, "forces": -slope, "stress": cell @ cell.mT}


TASK = ob.tasks.Atoms(["energy", "forces", "stress"])


def scanned(model, data, group="rotations3d:3", task=TASK):
    return ob.scan(model, data, group=group, task=task, progress=False)


def given():
    return {name: graphs()[name] for name in ("pos", "numbers", "ptr", "cell")}


def test_one_batch_gives_what_the_graphs_give_one_by_one():
    whole = scanned(ob.predictors.RaggedPredictor(Pairs()), given())
    for number, (start, stop) in enumerate(zip([0, 3, 4], [3, 4, 8], strict=True)):
        one = {name: given()[name][start:stop] for name in ("pos", "numbers")}
        one |= {"ptr": [0, stop - start], "cell": given()["cell"][number : number + 1]}
        alone = scanned(ob.predictors.RaggedPredictor(Pairs()), one)
        for name in ("energy", "forces", "stress"):
            part = whole.data[name][0, number]
            if name == "forces":
                assert np.isnan(part[:, stop - start :]).all()
                part = part[:, : stop - start]
            np.testing.assert_allclose(part, alone.data[name][0, 0], rtol=1e-12, atol=1e-12)


class OnAttributes(Pairs):
    def forward(self, batch):
        assert batch.num_graphs == len(batch.cell)
        assert torch.equal(batch.z, batch.numbers)
        return super().forward(batch.to_dict())


def test_a_batch_of_pyg_gives_the_same():
    data = pytest.importorskip("torch_geometric.data")
    plain = scanned(ob.predictors.RaggedPredictor(Pairs()), given())
    model = ob.predictors.RaggedPredictor(OnAttributes(), pack=ob.predictors.to_pyg)
    ptr = [0, 3, 4, 8]
    each = [
        data.Data(
            pos=given()["pos"][start:stop],
            z=given()["numbers"][start:stop],
            cell=given()["cell"][row],
            y=torch.zeros(1),
        )
        for row, (start, stop) in enumerate(itertools.pairwise(ptr))
    ]
    for form in (each, data.Batch.from_data_list(each), given()):
        scan = scanned(model, form)
        for name in ("energy", "forces", "stress"):
            np.testing.assert_array_equal(scan.data[name], plain.data[name])


def test_the_truth_of_a_ragged_batch_is_ragged():
    forces = torch.randn(8, 3)
    task = ob.tasks.Atoms(["energy", "forces"])
    known = {"energy": torch.zeros(3), "forces": forces}
    inside = scanned(ob.predictors.RaggedPredictor(Pairs()), {**given(), **known}, task=task)
    beside = scanned(ob.predictors.RaggedPredictor(Pairs()), (given(), known), task=task)
    np.testing.assert_array_equal(inside.data["score"], beside.data["score"])
    found = inside.data["forces"][0, 2, 0].values
    expected = np.sqrt(np.mean((found - forces[4:].numpy()) ** 2))
    assert float(inside.data["score"][0, 2, 0]) == pytest.approx(expected, rel=1e-5)


class ByPlace(Pairs):
    """Deliberately broken: the energy depends on the order of the nodes."""

    def forward(self, batch):
        place = torch.arange(len(batch["batch"])) - batch["ptr"][batch["batch"]]
        found = super().forward(batch)
        return {**found, "forces": found["forces"] * (1 + 0.1 * place[:, None])}


def test_forces_follow_their_nodes_in_graphs_of_different_sizes():
    task = ob.tasks.Atoms(["energy", "forces"])
    models = {name: ob.predictors.RaggedPredictor(make()) for name, make in
              (("sound", Pairs), ("by place", ByPlace))}  # fmt: skip
    scan = ob.scan(models, given(), group="permutations:4:6", task=task, progress=False)
    worst = scan.data["forces_vs_consensus"].max("element").values
    assert (worst[0] < 1e-7).all()
    assert worst[1, 0] > 1e-3
    assert worst[1, 2] > 1e-3
    assert worst[1, 1] < 1e-7  # one node has one order
    rows = scan.group.parts["rows"]
    still = scan.data["consensus_forces"].sel(model="sound")[2].values
    moved = scan.data["forces"].sel(model="sound")[2].values
    np.testing.assert_allclose(moved, still[rows], atol=1e-6)
    with pytest.raises(InputError, match=r"expected 5 rows .* got 4; pass permutations:4$"):
        ob.scan(models, given(), group="permutations:5:6", task=task, progress=False)


def messages(batch):
    """Sum the features of neighbors along edges: an answer for each node."""
    source, target = batch["edge_index"]
    sums = torch.zeros_like(batch["pos"])
    return sums.index_add(0, target, batch["pos"][source] * batch["edge_attr"])


@pytest.mark.parametrize("edges", [ob.actions.Edges(), ob.actions.Trivial()])
def test_permutations_rename_the_ends_of_edges(edges):
    """With the wrong action the edges would join other nodes, and a sound model would fail."""
    fields = ("pos", "edge_index", "edge_attr", "mask")
    task = ob.tasks.Regression(
        input=dict(zip(fields, (ob.actions.Points(), edges, ob.actions.Trivial(),
                                ob.actions.Rows()), strict=True)),
        representation="vector", per_point=True,
    )  # fmt: skip
    data = {name: from_ragged(graphs())[name] for name in fields}
    model = ob.predictors.RaggedPredictor(messages)
    check = ob.testing.equivariance_error(
        model, data, group="permutations:4:8*rotations3d:2", task=task
    )
    assert (check.largest < 1e-9) == isinstance(edges, ob.actions.Edges)


def test_matrices_of_pairs_are_reordered_on_both_sides():
    matrix = torch.rand(2, 4, 4, 5)
    group = ob.groups.permutations(4, 6)
    moved = ob.actions.Adjacency().apply(group, matrix)
    for place, rows in enumerate(group.parts["rows"]):
        assert torch.equal(moved[place], matrix[:, rows][:, :, rows])
    with pytest.raises(InputError, match="expected square matrices"):
        ob.actions.Adjacency().check(group, torch.rand(2, 4, 3))
    with pytest.raises(InputError, match="between the 4 nodes"):
        ob.actions.Edges().check(group, torch.tensor([[[0, 4]]]))
    with pytest.raises(InputError, match="as node indices"):
        ob.actions.Edges().check(group, torch.rand(1, 1, 2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ptr": [0, 4, 3, 8]}, "ptr .* that starts at 0 and increases"),
        ({"ptr": [0, 3, 4]}, "with a row for each of 4 nodes, got shape"),
        ({"ptr": None, "batch": [0, 1, 0, 1, 2, 2, 2, 2]}, "batch sorted"),
        ({"ptr": None, "batch": [0, 0, 0, 2, 2, 2, 2, 2]}, "batch sorted"),
        ({"ptr": None, "batch": [[0] * 8]}, "the graph of each node"),
        ({"cell": np.zeros((2, 3, 3))}, "cell with a row for each of 3 graphs"),
        ({"pos": np.full((8, 3), np.nan)}, "finite positions"),
        ({"numbers": [8, 1, 1, 2, 6, 1, 1]}, "numbers with a row for each of 8 nodes"),
        ({"charge": np.zeros(3)}, "unknown name 'charge'"),
    ],
)
def test_batches_that_cannot_be_split_are_refused(changed, message):
    batch = {name: field for name, field in {**given(), **changed}.items() if field is not None}
    with pytest.raises(InputError, match=message):
        scanned(ob.predictors.RaggedPredictor(Pairs()), batch)


def test_edges_between_graphs_and_other_mistakes_are_refused():
    with pytest.raises(InputError, match="got one between two of them"):
        from_ragged({**graphs(), "edge_index": [[0, 1, 2, 3], [1, 2, 3, 2]]})
    with pytest.raises(InputError, match="of nodes below 8"):
        from_ragged({**graphs(), "edge_index": [[0, 1, 2, 8], [1, 2, 2, 2]]})
    with pytest.raises(InputError, match="pack: expected a function"):
        ob.predictors.RaggedPredictor(Pairs(), pack="pyg")
    with pytest.raises(InputError, match="expected graphs, a dictionary of fields"):
        ob.predictors.RaggedPredictor(Pairs())(torch.zeros(2, 3))
    with pytest.raises(InputError, match="name it with nodes="):
        to_ragged({"points": torch.zeros(2, 4, 3)})
