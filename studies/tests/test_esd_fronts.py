"""What the fronts decide, on trainings that are made up."""

from __future__ import annotations

import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from orbical_studies.esd import fronts
from orbical_studies.esd.front_claims import BatchSizes, Front, every_front
from orbical_studies.framework import Paths, Results


def trained(eces: dict[str, float], accuracy: float = 0.93) -> pd.DataFrame:
    """Make one weight of each loss, which differ from the likelihood by what is given."""
    rows = []
    for loss, ece in {"NLL": 0.05, **eces}.items():
        for seed in (fronts.FIRST, *fronts.FRESH):
            noise = 0.001 * (-1) ** (seed + len(loss))
            one = {"data": "cifar10", "loss": loss, "weight": float(loss != "NLL"), "seed": seed}
            one |= {"inner": fronts.INNER.get(loss, (0.0,))[0], "batch": 512, "decay": 5e-4}
            one |= {"validation.accuracy": 0.93, "validation.ece": ece}
            one |= {"test.accuracy": accuracy, "test.ece": ece + noise, "test_ts.ece": 0.02 + noise}
            rows.append(one)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("esd", "verdict"), [(0.01, "confirmed"), (0.04, "contradicted"), (0.0301, "open")]
)
def test_the_lowest_of_three_losses_is_decided_seed_by_seed(esd: float, verdict: str) -> None:
    front = Front(trained({"MMCE": 0.045, "SB-ECE": 0.03, "ESD": esd}), "cifar10")
    assert front.verdict("best") == verdict
    assert front.claims["scaled"].outcome == "open"  # all losses are alike after scaling
    assert (front.claims["temperature"].outcome == "confirmed") == (esd > 0.02)
    certain = {(one, other): sure for _, one, other, _, sure in front.pairs}
    assert certain["MMCE", "SB-ECE"]
    assert certain["SB-ECE", "ESD"] == (verdict != "open")


def test_below_the_accuracy_of_the_paper_nothing_is_concluded_about_it() -> None:
    front = Front(trained({"MMCE": 0.045, "SB-ECE": 0.03, "ESD": 0.01}, 0.92), "cifar10")
    assert not front.accurate
    assert front.verdict("best") == "open"
    assert front.claims["best"].outcome == "confirmed"


def test_of_a_network_better_calibrated_than_the_paper_s_nothing_is_concluded_about_it() -> None:
    rows = trained({"MMCE": 0.045, "SB-ECE": 0.03, "ESD": 0.01})
    rows.loc[rows["loss"] == "NLL", "test.ece"] /= 2
    front = Front(rows, "cifar10")
    assert front.accurate
    assert front.verdict("best") == "open"
    assert front.claims["best"].outcome == "confirmed"


def test_a_comparison_without_all_seeds_is_missing() -> None:
    rows = trained({"MMCE": 0.045, "SB-ECE": 0.03, "ESD": 0.01})
    front = Front(rows[(rows["loss"] != "SB-ECE") | (rows["seed"] < 5)], "cifar10")
    assert front.claims["best"].missing == ("SB-ECE",)
    assert front.verdict("best") == "open"
    assert {one[1:3] for one in front.pairs} == {("MMCE", "ESD")}


def test_a_span_is_measured_where_every_inner_parameter_was_trained() -> None:
    rows = trained({"MMCE": 0.03, "SB-ECE": 0.03, "ESD": 0.03})
    others = rows[(rows["loss"] == "MMCE") & (rows["seed"] == 0)]
    more = [
        others.assign(**{"inner": inner, "test.ece": ece})
        for inner, ece in zip(fronts.INNER["MMCE"][1:], (0.03, 0.03, 0.05), strict=True)
    ]
    front = Front(pd.concat([rows, *more]), "cifar10")
    assert [*front.spans] == ["MMCE"]
    assert front.sensitive == {"MMCE": True}
    each, spanned = front.spans["MMCE"]
    deviation = front.at("MMCE")["test.ece"].std()
    assert spanned == pytest.approx((each.max() - each.min()) / 100 / deviation)


