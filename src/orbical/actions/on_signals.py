"""Actions on signals along one axis: sound, time series, spectra over a logarithmic frequency."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, check_name, real_number, whole_number
from ..groups import Elements, Group
from .action import Action, ByPart, Exact, OfFinite, action_matrices

_ZEROS = 16
"""Zeros of the sinc function on each side: a tone at 0.9 of the Nyquist frequency is off by 1 %."""
_ROUNDING = 1e-9


class Signals(OfFinite):
    """Signals `[B, C, T]`: shifted along T, reversed, faster or slower, louder or softer.

    `shifts` move content towards the end of the axis; what leaves it there enters at the beginning,
    so that the shifts are a group and nothing is lost. Where that is not wanted, as for sound,
    `SignalWindow` moves a view inside longer signals. Shifts by a fraction of a sample interpolate
    linearly. `time_reversal` reverses the axis; `sign`, `gains` and `decibels` multiply the values.
    `speeds` and `semitones` play a signal faster or slower about its middle, resampled below the
    lower of both Nyquist frequencies; a faster one ends in silence, a slower one is cut.

    Shifts commute neither with reversals nor with speeds, so that a product of them is refused.

    >>> from orbical.groups import parse
    >>> ramp = torch.tensor([[[0.0, 1, 2, 3]]])
    >>> Signals().apply(parse("shifts:1"), ramp)[:, 0, 0].tolist()
    [[1.0, 2.0, 3.0, 0.0], [0.0, 1.0, 2.0, 3.0], [3.0, 0.0, 1.0, 2.0]]
    >>> Signals().apply(parse("sign*time_reversal"), ramp)[3, 0, 0].tolist()
    [-3.0, -2.0, -1.0, -0.0]
    """

    parts: ClassVar[tuple[str, ...]] = ("shift", "time", "gain", "speed")
    in_place: ClassVar[tuple[str, ...]] = ("gain",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", "time")
    drawn_as: ClassVar[str] = "signal"

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, T]`."""
        moved = _moved_signals(elements, x, _ZEROS)
        if "gain" in elements.parts:
            moved = moved * action_matrices(elements.parts["gain"], moved)[:, None, None, None]
        return moved

    def loses_nothing(self, elements: Elements, x: Tensor) -> bool:
        """Check whether all shifts are by whole samples, at one speed."""
        shift = elements.parts.get("shift", np.zeros(1))
        return bool((shift == np.floor(shift)).all()) and "speed" not in elements.parts

    def check(self, group: Group, x: Tensor) -> None:
        """Refuse shifts together with reversals or speeds."""
        super().check(group, x)
        others = sorted({"time", "speed"} & {*group.parts})
        if "shift" in group.parts and others:
            raise InputError(
                "group",
                f"shifts, or a group that changes {' and '.join(others)}",
                f"both in {group.spec}, which do not commute",
                remedy="scan them separately",
            )


class SignalWindow(Signals):
    """A view of `size` samples in the middle of longer signals `[B, C, T]`.

    Content shifts by the element, and what enters the view is real signal: nothing is made up and
    nothing wraps around. A log-frequency spectrum seen through a window is transposed by shifts.

    Args:
        size: the number of samples that a model sees.

    Raises:
        InputError: if the size is not a positive integer.

    Example:
        >>> from orbical.groups import shifts
        >>> SignalWindow(3).apply(shifts(1), torch.arange(5.0)[None, None])[:, 0, 0].tolist()
        [[2.0, 3.0, 4.0], [1.0, 2.0, 3.0], [0.0, 1.0, 2.0]]
    """

    def __init__(self, size: int) -> None:
        self.size = whole_number("size", size, 1)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move the whole of `x[K or 1, B, C, T]` and cut out the view."""
        start = (x.shape[-1] - self.size) // 2
        return super().move(elements, x)[..., start : start + self.size]

    def defect(self, elements: Elements, x: Tensor, moved: Tensor | None = None) -> Tensor:
        """Measure what interpolation loses of the whole signal."""
        return Signals().defect(elements, x)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that every shift stays inside of the signals."""
        super().check(group, x)
        farthest = float(np.abs(group.parts.get("shift", np.zeros(1))).max())
        needed = self.size * float(group.parts.get("speed", np.ones(1)).max()) + 2 * farthest
        if (x.shape[-1] - needed) // 2 < 0:
            raise InputError(
                "data",
                f"signals of at least {math.ceil(needed)} samples for SignalWindow({self.size}) "
                f"and {group.spec}",
                x.shape[-1],
            )


