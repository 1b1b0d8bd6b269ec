"""Classes that move with the input: options of a list, left and right, 6 and 9, ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import orbical as ob

OPTIONS = 4
ROWS = ob.actions.Rows()


def questions(count: int = 60, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return options `[N, 4, 3]` and the right one: that of the largest first coordinate."""
    options = torch.randn(count, OPTIONS, 3, generator=torch.Generator().manual_seed(seed))
    return options, options[..., 0].argmax(1)


def fair(options: torch.Tensor) -> torch.Tensor:
    return 3 * options[..., 0] + options[..., 1]


def biased(options: torch.Tensor) -> torch.Tensor:
    return fair(options) + torch.tensor([2.0, 0.0, 0.0, -1.0])


def scanned(model, group="permutations:4", task="classification", **settings):
    task = {"classification": ob.tasks.Classification, "ordinal": ob.tasks.Ordinal,
            "multilabel": ob.tasks.MultiLabel}[task]  # fmt: skip
    options, right = questions()
    truth = torch.eye(OPTIONS)[right] if task is ob.tasks.MultiLabel else right
    return ob.scan(
        model,
        (options, truth),
        group=group,
        task=task(ROWS, representation="options", **settings),
        keep="probabilities" if task is ob.tasks.Classification else (),
        progress=False,
    )


def test_stored_scores_are_those_of_orders_made_by_hand():
    options, right = questions()
    scan = scanned(biased)
    for place, order in enumerate(itertools.permutations(range(OPTIONS))):
        shown = torch.stack([options[:, row] for row in order], 1)
        by_position = biased(shown).softmax(1)
        by_option = torch.empty_like(by_position)
        for position, row in enumerate(order):
            by_option[:, row] = by_position[:, position]
        stored = scan.data.isel(model=0, element=place)
        assert np.array_equal(stored["probabilities"].values, by_option.numpy())
        assert np.array_equal(stored["predicted"].values, by_option.argmax(1).numpy())
        assert np.array_equal(
            stored["score"].values, by_option[torch.arange(len(right)), right].numpy()
        )
        assert np.array_equal(stored["confidence"].values, by_position.max(1).values.numpy())
        assert np.array_equal(stored["correct"].values, (by_option.argmax(1) == right).numpy())


def test_a_fair_model_never_changes_its_answer():
    scan = scanned(fair)
    correct = scan.data["correct"].values[0]
    assert (correct == correct[:, :1]).all()
    assert 0.5 < correct.mean() < 1
    assert float(ob.nero.consistency(scan)["changed"].squeeze()) == 0
    assert float(scan.data["invariance_gap"].max()) < 1e-6


def test_fixed_classes_would_call_a_fair_model_a_guesser_and_a_scan_warns():
    options, right = questions()
    with pytest.warns(UserWarning, match="representation='options'"):
        scan = ob.scan(
            fair,
            (options, right),
            group="permutations:4",
            task=ob.tasks.Classification(ROWS),
            progress=False,
        )
    assert abs(float(scan.data["correct"].mean()) - 0.25) < 1e-9


def test_no_warning_for_classes_that_move_or_are_more(recwarn):
    scanned(fair)
    options, _ = questions(4)
    ob.scan(lambda x: fair(x)[:, :3], options, group="permutations:4",
            task=ob.tasks.Classification(ROWS), progress=False)  # fmt: skip
    assert not [str(one.message) for one in recwarn if "rows" in str(one.message)]


def test_an_average_over_all_orders_is_the_mean_by_hand_and_never_changes():
    options, right = questions()
    task = ob.tasks.Classification(ROWS, representation="options")
    average = ob.predictors.OrbitAverage(biased, "permutations:4", task)
    by_hand = torch.zeros(len(options), OPTIONS, dtype=torch.float64)
    for order in itertools.permutations(range(OPTIONS)):
        probabilities = biased(options[:, list(order)]).softmax(1).double()
        by_hand[:, list(order)] += probabilities / 24
    assert torch.allclose(average(options).double(), by_hand, atol=1e-6)
    scan = ob.scan(average, (options, right), group="permutations:4", task=task, progress=False)
    assert float(scan.data["invariance_gap"].max()) < 1e-6
    consensus = scanned(biased).data["consensus"].values[0]
    assert np.allclose(consensus, by_hand, atol=1e-6)


