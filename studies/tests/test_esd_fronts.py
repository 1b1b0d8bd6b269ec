"""What the fronts decide, on trainings that are made up."""

from __future__ import annotations

import pandas as pd
import pytest

from orbical_studies.esd import fronts
from orbical_studies.esd.front_claims import Front


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