class Positions(ByPart, Exact):
    """Positions along the axis of a signal, `[B, ...]`, such as an onset or a pitch.

    A shift of the signal by s adds `step` times s. As the `representation` of a regression it
    states that a prediction should follow the signal. `time_reversal` is refused.

    Args:
        step: how far one sample of shift moves the position, in units of the prediction: 0.01 for
            an onset in seconds at 100 samples a second, 1/3 for a pitch in semitones where a
            spectrum has three bins for each.

    Raises:
        InputError: if the step is not a number.

    Example:
        >>> from orbical.groups import shifts
        >>> Positions(0.5).apply(shifts(2, 2), torch.tensor([[60.0]]))[:, 0, 0].tolist()
        [59.0, 60.0, 61.0]
    """

    part = "shift"
    parts: ClassVar[tuple[str, ...]] = ("shift",)

    def __init__(self, step: float = 1.0) -> None:
        self.step = float(real_number("step", step))

    def check(self, group: Group, x: Tensor) -> None:
        """Refuse reversals, which move a position by more than its value tells."""
        super().check(group, x)
        if "time" in group.parts:
            raise InputError(
                "group",
                "shifts or gains for Positions",
                group.spec,
                remedy="where a position moves depends on the length of the reversed signal",
            )

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Shift `x[K, B, ...]`."""
        by = action_matrices(self.step * elements.parts["shift"], x)
        return x + by.reshape(-1, *[1] * (x.ndim - 1))


class Pitch(ByPart, Exact):
    """Frequencies `[B, ...]`, which rise with the speed of the sound, such as the pitch of a note.

    Args:
        unit: `"semitones"`, of which a speed adds `12 log2`, or `"hertz"`, which it multiplies.

    Raises:
        InputError: if the unit is none of these.

    Example:
        >>> from orbical.groups import semitones
        >>> Pitch().apply(semitones(2), torch.tensor([60.0]))[:, 0].tolist()
        [58.0, 59.0, 60.0, 61.0, 62.0]
        >>> Pitch("hertz").apply(semitones(12, 12), torch.tensor([440.0]))[:, 0].tolist()
        [220.0, 440.0, 880.0]
    """

    part = "speed"
    parts: ClassVar[tuple[str, ...]] = ("speed", "time")
    ignored: ClassVar[tuple[str, ...]] = ("shift",)

    def __init__(self, unit: str = "semitones") -> None:
        check_name("unit", unit, ("semitones", "hertz"))
        self.unit = unit

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Raise or lower `x[K, B, ...]`."""
        speed = elements.parts["speed"]
        by = 12 * np.log2(speed) if self.unit == "semitones" else speed
        change = action_matrices(by, x).reshape(-1, *[1] * (x.ndim - 1))
        return x + change if self.unit == "semitones" else x * change


