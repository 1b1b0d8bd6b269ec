"""Recorded notes of instruments, with their pitch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .folders import data_file


def notes(folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Read recorded notes of cello, violin and flute, with their pitch.

    The notes are those of tonejs-instruments (CC BY 3.0).

    Args:
        folder: Contains `notes16k.npz` with `audio` `[n, 16000]`, one second of each note at 16
            kHz, and `notes.json` with the `midi` number of each. By default,
            `data_folder() / "pitch"`.

    Returns:
        Signals `[n, 1, 16000]` in -1..1, and pitches `[n]` in semitones, 69 for 440 Hz.

    Raises:
        InputError: If a file does not exist.

    Example:
        >>> notes(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'notes16k.npz', ...
    """
    with np.load(data_file("notes16k.npz", folder, "pitch")) as arrays:
        sound = torch.from_numpy(arrays["audio"].astype(np.float32) / 2**15)
    about = json.loads(data_file("notes.json", folder, "pitch").read_text(encoding="utf-8"))
    return sound[:, None], torch.tensor([float(note["midi"]) for note in about])
