"""Maps of samples by their responses, with the responses of a few drawn next to them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._lazy import xr
from ..errors import InputError, check_name
from . import nero_plots, style
from ._orbit_layouts import LAYOUTS, CurveLayout, DrawnOrbit
from ._panel_sheets import frame_axes, show_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

__all__ = ["embedding"]

Array = np.ndarray
_NAMES = {"pca": "PCA", "ica": "ICA", "isomap": "ISOMAP", "tsne": "t-SNE", "umap": "UMAP"}
_MOST_CLASSES = 20
_LEAST = 1.6
"""The least width of a map in inches."""


@dataclass(frozen=True)
class _Glyph:
    """A sample drawn next to the map: its row there, its response for each model, its input."""

    row: int
    name: str
    values: dict[str, Array]
    image: Array | None


def embedding(
    array: xr.DataArray,
    responses: xr.DataArray | None = None,
    image: object = None,
    *,
    color: str = "mean",
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw a map of samples, a panel for each model, all in the same frame.

    Args:
        array: `[model, sample, component]` or `[sample, component]`, from
            `orbical.embedding.embed`; the first two components are drawn.
        responses: `[model, sample, element]`, from `orbical.nero.individual`, of a few samples
            whose orbits are drawn next to the map, such as `orbical.embedding.representatives`.
        image: the inputs of these samples, as in `orbical.figures.individual`.
        color: a coordinate on the samples: `"mean"` or `"variance"` of the response, `"label"`, or
            another. Numbers are colored on a scale; labels, other integers and names by class, with
            the class written among its points.
        title: written above.
        width: in inches; maps that do not fit in a row are placed below.

    Returns:
        The figure.

    Raises:
        InputError: if the arrays or the images do not fit, or have no such coordinate.

    Example:
        >>> import numpy as np, orbical as ob, xarray as xr
        >>> places = xr.DataArray(np.eye(5)[:, :2], dims=("sample", "component"),
        ...                       coords={"mean": ("sample", np.linspace(0, 1, 5))},
        ...                       attrs={"method": "pca"})
        >>> ob.figures.embedding(places).axes[0].get_xlabel()
        'PCA 1'

    Paper: NERO, figure 6.
    """
    if not {"sample", "component"} <= {*array.dims} <= {"model", "sample", "component"}:
        raise InputError("array", "(model, sample, component)", array.dims)
    if array.sizes["component"] < 2:
        raise InputError("array", "two or more components", "1")
    known = [str(name) for name, entry in array.coords.items() if "sample" in entry.dims]
    check_name("color", color, known)
    array = nero_plots.plotted_model_first(array).transpose("model", "sample", "component")
    style.check_figure_width(width)
    glyphs, orbit = _embedding_map_glyphs(array, responses, image)
    with style.styled():
        fig = _draw_maps(array, color, glyphs, orbit, width)
        style.write_figure_title(fig, title)
    return fig


def _embedding_map_glyphs(
    array: xr.DataArray, responses: xr.DataArray | None, image: object
) -> tuple[list[_Glyph], DrawnOrbit | None]:
    """Return the samples to draw next to the map, and their orbit."""
    if responses is None:
        if image is not None:
            raise InputError("image", "responses with images", "None", remedy="pass responses=")
        return [], None
    if {*responses.dims} - {"model"} != {"sample", "element"} or "layout" not in responses.attrs:
        raise InputError(
            "responses",
            "(model, sample, element) from orbical.nero.individual",
            f"dimensions {responses.dims}",
        )
    responses = nero_plots.plotted_model_first(responses).transpose("model", "sample", "element")
    names = [str(name) for name in responses["model"].values]
    numbers = nero_plots.plotted_values(responses, "sample")
    of_map = nero_plots.plotted_values(array, "sample")
    places = {int(number): row for row, number in enumerate(of_map)}
    images = nero_plots.plotted_images(image, len(numbers))
    glyphs = []
    for place, number in enumerate(numbers):
        if int(number) not in places:
            raise InputError("responses", "samples of the map", number)
        values = np.asarray(responses.values[:, place], float)
        by_model = dict(zip(names, values, strict=True)) | {"": values[0]}
        glyphs.append(_Glyph(places[int(number)], f"sample {number}", by_model, images[place]))
    return glyphs, nero_plots.plotted_orbit(responses, None)


