"""Persons, faces and lines that turn: rules on made-up tables, parts on made-up data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.spatial.transform import Rotation

import orbical as ob
from orbical.errors import ModelError
from orbical_audits import Verdict, by_hand, turned_views
from orbical_audits.models import _poses, face_mesh, movenet, pp_ocr, selfie_segmentation


def limits(low, high):
    return {"value": (low + high) / 2, "low": low, "high": high, "n": 80}


def row(moved, wrong, sure):
    return {
        "network": "net",
        "family": "rotated",
        "moved by": limits(0, moved),
        "wrong somewhere": limits(wrong / 2, wrong),
        "confident where wrong": sure and limits(*sure),
    }


@pytest.mark.parametrize(
    ("given", "right", "expected"),
    [
        (row(1e-4, 0.5, (0.9, 1)), (0.9, 1), Verdict.INVARIANT),
        (row(0.2, 0.04, (0.9, 1)), (0.9, 1), Verdict.TOLERATED),
        (row(0.2, 0.08, (0.6, 0.9)), (0.9, 1), Verdict.OPEN),
        (row(0.2, 0.5, (0.6, 0.9)), (0.9, 1), Verdict.CONFIDENT),
        (row(0.2, 0.5, (0.0, 0.1)), (0.9, 1), Verdict.UNCONFIDENT),
        (row(0.2, 0.5, (0.0, 0.1)), (0.3, 0.6), Verdict.NOT_INVARIANT),  # it is never confident
        (row(0.2, 0.5, (0.1, 0.6)), (0.9, 1), Verdict.NOT_INVARIANT),
        (row(0.2, 0.5, None), (0.9, 1), Verdict.NOT_INVARIANT),  # too few to decide
    ],
)
def test_the_rule_of_turned_views_reaches_each_verdict(given, right, expected):
    tables = {
        "upright": [{"network": "net", "confident where right": limits(*right)}],
        "families": [given, {**given, "family": "upside down"}],
    }
    assert turned_views.decide("it {}", tables) == {"it net, rotated": expected}


def test_shares_are_drawn_by_samples_and_need_ten():
    wrong = np.zeros((40, 5), bool)
    wrong[:20] = True
    sure = wrong & (np.arange(40) < 5)[:, None]
    found = turned_views.share_of(sure, wrong, 0)
    assert found["n"] == 20
    assert found["value"] == 0.25
    assert found["low"] < 0.15  # 20 samples, not 100 views
    assert turned_views.share_of(sure[11:], wrong[11:], 0) is None


@pytest.fixture
def persons(monkeypatch):
    """Twelve small pictures with 17 points each, of which one is not labeled."""
    monkeypatch.setattr(_poses, "VIEW", 32)
    monkeypatch.setattr(_poses, "LARGE", 46)
    generator = torch.Generator().manual_seed(0)
    points = 8 + 16 * torch.rand(12, 17, 3, generator=generator)
    points[..., 2] = 2
    points[:, 3, 2] = 0
    return torch.rand(12, 3, 46, 46, generator=generator), points


def test_a_network_that_answers_as_upright_is_wrong_where_persons_turn(persons, tmp_path):
    images, points = persons
    answer = torch.cat([points[..., :2], torch.full_like(points[..., :1], 0.9)], -1)

    def network(views):  # recognizes the picture by its mean, which no exact turn changes
        means = images[..., 7:-7, 7:-7].mean((1, 2, 3))
        return answer[(views.mean((1, 2, 3))[:, None] - means).abs().argmin(1)]

    scan = _poses.scanned({"net": network}, images, points, 2, tmp_path / "scan.zarr")
    found = {"net": _poses.measured(scan, "net", 0.5)}
    upright, rows = _poses.tabled(scan, points, found, 0)
    assert upright[0]["right"]["value"] == 1
    by_family = {given["family"]: given for given in rows}
    assert {*by_family} == {"mirrored", "rotated", "upside down", "mirrored and rotated"}
    turned = by_family["rotated"]
    assert turned["wrong somewhere"]["value"] > 0.9
    assert turned["moved by"]["low"] > 0.2
    assert turned["confident where wrong"]["value"] == 1
    verdicts = turned_views.decide("{}", {"upright": upright, "families": rows})
    assert verdicts["net, rotated"] == Verdict.CONFIDENT


def test_exchanged_sides_are_told_from_other_errors(persons):
    points = persons[1][:1]
    order = np.arange(17)
    for first, second in ob.tasks.COCO_SWAPS:
        order[[first, second]] = second, first

    def network(views):
        return points[:, order, :2].expand(len(views), -1, -1)

    scan = ob.scan(
        network, (torch.rand(1, 3, 32, 32), points), group="trivial",
        task=_poses.key_points(ob.actions.Images()), progress=False,
    )  # fmt: skip
    moved, exchanged = _poses.distances(scan, scan.data["model"].values[0], points)
    assert exchanged.all()
    assert moved.max() == 0
    assert float(scan.data["oks"].max()) < 0.5


def test_movenet_gives_x_and_y_in_pixels_of_the_view(tmp_path, monkeypatch):
    asked = []

    def graph(pixels):
        asked.append(pixels)
        return torch.tensor([0.25, 0.5, 0.9]).expand(1, 1, 17, 3)  # down, right, score

    monkeypatch.setattr(movenet, "read_graph", lambda path: graph)
    found = movenet.loaded("Lightning", tmp_path)(torch.full((2, 3, 256, 256), 0.5))
    assert found.shape == (2, 17, 3)
    assert found[1, 4].tolist() == pytest.approx([128, 64, 0.9])
    assert [tuple(pixels.shape) for pixels in asked] == [(1, 192, 192, 3)] * 2
    assert asked[0].dtype == torch.int32
    assert int(asked[0].max()) == 128


def test_left_and_right_points_of_a_mesh_are_found_from_its_symmetry(monkeypatch):
    half = np.random.default_rng(0).normal(size=(20, 3)) + np.array([3, 0, 0])
    mesh = np.concatenate([half, half * [-1, 1, 1], [[0, 1, 2], [0, 5, 0], [0, -4, 1]]])
    monkeypatch.setattr(face_mesh, "ANCHORS", ((0, 20, 1, 21, 40, 41), (20, 0, 21, 1, 40, 41)))
    turned = Rotation.from_euler("xyz", [5, 10, -8], degrees=True).apply(mesh)
    assert face_mesh.pairs(turned) == [(place, place + 20) for place in range(20)]
    with pytest.raises(ModelError, match="nearly its own mirror image, got one that is"):
        face_mesh.pairs(np.random.default_rng(1).normal(size=(60, 3)))


@pytest.mark.parametrize(
    ("off", "sure", "expected"),
    [
        (5e-4, None, Verdict.INVARIANT),
        (0.09, None, Verdict.TOLERATED),
        (0.15, 0.6, Verdict.OPEN),
        (0.9, 0.6, Verdict.CONFIDENT),
        (0.9, 0.1, Verdict.UNCONFIDENT),
        (0.9, 0.3, Verdict.NOT_INVARIANT),
    ],
)
def test_one_face_is_judged_without_limits(off, sure, expected):
    given = {"family": "tilted", "moved by": limits(off / 2, off), "confident where wrong": sure}
    verdicts = face_mesh.decide({"families": [given, {**given, "family": "upside down"}]})
    assert verdicts == {"MediaPipe Face Mesh, tilted": expected}


def test_a_mesh_that_does_not_turn_is_found_by_hand_too(monkeypatch):
    mesh = torch.from_numpy(np.random.default_rng(0).random((468, 3)) * 192).float()

    def still(images):
        return mesh.expand(len(images), -1, -1), torch.ones(len(images), 1)

    monkeypatch.setattr(face_mesh, "pairs", lambda mesh: [])
    rows = face_mesh.by_hand(still, torch.zeros(2, 3, 272, 272))
    apart = float((mesh[33, :2] - mesh[263, :2]).norm())
    half_turn = float((192 - 2 * mesh[:, :2]).norm(dim=1).mean()) / apart
    by_position = {given["position"]: given for given in rows}
    assert by_position["upside down"]["moved by"]["value"] == pytest.approx(half_turn, rel=1e-5)
    assert by_position["upside down"]["confident where wrong"] == 1


def test_masks_are_labels_in_the_view_and_unknown_around_it():
    images = torch.zeros(1, 3, 364, 364)
    images[..., 100:200, 100:150] = 1
    labels = selfie_segmentation.own_masks(lambda views: views[:, :1], images)
    assert labels.shape == (1, 364, 364)
    assert labels[0, 150, 120] == 1
    assert labels[0, 250, 250] == 0
    assert labels[0, 10, 10] == selfie_segmentation.UNKNOWN
    points = torch.tensor([[[10.5, 20.5, 2.0], [30.0, 30.0, 1.0], [-5.0, 30.0, 2.0]]])
    assert selfie_segmentation.at_key_points(points).eq(1).nonzero().tolist() == [[0, 74, 64]]


def test_masks_that_stay_are_compared_with_upright_ones_moved():
    """Disks near the middle, so that all of them is in every view."""
    points = torch.tensor([[[80.5, 80.5, 2.0]]]).repeat(12, 1, 1)
    down, right = np.mgrid[:364, :364]
    disk = (np.hypot(down - 134, right - 134) < 30).astype(np.float32)
    images = torch.from_numpy(disk).expand(12, 3, 364, 364)
    still = torch.from_numpy(by_hand.middle(disk[None], 256))
    masks = {
        "stays": lambda views: still.expand(len(views), 1, -1, -1),
        "turns": lambda views: views[:, :1],
    }
    rows = {
        name: {
            row["family"]: row for row in selfie_segmentation.by_hand_rows(mask, images, points, 0)
        }
        for name, mask in masks.items()
    }
    overlaps = {name: {f: r["IoU"]["value"] for f, r in of.items()} for name, of in rows.items()}
    assert overlaps["stays"]["rotated"] == overlaps["stays"]["mirrored"] == 0
    assert 0.1 < overlaps["stays"]["tilted"] < 0.8
    assert overlaps["turns"]["rotated"] == overlaps["turns"]["mirrored"] == 1
    assert min(overlaps["turns"].values()) > 0.95  # what interpolation leaves
    confirmed = {name: of["tilted"]["confirms"] for name, of in rows.items()}
    assert confirmed == {"stays": "not invariant and confident", "turns": "none"}


@pytest.mark.parametrize(
    ("wrong", "undone", "sure", "expected"),
    [
        ((0.2, 0.4), (0.0, 0.1), (0.6, 0.9), "not invariant and confident"),
        ((0.2, 0.4), (0.0, 0.1), (0.4, 0.9), "not invariant"),
        ((0.2, 0.4), (0.0, 0.1), None, "not invariant"),
        ((0.2, 0.4), (0.1, 0.3), (0.6, 0.9), "none"),  # interpolation alone does it
        ((0.04, 0.4), (0.0, 0.0), (0.6, 0.9), "none"),
    ],
)
def test_tilts_are_confirmed_against_tilts_that_were_undone(wrong, undone, sure, expected):
    given = {"wrong": limits(*wrong), "confident where wrong": sure and limits(*sure)}
    assert turned_views.confirms(given, {"wrong": limits(*undone)}) == expected


def test_points_turn_with_pictures_that_pillow_tilts():
    picture = np.zeros((1, 100, 100, 3), np.uint8)
    picture[0, 20:23, 60:63] = 255
    moved = by_hand.tilted(30)(picture)[0, ..., 0].astype(float)
    down, right = np.mgrid[:100, :100] + 0.5
    center = [(place * moved).sum() / moved.sum() for place in (right, down)]
    point = by_hand.tilted_points(torch.tensor([61.5, 21.5]), 30, 100)
    assert point.tolist() == pytest.approx(center, abs=0.1)


def test_poses_by_hand_are_right_where_the_task_finds_them_right(persons):
    points = persons[1]
    noise = torch.randn(12, 17, 2, generator=torch.Generator().manual_seed(1))
    found = points[..., :2] + noise * torch.linspace(0, 4, 12)[:, None, None]
    labels = points[..., :2].where(points[..., 2:] > 0, torch.nan)
    task = _poses.key_points(ob.actions.Images())
    right = (task.score(found[None], labels[None], None) >= 0.5)[0]
    assert 2 < right.sum() < 10
    assert _poses.similar(found, points, 0, 32).tolist() == right.tolist()
    turned = by_hand.tilted_points(points[..., :2], 20, 32)
    assert _poses.similar(turned, points, 20, 32).all()
    assert not _poses.similar(turned, points, -20, 32).any()


def test_lines_are_cut_out_around_their_ink():
    ink = torch.zeros(1, 160, 448)
    ink[:, 60:100, 100:300] = 1
    cut = pp_ocr.line_of(ink)
    assert cut.shape == (3, 48, 320)  # 208 x 48 pixels of paper, padded
    assert cut[0, 24, 100] == -1
    assert cut[0, 1, 100] == 1
    assert cut[0, 24, 250] == 0
    text_ink, text = pp_ocr.line(3, ["DejaVuSans"])
    assert len(text.split()) >= 2
    assert pp_ocr.line_of(text_ink)[0].min() < -0.9
    assert bool((text_ink[:, [0, -1]] == 0).all())


@pytest.mark.parametrize(
    ("changes", "moved", "sure", "expected"),
    [
        ((0, 0.02), 0.0, (0, 0.01), Verdict.INVARIANT),
        ((0, 0.02), 0.1, (0, 0.01), Verdict.TOLERATED),
        ((0.5, 0.7), 0.1, (0.06, 0.2), Verdict.CONFIDENT),
        ((0.5, 0.7), 0.1, (0, 0.04), Verdict.UNCONFIDENT),
        ((0.5, 0.7), 0.1, (0.01, 0.2), Verdict.NOT_INVARIANT),
    ],
)
def test_what_is_read_in_a_mirror_is_judged_by_its_confidence(changes, moved, sure, expected):
    given = {
        "family": "mirrored",
        "changes somewhere": {**limits(*changes), "value": changes[0]},
        "confidence changes by": moved,
        "wrong and confident": limits(*sure),
    }
    assert pp_ocr.decide({"families": [given]}) == {"PP-OCRv6 small, mirrored": expected}


def test_small_tilts_turn_counter_clockwise_about_the_middle():
    group = pp_ocr.tilts()
    assert group.identity == 0
    ink = torch.zeros(1, 1, 160, 448)
    ink[..., 78:82, 300:340] = 1
    moved = ob.actions.Images().apply(group, ink)[:, 0, 0]
    rows = torch.arange(160.0)[:, None]
    heights = (moved * rows).sum((1, 2)) / moved.sum((1, 2))
    assert float(heights[pp_ocr.ANGLES.index(15)]) < 60  # the right end goes up
    assert Image.fromarray(moved[0].byte().numpy()).size == (448, 160)
