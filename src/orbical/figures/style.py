"""The style of all figures: colors, fonts, sizes, and text that fits its place.

Every figure is made inside `styled()` and is not registered with pyplot: the user's matplotlib
settings and open figures stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = [
    "CLASSES", "COLUMN", "FAINT", "INK", "LINES", "MODELS", "PAGE", "SEQUENTIAL", "SOFT",
    "class_colors", "figure", "model_colors", "model_lines", "readable_color", "save", "styled",
]  # fmt: skip

MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
"""Colors of models in their order: Okabe and Ito's, distinguishable with any color vision."""

CLASSES = (
    *("#332288", "#CC6677", "#117733", "#88CCEE", "#DDCC77"),
    *("#882255", "#44AA99", "#999933", "#AA4499", "#9A9A9A"),
)
"""Colors of classes: Paul Tol's muted scheme. Figures also write the class beside its points."""

LINES = ("-", "--", ":", "-.")
"""Line styles; models beyond the last color start again with the next style."""

SEQUENTIAL = "viridis"
"""The color map of numbers: perceptually uniform, also in gray."""

INK, SOFT, FAINT = "#222222", "#6E6E6E", "#D9D9D9"
"""Text and axes; secondary text; grid lines."""

COLUMN, PAGE = 3.4, 7.0
"""Widths in inches: one column of a journal page, and the page."""

FONT = "DejaVu Sans"
_READABLE = 4.5
_SHEET = f"{__package__}.orbical"


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the settings of orbical, and restore the user's afterwards.

    Yields:
        None; use it in a `with` statement.

    Example:
        >>> import matplotlib
        >>> with styled():
        ...     matplotlib.rcParams["legend.frameon"]
        False
    """
    import matplotlib.style

    with matplotlib.style.context(["default", _SHEET]):
        yield


def model_colors(names: Iterable[object]) -> dict[str, str]:
    """Return the color of each model, by its place in the order of the scan.

    Pass all models of a scan, even if a figure shows only some of them: a model then has the same
    color in every figure.

    Args:
        names: the models in their order.

    Returns:
        Colors by name.

    Example:
        >>> model_colors(["plain", "augmented"])
        {'plain': '#0072B2', 'augmented': '#D55E00'}
    """
    return {str(name): MODELS[i % len(MODELS)] for i, name in enumerate(names)}


def model_lines(names: Iterable[object]) -> dict[str, str]:
    """Return the line style of each model: solid while the colors last, then the next style.

    Args:
        names: the models in their order.

    Returns:
        Line styles by name.

    Example:
        >>> model_lines(["plain", "augmented"])
        {'plain': '-', 'augmented': '-'}
    """
    return {str(name): LINES[i // len(MODELS) % len(LINES)] for i, name in enumerate(names)}


def class_colors(names: Iterable[object]) -> dict[str, str]:
    """Return the color of each class, by its place in the order.

    Args:
        names: the classes in their order.

    Returns:
        Colors by name.

    Example:
        >>> class_colors([6, 9]) == {"6": CLASSES[0], "9": CLASSES[1]}
        True
    """
    return {str(name): CLASSES[i % len(CLASSES)] for i, name in enumerate(names)}


def readable_color(color: str) -> str:
    """Darken a color until text is readable on white: a contrast of at least 4.5 (WCAG).

    Args:
        color: any color that matplotlib knows.

    Returns:
        The color, or a darker one.

    Example:
        >>> readable_color("#332288"), readable_color("#88CCEE")
        ('#332288', '#50798d')
    """
    from matplotlib.colors import to_hex, to_rgb

    mixed = to_rgb(color)
    while 1.05 / (_luminance(mixed) + 0.05) < _READABLE:
        red, green, blue = (round(255 * 0.9 * part) / 255 for part in mixed)
        mixed = red, green, blue
    return color if mixed == to_rgb(color) else str(to_hex(mixed))


def _luminance(color: Iterable[float]) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def figure(width: float = PAGE, height: float = 4.0, **settings: Any) -> Figure:
    """Make an empty figure with the constrained layout, not registered with pyplot.

    Call it inside `styled()`.

    Args:
        width: in inches.
        height: in inches.
        settings: passed to `matplotlib.figure.Figure`.

    Returns:
        The figure.

    Example:
        >>> figure(COLUMN, 2.5).get_size_inches().tolist()
        [3.4, 2.5]
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), **{"layout": "constrained", **settings})
    FigureCanvasAgg(made)
    return made


