"""Actions on signals along one axis: sound, time series, spectra over a logarithmic frequency."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, real_number, whole_number
from ..groups import Elements, Group
from .action import Action, Exact, matrices
from .finite import OfFinite


class Signals(OfFinite):
    """Signals `[B, C, T]`: shifted along T, reversed, and multiplied by a sign or a gain.

    `shifts` move content towards the end of the axis; what leaves it there enters at the beginning,
    so that the shifts are a group and nothing is lost. Where that is not wanted, as for sound,
    `SignalWindow` moves a view inside longer signals. Shifts by a fraction of a sample interpolate
    linearly. `time_reversal` reverses the axis, `sign` and `gains` multiply the values.

    Shifts and reversals do not commute, so that a product of both is refused.

    >>> from orbical.groups import parse
    >>> ramp = torch.tensor([[[0.0, 1, 2, 3]]])
    >>> Signals().apply(parse("shifts:1"), ramp)[:, 0, 0].tolist()
    [[1.0, 2.0, 3.0, 0.0], [0.0, 1.0, 2.0, 3.0], [3.0, 0.0, 1.0, 2.0]]
    >>> Signals().apply(parse("sign*time_reversal"), ramp)[3, 0, 0].tolist()
    [-3.0, -2.0, -1.0, -0.0]
    """

    parts: ClassVar[tuple[str, ...]] = ("shift", "time", "gain")
    in_place: ClassVar[tuple[str, ...]] = ("gain",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", "time")
    drawn_as: ClassVar[str] = "signal"

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, T]`."""
        moved = _along(elements, x)
        if "gain" in elements.parts:
            moved = moved * matrices(elements.parts["gain"], moved)[:, None, None, None]
        return moved

    def defect(self, elements: Elements, x: Tensor, moved: Tensor | None = None) -> Tensor:
        """Measure what interpolation loses; shifts by whole samples lose nothing."""
        shift = elements.parts.get("shift", np.zeros(1))
        if (shift == np.floor(shift)).all():
            return torch.zeros(len(elements), len(x), device=x.device)
        return super().defect(elements, x, moved)

    def check(self, group: Group, x: Tensor) -> None:
        """Refuse shifts together with reversals."""
        super().check(group, x)
        if {"shift", "time"} <= {*group.parts}:
            raise InputError(
                "group",
                "shifts or time_reversal",
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
        margin = (x.shape[-1] - self.size) // 2
        if margin < farthest:
            raise InputError(
                "data",
                f"signals of at least {self.size} + 2 x {farthest:g} samples for "
                f"SignalWindow({self.size}) and {group.spec}",
                x.shape[-1],
            )


class Positions(Exact):
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

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Shift `x[K or 1, B, ...]`."""
        moved = x.expand(len(elements), *x.shape[1:])
        if "shift" not in elements.parts:
            return moved
        by = matrices(self.step * elements.parts["shift"], x)
        return moved + by.reshape(-1, *[1] * (x.ndim - 1))


class Frames(Action):
    """What is predicted for each sample or frame of signals, `[B, T, ...]`: it moves with them.

    `shifts` and `time_reversal` move frames as `Signals` moves samples, around the end; signs and
    gains leave them. Whole numbers, such as classes, move by the nearest whole number of frames.

    Args:
        hop: the number of samples from one frame to the next, such as 160 for 100 frames a second
            at 16 kHz.

    Example:
        >>> from orbical.groups import shifts
        >>> Frames().apply(shifts(1), torch.tensor([[5, 6, 7]]))[:, 0].tolist()
        [[6, 7, 5], [5, 6, 7], [7, 5, 6]]
        >>> Frames(160).apply(shifts(160, 160), torch.tensor([[5, 6, 7]]))[:, 0].tolist()
        [[6, 7, 5], [5, 6, 7], [7, 5, 6]]
    """

    parts: ClassVar[tuple[str, ...]] = ("shift", "time")

    def __init__(self, hop: float = 1.0) -> None:
        if real_number("hop", hop) <= 0:
            raise InputError("hop", "a number of samples > 0", repr(hop))
        self.hop = float(hop)

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
        moved = _along(elements, channels.transpose(2, 3)).transpose(2, 3)
        return moved.reshape(len(elements), *x.shape[1:])


def _along(elements: Elements, x: Tensor) -> Tensor:
    """Reverse and shift `x[K or 1, B, C, T]` along T."""
    moved = x.expand(len(elements), *x.shape[1:])
    if "time" in elements.parts:
        backward = torch.as_tensor(elements.parts["time"] < 0, device=x.device)
        moved = moved.flip(-1).where(backward[:, None, None, None], moved)
    return _shifted(moved, elements.parts["shift"]) if "shift" in elements.parts else moved


def _shifted(x: Tensor, shift: np.ndarray) -> Tensor:
    """Shift `x[K, ..., T]` around its axis, between samples by linear interpolation."""
    whole = np.floor(shift)
    length = x.shape[-1]
    index = (np.arange(length) - whole[:, None]).astype(np.int64) % length
    places = torch.as_tensor(index, device=x.device)[:, None, None].expand(x.shape)
    moved = x.gather(-1, places)
    if (shift == whole).all():
        return moved
    share = matrices(shift - whole, moved)[:, None, None, None]
    return moved + share * (moved.roll(1, -1) - moved)