def test_what_was_planned_and_not_run_is_missing() -> None:
    rows = trained({"MMCE": 0.045, "SB-ECE": 0.03, "ESD": 0.01}).assign(epochs=24)
    fewer = rows[(rows["loss"] != "ESD") | (rows["seed"] < 5)]
    whole, less = (Front(frame, "cifar10") for frame in (rows, fewer))
    assert less.planned == whole.planned
    (lost,) = [trial for trial in less.missing if trial not in whole.missing]
    assert (lost.loss, lost.weight, lost.seed) == ("ESD", 1.0, 5)
    assert {trial.weight for trial in whole.missing if trial.loss == "ESD"} == {*fronts.LARGE}


def with_batches(esd: dict[int, float], ece: dict[int, float], accuracy: float = 0.93) -> Front:
    """Make trainings of both losses by batch size; the likelihood alone has an ECE of 5 %."""
    rows = trained({"MMCE": 0.04, "SB-ECE": 0.04, "ESD": esd[512]}, accuracy)
    like = rows[(rows["loss"] == "ESD") & rows["seed"].isin(fronts.BATCH_SEEDS)]
    made = [
        like.assign(**{"loss": loss, "batch": batch, "test.ece": mean + noise})
        for loss, means in (("ESD", esd), ("ECE", ece))
        for batch, mean in means.items()
        for noise in [0.0001 * (like["seed"] * batch % 7)]
        if (loss, batch) != ("ESD", 512)
    ]
    return Front(pd.concat([rows, *made]), "cifar10")


FLAT = {512: 0.04, 256: 0.041, 128: 0.039, 64: 0.04}


@pytest.mark.parametrize(
    ("smallest", "outcome"), [(0.04, "confirmed"), (0.063, "confirmed"), (0.066, "contradicted")]
)
def test_batch_sizes_may_differ_by_half_of_the_error_without_a_loss(
    smallest: float, outcome: str
) -> None:
    front = with_batches(FLAT | {64: smallest}, {512: 0.04, 256: 0.04, 128: 0.04})
    assert BatchSizes(front).robust == outcome
    assert BatchSizes(front).limit == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("means", "outcome"),
    [
        ((0.03, 0.04, 0.045), "confirmed"),
        ((0.06, 0.07, 0.08), "open"),  # rises, but is of no use with large batches either
        ((0.03, 0.045, 0.04), "open"),
        ((0.04, 0.045, 0.03), "contradicted"),
    ],
)
def test_the_binned_error_must_help_with_large_batches_and_rise_with_small_ones(
    means: tuple[float, ...], outcome: str
) -> None:
    front = with_batches(FLAT, dict(zip((512, 256, 128), means, strict=True)))
    assert BatchSizes(front).binned == outcome


def test_batch_sizes_are_compared_seed_by_seed_with_all_tests_of_a_loss_corrected() -> None:
    sizes = BatchSizes(with_batches(FLAT | {256: 0.05}, {512: 0.04, 256: 0.04, 128: 0.04}))
    found = sizes.changes("ESD")
    assert found[512][0] is None
    to_usual, to_plain = found[256]
    assert to_usual is not None
    assert to_usual.seeds == to_plain.seeds == len(fronts.BATCH_SEEDS)
    ours, usual = (sizes.of("ESD", b).set_index("seed")["test.ece"] for b in (256, 512))
    assert to_usual.mean == pytest.approx(100 * (ours - usual).mean())
    alone = ttest_1samp(ours - usual, 0.0).pvalue
    assert alone < to_usual.p <= 7 * alone + 1e-12


def test_batch_sizes_conclude_nothing_about_the_paper_below_its_accuracy() -> None:
    front = with_batches(FLAT, {512: 0.03, 256: 0.04, 128: 0.045}, accuracy=0.92)
    assert front.about_paper(BatchSizes(front).robust) == "open"
    assert front.about_paper(BatchSizes(front).binned) == "open"


def test_every_planned_training_was_run() -> None:
    every = every_front(Results(Paths.in_checkout("esd").results)["fronts"])
    assert {data: front.missing for data, front in every.items()} == {"cifar10": [], "cifar100": []}
