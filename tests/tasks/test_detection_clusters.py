"""The consensus of detections: clusters by class and overlap, one voice an element."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical.groups import translations
from orbical.tasks import Detection, detection_clusters
from orbical.tasks.detection_clusters import detection_consensus
from orbical.tasks.detection_matching import Detections

GROUP = translations(4, 2)
WEIGHTS = torch.as_tensor(GROUP.weights)
TASK = Detection(threshold=0.5, most=6)


def orbit_of(rows: list[list[float]], noise: float = 0.0, seed: int = 0) -> Detections:
    """Detections (box, confidence, class) that move along, `[K, 1, n]`, with noise on boxes."""
    random = torch.Generator().manual_seed(seed)
    given = torch.tensor(rows)
    box = given[None, None, :, :4].expand(len(GROUP), 1, -1, -1)
    box = TASK.output.move(GROUP, box + noise * torch.randn(box.shape, generator=random))
    shape = (len(GROUP), 1, len(rows))
    return Detections(box, given[:, 4].expand(shape).clone(), given[:, 5].expand(shape).clone())


def slow_consensus(found: Detections, threshold: float) -> list[tuple[float, int, list[float]]]:
    """The same clustering with lists, for boxes that never touch the border of their view."""
    shift = GROUP.parts["plane"][:, :2, 2] * [1, -1]
    left = []
    for element in range(len(GROUP)):
        for rank in range(found.label.shape[2]):
            if found.label[element, 0, rank] >= 0:
                box = found.box[element, 0, rank].numpy() - np.tile(shift[element], 2)
                left.append(
                    (
                        float(found.confidence[element, 0, rank]),
                        int(found.label[element, 0, rank]),
                        box,
                        element,
                    )
                )
    clusters = []
    while left:
        leader = max(left, key=lambda item: item[0])
        members = [
            item
            for item in left
            if item[1] == leader[1] and overlap(item[2], leader[2]) >= threshold
        ]
        left = [item for item in left if not any(item is member for member in members)]
        voices = {}
        for item in members:
            if item[3] not in voices or item[0] > voices[item[3]][0]:
                voices[item[3]] = item
        weight = np.array([item[0] for item in voices.values()])
        boxes = np.array([item[2] for item in voices.values()])
        mean = (weight[:, None] * boxes).sum(0) / weight.sum()
        clusters.append((weight.sum() / len(GROUP), leader[1], mean.tolist()))
    return sorted(clusters, key=lambda item: -item[0])


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    both = np.prod(np.clip(sides, 0, None))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def test_clusters_equal_those_made_with_lists() -> None:
    rows = [[40, 40, 60, 60, 0.9, 0], [42, 41, 63, 62, 0.7, 0], [70, 30, 95, 60, 0.6, 1]]
    found = orbit_of([[float(value) for value in row] for row in rows], noise=2.0)
    found = found._replace(
        confidence=found.confidence * torch.linspace(1, 0.8, len(GROUP))[:, None, None]
    )
    agreed = TASK.consensus(found, GROUP, WEIGHTS)
    expected = slow_consensus(found, 0.5)
    assert len(expected) == int((~agreed.label[0].isnan()).sum())
    for place, (confidence, label, box) in enumerate(expected):
        assert np.isclose(agreed.confidence[0, place], confidence, atol=1e-5)
        assert int(agreed.label[0, place]) == label
        assert np.allclose(agreed.box[0, place], box, atol=1e-3)


def test_classes_are_never_mixed() -> None:
    agreed = TASK.consensus(
        orbit_of([[40.0, 40, 60, 60, 0.9, 0], [40, 40, 60, 60, 0.8, 3]]), GROUP, WEIGHTS
    )
    assert agreed.label[0, :2].tolist() == [0, 3]


def test_missing_detections_lower_confidence_and_support_but_do_not_move_the_box() -> None:
    found = orbit_of([[40.0, 40, 60, 60, 0.8, 0]])
    found.label[: len(GROUP) // 2] = -1
    agreed = TASK.consensus(found, GROUP, WEIGHTS)
    share = 1 - (len(GROUP) // 2) / len(GROUP)
    assert torch.allclose(agreed.box[0, 0], torch.tensor([40.0, 40, 60, 60]))
    assert np.isclose(agreed.support[0, 0], share)
    assert np.isclose(agreed.confidence[0, 0], 0.8 * share)


def test_the_result_does_not_depend_on_the_other_samples_of_a_batch() -> None:
    single = [
        orbit_of([[40.0, 40, 60, 60, 0.9, 0], [80, 30, 99, 60, 0.5, 1]], noise=2.0, seed=seed)
        for seed in range(3)
    ]
    single[1].label[:] = -1
    joined = Detections(*(torch.cat(part, 1) for part in zip(*single, strict=True)))
    together = TASK.consensus(joined, GROUP, WEIGHTS)
    for place, one in enumerate(single):
        alone = TASK.consensus(one, GROUP, WEIGHTS)
        for a, b in zip(together, alone, strict=True):
            assert torch.allclose(a[place], b[0], equal_nan=True)


def test_a_side_at_the_border_has_no_voice_where_another_has_one() -> None:
    found = orbit_of([[100.0, 40, 126, 60, 0.9, 0]])
    found.box[..., 2].clamp_(max=128.0)  # the view ends there for shifts to the right
    agreed = TASK.consensus(found, GROUP, WEIGHTS)
    assert torch.allclose(agreed.box[0, 0], torch.tensor([100.0, 40, 126, 60]), atol=1e-4)


def common(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The part that two boxes share; of no area where they share none."""
    low, high = np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])
    return np.concatenate([low, np.maximum(low, high)])


