"""Flow: its errors against plain references, its small maps, and views that stay inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.datasets import particle_pairs
from orbical.errors import InputError, ModelError
from orbical.tasks.flow import flow_angle


def weights_of(group):
    return torch.as_tensor(group.weights)


def random_field(seed, size=16, samples=2):
    return torch.randn(samples, 2, size, size, generator=torch.Generator().manual_seed(seed))


def test_errors_equal_their_definitions():
    answer, truth = random_field(1), random_field(2)
    group = ob.groups.cyclic(1)
    found = ob.tasks.Flow().summarize(answer[None], truth, group, weights_of(group))
    length = np.linalg.norm((answer - truth).numpy(), axis=1)
    a, b = (np.concatenate([f.numpy(), np.ones((2, 1, 16, 16))], 1) for f in (answer, truth))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(found["score"][:, 0], length.mean((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(found["rmse"][:, 0], (length**2).mean((1, 2)) ** 0.5, rtol=1e-5)
    expected = np.degrees(np.arccos(cosine)).mean((1, 2))
    np.testing.assert_allclose(found["angular_error"][:, 0], expected, rtol=1e-4)


def test_small_angles_are_not_lost_to_rounding():
    truth = torch.tensor([5.0, 0.0]).reshape(1, 1, 2, 1, 1)
    answer = truth + torch.tensor([0.0, 1e-4]).reshape(1, 1, 2, 1, 1)
    expected = np.degrees(1e-4 / 26**0.5)
    assert float(flow_angle(answer, truth)) == pytest.approx(expected, rel=1e-3)
    assert float(flow_angle(truth, truth)) == 0


def test_all_errors_are_the_same_at_every_element_for_an_equivariant_answer():
    group = ob.groups.parse("dihedral:4*time_reversal")
    task, answer, truth = ob.tasks.Flow(), random_field(1), random_field(2)
    found = task.summarize(task.output.apply(group, answer), truth, group, weights_of(group))
    for name in ("score", "rmse", "angular_error"):
        assert float(found[name].std(1).max()) < 1e-4, name


def test_the_small_maps_are_block_means_moved_along():
    group = ob.groups.parse("dihedral:4*time_reversal")
    task, answer, truth = ob.tasks.Flow(), random_field(1, 32, 1), random_field(2, 32, 1)
    found = task.summarize(task.output.apply(group, answer), truth, group, weights_of(group))
    blocks = torch.nn.functional.avg_pool2d(truth, 2)
    np.testing.assert_allclose(
        found["truth_map"][0], task.output.apply(group, blocks)[:, 0], atol=1e-5
    )
    blocks = torch.nn.functional.avg_pool2d(answer, 2)
    np.testing.assert_allclose(
        found["flow_map"][0], task.output.apply(group, blocks)[:, 0], atol=1e-5
    )
    assert found["error_map"].shape == (1, 16, 16, 16)


def still(pairs):
    return torch.zeros(len(pairs), 2, *pairs.shape[-2:])


def test_a_window_sees_only_real_pixels_and_the_whole_truth():
    """Where the flow is the same everywhere, so is the error at every angle, corners included."""
    made = particle_pairs(2, size=96, kinds=["uniform"], seed=1)
    scan = ob.scan(
        still,
        (made["pair"], made["flow"]),
        group="rotations:24",
        task=ob.tasks.Flow(window=64, interpolation="bicubic"),
        progress=False,
    )
    speed = made["flow"].norm(dim=1).mean((1, 2)).numpy()
    np.testing.assert_allclose(
        scan.data["score"].values[0], np.repeat(speed[:, None], 24, 1), rtol=1e-4
    )
    assert np.isfinite(scan.data["error_map"].values).all()
    assert scan.data["consensus"].shape == (1, 2, 2, 64, 64)


def test_a_window_shows_each_angle_the_content_turned_about_the_center():
    seen = []

    def watch(pairs):
        seen.append(pairs.clone())
        return still(pairs)

    pair = torch.zeros(1, 2, 1, 65, 65)
    pair[..., 32, 52] = 1.0  # 20 pixels to the right of the center
    scan = ob.scan(watch, pair, group="rotations:8", task=ob.tasks.Flow(window=45), progress=False)
    assert scan.data.sizes["element"] == 8
    views = next(part for part in seen if len(part) == 8)[:, 0, 0]
    for number, view in enumerate(views):
        row, column = np.unravel_index(int(view.argmax()), view.shape)
        angle = 2 * np.pi * number / 8
        assert (column - 22, 22 - row) == pytest.approx(
            (20 * np.cos(angle), 20 * np.sin(angle)), abs=0.8
        )


def test_with_d4_a_window_is_the_exact_central_crop():
    made = particle_pairs(1, size=48, seed=2)
    cut = (made["pair"][..., 8:-8, 8:-8], made["flow"][..., 8:-8, 8:-8])
    whole, inner = (
        ob.scan(rightward, data, group="dihedral:4*time_reversal", task=task, progress=False)
        for data, task in (
            ((made["pair"], made["flow"]), ob.tasks.Flow(window=32)),
            (cut, ob.tasks.Flow()),
        )
    )
    assert float(whole.data["action_defect"].max()) == 0
    for name in ("score", "rmse", "angular_error", "truth_map", "consensus_vs_truth"):
        np.testing.assert_allclose(whole.data[name], inner.data[name], rtol=1e-5, atol=1e-6)


def rightward(pairs):
    flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
    flow[:, 0] = pairs[:, 0, 0]
    return flow


def test_a_group_whose_view_leaves_the_image_is_named_with_the_largest_size():
    made = particle_pairs(1, size=64)
    with pytest.raises(InputError, match=r"rotations:8 .* 48 pixels .* largest admissible .* 45"):
        ob.scan(
            still,
            (made["pair"], made["flow"]),
            group="rotations:8",
            task=ob.tasks.Flow(window=48),
            progress=False,
        )


@pytest.mark.parametrize(
    ("window", "words"),
    [(0, "an integer >= 1, got 0"), (True, "size"), (31, "as even or odd as")],
)
def test_a_wrong_window_is_refused(window, words):
    made = particle_pairs(1, size=64)
    with pytest.raises(InputError, match=words):
        ob.scan(
            still,
            made["pair"],
            group="rotations:8",
            task=ob.tasks.Flow(window=window),
            progress=False,
        )


@pytest.mark.parametrize("answered", [16, 64])
@pytest.mark.parametrize("labeled", [True, False])
def test_a_model_that_answers_more_or_less_than_the_window_is_refused(answered, labeled):
    made = particle_pairs(1, size=64)
    with pytest.raises(ModelError, match=r"maps of \(32, 32\) pixels, as the images have"):
        ob.scan(
            lambda pairs: torch.zeros(len(pairs), 2, answered, answered),
            (made["pair"], made["flow"]) if labeled else made["pair"],
            group="dihedral:4",
            task=ob.tasks.Flow(window=32),
            progress=False,
        )


def test_flow_of_the_wrong_size_is_refused():
    made = particle_pairs(1, size=64)
    small = made["flow"][..., :24, :24]
    for answer, truth, words in (
        (lambda pairs: torch.zeros(len(pairs), 2, 16, 16), made["flow"], "as the images have"),
        (still, small, "as the model predicts"),
    ):
        with pytest.raises((InputError, ModelError), match=words):
            ob.scan(answer, (made["pair"], truth), group="dihedral:4", task="flow", progress=False)
    with pytest.raises(InputError, match="size of the images"):
        ob.scan(
            still,
            (made["pair"], made["flow"][..., :24, :24]),
            group="dihedral:4",
            task=ob.tasks.Flow(window=32),
            progress=False,
        )


def test_a_window_may_be_named_in_text_and_tells_the_task_its_size():
    task = ob.tasks.Flow(input=ob.tasks.parse_input("pair-window:64:bilinear"))
    assert task.window == 64
    assert task.describe() == ob.tasks.Flow(window=64).describe()


def test_a_flow_that_is_nowhere_is_named_with_its_sample_and_place():
    pairs = torch.zeros(9, 2, 1, 8, 8)
    pairs[7, 1] = 1.0  # with time reversed it is the first frame

    def breaks(batch):
        flow = torch.zeros(len(batch), 2, 8, 8)
        flow[batch[:, 0].amax((1, 2, 3)) > 0.5] = torch.nan
        return flow

    with pytest.raises(ModelError, match=r"NaN or infinite output for sample 7 at .*reversed"):
        ob.scan(breaks, pairs, group="cyclic:4*time_reversal", task="flow", progress=False)
