"""Predictions of volumes at the slices that the sliders of the input choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.interface.selection import Selection
from orbical.interface.session import Session
from orbical.tasks._maps import map_of_volume_slices, map_slices_at

SLICES = [1, 4, 0]


def tissue(volumes: torch.Tensor) -> torch.Tensor:
    """Return logits of two classes, higher in the first slices."""
    bright = 4 * (volumes - 0.5)
    bright[:, :, :3] += 1
    return torch.cat([-bright, bright], 1)


def halved(volumes: torch.Tensor) -> torch.Tensor:
    return volumes / 2


@pytest.fixture(scope="module")
def volumes() -> torch.Tensor:
    return torch.rand(2, 1, 6, 6, 6, generator=torch.Generator().manual_seed(0))


def scanned(volumes: torch.Tensor, keep: Any) -> ob.Scan:
    return ob.scan(
        {"mine": tissue},
        (volumes, (volumes[:, 0] > 0.5).long()),
        group="inversion",
        task="segmentation",
        keep=keep,
        progress=False,
    )


def place(session: Session, slices: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    chosen = {"sample": 1, "element": 1, "slices": slices}
    return session.handle({"kind": "place", "selection": chosen})


def picture(volume: Any, slices: list[int]) -> Any:
    with map_slices_at(tuple(slices)):
        return map_of_volume_slices(torch.as_tensor(volume), -1).numpy()


def check_classes(session: Session, volumes: torch.Tensor) -> dict[str, Any]:
    header, arrays = place(session, SLICES)
    assert header["detail"]["slices"] == SLICES
    moved = volumes[1:].flip(2, 3, 4)
    expected = picture(tissue(moved)[0].argmax(0), SLICES)
    np.testing.assert_array_equal(arrays["detail/class_map"][0], expected)
    np.testing.assert_array_equal(
        arrays["truth/moved"][0], picture((moved[0, 0] > 0.5).long(), SLICES)
    )
    assert "detail/map_vs_consensus" not in arrays  # the page compares with the moved consensus
    assert arrays["consensus/moved"].shape[1:] == expected.shape
    return arrays


def test_live_predictions_follow_the_slices(volumes: torch.Tensor) -> None:
    session = Session({"run": scanned(volumes, "inputs")}, models={"mine": tissue})
    arrays = check_classes(session, volumes)
    assert arrays["detail/entropy_map"].shape == arrays["detail/class_map"].shape
    assert place(session, [])[0]["detail"]["slices"] == [3, 3, 3]
    assert place(session, [99, 0, 0])[0]["detail"]["slices"] == [5, 0, 0]


@pytest.mark.parametrize("kept", ["segments", "probabilities"])
def test_kept_predictions_follow_the_slices(volumes: torch.Tensor, kept: str) -> None:
    session = Session({"run": scanned(volumes, ("inputs", kept))})
    arrays = check_classes(session, volumes)
    assert ("detail/entropy_map" in arrays) == (kept != "segments")


def test_predictions_that_are_stored_at_middle_slices_stay_there(volumes: torch.Tensor) -> None:
    scan = scanned(volumes, "inputs")
    header, arrays = place(Session({"run": scan}), SLICES)
    assert header["detail"]["slices"] == [3, 3, 3]
    np.testing.assert_array_equal(arrays["detail/class_map"][0], scan.data["class_map"][0, 1, 1])
    truth = picture(volumes[1, 0].flip(0, 1, 2) > 0.5, [3, 3, 3])
    assert arrays["truth/moved"].shape[1:] == truth.shape


def test_maps_of_values_follow_the_slices(volumes: torch.Tensor) -> None:
    scan = ob.scan(
        {"mine": halved},
        (volumes, volumes[:, 0]),
        group="inversion",
        task="dense_regression",
        keep="inputs",
        progress=False,
    )
    header, arrays = place(Session({"run": scan}, models={"mine": halved}), SLICES)
    assert header["detail"]["slices"] == SLICES
    expected = picture(volumes[1, 0].flip(0, 1, 2), SLICES)
    shown = expected >= 0
    values = arrays["detail/value_map"][0]
    np.testing.assert_allclose(values[shown], expected[shown] / 2, rtol=1e-6)
    np.testing.assert_allclose(arrays["detail/error_map"][0][shown], expected[shown] / 2, rtol=1e-2)


def test_slices_are_three_whole_numbers() -> None:
    assert Selection.from_fragment("slices=1,2,3").slices == (1, 2, 3)
    with pytest.raises(InputError, match="slices"):
        Selection.from_json({"slices": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="slices"):
        Selection.from_json({"slices": [0.5, 1, 1]})
