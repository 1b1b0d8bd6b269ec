"""A scan gives answers, never orbits; a model that is not invariant is bounded by its average."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.bounds import OrbitTable, classification, match_orbits
from orbical.errors import InputError
from orbical.store import scan_arrays


class Flat(torch.nn.Module):
    """A classifier that is not invariant."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(36, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * self.layer(x.flatten(1))


class Mean(torch.nn.Module):
    """A classifier of the mean brightness: invariant under any move of pixels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        brightness = x.double().mean((1, 2, 3))
        return torch.stack([brightness * 4, brightness * 0 + 2, 3 - 4 * brightness], 1)


@pytest.fixture(scope="module")
def world() -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Pictures, some of them turned copies of others, with labels that disagree at times."""
    rng = np.random.default_rng(0)
    pictures = rng.random((10, 1, 6, 6))
    which = rng.integers(0, 10, 40)
    turned = [
        np.rot90(pictures[w], k, (1, 2)) for w, k in zip(which, rng.integers(0, 4, 40), strict=True)
    ]
    x = torch.from_numpy(np.stack(turned).astype(np.float32))
    return x, torch.from_numpy(rng.integers(0, 3, 40)), which


def scan_of(model: torch.nn.Module, world: tuple, **options: object) -> object:
    torch.manual_seed(0)
    x, y, _ = world
    return ob.scan(
        {"only": model},
        (x, y),
        group=ob.groups.cyclic(4),
        task=ob.tasks.Classification(),
        progress=False,
        **options,
    )


def test_a_scan_alone_is_refused_with_the_reason(world: tuple) -> None:
    with pytest.raises(InputError, match="every ceiling would be 1"):
        OrbitTable.from_scan(scan_of(Mean(), world))


def test_an_invariant_model_is_bounded_as_it_is(world: tuple) -> None:
    x, _, which = world
    scan = scan_of(Mean(), world)
    orbit = match_orbits(x.numpy(), scan.group, action=ob.actions.Images()).orbit
    assert ((orbit[:, None] == orbit) == (which[:, None] == which)).all()
    table = OrbitTable.from_scan(scan, orbit=orbit)
    assert not table.averaged
    assert table.invariance_gap < 1e-5
    assert table.mass.shape[1] == 3
    confidence, correct = (scan.data[name].values[0, :, 0] for name in ("confidence", "correct"))
    bounds = classification(table, bins=15)
    ece = float(ob.calibration.ece(confidence, correct, bins=15))
    assert float(bounds["ece"]) == pytest.approx(ece, abs=1e-4)
    assert bounds.about["invariance_gap"] == table.invariance_gap
    assert float(bounds["forced_ece"]) <= ece + 1e-4 <= float(bounds["sharp_upper"]) + 2e-4
    assert table.accuracy <= table.accuracy_ceiling < 1


@pytest.mark.parametrize("options", [{"keep": "probabilities"}, {}])
def test_a_model_that_is_not_invariant_is_bounded_by_its_orbit_average(
    world: tuple, options: dict
) -> None:
    which = world[2]
    scan = scan_of(Flat(), world, keep="probabilities")
    kept = scan.data if options else scan.data.drop_vars("probabilities")
    table = OrbitTable.from_scan(kept, orbit=which)
    assert table.averaged
    assert table.invariance_gap > 0.01
    assert classification(table).about["averaged"]
    mean = scan.data["probabilities"].values[0].mean(1)
    for row, picture in enumerate(np.unique(which)):
        expected = mean[which == picture].mean(0)
        assert table.confidence[row] == pytest.approx(expected.max(), abs=1e-5)
        assert table.predicted[row] == expected.argmax()


