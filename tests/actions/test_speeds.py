"""Faster and slower signals, and what is predicted of them as a whole and for each frame."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import Frames, Pitch, Signals, SignalWindow
from orbical.errors import InputError
from orbical.groups import decibels, parse, semitones, speeds

TIME = torch.arange(2000.0) - 999.5


def tone(frequency: float) -> torch.Tensor:
    return torch.sin(2 * math.pi * frequency * TIME)[None, None]


@pytest.mark.parametrize("frequency", [0.01, 0.1, 0.2])
@pytest.mark.parametrize("speed", [0.5, 0.8, 1.25, 2.0])
def test_a_faster_tone_is_a_higher_tone(frequency, speed):
    group = speeds(min(speed, 1), max(speed, 1), 2)
    (played,) = Signals().apply(group[[int(speed > 1)]], tone(frequency))
    inside = TIME.abs() * speed < 940
    expected = tone(frequency * speed)[0, 0, inside]
    np.testing.assert_allclose(played[0, 0, inside], expected, atol=2e-3)


def test_what_would_alias_is_removed_and_the_identity_changes_nothing():
    group = speeds(0.5, 2, 3)
    played = Signals().apply(group, tone(0.4))
    inside = TIME.abs() < 400
    assert float(played[2, 0, 0, inside].abs().max()) < 1e-3  # 0.8 is beyond Nyquist
    np.testing.assert_allclose(played[1], tone(0.4), atol=1e-6)
    assert float(played[2, 0, 0, TIME.abs() > 540].abs().max()) == 0.0  # silence after its end


def test_speeds_are_a_group_for_tones_that_keep_their_band():
    twice = Signals().move(
        speeds(1, 1.25, 2)[[1]], Signals().apply(speeds(1, 1.6, 2)[[1]], tone(0.1))
    )
    inside = TIME.abs() < 450
    (once,) = Signals().apply(speeds(1, 2, 2)[[1]], tone(0.1))
    np.testing.assert_allclose(twice[0][..., inside], once[..., inside], atol=2e-3)


def test_semitones_and_decibels_are_speeds_and_gains():
    np.testing.assert_allclose(semitones(12, 6).parts["speed"], 2 ** np.arange(-1, 1.5, 0.5))
    np.testing.assert_allclose(decibels(6, 6).parts["gain"] ** 2, 10 ** np.array([-0.6, 0, 0.6]))
    group = parse("decibels:20:20")
    np.testing.assert_allclose(Signals().apply(group, tone(0.1))[2], 10 * tone(0.1), rtol=1e-6)


def test_a_window_needs_real_signal_at_every_speed():
    group = speeds(0.5, 2, 3)
    played = SignalWindow(800).apply(group, tone(0.02))
    np.testing.assert_allclose(played[2, 0, 0], tone(0.04)[0, 0, 600:1400], atol=2e-3)
    with pytest.raises(InputError, match="at least 2400 samples"):
        SignalWindow(1200).check(group, tone(0.02))
    with pytest.raises(InputError, match="do not commute"):
        Signals().check(parse("shifts:2*semitones:1"), tone(0.1))


def test_frames_follow_the_speed_and_know_what_they_do_not_show():
    group = speeds(0.5, 2, 3)
    labels = torch.arange(9)[None]
    assert Frames().apply(group, labels)[:, 0].tolist() == [
        [2, 2, 3, 4, 4, 4, 5, 6, 6], [*range(9)], [-1, -1, 0, 2, 4, 6, 8, -1, -1],
    ]  # fmt: skip
    values = Frames().apply(group, labels.float())[:, 0]
    assert values[0].tolist() == [2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0]
    assert values[2].isnan().tolist() == [True, True, *[False] * 5, True, True]
    mask = Frames().apply(group, torch.ones(1, 9, dtype=torch.bool))
    assert mask[2, 0].tolist() == [False, False, *[True] * 5, False, False]
    # An unknown frame stays unknown by itself, and the mean is over those that show a frame.
    assert Frames().apply(group, torch.tensor([[1.0, torch.nan, 3.0]]))[1].isnan().sum() == 1
    mean = Frames().mean(values[:, None], torch.tensor([0.25, 0.5, 0.25]))[0]
    assert mean[0] == pytest.approx((0.25 * 2 + 0.5 * 0) / 0.75)


def notes() -> torch.Tensor:
    """Tones of 3 to 6 periods in 100 samples, between silence."""
    random = torch.Generator().manual_seed(0)
    frequency = 0.03 + 0.03 * torch.rand(8, 1, generator=random)
    return (torch.sin(2 * math.pi * frequency * TIME) * (TIME.abs() < 500))[:, None]


def loud(signals: torch.Tensor) -> torch.Tensor:
    """Logits of silence and sound in frames of 50 samples."""
    level = signals[:, 0].unfold(-1, 50, 50).square().mean(-1) - 0.1
    return torch.stack([-level, level], -1)


def test_a_class_for_each_frame_under_speeds_signs_and_gains():
    signals = notes()
    truth = torch.zeros(8, 40, dtype=torch.long)
    truth[:, 10:30] = 1
    task = ob.tasks.PointClassification(Signals(), output=Frames(50))
    data = ob.scan(loud, (signals, truth), group="speeds:0.5:2:5", task=task, progress=False).data
    assert float(data["score"].min()) > 0.94  # the frames at the ends of a sound
    assert float(data["score"][..., 2].min()) == 1.0
    louder = ob.scan(loud, (signals, truth), group="decibels:20:20*sign", task=task, progress=False)
    assert float(louder.data["score"][..., -2:].min()) == 1.0
    assert float(louder.data["score"][..., :2].max()) == 0.5  # too soft to be heard


def crossings(signals: torch.Tensor) -> torch.Tensor:
    """Frequency from upward crossings of 0, in cycles a thousand samples."""
    rises = (signals[:, 0, :-1] < 0) & (signals[:, 0, 1:] >= 0)
    place = torch.arange(rises.shape[-1]).expand_as(rises).double()
    first = place.where(rises, torch.inf).amin(-1)
    last = place.where(rises, -torch.inf).amax(-1)
    return (1000 * (rises.sum(-1) - 1) / (last - first)).float()


@pytest.mark.parametrize(("form", "error"), [("pitch:hertz", 0.5), ("trivial", 10.0)])
def test_a_frequency_rises_with_the_speed(form, error):
    group = "speeds:0.8:1.25:3*time_reversal"
    task = ob.tasks.Regression(SignalWindow(1500), form)
    steady = torch.cat([tone(f) for f in (0.031, 0.047, 0.053)])
    data = ob.scan(crossings, steady, group=group, task=task, progress=False).data
    gap = float(data["invariance_gap"].max())
    assert gap < error if form != "trivial" else gap > 5


def test_a_pitch_in_each_frame_moves_with_frame_and_speed(tmp_path):
    def track(signals):  # of frames of 500 samples, in semitones
        cut = signals.unfold(-1, 500, 500).flatten(0, 2)[:, None]
        return 12 * torch.log2(crossings(cut)).reshape(len(signals), -1, 1)

    task = ob.tasks.Regression(Signals(), Frames(500, of=Pitch()), per_point=True)
    steady = torch.cat([tone(0.031), tone(0.053)])
    scan = ob.scan(track, (steady, track(steady)), group="semitones:2", task=task,
                   out=tmp_path / "t.zarr", progress=False)  # fmt: skip
    inner = scan.data["score"].values[..., :3]  # slower: every frame is real
    assert float(np.abs(inner).max()) < 0.2
    record = ob.load(tmp_path / "t.zarr").record.to_json()["task"]
    assert ob.tasks.Task.from_record(record).output.of.unit == "semitones"


def test_a_position_is_not_said_to_follow_a_speed():
    task = ob.tasks.Regression(Signals(), "positions")
    with pytest.raises(InputError, match="speed"):
        ob.scan(lambda s: s[:, 0].argmax(-1).float(), tone(0.1), group="speeds", task=task)
