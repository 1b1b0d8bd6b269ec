"""The point-cloud study from packed clouds to a page, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.datasets import furniture, padded
from orbical.errors import InputError
from orbical.groups import parse
from orbical_studies.pages import read_csv
from orbical_studies.point_clouds import main, training
from orbical_studies.point_clouds.collecting import Answers, calibrated_ece, collect, summary_rows
from orbical_studies.point_clouds.figures import labelled
from orbical_studies.point_clouds.findings import claims
from orbical_studies.point_clouds.numbers import Numbers
from orbical_studies.point_clouds.settings import Settings
from orbical_studies.point_clouds.training import rows_of, split, unpack

SLICES, BALL = "slices3d:8:3", "rotations3d:40"

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "point-clouds"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Furniture in the place of both data sets, one of them padded."""
    folder = tmp_path_factory.mktemp("packed")
    clouds = furniture(each=10, points=60)
    arrays = {"labels": clouds.labels.numpy(), "classes": np.array(clouds.classes)}
    np.savez(folder / "sweethome3d.npz", pos=clouds.points.numpy().astype(np.float16), **arrays)
    cut = padded([cloud[: 40 + row % 20] for row, cloud in enumerate(clouds.points)])
    fields = {key: leaf.numpy() for key, leaf in cut.items()}
    np.savez(folder / "modelnet10.npz", **fields, **arrays)
    return folder


@pytest.fixture(scope="module")
def trained(packed, tmp_path_factory):
    out = tmp_path_factory.mktemp("answers")
    settings = Settings(
        seeds=2,
        steps=15,
        drawn=32,
        points=48,
        widths=(16, 32),
        groups=(("slices", SLICES), ("ball", BALL)),
    )
    files = training.run(out, packed, settings, networks=("plain", "augmented"))
    assert len(files) == 4
    return out


def test_the_split_is_stratified_and_never_mixes(packed):
    labels = unpack(packed, "sweethome3d").labels
    training, test = split(labels)
    assert labels[test].bincount().tolist() == [3] * 8
    assert not {*training.tolist()} & {*test.tolist()}
    assert len(training) + len(test) == len(labels)


def test_padded_clouds_keep_their_mask(packed):
    clouds = unpack(packed, "modelnet10")
    some = rows_of(clouds.points, torch.tensor([0, 5]), 50)
    assert some["pos"].shape == (2, 50, 3)
    assert some["mask"].sum(1).tolist() == [40, 45]


def test_answers_are_those_of_the_network_at_each_rotation(packed):
    clouds = unpack(packed, "modelnet10")
    net = training.make("plain", 8, 0).eval()
    rows = torch.arange(20)
    inputs, labels = rows_of(clouds.points, rows), clouds.labels[rows]
    group = parse(BALL)
    found = training.answers(net, inputs, labels, group, "cpu", batch=64)
    turn = torch.tensor(group.parts["space"][7, :3, :3], dtype=torch.float32)
    with torch.inference_mode():
        moved = {"pos": inputs["pos"] @ turn.T, "mask": inputs["mask"]}
        probabilities = net(moved).softmax(1)
    np.testing.assert_allclose(found["confidence"][:, 7], probabilities.amax(1), atol=1e-3)
    np.testing.assert_array_equal(found["predicted"][:, 7], probabilities.argmax(1))
    expected = probabilities[torch.arange(20), labels]
    np.testing.assert_allclose(found["score"][:, 7], expected, atol=1e-3)


def test_the_page_says_what_the_files_hold(trained, tmp_path, capsys):
    page = tmp_path / "point-clouds.md"
    main(["collect", "--out", str(trained), "--page", str(page)])
    text = page.read_text(encoding="utf-8")
    for table in ("settings", "findings", "accuracy", "calibration", "axes", "tilt", "classes"):
        assert f"<!-- table: {table} -->" in text
    for figure in ("slices", "ball", "ece", "angle", "tilt", "slices-modelnet10"):
        assert (tmp_path / "point-clouds" / f"{figure}.png").stat().st_size > 5000
    numbers = Numbers(tmp_path / "point-clouds")
    with np.load(trained / "sweethome3d-plain.npz") as file:
        right = [file[f"{seed}/ball/predicted"] == file["labels"][:, None] for seed in (0, 1)]
    expected = np.concatenate(right).mean(0)
    along = numbers.along("ball", "sweethome3d", "plain", "accuracy")
    np.testing.assert_allclose(along, expected, atol=1e-4)
    assert numbers.mean("sweethome3d", "plain", "accuracy_ball") == pytest.approx(expected.mean())
    rows = read_csv(tmp_path / "point-clouds" / "summary.csv")
    assert len(rows) == 2 * 2 * 2


