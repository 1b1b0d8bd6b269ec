"""What a symmetry says of models that do not have it: the price they pay, and its floor."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from equivariant_worlds import world as value_world

import orbical as ob
from orbical import groups
from orbical.bounds import (
    OrbitTable,
    ValueTable,
    best_equivariant,
    classification,
    match_orbits,
    regression,
)
from orbical.errors import InputError

ROUNDING = 1e-9


def random_samples(rng: np.random.Generator) -> dict[str, np.ndarray]:
    size, labels = int(rng.integers(1, 30)), int(rng.integers(2, 5))
    orbit = rng.integers(0, 6, size)
    predicted = rng.integers(0, labels, 6)[orbit]
    moved = rng.random(size) < rng.random()
    predicted = np.where(moved, rng.integers(0, labels, size), predicted)
    return {
        "orbit": orbit,
        "label": rng.integers(0, labels, size),
        "labels": labels,
        "mass": rng.dirichlet(np.ones(size)),
        "predicted": predicted,
        "confidence": rng.random(size),
    }


def check_every_model_pays(worlds: int) -> None:
    for seed in range(worlds):
        given = random_samples(np.random.default_rng(seed))
        bounds = classification(OrbitTable.from_labels(**given))
        mass, right = given["mass"], given["predicted"] == given["label"]
        accuracy, broken, sharp, ceiling = mass @ right, 1.0, 0.0, 0.0
        for orbit in set(given["orbit"].tolist()):
            here = given["orbit"] == orbit
            answers, truth = (
                [mass[here & (given[name] == c)].sum() for c in range(given["labels"])]
                for name in ("predicted", "label")
            )
            broken -= max(answers)
            ceiling += max(truth)
            sharp += sum(map(min, answers, truth))
        assert float(bounds["broken_symmetry"]) == pytest.approx(broken, abs=ROUNDING)
        assert float(bounds["any_accuracy_sharp"]) == pytest.approx(sharp)
        assert accuracy <= sharp + ROUNDING
        assert sharp <= float(bounds["any_accuracy"]) + ROUNDING
        assert float(bounds["any_accuracy"]) == pytest.approx(min(1, ceiling + broken))
        assert float(bounds["broken_at_least"]) <= broken + ROUNDING
        for bins in (1, 5, 1000):
            cells = np.minimum((given["confidence"] * bins).astype(int), bins - 1)
            gap = np.bincount(cells, weights=mass * (right - given["confidence"]))
            assert float(bounds["any_ece"]) <= np.abs(gap).sum() + ROUNDING


def test_every_model_pays_the_price_of_symmetry() -> None:
    check_every_model_pays(300)


@pytest.mark.slow
def test_every_model_pays_the_price_of_symmetry_in_many_worlds() -> None:
    check_every_model_pays(5_000)


def test_the_cap_is_attained_by_breaking_the_symmetry_where_it_pays() -> None:
    orbit, label = np.repeat([0, 1], 10), np.repeat([0, 1, 0, 1], [7, 3, 6, 4])
    table = OrbitTable.from_labels(orbit, label, predicted=np.where(np.arange(20) < 10, label, 0))
    bounds = classification(table)
    assert table.accuracy_ceiling == pytest.approx(0.65)
    assert float(bounds["broken_symmetry"]) == pytest.approx(0.15)
    assert table.accuracy == float(bounds["any_accuracy"]) == pytest.approx(0.8)
    assert float(bounds["broken_at_least"]) == pytest.approx(0.15)


def test_an_invariant_model_breaks_nothing() -> None:
    table = OrbitTable([[0.3, 0.2], [0.5, 0.0]], confidence=[0.9, 0.7], predicted=[0, 0])
    bounds = classification(table)
    assert bounds["broken_symmetry"].value == bounds["broken_at_least"].value == 0
    assert float(bounds["any_accuracy"]) == table.accuracy_ceiling
    assert float(bounds["any_ece"]) == pytest.approx(0.8 - 0.8)


def test_outputs_that_differ_within_an_orbit_leave_only_what_holds_for_any_model() -> None:
    table = OrbitTable.from_labels(
        [0, 0, 1], [0, 1, 1], predicted=[0, 1, 1], confidence=[0.9, 0.8, 1.0]
    )
    assert table.predicted is None
    assert table.accuracy == 1
    bounds = classification(table)
    for name in ("ece", "sharp_upper", "thm4"):
        assert "not invariant" in bounds[name].reason
    assert bounds["broken_symmetry"].value == pytest.approx(1 / 3)
    assert not classification(OrbitTable([[0.5, 0.5]]))["any_accuracy"].applies


class Flat(torch.nn.Module):
    """A classifier that is not invariant."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(36, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 5 * self.layer(x.flatten(1))


def test_a_scanned_model_is_told_its_price_beside_the_measured_gap() -> None:
    rng = np.random.default_rng(0)
    which, turns = rng.integers(0, 6, 40), rng.integers(0, 4, 40)
    pictures = rng.random((6, 1, 6, 6)).astype(np.float32)
    x = np.stack([np.rot90(pictures[w], k, (1, 2)) for w, k in zip(which, turns, strict=True)])
    scan = ob.scan(
        {"flat": Flat()},
        (torch.from_numpy(x), Flat()(torch.from_numpy(x)).argmax(1)),  # all of them right
        group="cyclic:4",
        task="classification",
        progress=False,
    )
    table = OrbitTable.from_scan(scan, orbit=which)
    bounds = classification(table)
    predicted, label = (scan.data[name].values for name in ("predicted", "label"))
    own = predicted[0, :, 0]
    assert table.averaged
    assert bounds.about["model_accuracy"] == pytest.approx((own == label).mean())
    modes = sum(np.bincount(own[which == w]).max() for w in np.unique(which))
    assert float(bounds["broken_symmetry"]) == pytest.approx(1 - modes / 40)
    along = np.mean([1 - np.bincount(row).max() / 4 for row in predicted[0]])
    assert bounds.about["broken_along_orbits"] == pytest.approx(along)
    assert 0 < float(bounds["broken_at_least"]) <= float(bounds["broken_symmetry"]) + ROUNDING