def slow_consensus_in_views(box, confidence, label, view, border, weights, threshold, most):
    """The rules of the module's text one by one, views, borders and weights included."""
    free = [(int(k), int(m)) for k, m in np.argwhere(label >= 0)]
    rows = []
    while free and len(rows) < most:
        leader = max(free, key=lambda at: (not border[at].any(), confidence[at]))
        members = []
        for at in free:
            seen = common(view[at[0]], view[leader[0]])
            alike = overlap(common(box[at], seen), common(box[leader], seen)) >= threshold
            if at == leader or (label[at] == label[leader] and alike):
                members.append(at)
        free = [at for at in free if at not in members]
        voices = {}
        for at in sorted(members, key=lambda at: confidence[at]):
            voices[at[0]] = at
        voice = {at: confidence[at] * weights[at[0]] for at in voices.values()}
        sides = []
        for side in range(4):
            heard = [at for at in voice if not border[at][side]] or [*voice]
            total = sum(voice[at] for at in heard)
            sides.append(sum(voice[at] * box[at][side] for at in heard) / total)
        support = sum(weights[element] for element in voices)
        rows.append([*sides, sum(voice.values()), label[leader], support])
    return np.array(sorted(rows, key=lambda row: -row[4]))


@pytest.mark.parametrize("seed", range(8))
def test_views_borders_and_weights_count_as_the_rules_say(seed):
    random = np.random.default_rng(seed)
    elements, most = 9, 4
    which = random.integers(0, 3, (elements, most))
    center = random.uniform(20, 60, (3, 2))[which] + random.normal(0, 2, (elements, most, 2))
    half = random.uniform(8, 14, (elements, most, 2))
    box = np.concatenate([center - half, center + half], -1)
    label = np.where(random.uniform(size=which.shape) < 0.2, -1.0, which % 2)
    confidence = np.sort(random.uniform(0.1, 1, which.shape))[:, ::-1] * (label >= 0)
    corner = random.uniform(0, 20, (elements, 2))
    view = np.concatenate([corner, corner + 60], -1)
    border = random.uniform(size=box.shape) < 0.15
    weights = random.dirichlet(np.ones(elements))
    batch = [torch.from_numpy(part[:, None].copy()) for part in (box, confidence, label, border)]
    found = detection_consensus(
        Detections(*batch[:3]), torch.from_numpy(view), batch[3], torch.from_numpy(weights), 0.5, 6
    )
    rows = found.rows()[0].numpy()
    expected = slow_consensus_in_views(box, confidence, label, view, border, weights, 0.5, 6)
    np.testing.assert_allclose(rows[: len(expected)], expected, atol=1e-9)
    assert np.isnan(rows[len(expected) :]).all()


def test_without_asking_the_device_back_the_consensus_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [[40.0, 40, 60, 60, 0.9, 0], [42, 41, 63, 62, 0.7, 0], [70, 30, 95, 60, 0.6, 1]]
    found = orbit_of(rows, noise=2.0)
    found.label[::3, :, 1:] = -1
    asked = TASK.consensus(found, GROUP, WEIGHTS)
    # What an accelerator does: every place, and every round, whether or not it holds something.
    monkeypatch.setattr(detection_clusters, "_places_to_cluster", detection_clusters._every_place)
    monkeypatch.setattr(detection_clusters, "_known_to_be_none", lambda marks: False)
    unasked = TASK.consensus(found, GROUP, WEIGHTS)
    assert 2 <= int((~asked.label[0].isnan()).sum()) < TASK.most
    for a, b in zip(asked, unasked, strict=True):
        assert torch.allclose(a, b, equal_nan=True)