def test_a_flat_and_right_network_has_no_spread():
    """Answers made by hand: right at every rotation with confidence 0.75."""
    group = parse(BALL)
    labels = np.array([0, 1, 1])
    predicted = np.tile(labels[:, None], (1, len(group)))
    arrays = {
        "labels": labels,
        "classes": np.array(["a", "b"]),
        "trained": np.array([10, 20, 1]),
        "groups": np.array([f"slices={BALL}", f"ball={BALL}"]),
        "0/seconds": np.zeros(2),
    }
    for name in ("slices", "ball"):
        arrays[f"0/{name}/predicted"] = predicted
        arrays[f"0/{name}/confidence"] = np.full(predicted.shape, 0.75, np.float16)
    (row,) = summary_rows(Answers("toy", "plain", arrays))
    assert row["accuracy_ball"] == pytest.approx(1)
    assert row["worst_ball"] == row["always_ball"] == 1
    assert row["ece_ball"] == pytest.approx(0.25, abs=1e-6)


def test_the_calibrated_error_shrinks_with_the_samples():
    few, many = (calibrated_ece(torch.full((count,), 0.7)) for count in (50, 5000))
    assert many < 0.02 < few


def test_tilt_is_the_angle_of_the_upright_axis(trained, tmp_path):
    collect(trained, tmp_path)
    numbers = Numbers(tmp_path)
    up = numbers.groups["ball"].parts["space"][:, :3, :3] @ np.array([0.0, 1.0, 0.0])
    expected = np.rad2deg(np.arccos(np.clip(up[:, 1], -1, 1)))
    np.testing.assert_allclose(numbers.tilt(), expected, atol=1e-6)
    about = numbers.about_axis("sweethome3d", "plain", "accuracy", "y (upright)")
    assert [*about] == [0.0, 90.0, 180.0]


def test_figures_know_which_rotation_is_the_identity():
    group = parse(SLICES)
    array = labelled(group, ["plain"], np.zeros((1, len(group))), "accuracy")
    assert array.attrs["identity"] == group.identity
    assert array.attrs["layout"] == "slices"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--seeds", "0"], "seeds: got 0"),
        (["train", "--data", "nowhere"], "no file 'sweethome3d.npz'"),
        (["collect", "--out", "nowhere"], "no answers"),
    ],
)
def test_mistakes_are_named(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_one_command_goes_from_clouds_to_the_page(packed, tmp_path, capsys):
    few = ["--steps", "2", "--seeds", "2", "--points", "32", "--most", "3", "--workers", "1"]
    few += ["--networks", "plain", "augmented"]
    groups = ["--slices", "slices3d:4:3", "--ball", "rotations3d:12"]
    page = tmp_path / "point-clouds.md"
    places = ["--data", str(packed), "--out", str(tmp_path / "answers"), "--page", str(page)]
    main([*few, *groups, *places])
    said = capsys.readouterr().out
    assert said.count("trained") == 8
    assert f"wrote {page}" in said
    assert "<!-- table: findings -->" in page.read_text("utf-8")


def test_a_training_that_fails_is_named_in_the_end(packed, tmp_path, capsys):
    settings = Settings(seeds=1, steps=1, drawn=8, widths=(8, 8), groups=(("ball", "nothing:3"),))
    wrong = {"networks": ("plain",), "data_sets": ("sweethome3d",)}
    with pytest.raises(InputError, match="plain on sweethome3d, seed 0 did not end well"):
        training.run(tmp_path, packed, settings, **wrong)
    assert "unknown name 'nothing'" in capsys.readouterr().out


def test_the_papers_claims_are_judged_by_the_numbers():
    numbers = Numbers(DOCS)
    before = claims(numbers)
    assert "near upright alone | confirmed; and along the upright axis" in before
    assert "more invariant one | confirmed; with accuracy upright" in before
    assert "it pays on sweethome3d, not on modelnet10" in before
    for row in numbers.summary:
        better = row["network"] == "augmented"
        row |= {"accuracy_upright": 0.9, "accuracy_ball": 0.1 if better else 0.9}
    after = claims(numbers)
    assert "near upright alone | not confirmed here" in after
    assert "more invariant one | not confirmed here" in after
    assert "it pays on no data set, not on sweethome3d, modelnet10" in after