@pytest.mark.parametrize("name", ["C2", "C4", "S3", "SO(2)"])
def test_no_regressor_beats_the_floor_by_more_than_its_gap(name: str) -> None:
    for seed in range(25):
        table, matrices = value_world(name, seed)
        rng = np.random.default_rng(seed)
        fitted = best_equivariant(table, matrices)
        mean = fitted + rng.random() * (table.value - fitted) + rng.normal(size=fitted.shape) * 0.1
        model = ValueTable(
            table.orbit, table.value, table.mass, mean, point=table.point, element=table.element
        )
        bounds = regression(model, matrices)
        rmse = np.sqrt(table.mass @ np.square(mean - table.value).sum(1))
        assert float(bounds["any_rmse"]) <= rmse + ROUNDING
        # The gap is a distance: no equivariant function is nearer.
        other = best_equivariant(
            ValueTable(table.orbit, mean, table.mass, point=table.point, element=table.element),
            matrices,
        )
        gap = np.sqrt(table.mass @ np.square(mean - other).sum(1))
        assert float(bounds["equivariance_gap"]) == pytest.approx(gap, abs=1e-7)
        assert float(bounds["gap_at_least"]) <= gap + ROUNDING


def test_the_floor_of_any_regressor_is_attained() -> None:
    """Between the best equivariant fit and the truth the error falls just as the gap grows."""
    table, matrices = value_world("C4", 3)
    fitted = best_equivariant(table, matrices)
    for part in (0.0, 0.3, 1.0):
        mean = fitted + part * (table.value - fitted)
        model = ValueTable(
            table.orbit, table.value, table.mass, mean, point=table.point, element=table.element
        )
        bounds = regression(model, matrices)
        assert np.sqrt(float(bounds["error"])) == pytest.approx(float(bounds["any_rmse"]), abs=1e-9)


def test_predictions_that_are_not_equivariant_lose_only_the_bounds_that_need_it() -> None:
    for given in (
        {"mean": [1.0, 2.0], "variance": [1.0, 1.0]},
        {"mean": [1.5, 1.5], "variance": [1.0, 2.0]},
    ):
        bounds = regression(ValueTable([0, 0], [1.0, 2.0], **given))
        assert "not equivariant" in bounds["vector_lower"].reason
        for name in ("thm2", "gence", "thm7", "any_rmse"):
            assert bounds[name].applies
    assert bounds["equivariance_gap"].value == 0


def scan_of_vectors(shift: float, uncertainty: str | None) -> tuple[torch.Tensor, object]:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(6, 1, 2))
    x = torch.from_numpy(np.concatenate([half, -half]).astype(np.float32))

    def model(x: torch.Tensor) -> object:
        mean, one = 2 * x[:, 0] + torch.tensor([shift, 0.0]), torch.ones(len(x), 1)
        whole = torch.diag_embed(torch.ones(len(x), 2))
        return {None: mean, "variance": (mean, one), "covariance": (mean, whole)}[uncertainty]

    task = ob.tasks.Regression(ob.actions.Points(), "vector", uncertainty=uncertainty)
    return x, ob.scan({"m": model}, (x, x[:, 0]), group="cyclic:2", task=task, progress=False)


@pytest.mark.parametrize("uncertainty", [None, "variance", "covariance"])
def test_a_scan_of_a_regressor_becomes_a_table(uncertainty: str | None) -> None:
    for shift in (0.0, 0.5):
        x, scan = scan_of_vectors(shift, uncertainty)
        group = groups.cyclic(2)
        matched = ValueTable.from_data(x[:, 0], x[:, 0], group)
        table = ValueTable.from_scan(scan, "m", orbit=matched)
        bounds = regression(table, group.linear("plane"))
        assert float(bounds["equivariance_gap"]) == pytest.approx(shift, abs=1e-6)
        assert table.invariance_gap == pytest.approx(shift, abs=1e-6)
        assert bounds.about["invariance_gap"] == table.invariance_gap
        assert table.form == {None: None, "variance": "scalar", "covariance": "full"}[uncertainty]
        ids = ValueTable.from_scan(scan, orbit=match_orbits(x[:, 0], group))
        floor = regression(ids)["thm2"].value
        assert floor == pytest.approx(float(x.square().sum(-1).mean()), rel=1e-5)
        joined = ValueTable.from_scan(scan, orbit=match_orbits(x[:, 0], group, tolerance=0.1))
        assert joined.tolerance == 0.1


def test_scans_that_cannot_serve_as_tables_of_values_are_refused() -> None:
    _, scan = scan_of_vectors(0.0, None)
    with pytest.raises(InputError, match="got no mean"):
        ValueTable.from_scan(scan.data.drop_vars("mean"), orbit=np.zeros(12))
    with pytest.raises(InputError, match="scan: expected a finished scan"):
        ValueTable.from_scan(scan.data.assign(mean=scan.data["mean"] * np.nan), orbit=np.zeros(12))