def test_equivariance_is_tested_with_the_classes_moved():
    options, _ = questions(8)
    task = ob.tasks.Classification(ROWS, representation="options")
    ob.testing.assert_equivariant(fair, options, group="permutations:4", task=task)
    with pytest.raises(AssertionError):
        ob.testing.assert_equivariant(biased, options, group="permutations:4", task=task)


@pytest.mark.parametrize("task", ["ordinal", "multilabel"])
def test_ranks_and_labels_are_scored_in_the_frame_of_the_input(task):
    scan = scanned(fair, task=task)
    score = scan.data["score"].values[0]
    assert np.allclose(score, score[:, :1], atol=1e-6)
    assert score.std() > 0


def test_a_tie_stays_while_two_answers_are_exchanged():
    def judge(answers: torch.Tensor) -> torch.Tensor:
        quality = answers[..., 0]
        return torch.cat([quality, quality.mean(1, keepdim=True) + 0.5], 1)

    answers = torch.randn(20, 2, 1, generator=torch.Generator().manual_seed(1))
    task = ob.tasks.Classification(
        ROWS, representation="options", classes=["first", "second", "tie"]
    )
    scan = ob.scan(judge, answers, group="permutations:2", task=task, progress=False)
    predicted = scan.data["predicted"].values[0]
    assert {*predicted.ravel()} == {0, 1, 2}
    assert (predicted[:, 0] == predicted[:, 1]).all()


def digit(images: torch.Tensor) -> torch.Tensor:
    """Return a class for where the light is: 0 above, 1 below, 2 left, 3 right."""
    half = images.shape[-1] // 2
    return torch.stack(
        [images[..., :half, :].mean((1, 2, 3)), images[..., half:, :].mean((1, 2, 3)),
         images[..., :half].mean((1, 2, 3)), images[..., half:].mean((1, 2, 3))], 1)  # fmt: skip


NAMES = ["up", "down", "left", "right"]


@pytest.mark.parametrize(
    ("group", "moves"),
    [
        ("flips", {"horizontal": {"left": "right"}, "vertical": {"up": "down"},
                   "both": {"left": "right", "up": "down"}}),
        ("cyclic:4", {"angle 90": {"up": "left", "left": "down", "down": "right"},
                      "angle 180": {"up": "down", "left": "right"},
                      "angle 270": {"up": "right", "right": "down", "down": "left"}}),
    ],
)  # fmt: skip
def test_classes_that_elements_exchange_by_name(group, moves):
    images = torch.rand(12, 1, 6, 6, generator=torch.Generator().manual_seed(2))
    task = ob.tasks.Classification(classes=NAMES, representation=moves)
    scan = ob.scan(digit, images, group=group, task=task, keep="probabilities", progress=False)
    predicted = scan.data["predicted"].values[0]
    assert (predicted == predicted[:, :1]).all()
    assert scan.group.closed
    assert scan.group.parts["classes"].shape == (4, 4)


def test_a_stored_scan_knows_how_its_classes_move(tmp_path):
    images = torch.rand(6, 1, 6, 6)
    moves = {"angle 180": {6: 9}}
    task = ob.tasks.Classification(representation=moves)

    def model(x):
        return digit(x).repeat(1, 3)[:, :10]

    ob.scan(model, images, group="cyclic:2", task=task, out=tmp_path / "s.zarr", progress=False)
    scan = ob.load(tmp_path / "s.zarr")
    restored = ob.tasks.Task.from_record(scan.record.task.__dict__)
    assert restored.representation == {"angle 180": {"6": "9"}}
    assert repr(restored) == "Classification(representation={'angle 180': {'6': '9'}})"
    again = ob.scan(model, images, group="cyclic:2", task=restored, out=tmp_path / "s.zarr",
                    progress=False)  # fmt: skip
    assert again.complete


def test_half_turns_alone_are_no_representation_of_quarter_turns():
    with pytest.warns(UserWarning, match="'angle 90' and then 'angle 90' is 'angle 180'"):
        group = ob.groups.with_classes(ob.groups.cyclic(4), {"angle 180": {6: 9}})
    assert ob.groups.cyclic(4).closed
    assert not group.closed


