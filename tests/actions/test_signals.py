"""Signals: shifts, reversal, sign and gain against plain references, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import Positions, Signals, SignalWindow
from orbical.errors import InputError
from orbical.groups import parse

X = torch.randn(3, 2, 10, generator=torch.Generator().manual_seed(0))


def test_whole_shifts_are_those_of_numpy():
    group = parse("shifts:12:3")
    for shift, moved in zip(group.coords["shift"], Signals().apply(group, X), strict=True):
        np.testing.assert_array_equal(moved, np.roll(X, int(shift), axis=-1))


def test_a_shift_between_samples_interpolates():
    group = parse("shifts:1:0.25")
    moved = Signals().apply(group, X)[group.coords["shift"].tolist().index(0.75)]
    np.testing.assert_allclose(moved, 0.25 * X + 0.75 * X.roll(1, -1), atol=1e-6)
    lost = Signals().defect(group, X)
    assert float(lost[group.identity].max()) == 0.0
    assert float(lost[group.coords["shift"].tolist().index(0.5)].min()) > 0.01


@pytest.mark.parametrize(
    "group", ["shifts:4", "sign", "gains:0.5:2:5", "time_reversal*sign", "shifts:2*gains:0.5:2:3"]
)
def test_the_inverse_restores_a_signal(group):
    group = parse(group)
    back = Signals().move(group.inverse(), Signals().apply(group, X))
    np.testing.assert_allclose(back, X[None].expand_as(back), atol=1e-6)
    assert float(Signals().defect(group, X).max()) == 0.0
    assert float((Signals().apply(group, X) - X[None]).abs().max()) > 0.1


def test_a_window_shows_what_lies_in_the_longer_signal():
    group = parse("shifts:3")
    for shift, seen in zip(group.coords["shift"], SignalWindow(4).apply(group, X), strict=True):
        start = 3 - int(shift)
        np.testing.assert_array_equal(seen, X[..., start : start + 4])
    assert ob.actions.Action.from_record(SignalWindow(4).describe()).size == 4


def test_a_model_whose_answer_follows_the_signal_has_no_gap():
    """The place of the peak moves with the signal, and the mean of the values does not."""
    signals = torch.zeros(4, 1, 40)
    places = torch.tensor([15.0, 18.0, 20.0, 24.0])
    signals[torch.arange(4), 0, places.long()] = 1.0
    models = {
        "peak": lambda x: x[:, 0].argmax(-1).float() + 5.0,
        "mean": lambda x: x.mean((1, 2)) + 20.0,
    }
    task = ob.tasks.Regression(SignalWindow(30), Positions())
    scan = ob.scan(models, (signals, places), group="shifts:5", task=task, progress=False)
    assert float(scan.data["invariance_gap"][0].max()) == 0.0
    assert float(scan.data["score"][0].max()) == 0.0
    assert float(scan.data["invariance_gap"][1].min()) > 1.0
    assert ob.tasks.Task.from_record(task.describe()).output.step == 1.0


def test_the_worst_shift_is_found_between_the_sampled_ones():
    bump = torch.exp(-((torch.arange(32) - 16.0) ** 2) / 20)[None, None].repeat(2, 1, 1)

    def near(x):
        score = 4 * (x[:, 0, 18] - 0.5)
        return torch.stack([score, -score], -1)

    found = ob.worst_case(
        near,
        (bump, torch.ones(2, dtype=torch.int64)),
        group="shifts:6:3",
        task=ob.tasks.Classification(Signals()),
    )
    np.testing.assert_allclose(found["shift"], 2.0, atol=0.1)


def refused(words, group="shifts:2", x=X, action=None):
    task = ob.tasks.Classification(action or Signals())
    with pytest.raises(InputError, match=words):
        ob.scan(lambda x: x.mean(-1), x, group=group, task=task, progress=False)


def test_what_cannot_be_moved_is_refused_before_any_work():
    refused("do not commute", "shifts:2*time_reversal")
    refused(r"samples of shape \[channel, time\].*pass signals as \[sample", x=X[:, 0])
    refused(r"--input signals", action=ob.actions.Images())
    refused("the plane part of rotations:4 moves nothing of this data", "rotations:4")
    lacking = X.clone()
    lacking[0, 1, 3] = torch.nan
    refused("NaN or infinity at channel 1, time 3 of sample 0", x=lacking)
    refused(r"at least 12 samples", action=SignalWindow(8))
    with pytest.raises(InputError, match=r"\(Positions\) knows, got time in time_reversal"):
        ob.scan(lambda x: x[:, 0].argmax(-1).float(), X, group="time_reversal",
                task=ob.tasks.Regression(Signals(), Positions()), progress=False)  # fmt: skip
    with pytest.raises(InputError, match="size: expected an integer >= 1"):
        SignalWindow(0)
    with pytest.raises(InputError, match="step: expected a number"):
        Positions("near")
    with pytest.raises(InputError, match="LOW, HIGH: expected 0 < low"):
        parse("gains:2:4:3")


def energy(signals: torch.Tensor) -> torch.Tensor:
    """Return the log energy of frames of 8 samples, `[N, T / 8, 1]`."""
    frames = signals[:, 0].unfold(-1, 8, 8)
    return frames.square().sum(-1, keepdim=True).add(1e-3).log()


def test_frames_at_another_rate_move_with_their_signal():
    signals = torch.randn(5, 1, 64, generator=torch.Generator().manual_seed(0))
    task = ob.tasks.Regression(ob.actions.Signals(), ob.actions.Frames(8), per_point=True)
    scan = ob.scan(energy, signals, group="shifts:16:8", task=task, progress=False)
    assert float(scan.data["invariance_gap"].max()) < 1e-5
    voiced = ob.tasks.PointClassification(ob.actions.Signals(), output=ob.actions.Frames(8))

    def activity(signals):
        loud = energy(signals) - 2.0
        return torch.cat([-loud, loud], -1)

    truth = (energy(signals)[..., 0] > 2).long()
    scan = ob.scan(activity, (signals, truth), group="shifts:16:8", task=voiced, progress=False)
    assert (scan.data["score"] == 1).all()
    assert float(scan.data["changed_pixels"].max()) == 0


def test_frames_that_do_not_fit_the_signal_are_refused():
    signals = torch.randn(2, 1, 64)
    task = ob.tasks.Regression(ob.actions.Signals(), ob.actions.Frames(16), per_point=True)
    with pytest.raises(ob.errors.ModelError, match="16 samples apart"):
        ob.scan(energy, signals, group="shifts:16:16", task=task, progress=False)
    with pytest.raises(ob.errors.InputError, match="a number of samples"):
        ob.actions.Frames(0)
    with pytest.raises(ob.errors.InputError, match="point_classification"):
        ob.tasks.Segmentation(ob.actions.Signals())