def _draw_maps(
    array: xr.DataArray,
    color: str,
    glyphs: list[_Glyph],
    orbit: DrawnOrbit | None,
    given: float | None,
) -> Figure:
    models, order = nero_plots.plotted_model_names(array)
    colors = {**style.model_colors(order), "": style.INK}
    beside = -(-len(glyphs) // 2)
    if glyphs:  # a row for each model, so that lines to the glyphs do not cross other maps
        down, across, width = len(models), 1, given or style.PAGE
        height = len(models) * max(3.0 * width / style.PAGE, 1.05 * beside) + 0.5
    else:
        width = given or (style.PAGE if len(models) > 1 else style.COLUMN + 0.8)
        across = max(1, min(len(models), int(width / _LEAST)))
        down = -(-len(models) // across)
        across = -(-len(models) // down)
        height = down * (width - 0.4) / across + 0.8
    fig = style.figure(width, height)
    ratios = [1.0, 3.0, 1.0] if glyphs else [1.0] * across
    outer = fig.add_gridspec(down, len(ratios), width_ratios=ratios)
    frame = array.values[..., :2].reshape(-1, 2)
    maps = []
    for number, model in enumerate(models):
        row, column = divmod(number, across)
        cell = outer[number, 1] if glyphs else outer[row, column]
        axes = fig.add_subplot(cell)
        maps.append(axes)
        one = array.isel(model=number)
        key = _scatter_map(axes, one, array, color)
        _set_embedding_map_axes(axes, array, frame)
        if model:
            wide = 0.6 * width if glyphs else width / across - 0.2
            short = style.fitted_label(model, wide, 9)
            axes.set_title(short, color=style.readable_color(colors[model]))
        if not glyphs and column:
            axes.set_ylabel("")
        if not glyphs and number + across < len(models):
            axes.set_xlabel("")
        if glyphs and orbit is not None:
            sides = _left_and_right(glyphs, one.values[:, :2])
            for glyphs_here, side in zip(sides, (0, 2), strict=True):
                inner = outer[number, side].subgridspec(max(beside, 1), 1)
                for place, glyph in enumerate(glyphs_here):
                    small = fig.add_subplot(inner[place], projection=LAYOUTS[orbit.kind].projection)
                    _draw_glyph_on_map(small, glyph, model, orbit, colors[model])
                    if glyph.image is not None:  # away from the line to the map
                        corner = (-0.36 if side == 0 else 1.0, 0.68, 0.36, 0.36)
                        show_picture(small.inset_axes(corner), glyph.image)
                    _draw_line_to_sample(fig, small, axes, one.values[glyph.row, :2], side == 0)
    if key is not None:
        # Below, where no line to a glyph passes.
        bar = fig.colorbar(
            key, ax=maps, location="bottom", fraction=0.05, pad=0.02, shrink=0.7, aspect=40
        )
        bar.set_label(textwrap.fill(_color_in_words(array, color), int(width * 13)))
        bar.outline.set_visible(False)
        if bar.solids is not None:
            bar.solids.set_alpha(1)
    else:
        _write_classes_of_maps(fig, maps, color)
    missing = int(array.attrs.get("missing", 0))
    if missing:
        fig.supxlabel(f"{missing} unfinished responses are left out", fontsize=7, color=style.SOFT)
    return fig


def _scatter_map(
    axes: Axes, one: xr.DataArray, array: xr.DataArray, color: str
) -> ScalarMappable | None:
    """Draw the points of one model; return what a color bar needs, None for classes."""
    places = one.values[:, :2]
    count = len(places)
    look: style.Look = {
        "s": float(np.clip(4000 / max(count, 1), 2, 18)),
        "alpha": 0.85 if count <= 2000 else 0.5,
        "linewidths": 0,
        "rasterized": count > 5000,
    }
    values, everywhere = one[color].values, array[color].values
    if values.dtype.kind not in "iubUSO":  # numbers, not classes
        low, high = _color_range_of_map(array, color, everywhere)
        order = np.argsort(np.nan_to_num(values), kind="stable")
        look |= {"cmap": style.SEQUENTIAL, "vmin": low, "vmax": high}
        return axes.scatter(places[order, 0], places[order, 1], c=values[order], **look)
    from matplotlib.patheffects import withStroke

    names = np.unique(everywhere)
    if len(names) > _MOST_CLASSES:
        given = f"{len(names)} values of {color!r}"
        raise InputError("color", f"at most {_MOST_CLASSES} classes", given)
    for name, shade in zip(names, style.class_colors(names).values(), strict=True):
        members = places[(values == name) & np.isfinite(places).all(1)]
        if len(members):
            axes.scatter(members[:, 0], members[:, 1], color=shade, label=str(name), **look)
            # On the member in the middle, so that the name is among its own points.
            middle = members[((members - np.median(members, 0)) ** 2).sum(1).argmin()]
            stroke = [withStroke(linewidth=2.5, foreground="white")]
            bold: style.Look = {"color": style.readable_color(shade), "weight": "bold"}
            short = style.shortened_label(str(name), 16)
            axes.annotate(short, middle, path_effects=stroke, **style.CENTERED, **bold)
    return None


def _write_classes_of_maps(fig: Figure, maps: list[Axes], color: str) -> None:
    """Write the legend of the classes below, each once."""
    named = {
        name: handle
        for axes in maps
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    room = fig.get_figwidth() - 0.2
    labels = list(named)
    if len(labels) > 4:  # or long names, one below the other, leave no room for the map
        labels, _ = style.legend_of(labels, room / 2)
    labels, columns = style.legend_of(labels, room, most=10)
    look: style.Look = {"ncols": columns, "columnspacing": 1.0, "handletextpad": 0.1}
    legend = fig.legend(named.values(), labels, title=color, loc="outside lower center", **look)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set(alpha=1, sizes=[24])


def _color_range_of_map(array: xr.DataArray, color: str, values: Array) -> tuple[float, float]:
    if color == "mean" and "limits" in array.attrs:
        low, high = array.attrs["limits"]
        return float(low), float(high)
    if color == "mean" and (only := nero_plots.plotted_rounding_scale(array, values)):
        return only
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low = 0.0 if color == "variance" else float(finite.min())
    return low, max(float(finite.max()), low + 1e-12)


def _color_in_words(array: xr.DataArray, color: str) -> str:
    meaning = array.attrs.get("meaning", "response")
    if color in ("mean", "variance"):
        return f"{color} over the orbit: {meaning}"
    return color


def _set_embedding_map_axes(axes: Axes, array: xr.DataArray, frame: Array) -> None:
    """Label the components and set the same frame for every map; their scale has no unit."""
    method = _NAMES.get(array.attrs.get("method", ""), "component")
    low, high = np.nanmin(frame, axis=0), np.nanmax(frame, axis=0)
    longest = max(float((high - low).max()), 1e-9)
    # One scale for both components, and a frame that is not too long in either direction.
    half = np.maximum(high - low, 0.8 * longest) / 2 + 0.05 * longest
    middle = (low + high) / 2
    (left, bottom), (right, top) = middle - half, middle + half
    axes.set(xlim=(left, right), ylim=(bottom, top), box_aspect=half[1] / half[0])
    axes.set(xlabel=f"{method} 1", ylabel=f"{method} 2")
    frame_axes(axes)


def _left_and_right(glyphs: list[_Glyph], places: Array) -> tuple[list[_Glyph], list[_Glyph]]:
    """Return the samples to the left and to the right of the map, each ordered by height."""
    across = sorted(glyphs, key=lambda glyph: places[glyph.row, 0])
    half = -(-len(glyphs) // 2)
    across[:half] = sorted(across[:half], key=lambda glyph: -places[glyph.row, 1])
    across[half:] = sorted(across[half:], key=lambda glyph: -places[glyph.row, 1])
    return across[:half], across[half:]


def _draw_glyph_on_map(
    axes: Axes, glyph: _Glyph, model: str, orbit: DrawnOrbit, color: str
) -> None:
    """Draw a small orbit without text."""
    layout = LAYOUTS[orbit.kind]
    values = glyph.values.get(model, glyph.values[""])
    if isinstance(layout, CurveLayout):
        layout.prepare(axes, orbit, True)
        layout.draw(axes, orbit, values, color, "-").set(linewidth=1.0, markersize=0)
    else:
        layout.draw([axes], orbit, values, True)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(labelbottom=False, labelleft=False, length=0)
    axes.set_title(glyph.name, fontsize=6, fontweight="normal", pad=2)


def _draw_line_to_sample(fig: Figure, small: Axes, axes: Axes, point: Array, on_left: bool) -> None:
    """Circle a sample on the map, and draw a line from its orbit to it."""
    from matplotlib.patches import ConnectionPatch

    if not np.isfinite(point).all():
        return
    axes.plot(*point, "o", mfc="none", mec=style.INK, mew=1.0, ms=6, zorder=5)
    start = (1.02 if on_left else -0.02, 0.5)
    look = style.Look(color=style.SOFT, lw=0.6, zorder=4, shrinkB=3)
    line = ConnectionPatch(start, tuple(point), small.transAxes, axes.transData, **look)
    line.set_in_layout(False)
    fig.add_artist(line)