class Leaning(Flat):
    """A classifier that always says 0, with a confidence that is not invariant."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.tensor([4.0, 0.0, 0.0])


def test_a_confidence_that_varies_along_the_orbit_is_averaged_too(world: tuple) -> None:
    scan = scan_of(Leaning(), world)
    assert (scan.data["predicted"].values == 0).all()
    table = OrbitTable.from_scan(scan, orbit=world[2])
    assert table.averaged
    assert table.invariance_gap > 1e-3
    assert not OrbitTable.from_scan(scan, orbit=world[2], limit=1.0).averaged


def test_orbits_may_be_stored_with_the_scan(world: tuple) -> None:
    data = scan_of(Mean(), world).data.assign_coords(orbit=("sample", world[2]))
    assert len(OrbitTable.from_scan(data).mass) == len(np.unique(world[2]))


def test_scans_that_cannot_serve_are_refused(world: tuple) -> None:
    data = scan_of(Mean(), world).data
    with pytest.raises(InputError, match="model: unknown name 'onli'; did you mean 'only'"):
        OrbitTable.from_scan(data, "onli", orbit=world[2])
    with pytest.raises(InputError, match="orbit: expected one id for each of 40 samples"):
        OrbitTable.from_scan(data, orbit=[0, 1])
    with pytest.raises(InputError, match="scan: expected labels"):
        OrbitTable.from_scan(data.drop_vars("label"), orbit=world[2])
    with pytest.raises(InputError, match="scan: expected the scan of a classification task"):
        OrbitTable.from_scan(data.drop_vars("confidence"), orbit=world[2])
    with pytest.raises(InputError, match="scan: expected a finished scan"):
        OrbitTable.from_scan(data.assign(confidence=data["confidence"] * np.nan), orbit=world[2])


def test_one_of_several_models_must_be_named(world: tuple) -> None:
    x, y, which = world
    scan = ob.scan(
        {"a": Mean(), "b": Mean()},
        (x, y),
        group=ob.groups.cyclic(4),
        task=ob.tasks.Classification(),
        progress=False,
    )
    with pytest.raises(InputError, match=r"model: expected one of a, b, got None"):
        OrbitTable.from_scan(scan, orbit=which)
    assert OrbitTable.from_scan(scan, "b", orbit=which).predicted is not None


@pytest.mark.parametrize("elements", [3, 7, 11, 49])
def test_an_invariant_model_breaks_no_symmetry_not_even_by_rounding(elements: int) -> None:
    """It used to break "-0.0%"."""
    x = torch.rand(5, 1, 4, 4)
    scan = ob.scan(
        Mean(), (x, torch.zeros(5, dtype=torch.long)), group=f"cyclic:{elements}",
        task="classification", progress=False,
    )  # fmt: skip
    scan.arrays["predicted"][:] = 0
    found = OrbitTable.from_scan(scan, orbit=np.arange(5)).broken_along_orbits
    assert 0 <= found < 1e-15


def test_a_scan_is_read_in_blocks_and_says_the_same(
    world: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = scan_of(Flat(), world, keep="probabilities", chunk=4)
    whole = OrbitTable.from_scan(scan, orbit=world[2])
    read: list[int] = []
    usual = scan_arrays.StoredArrays.read

    def counted(self, name, rows=slice(None), model=None, keep=True):
        found = usual(self, name, rows, model, keep)
        if "element" in self.dims[name]:
            read.append(len(found))
        return found

    monkeypatch.setattr(scan_arrays.StoredArrays, "read", counted)
    monkeypatch.setattr(scan_arrays, "BLOCK_BYTES", 1)
    again = OrbitTable.from_scan(scan, orbit=world[2])
    assert max(read) == 4  # never all 40 samples at all elements
    for name in ("confidence", "predicted", "invariance_gap", "broken_along_orbits"):
        np.testing.assert_allclose(getattr(again, name), getattr(whole, name))
    np.testing.assert_allclose(again.outputs.mass, whole.outputs.mass)


@pytest.mark.parametrize(
    "statement",
    [
        ob.bounds.best_equivariant,
        ob.bounds.certified_ceiling,
        ob.bounds.classification,
        lambda scan: ob.bounds.forced_overconfidence(scan, [0.5]),
        ob.bounds.nll_optimal_bleed,
        ob.bounds.nll_optimal_variance,
        ob.bounds.regression,
        ob.bounds.worst_predictions,
    ],
)
def test_a_scan_in_place_of_a_table_is_told_how_it_becomes_one(world: tuple, statement) -> None:
    with pytest.raises(InputError, match=r"table: expected .*Table.*, got Scan; make one with "):
        statement(scan_of(Mean(), world))


def test_a_scan_in_place_of_arrays_is_refused(world: tuple) -> None:
    scan = scan_of(Mean(), world)
    with pytest.raises(InputError, match="invariants"):
        ob.bounds.match_invariants(scan, tolerance=1e-9)
    assert not ob.conformal.holds_values(scan)
