"""Several outputs of one model, each of which moves in its own way: a pose and an energy."""

from __future__ import annotations

import pytest
import torch

import orbical as ob

FORMS = {"center": "position", "axis": "vector", "energy": "trivial"}


def clouds() -> torch.Tensor:
    return torch.randn(10, 9, 3, generator=torch.Generator().manual_seed(0))


def pose(points: torch.Tensor) -> dict[str, torch.Tensor]:
    center = points.mean(1)
    return {
        "center": center,
        "axis": points[:, 1] - points[:, 0],
        "energy": (points - center[:, None]).square().sum((1, 2)),
    }


def task(**settings) -> ob.tasks.Mixed:
    return ob.tasks.Mixed(ob.actions.Points(), FORMS, units={"center": "Å"}, **settings)


def test_each_output_moves_in_its_own_way():
    x = clouds()
    scan = ob.scan(pose, (x, pose(x)), group="se3:12:2", task=task(), progress=False)
    for name in FORMS:
        assert float(scan.data[f"gap_{name}"].max()) < 1e-3
        assert float(scan.data[f"error_{name}"].max()) < 1e-3
    assert scan.data["error_center"].attrs["units"] == "Å"
    ob.testing.assert_equivariant(pose, x, group="se3:12:2", task=task())


def test_an_error_is_that_of_its_output_alone():
    x = clouds()

    def wrong(points):
        good = pose(points)
        return {**good, "axis": good["axis"] + torch.tensor([2.0, 0.0, 0.0])}

    scan = ob.scan(wrong, (x, pose(x)), group="se3:12:2", task=task(), progress=False)
    assert scan.data["error_axis"].values == pytest.approx(2.0, abs=1e-4)
    assert float(scan.data["error_center"].max()) < 1e-4
    assert float(scan.data["score"].max()) < 1e-4  # that of the first
    assert float(scan.data["gap_axis"].min()) > 0.5
    # By hand: the un-transformed offset is turned back by each element.
    turns = torch.as_tensor(scan.group.linear("space"))
    home = turns.transpose(1, 2) @ torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64)
    gap = (home - home.mean(0)).square().sum(-1).mean().sqrt()
    assert scan.data["gap_axis"].values == pytest.approx(float(gap), abs=1e-4)


def test_a_stored_scan_has_its_task_and_text_makes_one(tmp_path):
    x = clouds()
    ob.scan(pose, x, group="se3:4", task=task(), out=tmp_path / "m.zarr", progress=False)
    restored = ob.tasks.Task.from_record(ob.load(tmp_path / "m.zarr").record.to_json()["task"])
    assert isinstance(restored, ob.tasks.Mixed)
    assert [*restored.forms] == [*FORMS]
    own = ob.tasks.Mixed(representation={"center": ob.actions.Position(), "energy": "trivial"},
                         sizes={"center": 3})  # fmt: skip
    assert ob.tasks.Task.from_record(own.describe()).describe() == own.describe()
    text = ob.tasks.Mixed(representation="center=position, energy=trivial")
    assert text.forms == {"center": "position", "energy": "trivial"}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (lambda x: {"center": x.mean(1)}, "expected a dictionary of center, axis, energy"),
        (lambda x: x.mean(1), "expected a dictionary"),
        (lambda x: {**pose(x), "axis": x[:, 0, :2]}, r"axis of shape \[sample, 3\]"),
    ],
)
def test_other_outputs_are_refused(outputs, message):
    with pytest.raises(ob.errors.ModelError, match=message):
        ob.scan(outputs, clouds(), group="se3:4", task=task(), progress=False)


def test_arguments_are_checked():
    with pytest.raises(ob.errors.InputError, match="an output such as"):
        ob.tasks.Mixed()
    with pytest.raises(ob.errors.InputError, match="unknown name 'size'"):
        ob.tasks.Mixed(representation=FORMS, sizes={"size": 2})
    with pytest.raises(ob.errors.InputError, match=r"use orbical\.tasks\.Mixed"):
        ob.tasks.Regression(representation=FORMS)


def test_an_output_a_field_or_a_column_may_be_called_action():
    task = ob.tasks.Mixed(representation={"action": "vector"}, sizes={"action": 3},
                          units={"action": "m"})  # fmt: skip
    assert ob.tasks.Task.from_record(task.describe()).describe() == task.describe()
    columns = ob.actions.Columns(["action"], ["category"], {"action": ["left", "right"]})
    for action in (columns, ob.actions.as_action({"action": ob.actions.Rows()})):
        described = action.describe()
        assert ob.actions.Action.from_record(described).describe() == described
