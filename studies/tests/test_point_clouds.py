"""The point-cloud study from packed clouds to a page, in small."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from orbical.datasets import PointClouds, furniture
from orbical.errors import InputError
from orbical.groups import parse
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.formatting import verdict as as_verdict
from orbical_studies.framework.page import parted, render
from orbical_studies.framework.training import read_trained
from orbical_studies.networks.point_clouds import PointAttention
from orbical_studies.point_clouds import collecting, report, study, training, transformer
from orbical_studies.point_clouds.collecting import Answers, calibrated_ece, summary_row
from orbical_studies.point_clouds.training import Settings, Trial, split, unpack
from orbical_studies.zoo_training import point_networks

BALL = "rotations3d:40"
TINY = Settings(
    seeds=2, steps=3, points=48, stored=56, widths=(8, 16), slices="slices3d:8:3", ball=BALL
)


def halves() -> training.Halves:
    """Return generated furniture; one class is called bathtub."""
    clouds = furniture(each=10, points=60)
    return split(clouds._replace(classes=("bathtub", *clouds.classes[1:])))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Run the whole study on generated furniture."""
    with pytest.MonkeyPatch.context() as patch:
        small = partial(point_networks.InvariantNet, degree=2)  # built quickly
        patch.setattr(point_networks, "InvariantNet", small)
        patch.setattr(training, "PointAttention", partial(PointAttention, width=8, layers=1))
        for name in training.SOURCES:
            patch.setitem(training.SOURCES, name, halves)
        results = Results(tmp_path_factory.mktemp("study"))
        for step in study.steps.values():
            step(TINY, results)
    return results


