"""Estimate the pitch of notes, transpose them, and change their sign, loudness and speed.

Run: python examples/signals.py (with recorded notes where they are at hand, see
`orbical.datasets.notes`; with synthetic ones otherwise)

Two models hear a spectrum over a logarithmic frequency, which a transposition shifts: a template of
harmonics follows it, a linear model does not. Two others hear the sound itself: autocorrelation
knows neither sign nor loudness, counting how often a level is crossed depends on both. Played
faster, a note has a higher pitch. Where a note sounds is a class for each frame of 10 ms: a fixed
level finds it only where it is loud.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import orbical as ob
from orbical.errors import InputError

RATE = 8000
BINS = 3  # for each semitone
LOWEST = 24  # semitones, of the first bin; 69 is 440 Hz
TRANSPOSED = 6  # semitones up and down
HOP = RATE // 100  # samples in a frame of 10 ms
VIEW = (118 - LOWEST) * BINS - 2 * TRANSPOSED * BINS  # bins that a model sees


def heard() -> tuple[Tensor, Tensor]:
    """Return half a second of each note, [N, 1, T], and pitches [N] in semitones."""
    try:
        sound, pitch = ob.datasets.notes()
        return sound[:, :, 2000:10000:2], pitch
    except InputError:
        random = torch.Generator().manual_seed(0)
        pitch = torch.arange(40.0, 87.0)
        time = torch.arange(RATE // 2) / RATE
        turns = hertz(pitch)[:, None, None] * torch.arange(1, 7)[:, None] * time
        loud = torch.rand(len(pitch), 6, 1, generator=random) / torch.arange(1, 7)[:, None]
        tones = (loud * torch.sin(2 * torch.pi * turns)).sum(1, keepdim=True)
        return tones / tones.abs().amax(-1, keepdim=True), pitch


def hertz(pitch: Tensor) -> Tensor:
    """Return the frequency of a pitch in semitones."""
    return 440 * 2 ** ((pitch - 69) / 12)


def spectrum(sound: Tensor) -> Tensor:
    """Return log-frequency spectra [N, 1, F] of sounds [N, 1, T], three bins for each semitone."""
    pitch = LOWEST + torch.arange((118 - LOWEST) * BINS) / BINS
    length = sound.shape[-1]
    time = (torch.arange(length) - length / 2) / RATE
    turns = 2 * torch.pi * hertz(pitch)[:, None] * time
    # Few waves of each frequency, so that a peak has the same width in semitones everywhere.
    seen = torch.exp(-((time * hertz(pitch)[:, None] / 12) ** 2))
    seen = seen / seen.sum(-1, keepdim=True)
    parts = torch.stack([sound[:, 0] @ (seen * wave).T for wave in (turns.cos(), turns.sin())])
    power = parts.square().sum(0)
    return (power / power.amax(-1, keepdim=True)).sqrt()[:, None]


class Harmonics:
    """The pitch whose first harmonics are strongest: a template that slides along the axis."""

    def __call__(self, spectra: Tensor) -> Tensor:
        offsets = [round(12 * BINS * math.log2(harmonic)) for harmonic in range(1, 7)]
        wide = F.pad(spectra[:, 0], (0, offsets[-1]))
        width = spectra.shape[-1]
        parts = [0.8**n * wide[:, at : at + width] for n, at in enumerate(offsets)]
        found = torch.stack(parts).sum(0)
        return LOWEST + TRANSPOSED + found.argmax(-1) / BINS


class Linear:
    """A pitch that is linear in the smoothed spectrum."""

    def __init__(self, spectra: Tensor, pitch: Tensor) -> None:
        rows = self.features(spectra)
        self.mean, self.usual = pitch.mean(), rows.mean(0)
        rows = rows - self.usual
        inner = rows @ rows.T + 0.1 * torch.eye(len(rows))
        self.weights = rows.T @ torch.linalg.solve(inner, pitch - self.mean)

    def features(self, spectra: Tensor) -> Tensor:
        return F.avg_pool1d(spectra, 19, 1, 9)[:, 0]

    def __call__(self, spectra: Tensor) -> Tensor:
        return self.mean + (self.features(spectra) - self.usual) @ self.weights


def semitones(frequency: Tensor) -> Tensor:
    """Return the pitch of a frequency."""
    return 69 + 12 * (frequency.clamp_min(1.0) / 440).log2()


def autocorrelation(sound: Tensor) -> Tensor:
    """Return the pitch of the first strong peak of the autocorrelation."""
    power = torch.fft.rfft(sound[:, 0], 2 * sound.shape[-1]).abs().square()
    alike = torch.fft.irfft(power)[:, : sound.shape[-1] // 2]
    shortest = RATE // 2500
    alike = alike / alike[:, :1].clamp_min(1e-9)
    inside = alike[:, 1:-1]
    peak = (inside > alike[:, :-2]) & (inside >= alike[:, 2:])
    strong = peak & (inside > 0.85 * inside[:, shortest:].amax(-1, keepdim=True))
    strong[:, : shortest - 1] = False
    return semitones(RATE / (strong.float().argmax(-1) + 1.0))


def crossings(sound: Tensor) -> Tensor:
    """Return the pitch from how often the sound rises through a fixed level."""
    above = sound[:, 0] > 0.3
    count = (above[:, 1:] & ~above[:, :-1]).sum(-1)
    return semitones(count * RATE / sound.shape[-1])


def scanned() -> tuple[dict[str, Any], ob.Scan]:
    """Scan the models of spectra over transpositions."""
    sound, pitch = heard()
    spectra = spectrum(sound)
    train, test = slice(0, None, 2), slice(1, None, 2)
    view = ob.actions.SignalWindow(VIEW)
    seen = view.apply(ob.groups.trivial(), spectra[train])[0]
    models = {"harmonics": Harmonics(), "linear": Linear(seen, pitch[train])}
    scan = ob.scan(
        models,
        (spectra[test], pitch[test]),
        group=f"shifts:{TRANSPOSED * BINS}:{BINS}",
        task=ob.tasks.Regression(view, ob.actions.Positions(1 / BINS)),
        keep="inputs",
        progress=False,
    )
    return models, scan


def scanned_sound() -> tuple[dict[str, Any], ob.Scan]:
    """Scan the models of sound over its sign and loudness."""
    models = {"autocorrelation": autocorrelation, "crossings": crossings}
    scan = ob.scan(
        models,
        heard(),
        group="gains:0.5:2:5*sign",
        task=ob.tasks.Regression(ob.actions.Signals()),
        keep="inputs",
        progress=False,
    )
    return models, scan


def scanned_speed() -> tuple[dict[str, Any], ob.Scan]:
    """Scan the models of sound over its speed, with which the pitch rises."""
    models = {"autocorrelation": autocorrelation, "crossings": crossings}
    task = ob.tasks.Regression(ob.actions.SignalWindow(2000), "pitch")
    return models, ob.scan(models, heard(), group="semitones:12:3", task=task, progress=False)


def level(sound: Tensor) -> Tensor:
    """Return the level of frames of 10 ms, [N, F], in decibels."""
    return 10 * sound[:, 0].unfold(-1, HOP, HOP).square().mean(-1).clamp_min(1e-12).log10()


def above(level: Tensor) -> Tensor:
    """Return logits of silence and sound."""
    return torch.stack([-level, level], -1)


def scanned_activity() -> tuple[dict[str, Any], ob.Scan]:
    """Scan detectors of where a note sounds, over its loudness."""
    sound, _ = heard()
    loud = sound / sound.abs().amax(-1, keepdim=True)
    noise = 0.003 * torch.randn(len(sound), 1, 2 * sound.shape[-1])
    noise[..., : sound.shape[-1]] += loud
    truth = torch.zeros(len(sound), noise.shape[-1] // HOP, dtype=torch.long)
    truth[:, : sound.shape[-1] // HOP] = 1
    models = {
        "fixed level": lambda sound: above(level(sound) + 40),
        "below the peak": lambda sound: above(level(sound) - level(sound).amax(-1)[:, None] + 30),
    }
    task = ob.tasks.PointClassification(
        ob.actions.Signals(), classes=["silence", "sound"], output=ob.actions.Frames(HOP)
    )
    return models, ob.scan(models, (noise, truth), group="decibels:24:6", task=task, progress=False)


def main() -> None:
    """Print and draw the result."""
    torch.manual_seed(0)
    changes = {"transposed": scanned(), "faster": scanned_speed(), "louder": scanned_sound()}
    for change, (_, scan) in changes.items():
        for model in scan.models:
            error = scan.data["score"].sel(model=model).median("sample").values
            print(
                f"{model:>15}: median error {error[scan.group.identity]:.2f} semitones, "
                f"{error.max():.2f} {change}"
            )
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "louder.png")
    _, scan = scanned_activity()
    for model in scan.models:
        right = scan.data["score"].sel(model=model).mean("sample").values
        print(
            f"{model:>15}: {right[scan.group.identity]:.1%} of the frames right, "
            f"{right.min():.1%} at the worst loudness"
        )
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
