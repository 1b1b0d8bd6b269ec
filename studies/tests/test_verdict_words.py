"""Page, index and guide use the word that a rule gives, and a rule calls open what holds 0."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orbical_studies import INDEX, study
from orbical_studies.esd.claims import Claim, outcome, paired
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.galaxies import report as galaxies

WORD = re.compile(r"not confirmed here|confirmed|contradicted|open")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "repair.md"

AGREE = {
    "P1 Fig. 3": ("swiss-roll", ["With the paper's width, 512, accuracy rises"]),
    "P1 Fig. 3, perceptron": ("swiss-roll", ["The perceptron's accuracy does not"]),
    "P1 Table 1, order of bleed": ("qm9", ["Which network bleeds less follows neither"]),
    "P1 Fig. 6": ("vector-field", ["… bleed …"]),
    "P1 Sec. 6.1, 9": ("vector-field", ["A correct symmetry does not lower bleed below"]),
    "P2 Table 1, CIFAR-10": ("esd", ["On CIFAR-10, in the paper's regime, ESD has the lowest"]),
    "P2 Fig. 6": ("esd", ["Networks trained for calibration are more robust"]),
    "P3 Fig. 3, Sec. 2.3": ("digits-nero", ["At small angles the original", "On 4 the augmented"]),
    "P3 Fig. 4": ("digits-nero", ["1 is two-fold", "3 has no symmetry"]),
    "P3 Fig. 5": ("digits-nero", ["6 and 9 are confused", "The augmented network tells 6 and 9"]),
    "P3 Fig. 6": ("digits-nero", ["Neighbors on the map respond alike"]),
    "P3 user studies": ("piv", ["In turbulence errors gather", "Samples of high variance"]),
}
"""Items of the index, and the claims of a page that say the same."""


def first_words(text: str, begins: str, column: int) -> str:
    """Return the verdict that a row of a table begins with, in a column."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {begins}"))
    found = WORD.search(line.split("|")[column])
    assert found, line
    return found[0]


@pytest.mark.parametrize("item", AGREE)
def test_the_index_has_the_verdict_of_the_page(item: str) -> None:
    name, claims = AGREE[item]
    index = Paths.in_checkout(INDEX).protocol.read_text(encoding="utf-8")
    page = Paths.in_checkout(name).page.read_text(encoding="utf-8")
    said = {first_words(page, claim, 2) for claim in claims}
    assert {first_words(index, f"{item} |", 4)} == said


def test_losses_and_slopes_whose_intervals_hold_0_are_open() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        seeds = pd.Series(draw.normal(size=5))
        change = paired(seeds - seeds.mean() + draw.uniform(-0.1, 0.1), 0 * seeds)
        half = 2.776 * change.deviation / 5**0.5  # t of four degrees of freedom
        assert (outcome([change]) == "open") == (abs(change.mean) < half)
        ends = {"low": -draw.random(3), "high": draw.random(3), "value": 0.0, "measure": "ece"}
        assert galaxies.judged(galaxies.in_points(pd.DataFrame(ends))) == "open"
    assert Claim({"ESD": change}).outcome == "open"


def test_the_families_of_galaxies_are_open_where_their_intervals_hold_0() -> None:
    facts = study("galaxies").study.facts(Results(Paths.in_checkout("galaxies").results))
    text = Paths.in_checkout(INDEX).protocol.read_text(encoding="utf-8")
    for item, data in (("P1 Fig. 11", "efigi"), ("P1 Fig. 13", "galaxyzoo2")):
        rows = facts["each"]("slope", "accuracy")
        rows = rows[(rows["data"] == data) & (rows["family"] == "dihedral")]
        assert len(rows) == 3
        held = ((rows["low"] <= 0) & (rows["high"] >= 0)).all()
        assert (first_words(text, f"{item} |", 4) == "open") == held


def test_costs_of_the_chosen_weights_are_judged_by_the_rule() -> None:
    facts = study("esd").study.facts(Results(Paths.in_checkout("esd").results))
    front = facts["fronts"]["cifar10"]
    found = outcome([front.change(n, "test.accuracy") for n in ("MMCE", "SB-ECE", "ESD")])
    text = Paths.in_checkout(INDEX).protocol.read_text(encoding="utf-8")
    assert first_words(text, "P2 Fig. 5 |", 4) == found


def test_the_guide_recommends_a_temperature_as_far_as_the_study_decides() -> None:
    facts = study("esd").study.facts(Results(Paths.in_checkout("esd").results))
    fronts, guide = facts["fronts"], " ".join(GUIDE.read_text(encoding="utf-8").split())
    said = {
        (fronts["cifar10"], "did better than ESD and MMCE on CIFAR-10, and"): ["ESD", "MMCE"],
        (fronts["cifar100"], "than ESD, MMCE and SB-ECE on CIFAR-100"): ["ESD", "MMCE", "SB-ECE"],
        (facts["like_paper"], "and where the network is as overconfident on CIFAR-10"): [
            "ESD",
            "MMCE",
            "SB-ECE",
        ],
    }
    for (trained, sentence), losses in said.items():
        claim = trained.claims["temperature"]
        assert sentence in guide
        assert outcome([claim.changes[loss] for loss in losses]) == "confirmed"
        rest = [loss for loss in claim.changes if loss not in losses]
        assert claim.outcome == ("open" if rest else "confirmed")
    open_still = "Against SB-ECE on less overconfident networks of CIFAR-10 the question is open"
    assert open_still in guide


def test_other_results_change_the_words_of_page_and_index_alike(tmp_path: Path) -> None:
    root = Paths.in_checkout("esd").results.parent
    shutil.copytree(root, tmp_path / "results")
    changed = Results(tmp_path / "results" / "esd")
    rows = changed["overfitted"].copy()
    rows.loc[rows["loss"] == "ESD", "test.ece"] -= 0.03
    changed.write("overfitted", rows)
    for name in ("esd", INDEX):
        paths = Paths.in_checkout(name)
        before = "\n".join(p.read_text(encoding="utf-8") for p in (paths.page, paths.protocol))
        results = Results(tmp_path / "results" / name)
        after = "\n".join(parted(render(study(name).study, results, paths.template), name))
        sentence = r"has the lowest ECE is \**(\w+)\**"
        assert {*re.findall(sentence, before)} == {"contradicted"}
        assert {*re.findall(sentence, after)} == {"confirmed"}
    assert first_words(after, "P2 Table 1, CIFAR-10 |", 4) == "confirmed"
