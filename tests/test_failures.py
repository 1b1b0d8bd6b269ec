"""Failures that are planted are found; where none is planted, none is confirmed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import xarray as xr
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import _register, app
from orbical.cli.worst_case import _print_worst_case_means as print_worst_case
from orbical.errors import InputError


def world(
    samples: int,
    seed: int,
    rate: float = 0.05,
    planted: tuple[int, int, int, float] | None = None,
    together: float = 0.5,
    group: str = "rotations:24",
) -> xr.Dataset:
    """Predictions that are wrong with a probability, of a label between two elements with another.

    `together` is the share of samples whose predictions are wrong all along the orbit or nowhere.
    """
    rng = np.random.default_rng(seed)
    elements = len(ob.groups.parse(group))
    label = np.arange(samples) % 5
    chance = np.full((samples, elements), rate)
    if planted is not None:
        value, first, last, planted_rate = planted
        chance[label == value, first : last + 1] = planted_rate
    alike = rng.random((samples, 1)) < together
    drawn = np.where(alike, rng.random((samples, 1)), rng.random((samples, elements)))
    dims = ("model", "sample", "element")
    share = {"units": "share", "higher_is_better": 1}
    confidence = rng.uniform(0.7, 1.0, (1, samples, elements)).astype(np.float32)
    return xr.Dataset(
        {
            "correct": (dims, (drawn >= chance)[None], share),
            "confidence": (dims, confidence, share),
            "score": (dims, confidence, share),
            "score_vs_consensus": (dims, confidence, share),
        },
        coords={
            "model": ["net"],
            "label": ("sample", label, {"meaning": "truth"}),
            "age": ("sample", rng.random(samples), {"meaning": "metadata"}),
        },
        attrs={"group": group, "task": "classification", "score": "probability"},
    )


@pytest.mark.parametrize("together", [0.0, 1.0])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_nothing_is_confirmed_where_nothing_is_planted(rate, together):
    confirmed = [
        len(ob.nero.failures(world(120, seed, rate, together=together, group="rotations:12")))
        for seed in range(12)
    ]
    assert sum(map(bool, confirmed)) <= 2  # 12 draws at a size of 5 %: three are seen in 2 %


def test_a_planted_failure_is_found_first_with_its_arc_and_its_sentence():
    found = ob.nero.failures(world(1000, 0, planted=(3, 10, 14, 0.8)))
    first = found[0]
    assert (first.column, first.value, first.elements) == ("label", "3", (10, 11, 12, 13, 14))
    assert first.where == "between 150° and 210°"
    assert first.low < first.harm
    assert first.others < 0.1 > first.elsewhere
    data = world(1000, 0, planted=(3, 10, 14, 0.8))
    assert first.samples < (data["label"] == 3).sum()  # those that were not searched
    assert len(found.samples_of(first)) == 200
    wrong = f"{first.wrong:.0%}".replace("%", " %")
    assert f"label 3 between 150° and 210°: {wrong} wrong at 85 % mean" in first.sentence


def test_power_at_forty_samples_of_the_label():
    found = [ob.nero.failures(world(200, seed, planted=(3, 10, 14, 0.8))) for seed in range(10)]
    hits = [bool(one) and (one[0].column, one[0].value) == ("label", "3") for one in found]
    assert np.mean(hits) >= 0.7


def test_a_failure_of_all_samples_is_not_repeated_for_each_label():
    data = world(1000, 1)
    wrong = data["correct"].values
    wrong[:, :, 6:12] &= np.random.default_rng(0).random((1, 1000, 6)) < 0.3
    found = ob.nero.failures(data)
    assert [one.column for one in found] == [""]
    assert found[0].elements == tuple(range(6, 12))
    assert np.isnan(found[0].others)


def test_nothing_is_judged_twice_once_everything_is_explained():
    data = world(400, seed=1, rate=0.3, planted=(4, 1, 3, 0.9)).drop_vars("age")
    found = ob.nero.failures(data, most=40)
    judged = [(one.column, one.value, one.elements) for one in (*found.found, *found.open)]
    assert len(judged) == len(set(judged)) < 40


def test_a_label_that_fails_everywhere_is_compared_with_others():
    found = ob.nero.failures(world(1000, 2, planted=(1, 0, 23, 0.6)))
    assert found[0].where == "at all positions"
    assert np.isnan(found[0].elsewhere)
    assert found[0].others < 0.1
    assert "other samples there" in found[0].sentence
    assert "elsewhere" not in found[0].sentence


def test_what_all_samples_suffer_is_judged_however_much_their_labels_differ():
    """Ten labels too small to be confirmed took all ten places, and nothing was found."""
    data = world(300, 1, group="rotations:12")
    labels = np.arange(300) % 15
    chance = np.where(labels % 2 == 0, 0.95, 0.25)[:, None] * np.where(np.arange(12) > 0, 1, 0.3)
    data["correct"][0] = np.random.default_rng(1).random((300, 12)) >= chance
    data = data.assign_coords(label=("sample", labels, {"meaning": "truth"}))
    (found,) = ob.nero.failures(data, by="label")
    assert (found.column, found.elements) == ("", tuple(range(1, 12)))


def test_arcs_go_past_zero():
    data = world(1000, 3)
    late = np.r_[22:24, 0:3]
    data["correct"][0, data["label"].values == 2, late] = False
    assert ob.nero.failures(data)[0].elements == (22, 23, 0, 1, 2)


def test_elements_without_an_order_are_sets():
    data = world(600, 4, group="dihedral:4")
    data["correct"][0, data["label"].values == 2, [1, 6]] = False
    first = ob.nero.failures(data)[0]
    assert first.elements == (1, 6)
    assert first.where.startswith("at angle")


def test_numbers_are_cut_into_quarters_and_columns_can_be_given():
    data = world(800, 5)
    old = data["age"].values > np.quantile(data["age"].values, 0.75)
    data["correct"][0, old, :6] = False
    assert ob.nero.failures(data)[0].column == "age"
    own = ob.nero.failures(data, by="old", columns={"old": old})
    assert (own[0].column, own[0].value) == ("old", "True")


def test_regression_is_judged_by_its_error():
    data = world(600, 6).drop_vars(["correct", "confidence"])
    error = np.random.default_rng(6).gamma(2.0, 1.0, data["score"].shape).astype(np.float32)
    error[0, data["label"].values == 2, 4:8] += 4
    for name in ("score", "score_vs_consensus"):
        data[name] = (("model", "sample", "element"), error, {"higher_is_better": 0})
    first = ob.nero.failures(data)[0]
    assert (first.value, first.elements) == ("2", (4, 5, 6, 7))
    assert first.sentence.startswith("label 2 between 60° and 105°: error 5.9")


def test_too_few_known_values_confirm_nothing():
    data = world(300, 3).drop_vars(["correct", "confidence"])
    error = np.random.default_rng(3).gamma(2.0, 1.0, data["score"].shape).astype(np.float32)
    some = np.flatnonzero(data["label"].values == 1)
    error[0, some[2:]] = np.nan
    error[0, some[:2]] *= 50
    for name in ("score", "score_vs_consensus"):
        data[name] = (("model", "sample", "element"), error, {"higher_is_better": 0})
    for seed in range(6):
        assert not [one for one in ob.nero.failures(data, seed=seed) if not one.low > one.others]


def test_wrong_columns_are_refused():
    data = world(100, 0)
    with pytest.raises(InputError, match="by"):
        ob.nero.failures(data, by="camera")
    with pytest.raises(InputError, match="100 values of 'a'"):
        ob.nero.failures(data, columns={"a": [1, 2]})
    with pytest.raises(InputError, match="keep='inputs'"):
        ob.nero.failures(data, clusters=3)
    with pytest.raises(InputError, match="16 samples at least"):
        ob.nero.failures(data.isel(sample=slice(10)))


def test_the_command_prints_the_same_as_python(tmp_path):
    images, _ = ob.datasets.digits()

    def upper_half(images):
        halves = images[..., :4, :].sum((1, 2, 3)), images[..., 4:, :].sum((1, 2, 3))
        return 9 * torch.stack(halves, 1)

    data = (images[:300], upper_half(images[:300]).argmax(1))
    scan = ob.scan(
        upper_half, data, group="rotations:12", task="classification", keep="inputs",
        out=tmp_path / "run.zarr", progress=False,
    )  # fmt: skip
    _register()
    printed = CliRunner().invoke(app, ["failures", str(scan.path), "--clusters", "3", "--json"])
    found = ob.nero.failures(scan, clusters=3)
    assert json.loads(printed.output)["found"][0]["sentence"] == found[0].sentence
    assert found[0].sentence in CliRunner().invoke(app, ["failures", str(scan.path)]).output
    table = CliRunner().invoke(app, ["failures", str(scan.path), "--markdown"]).output
    assert table.startswith("| failure | share wrong")


def test_rounding_of_forces_is_no_failure():
    atoms = pytest.importorskip("ase.build")
    calculators = pytest.importorskip("ase.calculators.emt")
    molecules = [atoms.molecule("H2O") for _ in range(20)]
    for place, one in enumerate(molecules):
        one.rattle(0.05, seed=place)
    scan = ob.scan(
        calculators.EMT(), molecules, group="rotations3d:8", task="atoms", progress=False
    )
    found = ob.nero.failures(scan)
    assert (len(found), len(found.open)) == (0, 0)


@pytest.fixture(scope="module")
def oriented():
    """Molecules whose energy knows where x is, scanned in both quantities; the forces are zero."""
    random = torch.Generator().manual_seed(0)
    pos = torch.rand(20, 3, 3, generator=random, dtype=torch.float64)
    data = {"pos": pos, "numbers": torch.tensor([[8, 1, 1]]).expand(20, 3)}

    def along_x(batch):
        return {"energy": batch["pos"][:, 0, 0] ** 2, "forces": 0 * batch["pos"]}

    scan = ob.scan(
        {"net": along_x}, data, group="rotations3d:8", task="atoms", keep="inputs", progress=False
    )
    return along_x, scan


def test_no_failure_is_said_of_a_quantity_that_was_not_judged(oriented):
    """Forces are sound, and one read "no failure found" of an energy that is not."""
    for given in (oriented[1], oriented[1].data):
        found = ob.nero.failures(given)
        assert "no failure found" in str(found)
        assert "Judged by forces alone, not by energy" in str(found)
        assert found.to_dict()["scope"] == found.scope
    assert ob.nero.failures(world(100, 0)).scope == ""


def test_a_worst_case_says_which_quantity_was_searched(oriented, capsys):
    net, scan = oriented
    found = ob.worst_case({"net": net}, scan, rounds=2, progress=False)
    assert float(found["missed"].max()) == 0
    assert found.attrs["scope"].startswith("Judged by forces alone, not by energy")
    print_worst_case(found)
    assert found.attrs["scope"] in capsys.readouterr().out


def test_a_summary_has_the_largest_violation_of_each_quantity(oriented):
    """Score and gap are those of forces, so the summary of a broken energy looked sound."""
    scan = oriented[1]
    table = ob.nero.summary(scan)
    assert float(table["invariance_gap"].item()) == 0
    assert table["violation"].dims == ("model", "quantity")
    for found in ob.nero.violations(scan):
        assert table["violation"].sel(model="net", quantity=found.quantity) == found.largest
    assert float(table["violation"].sel(quantity="energy").item()) > 0.1