class Frames(Action):
    """What is predicted for each sample or frame of signals, `[B, T, ...]`: it moves with them.

    `shifts` and `time_reversal` move frames as `Signals` moves samples, around the end, `speeds`
    about the middle: frames from beyond the ends are unknown, NaN or the class -1. Signs and gains
    leave them. Whole numbers, such as classes, move by the nearest whole number of frames.

    Args:
        hop: the number of samples from one frame to the next, such as 160 for 100 frames a second
            at 16 kHz.
        of: how the values themselves move, such as `Pitch()` of a pitch in each frame; by default
            they stay.

    Example:
        >>> from orbical.groups import shifts
        >>> Frames().apply(shifts(1), torch.tensor([[5, 6, 7]]))[:, 0].tolist()
        [[6, 7, 5], [5, 6, 7], [7, 5, 6]]
        >>> Frames(160).apply(shifts(160, 160), torch.tensor([[5, 6, 7]]))[:, 0].tolist()
        [[6, 7, 5], [5, 6, 7], [7, 5, 6]]
    """

    parts: ClassVar[tuple[str, ...]] = ("shift", "time", "speed")

    def __init__(self, hop: float = 1.0, of: Action | None = None) -> None:
        self.hop, self.of = float(real_number("hop", hop, "> 0", "a number of samples")), of

    def counted(self, samples: int) -> range:
        """Return how many frames signals of so many samples may have, with or without the ends."""
        whole = samples / self.hop
        return range(samples, samples + 1) if self.hop == 1 else range(int(whole), int(whole) + 3)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, T, ...]`."""
        if "shift" in elements.parts:
            shift = elements.parts["shift"] / self.hop
            frames = shift if x.is_floating_point() else np.rint(shift)
            elements = Elements({**elements.parts, "shift": frames}, len(elements))
        channels = x.flatten(3) if x.ndim > 3 else x[..., None]
        moved = _moved_signals(elements, channels.transpose(2, 3)).transpose(2, 3)
        moved = moved.reshape(len(elements), *x.shape[1:])
        return moved if self.of is None else self.of.move(elements, moved)

    def mean(self, x: Tensor, weights: Tensor) -> Tensor:
        """Average over the elements that show a frame."""
        known = torch.isfinite(x)
        if bool(known.all()):
            return super().mean(x, weights)
        total = torch.einsum("k,k...->...", weights.to(x), x.nan_to_num(0.0, 0.0, 0.0))
        return total / torch.einsum("k,k...->...", weights.to(x), known.to(x))  # 0 / 0 is NaN


def _moved_signals(elements: Elements, x: Tensor, zeros: int = 0) -> Tensor:
    """Reverse, shift and speed up `x[K or 1, B, C, T]` along T."""
    moved = x.expand(len(elements), *x.shape[1:])
    if "time" in elements.parts:
        backward = torch.as_tensor(elements.parts["time"] < 0, device=x.device)
        moved = moved.flip(-1).where(backward[:, None, None, None], moved)
    if "speed" in elements.parts:
        moved = _faster_signal(moved, elements.parts["speed"], zeros)
    return _shifted(moved, elements.parts["shift"]) if "shift" in elements.parts else moved


def _faster_signal(x: Tensor, speed: np.ndarray, zeros: int) -> Tensor:
    """Play `x[K, B, C, T]` faster about its middle, by interpolation between samples.

    With `zeros` zero crossings on each side it is by a windowed sinc function that passes what is
    below the Nyquist frequency of both signals, with silence beyond the ends. With none it is
    linear, or to the nearest of whole numbers, and what lies beyond is unknown.
    """
    length, middle = x.shape[-1], (x.shape[-1] - 1) / 2
    places = middle + speed[:, None] * (np.arange(length) - middle)
    if not x.is_floating_point():
        index = np.rint(places).astype(np.int64)
        inside = torch.as_tensor((index >= 0) & (index < length), device=x.device)[:, None, None]
        found = x.gather(-1, _at(index, x))
        return found.where(inside, torch.zeros_like(found) if x.dtype == torch.bool else -1)
    cut = np.minimum(1.0, 1 / speed)[:, None] if zeros else np.ones((1, 1))
    width = max(zeros, 1) / cut
    first = np.floor(places).astype(np.int64)
    moved = torch.zeros_like(x)
    for step in range(1 - math.ceil(width.max()), math.ceil(width.max()) + 1):
        index = first + step
        away = places - index
        weight = np.clip(1 - np.abs(away), 0, None)
        if zeros:
            window = np.cos(np.pi / 2 * np.clip(away / width, -1, 1)) ** 2
            weight = cut * np.sinc(cut * away) * window
        weight = weight * ((index >= 0) & (index < length))
        share = action_matrices(weight, x)[:, None, None]
        moved += torch.where(share == 0, 0, share * x.gather(-1, _at(index, x)))
    if zeros:
        return moved
    inside = (places > -_ROUNDING) & (places < length - 1 + _ROUNDING)
    return moved.where(torch.as_tensor(inside, device=x.device)[:, None, None], torch.nan)


def _at(index: np.ndarray, x: Tensor) -> Tensor:
    """Return indices `[K, T]` along the last axis of `x[K, ..., T]`, as `gather` takes them."""
    places = torch.as_tensor(index.clip(0, x.shape[-1] - 1), device=x.device)
    return places[:, None, None].expand(x.shape)


def _shifted(x: Tensor, shift: np.ndarray) -> Tensor:
    """Shift `x[K, ..., T]` around its axis, between samples by linear interpolation."""
    whole = np.floor(shift)
    length = x.shape[-1]
    moved = x.gather(-1, _at((np.arange(length) - whole[:, None]).astype(np.int64) % length, x))
    if (shift == whole).all():
        return moved
    share = action_matrices(shift - whole, moved)[:, None, None, None]
    return moved + share * (moved.roll(1, -1) - moved)
