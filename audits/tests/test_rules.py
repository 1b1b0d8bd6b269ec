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
        (0.001, 0.001, Verdict.INVARIANT),
        (0.05, 0.5, Verdict.TOLERATED),
        (4.0, 0.001, Verdict.NOT_INVARIANT),
        (0.001, 2.0, Verdict.NOT_INVARIANT),
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


def test_how_well_a_spread_fits_the_error_gets_no_verdict():
    tables = {"symmetry": [{"largest": 0.0}] * 3}
    assert ani1x.decide(tables) == {"ANI-1x": Verdict.INVARIANT}


def test_what_only_a_mirror_changes_is_by_design_where_the_authors_exclude_mirrors():
    assert _potentials.decide_without_mirrors(summary(4.0, 0.001)) == {"net": Verdict.BY_DESIGN}
    assert _potentials.decide_without_mirrors(summary(4.0, 2.0)) == {"net": Verdict.NOT_INVARIANT}
    assert _potentials.decide_without_mirrors(summary(0.0, 0.0)) == {"net": Verdict.INVARIANT}


@pytest.mark.parametrize(
    ("change", "share", "surplus", "verdict"),
    [
        (0.0, 0.0, None, Verdict.INVARIANT),
        (0.001, 0.0, None, Verdict.TOLERATED),
        (0.2, 0.05, (0.15, 0.2), Verdict.CONFIDENT),
        (0.2, 0.05, (0.0, 0.2), Verdict.NOT_INVARIANT),
        (0.2, 0.05, (-0.1, 0.01), Verdict.UNCONFIDENT),
        (0.2, 0.0, None, Verdict.NOT_INVARIANT),
    ],
)
def test_a_mirror_does_not_decide_for_proteins(change, share, surplus, verdict):
    limits = surplus and dict(zip(("low", "high"), surplus, strict=True))
    row = {
        "model": "net",
        "probability changes by": change,
        "prediction changes": {"value": share, "low": share, "high": share},
    }
    kept = {**row, "move": "rotation", "confidence minus accuracy where changed": limits}
    mirror = {**kept, "move": "mirror", "probability changes by": 0.9}
    assert proteinmpnn.decide({"moves": [kept, mirror]}) == {"net": verdict}


@pytest.mark.parametrize(
    ("changes", "surplus", "verdict"),
    [
        (0.005, (0.2, 0.3), Verdict.TOLERATED),
        (0.4, (0.11, 0.2), Verdict.CONFIDENT),
        (0.4, (0.05, 0.2), Verdict.NOT_INVARIANT),
        (0.4, (-0.04, 0.04), Verdict.UNCONFIDENT),
        (0.4, (-0.06, 0.04), Verdict.NOT_INVARIANT),
    ],
)
def test_the_worst_family_decides_for_classifiers(changes, surplus, verdict):
    def row(high, limits):
        sure = dict(zip(("low", "high"), limits, strict=True))
        return {
            "network": "net",
            "prediction changes": {"low": high, "high": high},
            "confidence minus accuracy": sure,
        }

    tables = {"networks": [row(0.0, (0.0, 0.0)), row(changes, surplus)]}
    assert efficientnet_lite.decide(tables) == {"EfficientNet-net": verdict}


@pytest.mark.parametrize(
    ("confirmed", "verdict"),
    [("not invariant and confident", Verdict.CONFIDENT), ("not invariant", Verdict.NOT_INVARIANT)],
)
def test_that_pose_is_sure_when_tilted_is_called_what_other_persons_confirm(confirmed, verdict):
    sure = {"value": 0.7, "low": 0.6, "high": 0.8, "n": 60}
    row = {
        "network": "full",
        "family": "tilted",
        "wrong somewhere": sure,
        "moved by": sure,
        "confident where wrong": sure,
    }
    tables = {
        "upright": [{"network": "full", "confident where right": sure}],
        "families": [row],
        "tilts": [{"confirms": confirmed}],
    }
    assert mediapipe_pose.decide(tables) == {"MediaPipe Pose full, tilted": verdict}