def test_a_flip_that_is_forgotten_is_named():
    """Without an entry a flip along both axes would seem to change left and right."""
    moves = {"flip horizontal": {"left": "right"}}
    with pytest.warns(UserWarning, match="is 'flip both'.*name all that exchange some"):
        ob.scan(digit, torch.rand(4, 1, 6, 6), group="flips", progress=False,
                task=ob.tasks.Classification(classes=NAMES, representation=moves))  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ({"angle 45": {"up": "down"}}, "elements of cyclic:4"),
        ({"angle 90": {"up": "north"}}, "one of up, down, left, right"),
        ({"angle 90": {"up": "down", "left": "down"}}, "every class once"),
    ],
)
def test_moves_that_cannot_be(moves, message):
    with pytest.raises(ob.errors.InputError, match=message):
        ob.groups.with_classes(ob.groups.cyclic(4), moves, NAMES)


def test_a_representation_that_is_none():
    with pytest.raises(ob.errors.InputError, match="options"):
        ob.tasks.Classification(representation="rows")


def test_exchanges_that_do_not_commute_need_whole_names():
    moves = {"angle 90": {"up": "left", "left": "up"}, "flip mirrored": {"left": "right"}}
    with pytest.raises(ob.errors.InputError, match="depend on their order"):
        ob.groups.with_classes(ob.groups.dihedral(4), moves, NAMES)


def test_fewer_classes_than_rows_are_refused():
    options, _ = questions(4)
    task = ob.tasks.Classification(ROWS, representation="options")
    with pytest.raises(ob.errors.ModelError, match="4 classes"):
        ob.scan(lambda x: fair(x)[:, :3], options, group="permutations:4", task=task,
                progress=False)  # fmt: skip


def test_calibration_and_sets_follow_the_moved_classes():
    fair_scan, biased_scan = scanned(fair), scanned(biased)
    curve = ob.calibration.along_orbit(fair_scan, "ece")
    assert np.ptp(curve.values) < 1e-6
    assert np.ptp(ob.calibration.along_orbit(biased_scan, "ece").values) > 0.01


def test_the_ceiling_of_equivariant_classifiers_is_that_of_a_search():
    """On points of the plane under quarter turns, which turn four classes along."""
    rng = np.random.default_rng(3)
    group = ob.groups.cyclic(4)
    start = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])
    turns = group.linear("plane")
    points = np.concatenate([start @ turn.T for turn in turns])
    labels = rng.integers(0, 4, len(points))
    moves = {f"angle {90 * k}": {c: (c + k) % 4 for c in range(4)} for k in (1, 2, 3)}
    table = ob.bounds.OrbitTable.from_data(points, labels, group, representation=moves)
    # By hand: each representative has a class, which the turn that leads to a point advances; the
    # origin is its own orbit, where only equal probabilities are equivariant.
    best = 0.0
    for row in range(2):
        own = labels[[row + 3 * k for k in range(4)]]
        best += max(sum((c + k) % 4 == own[k] for k in range(4)) for c in range(4))
    best += 4 * 0.25
    assert table.accuracy_ceiling == pytest.approx(best / len(points))
    assert (
        table.accuracy_ceiling
        != ob.bounds.OrbitTable.from_data(points, labels, group).accuracy_ceiling
    )


def test_options_have_a_ceiling_of_one_where_the_right_one_moves_along():
    options, right = questions(5)
    orders = list(itertools.permutations(range(OPTIONS)))
    shown = torch.cat([options[:, list(order)] for order in orders])
    moved = torch.cat([torch.as_tensor(order).argsort()[right] for order in orders])
    arguments = (shown, moved, "permutations:4")
    fixed = ob.bounds.OrbitTable.from_data(*arguments, action=ROWS)
    moving = ob.bounds.OrbitTable.from_data(*arguments, action=ROWS, representation="options")
    assert fixed.accuracy_ceiling == pytest.approx(0.25)
    assert moving.accuracy_ceiling == pytest.approx(1.0)


def test_labels_in_the_frames_of_samples_make_no_table_of_shared_orbits():
    scan = scanned(fair)
    assert ob.bounds.OrbitTable.from_scan(scan, orbit=np.arange(60)).mass.shape == (60, 4)
    with pytest.raises(ob.errors.InputError, match="from_data with representation"):
        ob.bounds.OrbitTable.from_scan(scan, orbit=np.arange(60) // 2)