def check_figure_width(width: float | None) -> None:
    """Check the width of a figure."""
    if width is not None and not 1.5 <= width <= 40:
        raise InputError("width", "1.5 to 40 inches", repr(width))


def write_figure_title(fig: Figure, title: str) -> None:
    """Write the title of a figure in lines that fit, above its legend if there is one."""
    from matplotlib.font_manager import FontProperties

    if not title:
        return
    title = wrapped_label(title, fig.get_figwidth() - 0.2, 11)  # 10 in bold
    fig.set_figheight(fig.get_figheight() + 0.1 + 0.15 * len(title.split("\n")))
    if fig.legends:  # the layout keeps room for either, not for both
        fig.legends[0].set_title(title, prop=FontProperties(family=FONT, size=10, weight="bold"))
    else:
        fig.suptitle(title)


def save(fig: Figure, path: str | Path) -> Path:
    """Write a figure to a file; the suffix is the format: `.png`, `.pdf`, `.svg`.

    Missing folders are created. The same figure gives the same bytes: no date is written.

    Args:
        fig: the figure.
        path: the file.

    Returns:
        The path.

    Raises:
        InputError: if the format is unknown.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(figure(1, 1), Path(folder) / "plots" / "empty.png").name
        'empty.png'
    """
    if not hasattr(fig, "savefig"):
        raise InputError("fig", "a figure of Matplotlib, which comes first", type(fig))
    path = Path(path)
    known = sorted(fig.canvas.get_supported_filetypes())
    ending = path.suffix.lower().removeprefix(".")
    if ending not in known:
        raise InputError("path", f"a name that ends in one of {', '.join(known)}", repr(path.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    undated: dict[str, dict[str, object]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "ModDate": None},
    }
    with styled():
        fig.savefig(path, bbox_inches="tight", pad_inches=0.06, metadata=undated.get(ending))
    return path


Look = dict[str, Any]
"""How something is drawn: keywords of matplotlib."""
CENTERED: Look = {"ha": "center", "va": "center"}
_AFTER_A_SIGN = re.compile(r"(?<=[-_ ./,:])")
_HANDLE = 0.55
"""Inches of the line of a legend entry, and of the gap after it."""


def text_inches(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text, that of its longest line.

    Example:
        >>> text_inches("orbit", 9) < text_inches("orbit", 9, bold=True)
        True
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return max(
        float(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0]) / 72
        for line in text.split("\n")
    )


def shortened_label(name: str, most: int) -> str:
    """Leave out the middle of a long name, since models often differ only at the end.

    Example:
        >>> shortened_label("resnet18_rotations_seed_2026", 18)
        'resnet18_…eed_2026'
    """
    if len(name) <= most:
        return name
    tail = max((most - 1) // 2, 1)
    return f"{name[: most - 1 - tail]}…{name[-tail:]}"


def fitted_label(name: str, room: float, size: float, lines: int = 2, bold: bool = True) -> str:
    r"""Break a name in two, or leave out its middle, until it fits a width in inches.

    Example:
        >>> fitted_label("plain", 1.0, 9)
        'plain'
        >>> fitted_label("resnet18_rotations_seed_2026", 1.8, 9)
        'resnet18_\nrotations_seed_2026'
    """
    for most in range(len(name), 4, -1):
        short = shortened_label(name, most)
        for text in [short, _in_two(short)][:lines]:
            if text_inches(text, size, bold) <= room:
                return text
    return shortened_label(name, 4)


def _in_two(text: str) -> str:
    """Break a text after the punctuation nearest to its middle, if there is any."""
    ends = [match.start() for match in _AFTER_A_SIGN.finditer(text)]
    inner = [end for end in ends if 0 < end < len(text)]
    if not inner:
        return text
    cut = min(inner, key=lambda end: abs(end - len(text) / 2))
    return f"{text[:cut].rstrip()}\n{text[cut:]}"


def wrapped_label(text: str, room: float, size: float) -> str:
    r"""Break a sentence into lines that fit a width in inches.

    Example:
        >>> wrapped_label("radius: mean score", 0.8, 7)
        'radius: mean\nscore'
    """
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_inches(longer, size) > room:
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
    labels = [fitted_label(name, room - _HANDLE, size, lines=1, bold=False) for name in names]
    widest = max(text_inches(label, size) for label in labels) + _HANDLE
    return labels, max(1, min(len(labels), most, int(room / widest)))