def test_the_steps_go_from_clouds_to_the_page(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(training.SOURCES, "modelnet10", halves)
    assert len(results["summary"]) == 2 * 5 * 2
    paths = Paths.in_checkout("point-clouds")
    page = render(study, results, paths.template)
    assert "ModelNet10 (56 training and 24 test" in page
    drawn = {name for name, _ in report.figures(results)}
    assert drawn == {path.name for path in paths.figures.glob("*.png")}


def test_tables_hold_what_the_networks_answered(results: Results) -> None:
    files = [results.work / f"sweethome3d-plain-seed{seed}.npz" for seed in (0, 1)]
    right = [file["ball/predicted"] == file["labels"][:, None] for file in map(np.load, files)]
    expected = np.concatenate(right).mean(0)
    assert np.allclose(results["ball"]["sweethome3d/plain/accuracy"], expected, atol=1e-4)
    summary = results["summary"].set_index(["data", "network"]).loc[("sweethome3d", "plain")]
    assert summary["accuracy_ball"].mean() == pytest.approx(expected.mean(), abs=1e-5)
    assert results["classes"]["samples"].tolist() == [3] * 8 * 10
    own, mean = results["transformer"], results["transformer-ball"].mean()
    for name in (transformer.UPRIGHT, transformer.AUGMENTED):
        over = own[own["network"] == name]["ball"].mean()
        assert mean[f"modelnet10/{name}/accuracy"] == pytest.approx(over, abs=1e-4)
    flat = results["ball"]["modelnet10/invariant/accuracy"]
    assert flat.max() - flat.min() < 1e-6


def test_contrasts_compare_the_same_clouds_and_are_corrected(results: Results) -> None:
    rows = results["contrasts"].set_index(["data", "first", "second", "quantity"])
    summary = results["summary"].groupby(["data", "network"])["accuracy_ball"].mean()
    row = rows.loc[("modelnet10", "augmented", "plain", "ball")]
    own = summary["modelnet10", "augmented"] - summary["modelnet10", "plain"]
    assert row.difference == pytest.approx(own, abs=1e-6)
    assert row.low <= row.difference <= row.high
    assert (rows.p_holm >= rows.p).all()
    assert len(rows) == 2 * 6 * 3


def test_comparisons_with_networks_that_are_not_trained_count_in_the_correction(
    results: Results, tmp_path: Path
) -> None:
    every = [
        Answers(*pair) for pair in read_trained(trials_of("invariant", "augmented"), results.work)
    ]
    rows = collecting.contrast_rows("modelnet10", [every[:1], every[1:]])
    assert [row["quantity"] for row in rows] == list(collecting.QUANTITIES)
    smallest = min(rows, key=lambda row: row["p"])
    assert smallest["p_holm"] == pytest.approx(min(1, 18 * smallest["p"]))


def trials_of(*networks: str) -> list[Trial]:
    return [Trial("modelnet10", name, 0) for name in networks]


def test_the_split_is_stratified_and_never_mixes() -> None:
    numbers = torch.arange(80)
    points = numbers[:, None, None].expand(-1, 2, 3).float()
    train, test = split(PointClouds(points, numbers % 8, tuple("abcdefgh")))
    assert test.labels.bincount().tolist() == [3] * 8
    assert torch.equal(test.points[:, 0, 0].long() % 8, test.labels)
    both = torch.cat([train.points, test.points])[:, 0, 0]
    assert sorted(both.tolist()) == list(range(80))


def test_answers_are_those_of_the_network_at_each_rotation(results: Results) -> None:
    _, test = unpack(results.work / "modelnet10.npz")
    network, group = point_networks.make("plain", 8, 0).eval(), parse(BALL)
    found = training.evaluate(network, test.points, test.labels, group, batch=16)
    turn = torch.tensor(group.parts["space"][17, :3, :3], dtype=torch.float32)
    with torch.inference_mode():
        probs = network(test.points @ turn.T).softmax(1)
    assert np.allclose(found["confidence"][:, 17], probs.amax(1), atol=1e-3)
    assert np.array_equal(found["predicted"][:, 17], probs.argmax(1))
    rows = torch.arange(len(probs))
    assert np.allclose(found["score"][:, 17], probs[rows, test.labels], atol=1e-3)


def test_stored_weights_are_those_that_answered(results: Results) -> None:
    trial = Trial("modelnet10", "augmented", training.WHOLE)
    ((_, arrays),) = read_trained([trial], results.work)
    network = training.trained_network(trial, arrays, TINY)
    _, test = unpack(results.work / "modelnet10.npz")
    with torch.inference_mode():
        probs = network(test.points[:, : TINY.points]).softmax(1)
    upright = training.probabilities(arrays["ball/confidence"][:, parse(BALL).identity])
    assert np.allclose(probs.amax(1), upright, atol=2e-3)


def test_the_attention_ignores_the_order_of_the_points_of_a_patch() -> None:
    network = PointAttention(4, patches=8, neighbors=4, width=8).eval()
    clouds = torch.rand(2, 30, 3, generator=torch.Generator().manual_seed(0))
    order = torch.cat([torch.arange(8), 8 + torch.randperm(22)])
    with torch.inference_mode():
        assert torch.allclose(network(clouds), network(clouds[:, order]), atol=1e-5)


def test_a_flat_and_correct_network_has_no_spread() -> None:
    labels = np.array([0, 1, 1])
    predicted = np.tile(labels[:, None], (1, 40))
    arrays = {"labels": labels}
    for name in collecting.GROUPS:
        arrays[f"{name}/predicted"] = predicted
        arrays[f"{name}/confidence"] = np.full(predicted.shape, 51, np.uint8)  # a fifth
    line = {"data": "toy", "network": "plain", "seed": 0, "train": 10, "steps": 20}
    line |= {"parameters": 5, "change_slices": 0.0, "change_ball": 0.0}
    line |= {"train_seconds": 0.0, "ask_seconds": 0.0, "slices": BALL, "ball": BALL}
    row = summary_row(Answers(line, arrays))
    assert row["accuracy_ball"] == pytest.approx(1)
    assert row["worst_ball"] == row["always_ball"] == 1
    assert row["never_ball"] == 0
    assert row["ece_ball"] == pytest.approx(0.8, abs=1e-6)


def test_the_calibrated_error_shrinks_with_the_samples() -> None:
    few, many = (calibrated_ece(torch.full((count,), 0.7)) for count in (50, 5000))
    assert many < 0.02 < few


def test_tilt_is_the_angle_of_the_upright_axis(results: Results) -> None:
    group = parse(BALL)
    up = group.parts["space"][:, :3, :3] @ np.array([0.0, 1.0, 0.0])
    expected = np.rad2deg(np.arccos(np.clip(up[:, 1], -1, 1)))
    assert np.allclose(report.tilt_of(group), expected, atol=1e-6)
    vectors = np.stack([np.asarray(group.coords[name], float) for name in ("rx", "ry", "rz")])
    assert np.allclose(report.angle_of(group), np.linalg.norm(vectors, axis=0), atol=1e-4)
    about = report._about_axis(results, "sweethome3d", "plain", "y (upright)")
    assert about.index.tolist() == [0.0, 90.0, 180.0]


def test_a_missing_training_or_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*modelnet10\.npz'; run the step 'pack'"):
        training.train(Settings(), Results(tmp_path))
    (tmp_path / "work" / "trials.jsonl").write_text('{"name": "other"}\n')
    with pytest.raises(
        InputError, match=f"expected a training such as '{Trial('modelnet10', 'invariant', 0)}'"
    ):
        collecting.collect(Settings(), Results(tmp_path))


def verdict(page: str, claim: str) -> list[str]:
    """Return the verdicts of a claim on ModelNet10 and on Sweet Home 3D."""
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {claim}"))
    return [cell.strip().partition(":")[0] for cell in line.split("|")[4:6]]


@pytest.mark.parametrize(
    ("table", "where", "column", "value", "claim"),
    [
        ("summary", "plain", "accuracy_ball", 0.6, "The original is good near upright alone"),
        ("summary", "attention", "accuracy_ball", 0.5, "Here: the three planes flatter"),
        ("summary", "invariant", "ece_ball", 0.01, "Here: a flat response is not a calibrated"),
        ("contrasts", "augmented", "p_holm", 0.2, "The augmented network is the more invariant"),
        ("contrasts", "attention-augmented", "same_sign", 2, "Here: it pays with accuracy"),
    ],
)
def test_claims_are_decided_by_the_numbers_of_both_architectures(
    table: str, where: str, column: str, value: float, claim: str, tmp_path: Path
) -> None:
    paths = Paths.in_checkout("point-clouds")
    committed, changed = Results(paths.results), Results(tmp_path)
    for name in (
        *("summary", "classes", "contrasts", "chosen", "worst", "slices", "ball", "transformer"),
    ):
        changed.write(name, committed[name])
    frame = committed[table].copy()
    network = frame["network" if table == "summary" else "first"]
    frame.loc[(frame["data"] == "modelnet10") & (network == where), column] = value
    changed.write(table, frame)
    before, after = (
        parted(render(study, Results(paths.results), paths.template), study.name)[1],
        parted(render(study, changed, paths.template), study.name)[1],
    )
    assert verdict(before, claim) == ["confirmed", "confirmed"]
    assert verdict(after, claim) == ["not confirmed here", "confirmed"]


@pytest.mark.parametrize(
    ("difference", "found"), [(0.05, "confirmed"), (0.0, "open"), (-0.05, "contradicted")]
)
def test_invariance_by_construction_is_compared_with_both_augmented_networks(
    difference: float, found: str, tmp_path: Path
) -> None:
    committed, changed = Results(Paths.in_checkout("point-clouds").results), Results(tmp_path)
    for name in ("summary", "slices", "chosen"):
        changed.write(name, committed[name])
    frame = committed["contrasts"].copy()
    frame.loc[frame["first"] == "invariant", "difference"] = 0.05
    frame.loc[frame["second"] == "attention-augmented", "difference"] = difference
    frame = frame.assign(p_holm=0.01, same_sign=3)
    changed.write("contrasts", frame)
    claims = report.Measured(changed).claims("sweethome3d")
    assert as_verdict(claims["construction"], claims["construction_refuted"]) == found


def test_a_point_transformer_is_judged_by_every_training() -> None:
    def rows(network: str, seed: int, ball: float) -> list[dict[str, object]]:
        kind = {"network": network, "seed": seed, "class": "bathtub", "upright": 1, "always": 1}
        return [
            {**kind, "upright": 1, "ball": ball - 0.01 * (n % 3), "always": 1} for n in range(30)
        ]

    upright = [row for seed in (0, 1) for row in rows(transformer.UPRIGHT, seed, 0.5)]
    turned = [row for seed in (0, 1) for row in rows(transformer.AUGMENTED, seed, 0.9)]
    alone = rows(transformer.AUGMENTED, 2, 0.1)  # not trained upright
    found = transformer.decided(pd.DataFrame(upright + turned + alone))
    assert found["seeds"] == [0, 1]
    assert found["signs"] == {"lost": -1, "upright": 0}
    assert float(found["changes"]["lost"].difference) == pytest.approx(-0.4)
    assert found["bathtubs"][1] > 0.5
    apart = turned[:30] + rows(transformer.AUGMENTED, 1, 0.45)
    assert transformer.decided(pd.DataFrame(upright + apart))["signs"]["lost"] == 0
