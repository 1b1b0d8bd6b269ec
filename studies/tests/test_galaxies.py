"""The galaxy study: packing, training, statistics, matched orbits, claims, and a tiny run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from orbical.calibration import top_label
from orbical.zoo.group_cnn import GroupCNN
from orbical_studies.__main__ import main
from orbical_studies.data import galaxies
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render
from orbical_studies.framework.statistics import resampled_seeds
from orbical_studies.framework.training import Trials, arrays_file
from orbical_studies.galaxies import (
    contrasts,
    matching,
    other_catalog,
    packing,
    papers_size,
    report,
    settings,
    study,
    training,
)
from orbical_studies.galaxies.collecting import KEPT, collect, read_trials, sizes
from orbical_studies.galaxies.settings import Settings, Trial, trials
from orbical_studies.networks import parameters_of

PATHS = Paths.in_checkout("galaxies")


def test_every_group_blur_data_and_seed_is_trained_once() -> None:
    named = [str(trial) for trial in trials(Settings())]
    assert len(named) == len({*named}) == ((2 * 7 + 2) * (3 + 3) + 4) * 3
    assert str(Trial("efigi", "cyclic:1", 0.0, 0, 1, 24)) == "efigi/plain:24/blur 0/seed 0"
    assert str(Trial("efigi", "cyclic:8", 1.25, 2, 1)) == "efigi/cyclic:8/blur 1.25/seed 2"


@pytest.mark.parametrize(("group", "fields"), settings.EQUALS.items())
@pytest.mark.parametrize("classes", [2, 3])
def test_plain_networks_have_as_many_parameters_as_those_of_a_group(
    group: str, fields: int, classes: int
) -> None:
    sizes = [
        parameters_of(GroupCNN(one, classes, fields=(first, 2 * first, 4 * first)))
        for one, first in ((group, settings.FIELDS), (settings.PLAIN, fields))
    ]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)


def test_generated_galaxies_are_packed_trained_and_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packing, "GENERATED", (130, 30))
    options = ["--data", "generated", "--epochs", "1", "--seeds", "0", "--orders", "1"]
    options += ["--results", str(tmp_path), "--work", str(tmp_path / "work")]
    for step in ("pack", "train", "collect", "train"):
        main(["galaxies", step, *options])
    assert "0 trainings to run, 2 finished before" in capsys.readouterr().out
    results = Results(tmp_path)
    found = read_trials(results)
    assert [trial.group for trial in found] == ["cyclic:1", "dihedral:1"]
    trial, scores = [*found.items()][1]
    assert scores["defect_group"] < 1e-4
    assert 0 < scores["action_defect"] < 0.2
    assert scores["refitted_nll"] < scores["nll"]  # it has seen the labels
    with np.load(arrays_file(results.work, trial)) as kept:
        accuracy, confidence, _ = kept["curves"].astype(float)
        predicted = kept["logits"].argmax(1)
    truth = np.arange(30) % 3
    right = predicted == np.concatenate([truth, np.array([0, 2, 1])[truth]])
    assert accuracy[0] == pytest.approx(right.mean(), abs=2e-3)
    assert ((confidence > 0) & (confidence <= 1)).all()
    assert results["bounds"]["ceiling"].item() == pytest.approx(2 / 3, abs=1e-5)
    assert results["results"]["steps"].tolist() == [1, 1]
    assert len(results["angles"]) == training.ANGLES  # of the plain network alone


def test_a_mirrored_test_galaxy_stands_beside_each_generated_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "GENERATED", (3, 6))
    images, labels = packing.SPLITS["generated"](packing.SIZE)["test"]
    assert torch.equal(images[6:], images[:6].flip(-1))
    assert labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 2, 1, 0, 2, 1]


def test_images_are_blurred_once_and_keep_their_disc() -> None:
    images = torch.rand(2, 3, 24, 24)
    kept = training.prepared(images, 0.0)
    assert float(kept[..., 0, 0].max()) == 0
    assert torch.equal(kept[..., 10:14, 10:14], images[..., 10:14, 10:14])
    assert training.prepared(images, 2.0)[..., 8:16, 8:16].std() < 0.3 * images.std()


def test_a_refitted_regression_solves_its_penalized_problem() -> None:
    from sklearn.linear_model import LogisticRegression

    features, labels = torch.randn(90, 5), torch.arange(90) % 3
    ours = training.refit(features, labels).softmax(1)
    theirs = LogisticRegression(max_iter=1000, tol=1e-8).fit(features, labels)
    assert np.allclose(ours, theirs.predict_proba(features), atol=1e-3)


def test_the_gap_is_the_root_mean_square_distance_from_the_mean_over_the_orbit() -> None:
    probabilities = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    assert training.invariance_gap(probabilities) == pytest.approx(0.5)


def pairs_of(shift: float, seed: int, count: int = 400, confidence: float = 0.7) -> list:
    """Three seeds of predictions that are correct more often by a shift."""
    random = np.random.default_rng(seed)
    easy = random.random(count)  # shared by the networks, as a galaxy's difficulty is
    return [
        (
            torch.full((count,), confidence),
            torch.from_numpy(easy + 0.1 * random.random(count) < shift),
        )
        for _ in range(3)
    ]


def gains(measure: str, **networks: list) -> pd.DataFrame:
    outputs = {(name.replace("_", ":"), 0.0): pairs for name, pairs in networks.items()}
    rows = pd.DataFrame(contrasts.contrast_rows("some", outputs, contrasts.orders))
    return rows.query("contrast == 'gain' and measure == @measure").set_index("family")


def test_networks_that_predict_alike_do_not_differ_and_better_ones_do() -> None:
    alike = pairs_of(0.7, 1)
    found = gains("accuracy", cyclic_1=alike, cyclic_4=pairs_of(0.8, 1), dihedral_4=alike)
    assert found["low"]["cyclic"] > 0.05
    assert found["low"]["dihedral"] <= 0 <= found["high"]["dihedral"]
    middle = (found["value"]["cyclic"] + found["value"]["dihedral"]) / 2
    assert found["value"]["both"] == pytest.approx(middle)


def test_the_interval_of_a_difference_is_that_of_paired_samples() -> None:
    one, other = pairs_of(0.7, 1)[:1], pairs_of(0.8, 2)[:1]
    gain = gains("accuracy", cyclic_1=one, cyclic_4=other).loc["cyclic"]
    each = other[0][1].double() - one[0][1].double()
    reach = 1.96 * float(each.std()) / len(each) ** 0.5
    assert gain["high"] - gain["value"] == pytest.approx(reach, rel=0.15)


def test_the_signed_contrast_is_the_difference_of_confidence_minus_accuracy() -> None:
    found = gains(
        "overconfidence", cyclic_1=pairs_of(0.7, 1), cyclic_4=pairs_of(0.7, 1, confidence=0.9)
    )
    assert found["value"]["cyclic"] == pytest.approx(0.2, abs=1e-6)
    assert found["low"]["cyclic"] > 0.1


def test_draws_of_few_seeds_vary_as_their_mean_does() -> None:
    seeds = np.array([0.1, 0.4, 0.2])
    chosen = np.random.default_rng(0).integers(3, size=(40_000, 3))
    drawn = resampled_seeds(np.tile(seeds, (len(chosen), 1)), chosen)
    assert drawn.var() == pytest.approx(seeds.var(ddof=1) / 3, rel=0.03)
    alone = resampled_seeds(np.full((5, 1), 0.3), np.zeros((5, 1), int))
    assert np.allclose(alone, 0.3)


def test_slopes_are_those_of_least_squares() -> None:
    values = {1: 0.3, 2: 0.5, 4: 0.4, 12: 0.9}
    found = contrasts.slope({n: np.array([value]) for n, value in values.items()})
    assert found[0] == pytest.approx(np.polyfit(np.log2([*values]), [*values.values()], 1)[0])


def test_a_rotated_copy_is_matched_and_costs_accuracy_where_its_label_differs() -> None:
    images, _ = galaxies(12, size=32, noise=0.1, seed=3)
    both = torch.cat([images, images.rot90(1, (2, 3))])
    labels = torch.arange(24) // 12  # the rotated copy is of the other class
    rows = {row["group"]: row for row in matching.neighbor_rows("some", both, labels)}
    assert rows["trivial"]["matched"] == 0
    assert (rows["C_4"]["matched"], rows["C_4"]["orbits"]) == (24, 12)
    assert (rows["C_4"]["wrong"], rows["C_4"]["ceiling"]) == (pytest.approx(1), pytest.approx(0.5))


def test_a_mirror_invariant_classifier_lies_within_its_bounds() -> None:
    images, labels = galaxies(30, size=32, seed=1)
    truth = torch.cat([labels, torch.tensor([0, 2, 1])[labels]])
    logits = torch.randn(30, 3).repeat(2, 1)
    outputs = {"dihedral:1": [logits.softmax(-1).max(-1)]}
    (row,) = matching.bound_rows("some", torch.cat([images, images.flip(-1)]), truth, outputs)
    correct = top_label(logits=logits, labels=truth)[1]
    assert row["orbits"] == 30
    assert row["ceiling"] == pytest.approx(2 / 3)
    assert row["accuracy"] == pytest.approx(float(correct.double().mean()))
    assert row["lower"] - 1e-9 <= row["ece"] <= row["upper"] + 1e-9
    assert row["mirror_gap"] == pytest.approx(0, abs=1e-6)


def test_coverage_falls_where_the_truth_lies_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrasts, "true_differences", lambda *_: {"accuracy": 0.5, "esd": 0.5})
    assert {row["covered"] for row in contrasts.coverage_rows(2, draws=50)} == {0.0}


def test_the_printed_coverage_is_near_the_nominal_one() -> None:
    assert Results(PATHS.results)["coverage"]["covered"].min() >= 0.9


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Collect made-up predictions of networks of orders 1, 2, 4 and 12 on sixty galaxies.

    Networks of a group are right more often, and those of equal size as often as the plain one.
    """
    results = Results(tmp_path_factory.mktemp("galaxies"))
    random, arrays = np.random.default_rng(0), {}
    for name, classes in (("efigi", 3), ("galaxyzoo2", 2)):
        for part in ("train", "test"):
            pixels = random.integers(0, 255, (60, 3, 32, 32), np.uint8)
            arrays[f"{name}-{part}-pixels"] = packing.sheet(pixels)
            arrays[f"{name}-{part}-labels"] = np.arange(60) % classes
    arrays["efigi-test-types"] = np.tile([-5.0, 2.0, 10.0], 20)
    images, labels = galaxies(30, size=32, seed=1)
    for part in ("train", "test"):
        both = torch.cat([images, images.flip(-1)]).mul(255).byte().numpy()
        arrays[f"generated-{part}-pixels"] = both
        arrays[f"generated-{part}-labels"] = np.concatenate([labels, np.array([0, 2, 1])[labels]])
    kept = Trials(results.work)
    np.savez(results.work / packing.FILE, **arrays)
    chosen = Settings(orders=(1, 2, 4, 12), seeds=(0, 1))
    for trial in trials(chosen):
        truth = arrays[f"{trial.data}-test-labels"]
        logits = random.normal(size=(len(truth), truth.max() + 1)).astype(np.float32)
        logits[np.arange(len(truth)), truth] += 1 + (trial.order > 2)
        if trial.group.startswith("dihedral"):
            logits[len(truth) // 2 :] = logits[: len(truth) // 2]
        file = arrays_file(results.work, trial)
        other = random.normal(size=(60, logits.shape[1])).astype(np.float32)
        curves = random.random((3, training.ANGLES))
        np.savez(file, logits=logits, elsewhere=other, curves=curves)
        scores = dict.fromkeys(KEPT, 0.1) | {"parameters": 10}
        kept.add({"name": str(trial), **vars(trial), **scores})
    few = partial(contrasts.resampled_rows, draws=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contrasts, "resampled_rows", few)
        collect(chosen, results)
        sizes(chosen, results)
        other_catalog.write_kinds(chosen, results)
    results.write("coverage", Results(PATHS.results)["coverage"])
    results.write("paper", Results(PATHS.results)["paper"])
    return results


def test_the_kinds_of_a_shift_are_found_where_they_are_known() -> None:
    known = torch.zeros(4, 1, other_catalog.COARSE, other_catalog.COARSE)
    known[0, 0, :4, 1:3] = known[1, 0, 4:8, :6] = known[2, 0, 8:, 8:] = 1.0  # the last is empty
    near = known[:3] + 0.001
    catalog = other_catalog.Catalog(known, torch.tensor([1, 0, 1, 0]), known[:3] + 0.002)
    far = torch.ones(1, 1, other_catalog.COARSE, other_catalog.COARSE)
    still, moved = other_catalog.kind_rows(
        catalog, torch.cat([near, far]), torch.tensor([1, 0, 0, 0]), {}
    )
    assert (still["correct"], still["incorrect"], still["extrinsic"]) == (0.5, 0.25, 0.25)
    # One of seven moves, the diagonal mirror, takes the third galaxy to itself.
    assert moved["incorrect"] == pytest.approx(1 / 7 / 4)
    assert moved["correct"] == 0
    assert moved["correct"] + moved["incorrect"] + moved["extrinsic"] == pytest.approx(1)


def test_the_shift_between_catalogs_is_measured_as_it_is_and_moved(collected: Results) -> None:
    rows = collected["kinds"]
    assert len(rows) == 2 * 2 * 2
    own = rows[(rows["data"] == rows["tested"]) & ~rows["moved"]]
    assert own["extrinsic"].between(0.0, 0.1).all()
    assert rows[["correct", "incorrect", "extrinsic"]].sum(axis=1).to_numpy() == pytest.approx(1)
    asked = {"efigi": 40, "galaxyzoo2": 60}  # irregulars are neither
    assert (rows["galaxies"] == rows["tested"].map(asked)).all()


def test_networks_at_the_papers_size_are_packed_trained_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(0)
    made = (torch.rand(140, 3, 100, 100, generator=draw), torch.arange(140) % 2)
    for name in settings.PHOTOGRAPHS:
        monkeypatch.setitem(packing.SPLITS, name, lambda size: {"train": made, "test": made})
    monkeypatch.setattr(packing, "hubble_types", lambda: torch.zeros(140))
    monkeypatch.setattr(papers_size, "ORDERS", (1,))
    monkeypatch.setattr(training, "ANGLES", 2)
    results = Results(tmp_path)
    chosen = Settings(paper_epochs=1, only="galaxyzoo2")
    for step in ("pack-paper", "train-paper", "collect-paper"):
        study.steps[step](chosen, results)
    rows = results["paper"].set_index("head")
    assert rows["parameters"].to_dict() == {"flat": 1_187_402, "pooled": 15_946}
    assert not report.slopes_by_order(results["paper"])["whole"].any()


@pytest.mark.parametrize(
    ("slope", "accuracy", "ece"),
    [(1.0, "confirmed", "confirmed"), (-1.0, "contradicted", "confirmed"), (0.0, "open", "open")],
)
def test_slopes_against_the_order_decide(slope: float, accuracy: str, ece: str) -> None:
    orders = np.array([1, *(2, 4, 6, 8, 10, 12) * 2])
    noise = 1e-3 * np.random.default_rng(0).normal(size=13)
    rows = pd.DataFrame({"data": "zoo", "head": "flat", "order": orders})
    rows["family"] = ["cyclic"] * 7 + ["dihedral"] * 6
    rows["accuracy"] = rows["ece"] = slope / 100 * np.log2(orders) + noise
    (found,) = report.slopes_by_order(rows).to_dict("records")
    assert (found["accuracy_verdict"], found["ece_verdict"]) == (accuracy, ece)
    assert float(found["accuracy"].split(" ")[0]) == pytest.approx(slope, abs=0.06)


def test_collected_predictions_become_a_page_with_figures(collected: Results) -> None:
    page = collected.folder / "page.md"
    main(["galaxies", "page", "--results", str(collected.folder), "--page", str(page)])
    assert "nan" not in page.read_text()
    made = {path.stem for path in (collected.folder / "galaxies").glob("*.png")}
    assert made == {"efigi", "galaxyzoo2", "sizes", "nero", "invariance", "mirrors"}
    bounds, rows = collected["bounds"], collected["results"]
    assert (bounds["ece"].between(bounds["lower"] - 1e-6, bounds["upper"] + 1e-6)).all()
    assert rows["ece"].between(rows["ece_low"], rows["ece_high"]).all()


def test_an_interval_is_drawn_from_end_to_end_even_above_its_estimate(collected: Results) -> None:
    changed = Results(collected.folder / "changed")
    for name in ("angles", "bounds"):
        changed.write(name, collected[name])
    below = {"esd": -1e-3, "esd_low": 0.0, "esd_high": 2e-3}
    changed.write("results", collected["results"].assign(**below))
    panel = next(report.figures(changed))[1].axes[4]
    bars = [bar.get_segments()[0][:, 1] for bar in panel.collections]
    assert len(bars) == 3 * 4  # blurs and orders
    assert np.allclose(bars, [0.0, 2.0])


def test_claims_are_decided_by_the_numbers(tmp_path: Path) -> None:
    low, high = {"low": -0.2, "high": -0.1}, {"low": 0.1, "high": 0.2}
    low, high = low | {"value": -0.15}, high | {"value": 0.15}
    changes = {
        "contrasts": [
            ("contrast in ['gain lost', 'late', 'blur'] or data == 'generated'", high),
            ("contrast == 'slope' and measure in ['accuracy', 'esd']", low),
            ("contrast == 'gain' and measure == 'ece'", high),
        ],
        "results": [("order == 4", {"ece": 0.5, "gap_circle": 1.0})],
    }
    committed, changed = Results(PATHS.results), Results(tmp_path)
    for path in PATHS.results.glob("*.csv"):
        frame = committed[path.stem].copy()
        for rows, values in changes.get(path.stem, []):
            frame.loc[frame.query(rows).index, [*values]] = [*values.values()]
        changed.write(path.stem, frame)
    before = PATHS.protocol.read_text(encoding="utf-8").splitlines()
    after = parted(render(study, changed, PATHS.template), study.name)[1].splitlines()
    no, one, two = (
        "not confirmed here",
        "in 1 of 2, otherwise open",
        "in 2 of 4, otherwise open",
    )
    for claim, usual, other in (
        ("Accuracy rises", f"confirmed {one}", "contradicted"),
        ("It rises most", "open", "confirmed"),
        ("The rise levels", "confirmed", no),
        ("Blur changes", no, no),
        ("ECE does not fall", "open", f"contradicted {two}"),
        ("ECE varies", no, "confirmed"),
        ("A correct symmetry does not", "open", f"confirmed {two}"),
        ("A symmetry alone", no, "confirmed"),
        ("C_n and D_n", "confirmed", no),
        ("The larger n", "confirmed", no),
        ("An incorrect symmetry", "open", "confirmed"),
    ):
        for lines, verdict in ((before, usual), (after, other)):
            (line,) = (line for line in lines if line.startswith(f"| {claim}"))
            assert line.endswith(f"| {verdict} |"), claim


def test_only_what_decides_is_corrected_for_its_number() -> None:
    rows = Results(PATHS.results)["contrasts"]
    decided = report.deciding(rows)
    assert len(decided) == 2 * (6 + 2 + 2) + 2
    assert not {*decided["measure"]} & {"overconfidence"}
    wider = (decided["high"] - decided["low"]) / (rows["high"] - rows["low"])[decided.index]
    assert wider.to_numpy() == pytest.approx(norm.isf(0.025 / 22) / norm.isf(0.025))


def test_contrasts_are_centered_on_the_networks_of_the_table() -> None:
    committed = Results(PATHS.results)
    rows, table = committed["contrasts"], committed["results"]
    same = contrasts.centered(rows, table)
    assert same["value"].to_numpy() == pytest.approx(rows["value"].to_numpy(), abs=1e-6)
    largest = (table["network"] == "cyclic:12") & (table["data"] == "efigi")
    better = table.assign(accuracy=table["accuracy"] + 0.1 * largest)
    moved = contrasts.centered(rows, better).query("measure == 'accuracy' and contrast == 'gain'")
    shift_by = (moved["value"] - rows["value"][moved.index]).groupby(
        [moved["data"], moved["family"]]
    )
    assert shift_by.mean()["efigi", "cyclic"] == pytest.approx(0.1)
    assert shift_by.mean()["efigi", "both"] == pytest.approx(0.05)
    assert shift_by.mean()["galaxyzoo2"].abs().max() < 1e-6
    assert (moved["high"] - moved["low"]).to_numpy() == pytest.approx(
        (rows["high"] - rows["low"])[moved.index].to_numpy()
    )


def test_networks_trained_later_extend_the_table_and_leave_the_others(
    collected: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    later = Results(collected.folder / "later", collected.work)
    known = collected["results"].query("seed == 0")
    later.write("results", known)
    later.write("contrasts", collected["contrasts"])
    collect(Settings(orders=(1, 2, 4, 12), seeds=(0, 1, 2)), later)
    assert "networks are not trained: earlier rows are kept" in capsys.readouterr().out
    assert later["results"].equals(collected["results"])
    assert "angles" not in later


def test_equal_sizes_are_compared_here_and_on_the_other_catalog(collected: Results) -> None:
    here = collected["size_contrasts"].query("family == 'both' and measure == 'accuracy'")
    gained = here[here["contrast"] == "symmetry"].set_index("data")["low"]
    assert (gained > 0).all()
    width = here[here["contrast"] == "size"].set_index("data")
    assert ((width["low"] < 0) & (width["high"] > 0)).all()
    rows = collected["shift"].groupby(["data", "tested"])["galaxies"].max()
    assert rows["galaxyzoo2", "efigi"] == 40  # without the irregular ones
    assert rows["efigi", "galaxyzoo2"] == 60
    own = collected["shift"].query("data == tested")["accuracy"].mean()
    moved = collected["shift"].query("data != tested")["accuracy"].mean()
    assert moved < 0.6 < own  # predictions elsewhere are made up at random


def test_a_sheet_keeps_photographs_nearly_as_they_are() -> None:
    smooth = torch.nn.functional.interpolate(torch.rand(7, 3, 4, 4), size=64, mode="bicubic")
    pixels = smooth.clamp(0, 1).mul(255).byte().numpy()
    again = packing.from_sheet(packing.sheet(pixels), len(pixels))
    assert again.shape == pixels.shape
    assert np.abs(again.astype(float) - pixels).mean() < 3


def test_spirals_are_asked_for_in_the_same_way_of_both_catalogs() -> None:
    two, three = torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, -30.0, 2.0]])
    for one, other in zip(
        other_catalog.judged(two, torch.tensor([1])),
        other_catalog.judged(three, torch.tensor([1])),
        strict=True,
    ):
        assert torch.allclose(one.double(), other.double())


def test_packed_images_that_are_missing_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["galaxies", "train", "--work", str(tmp_path)])
    assert "run the step 'pack'" in capsys.readouterr().err
