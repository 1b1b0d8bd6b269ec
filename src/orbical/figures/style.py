"""How orbical's figures look: colors, type and sizes, in one place.

Every figure is made inside `styled()`, on a `Figure` of its own: the user's matplotlib settings and
the list of open pyplot figures are left as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
"""Colors of models in their order: Okabe and Ito's, told apart with any color vision."""

CLASSES = (
    "#332288",
    "#CC6677",
    "#117733",
    "#88CCEE",
    "#DDCC77",
    "#882255",
    "#44AA99",
    "#999933",
    "#AA4499",
    "#9A9A9A",
)
"""Colors of classes: Paul Tol's muted scheme. Figures also write the class beside its points."""

LINES = ("-", "--", ":", "-.")
"""Line styles; a model beyond the last color takes the first color again, with the next style."""

SEQUENTIAL = "viridis"
"""The map from numbers to colors: even in lightness, so it also survives a gray printer."""

INK, SOFT, FAINT = "#222222", "#6E6E6E", "#D9D9D9"
"""Text and axes; secondary text; grid lines."""

COLUMN, PAGE = 3.4, 7.0
"""Widths in inches: one column of a journal page, and the page."""

FONT = "DejaVu Sans"
_READABLE = 4.5

_SETTINGS: dict[str, Any] = {
    "font.family": FONT,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.labelsize": 8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "white",
    "figure.facecolor": "white",
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "image.cmap": SEQUENTIAL,
    "image.interpolation": "nearest",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.solid_joinstyle": "round",
    "patch.linewidth": 0.6,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "orbical",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw with orbical's settings, and give the user's back afterwards.

    Example:
        >>> import matplotlib
        >>> with styled():
        ...     matplotlib.rcParams["legend.frameon"]
        False
    """
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def model_colors(names: Iterable[Any]) -> dict[str, str]:
    """Return each model its color, by its place in the order of the scan.

    Pass all the models of a scan, even where a figure shows some of them: a model then has one
    color in every figure.

    Example:
        >>> model_colors(["plain", "augmented"])
        {'plain': '#0072B2', 'augmented': '#D55E00'}
    """
    return {str(name): MODELS[i % len(MODELS)] for i, name in enumerate(names)}


def model_lines(names: Iterable[Any]) -> dict[str, str]:
    """Return each model its line style: solid while the colors last, then the next style."""
    return {str(name): LINES[i // len(MODELS) % len(LINES)] for i, name in enumerate(names)}


def class_colors(names: Iterable[Any]) -> dict[str, str]:
    """Return each class its color, by its place in the given order."""
    return {str(name): CLASSES[i % len(CLASSES)] for i, name in enumerate(names)}


def readable(color: str) -> str:
    """Darken a color until words in it can be read on white: a contrast of 4.5 or more (WCAG).

    Example:
        >>> readable("#332288"), readable("#88CCEE")
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
    """Make an empty figure of a size in inches, apart from pyplot, arranged by constraints.

    Call it inside `styled()`. `settings` go to `matplotlib.figure.Figure`.

    Example:
        >>> figure(COLUMN, 2.5).get_size_inches().tolist()
        [3.4, 2.5]
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), **{"layout": "constrained", **settings})
    FigureCanvasAgg(made)
    return made


def check_width(width: float | None) -> None:
    """Refuse a width that no figure can have."""
    if width is not None and not 1.5 <= width <= 40:
        raise InputError(f"width: {width!r} given, inches from 1.5 to 40 expected")


def write_title(fig: Figure, title: str) -> None:
    """Write above a figure, and above a legend that stands there."""
    from matplotlib.font_manager import FontProperties

    fig.set_figheight(fig.get_figheight() + 0.25)
    if fig.legends:  # the layout keeps room for either, not for both
        fig.legends[0].set_title(title, prop=FontProperties(family=FONT, size=10, weight="bold"))
    else:
        fig.suptitle(title)


def save(fig: Figure, path: str | Path) -> Path:
    """Write a figure to a file; the ending says the format: `.png`, `.pdf`, `.svg`.

    Folders are made where absent. The same figure gives the same bytes: no date is written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(figure(1, 1), Path(folder) / "plots" / "empty.png").name
        'empty.png'
    """
    path = Path(path)
    known = sorted(fig.canvas.get_supported_filetypes())
    ending = path.suffix.lower().removeprefix(".")
    if ending not in known:
        raise InputError(
            f"path: expected a name that ends in one of {', '.join(known)}, got {path.name!r}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "ModDate": None},
    }
    with styled():
        fig.savefig(path, bbox_inches="tight", pad_inches=0.06, metadata=undated.get(ending))
    return path
