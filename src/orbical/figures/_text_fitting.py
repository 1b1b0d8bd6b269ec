"""Text that fits its place on a figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .style import FONT

Look = dict[str, Any]
"""How something is drawn: keywords of matplotlib."""
CENTERED: Look = {"ha": "center", "va": "center"}
_AFTER_A_SIGN = re.compile(r"(?<=[-_ ./,:])")
_HANDLE = 0.55
"""Inches of the line of a legend entry, and of the gap after it."""


def inches(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text, that of its longest line.

    Example:
        >>> inches("orbit", 9) < inches("orbit", 9, bold=True) < inches("orbital", 9, bold=True)
        True
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return max(
        float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]) / 72
        for line in text.split("\n")
    )


def shortened(name: str, most: int) -> str:
    """Leave out the middle of a long name, since models often differ only at the end.

    Example:
        >>> shortened("resnet18_rotations_seed_2026", 18)
        'resnet18_…eed_2026'
    """
    if len(name) <= most:
        return name
    tail = max((most - 1) // 2, 1)
    return f"{name[: most - 1 - tail]}…{name[-tail:]}"


def fitted(name: str, room: float, size: float, lines: int = 2, bold: bool = True) -> str:
    r"""Break a name in two, or leave out its middle, until it fits a width in inches.

    Example:
        >>> fitted("plain", 1.0, 9)
        'plain'
        >>> fitted("resnet18_rotations_seed_2026", 1.8, 9)
        'resnet18_\nrotations_seed_2026'
    """
    for most in range(len(name), 4, -1):
        short = shortened(name, most)
        for text in [short, _in_two(short)][:lines]:
            if inches(text, size, bold) <= room:
                return text
    return shortened(name, 4)


def _in_two(text: str) -> str:
    """Break a text after the punctuation nearest to its middle, if there is any."""
    ends = [match.start() for match in _AFTER_A_SIGN.finditer(text)]
    inner = [end for end in ends if 0 < end < len(text)]
    if not inner:
        return text
    cut = min(inner, key=lambda end: abs(end - len(text) / 2))
    return f"{text[:cut].rstrip()}\n{text[cut:]}"


def wrapped(text: str, room: float, size: float) -> str:
    r"""Break a sentence into lines that fit a width in inches.

    Example:
        >>> wrapped("radius: mean score", 0.8, 7)
        'radius: mean\nscore'
    """
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and inches(longer, size) > room:
            lines.append(word)
        else:
            lines[-1:] = [longer]
    return "\n".join(lines)


def legend_of(
    names: Sequence[str], room: float, size: float = 8, most: int = 4
) -> tuple[list[str], int]:
    """Return the names of a legend shortened to a width, and the number of columns that fit.

    Example:
        >>> legend_of(["plain", "augmented"], 3.4)
        (['plain', 'augmented'], 2)
    """
    labels = [fitted(name, room - _HANDLE, size, lines=1, bold=False) for name in names]
    widest = max(inches(label, size) for label in labels) + _HANDLE
    return labels, max(1, min(len(labels), most, int(room / widest)))
