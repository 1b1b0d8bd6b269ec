"""The rules of audits, as functions of tables; no model is needed."""

from __future__ import annotations

import numpy as np
import pytest

from orbical_audits import Verdict
from orbical_audits.models import _potentials, ani1x, efficientnet_lite, mediapipe_pose, proteinmpnn


def summary(energy, force):
    names = ("rotations: energy", "order of atoms", "other cell", "mirror, achiral: largest")
    rows = [{"quantity": f"{name}, meV/atom", "net": 0.0} for name in names]
    rows.append({"quantity": "mirror, chiral: largest, meV/atom", "net": energy})
    return {"summary": [*rows, {"quantity": "rotations: forces, meV/Å", "net": force}]}


@pytest.mark.parametrize(
    ("energy", "force", "verdict"),
    [
        (0.001, 0.001, Verdict.EXACT),
        (0.05, 0.5, Verdict.PRECISE),
        (4.0, 0.001, Verdict.BROKEN),
        (0.001, 2.0, Verdict.BROKEN),
    ],
)
def test_a_potential_is_judged_by_its_largest_change(energy, force, verdict):
    assert _potentials.decide(summary(energy, force)) == {"net": verdict}


def test_mirror_images_are_those_of_the_other_space_group():
    pytest.importorskip("ase", reason="ase is not installed: extra chemistry")
    for name in ("Se", "TeO2, paratellurite"):
        right, left = _potentials.chiral(name), _potentials.chiral(name, mirrored=True)
        volume = [np.linalg.det(one.cell[:]) for one in (right, left)]
        assert volume[0] == pytest.approx(volume[1])
        near = [np.sort(one.get_all_distances(mic=True).ravel()) for one in (right, left)]
        np.testing.assert_allclose(*near, atol=1e-6)


@pytest.mark.parametrize(
    ("ratio", "ranks", "verdict"),
    [
        ((0.8, 1.2), (0.1, 0.4), Verdict.KNOWS),
        ((0.8, 1.2), (-0.1, 0.2), Verdict.BROKEN),
        ((0.4, 0.6), (0.1, 0.4), Verdict.BROKEN),
        ((1.6, 2.0), (0.1, 0.4), Verdict.SURE),
    ],
)
def test_a_spread_needs_the_size_and_the_order_of_the_errors(ratio, ranks, verdict):
    row = {
        "error / spread": dict(zip(("low", "high"), ratio, strict=True)),
        "rank correlation": dict(zip(("low", "high"), ranks, strict=True)),
    }
    tables = {"symmetry": [{"largest": 0.0}] * 3, "spread": [row, row]}
    moves, knows = ani1x.decide(tables).values()
    assert (moves, knows) == (Verdict.EXACT, verdict)


@pytest.mark.parametrize(
    ("change", "share", "surplus", "verdict"),
    [
        (0.0, 0.0, None, Verdict.EXACT),
        (0.001, 0.0, None, Verdict.PRECISE),
        (0.2, 0.05, (0.15, 0.2), Verdict.SURE),
        (0.2, 0.05, (0.0, 0.2), Verdict.BROKEN),
        (0.2, 0.05, (-0.1, 0.01), Verdict.KNOWS),
        (0.2, 0.0, None, Verdict.BROKEN),
    ],
)
def test_a_mirror_does_not_decide_for_proteins(change, share, surplus, verdict):
    limits = surplus and dict(zip(("low", "high"), surplus, strict=True))
    row = {"model": "net", "probability changes by": change, "answer changes": {"value": share}}
    kept = {**row, "move": "rotation", "too sure where changed": limits}
    mirror = {**kept, "move": "mirror", "probability changes by": 0.9}
    assert proteinmpnn.decide({"moves": [kept, mirror]}) == {"net": verdict}


@pytest.mark.parametrize(
    ("changes", "surplus", "verdict"),
    [
        (0.005, (0.2, 0.3), Verdict.PRECISE),
        (0.4, (0.11, 0.2), Verdict.SURE),
        (0.4, (0.05, 0.2), Verdict.BROKEN),
        (0.4, (-0.04, 0.04), Verdict.KNOWS),
        (0.4, (-0.06, 0.04), Verdict.BROKEN),
    ],
)
def test_the_worst_family_decides_for_classifiers(changes, surplus, verdict):
    def row(high, limits):
        sure = dict(zip(("low", "high"), limits, strict=True))
        return {"network": "net", "answer changes": {"high": high}, "too sure by": sure}

    tables = {"networks": [row(0.0, (0.0, 0.0)), row(changes, surplus)]}
    assert efficientnet_lite.decide(tables) == {"EfficientNet-net": verdict}


@pytest.mark.parametrize(
    ("confirmed", "verdict"), [("broken and sure", Verdict.SURE), ("broken", Verdict.BROKEN)]
)
def test_that_pose_is_sure_when_tilted_is_called_what_other_persons_confirm(confirmed, verdict):
    sure = {"value": 0.7, "low": 0.6, "high": 0.8, "n": 60}
    row = {
        "network": "full",
        "family": "tilted",
        "wrong somewhere": sure,
        "moved by": sure,
        "sure where wrong": sure,
    }
    tables = {
        "upright": [{"network": "full", "sure where right": sure}],
        "families": [row],
        "tilts": [{"confirms": confirmed}],
    }
    assert mediapipe_pose.decide(tables) == {"MediaPipe Pose full, tilted": verdict}
