"""NERO plots: responses along orbits, averaged or of single samples, in the layout of the group.

The arrays come from `orbical.nero`; their attributes describe the layout and the meaning of the
numbers. Models keep their colors by their order in the scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import xr
from .._text import plain
from ..errors import InputError, check_name
from ..tasks import quantity_rounding
from . import style
from ._orbit_layouts import LAYOUTS, DrawnOrbit
from ._panel_sheets import Panel, Sheet, draw_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["aggregate", "averaging", "individual"]

Array = np.ndarray
INTERVAL = ("low", "high", "calibrated")
"""Coordinates of an array that has an interval: both ends, and the value of a calibrated model."""


def aggregate(
    array: xr.DataArray,
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw averages over samples along the orbit, one small plot for each group of samples.

    The layout of the group selects the kind: a polar plot (circle), heat map (plane), three polar
    heat maps (slices), a ball of colored rotation vectors, a line, or tiles. Curves of several
    models share a plot; colored layouts have a panel for each model.

    Args:
        array: `[model, element]` or `[model, by, element]`, from `orbical.nero.aggregate`.
        limits: the range of values shown; by default that of the metric if it is known, else from
            zero to the largest value.
        title: written above.
        width: in inches, such as that of a journal column; plots that do not fit in a row are
            placed below. By default a column or a page, depending on the number of plots.

    Returns:
        The figure.

    Raises:
        InputError: if the array does not have the dimensions and attributes of responses.

    Example:
        >>> import numpy as np, orbical as ob, xarray as xr
        >>> group = ob.groups.rotations(36)
        >>> values = xr.DataArray(
        ...     [0.5 + 0.4 * np.cos(np.deg2rad(group.coords["angle"]))],
        ...     dims=("model", "element"),
        ...     coords={"model": ["plain"]},
        ...     attrs={"layout": "circle", "layout_index": list(range(36)),
        ...            "layout_axes": {"angle": group.coords["angle"].tolist()}},
        ... )
        >>> len(ob.figures.aggregate(values).axes[0].lines)
        1

    Paper: NERO, figure 4 (circle), 8 (plane), 10 (tiles).
    """
    array = _plotted_with_models(array)
    others = [dim for dim in array.dims if dim not in ("model", "element")]
    if len(others) > 1:
        raise InputError("array", "(model, by, element)", f"dimensions {array.dims}")
    by = others[0] if others else None
    array = array.transpose("model", *others, "element")
    values = np.asarray(array.values, float)
    names = [""] if by is None else [f"{by} {plain(v)}" for v in plotted_values(array, str(by))]
    values = values.reshape(len(values), len(names), -1)
    bands: Any = [None] * len(names)
    if {*INTERVAL} <= {*array.coords}:
        ends = [array[name].broadcast_like(array).transpose(*array.dims) for name in INTERVAL]
        bands = np.stack(ends, axis=1).reshape(len(values), 3, len(names), -1).swapaxes(0, 2)
    panels = [
        Panel(name, values[:, place], band=band)
        for place, (name, band) in enumerate(zip(names, bands, strict=True))
    ]
    statistic = array.attrs.get("statistic", "mean ")  # of the samples at each element
    return _nero_plot_sheet(array, panels, limits, title, statistic, width)


def individual(
    array: xr.DataArray,
    image: object = None,
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
    width: float | None = None,
) -> Figure:
    """Draw the responses of one or several samples, with their inputs next to them.

    Args:
        array: `[model, element]` or `[model, sample, element]`, from `orbical.nero.individual`.
        image: the input, `[H, W]` or `[C, H, W]` with one or three channels, or one for each of
            several samples; of a pair of frames `[2, C, H, W]` the first is shown.
        limits: as in `aggregate`.
        title: written above.
        width: as in `aggregate`.

    Returns:
        The figure.

    Raises:
        InputError: if the array or the images do not fit.

    Example:
        >>> import numpy as np, orbical as ob, xarray as xr
        >>> values = xr.DataArray(
        ...     np.linspace(0, 1, 4)[None], dims=("model", "element"),
        ...     coords={"model": ["plain"], "sample": 17},
        ...     attrs={"layout": "tiles", "layout_index": [[0, 1], [2, 3]]},
        ... )
        >>> fig = ob.figures.individual(values, np.eye(8))
        >>> [axes.get_title() for axes in fig.axes]
        ['sample 17', 'plain', '']

    Paper: NERO, figure 5.
    """
    array = _plotted_with_models(array)
    if {*array.dims} - {"model", "sample", "element"}:
        raise InputError("array", "(model, sample, element)", f"dimensions {array.dims}")
    several = "sample" in array.dims
    array = array.transpose("model", *(["sample"] if several else []), "element")
    values = np.asarray(array.values, float)
    values = values if several else values[:, None]
    count = values.shape[1]
    images = plotted_images(image, count, several)
    numbers = np.atleast_1d(array["sample"].values) if "sample" in array.coords else range(count)
    labels = np.atleast_1d(array["label"].values) if "label" in array.coords else None
    named = [""] * count if labels is None else [f", label {plain(one)}" for one in labels]
    panels = [
        Panel(f"sample {number}{named[place]}", values[:, place], images[place])
        for place, number in enumerate(numbers)
    ]
    return _nero_plot_sheet(array, panels, limits, title, "", width)


def _plotted_with_models(array: xr.DataArray) -> xr.DataArray:
    """Check an array of responses; one without a model gets a nameless one."""
    if not isinstance(array, xr.DataArray):
        expected = "responses of orbical.nero, such as individual(scan, sample) or aggregate(scan)"
        raise InputError("array", expected, type(array))
    kind = array.attrs.get("layout")
    if "element" not in array.dims or kind is None:
        expected = (
            "responses of orbical.nero, with a dimension 'element' and the attribute 'layout'"
        )
        raise InputError("array", expected, f"dimensions {array.dims}")
    check_name("layout", kind, LAYOUTS)
    array = array.compute()  # once: a lazy array would be read again for each use
    return plotted_model_first(array)


def plotted_model_first(array: xr.DataArray) -> xr.DataArray:
    """Return an array with a dimension of models; a single one may have no name."""
    if "model" in array.dims:
        return array
    name = str(array["model"].values) if "model" in array.coords else ""
    return array.drop_vars("model", errors="ignore").expand_dims({"model": [name]})


def plotted_model_names(array: xr.DataArray) -> tuple[list[str], list[str]]:
    """Return the models of an array, and all models of its scan in the order of their colors."""
    models = [str(name) for name in plotted_values(array, "model")]
    order = array.attrs.get("models", models)
    return models, order if {*models} <= {*order} else models


def plotted_values(array: xr.DataArray, dim: str) -> list[Any]:
    """Return the coordinate along a dimension, or the indices if it has none."""
    return list(array[dim].values if dim in array.coords else range(array.sizes[dim]))


def plotted_orbit(
    array: xr.DataArray, limits: tuple[float, float] | None, prefix: str = ""
) -> DrawnOrbit:
    """Return the description of an orbit from the attributes of an array."""
    about = array.attrs
    coords = {
        str(name): entry.values
        for name, entry in array.coords.items()
        if entry.dims == ("element",) and name != "weight"
    }
    meaning = prefix + str(about.get("meaning", "value" if array.name is None else array.name))
    better = ""
    if "higher_is_better" in about:
        better = " (higher is better)" if about["higher_is_better"] else " (lower is better)"
    size = array.sizes["element"]
    if limits is None and (only := plotted_rounding_scale(array, array.values)):
        limits, better = only, " (lower is better; equal up to rounding)"
    return DrawnOrbit(
        kind=about["layout"],
        index=np.asarray(about.get("layout_index", range(size)), int),
        axes={key: np.asarray(entry) for key, entry in about.get("layout_axes", {}).items()},
        coords=coords,
        identity=int(about.get("identity", 0)),
        meaning=meaning,
        better=better,
        limits=_plot_limits(array, limits),
        band=about.get("band", DrawnOrbit.band),
    )


def _plot_limits(array: xr.DataArray, given: tuple[float, float] | None) -> tuple[float, float]:
    """Return the range of values: as passed, that of the metric, or from zero."""
    known = given if given is not None else array.attrs.get("limits")
    if known is not None:
        low, high = (float(limit) for limit in known)
        if not low < high:
            raise InputError("limits", "a lower and a higher", f"({low:g}, {high:g})")
        return low, high
    finite = np.asarray(array.values, float)
    finite = finite[np.isfinite(finite)]
    if not finite.size or not finite.any():
        return 0.0, 1.0
    return min(0.0, float(finite.min())), max(0.0, float(finite.max()))


def plotted_rounding_scale(array: xr.DataArray, values: Array) -> tuple[float, float] | None:
    """Return a scale on which rounding has one color, if values `[model, ...]` are no more."""
    about = array.attrs
    usual = quantity_rounding(about.get("units", ""), about.get("higher_is_better"))
    models, order = plotted_model_names(array)
    each = dict(zip(order, about.get("rounding", ()), strict=False))
    most = [each.get(model, usual) for model in models]
    only = max(most) > 0 and all(
        np.nanmax(of_model, initial=0.0) <= rounding
        for of_model, rounding in zip(values, most, strict=True)
    )
    return (0.0, max(most)) if only else None


def plotted_images(image: Any, count: int, several: bool = True) -> list[Array | None]:
    """Return the pictures of `count` samples, None for each without an image."""
    if image is None:
        return [None] * count
    given = list(image) if several else [image]
    if len(given) != count:
        raise InputError("image", f"one for each of {count} samples", len(given))
    return [plotted_picture(one) for one in given]


def plotted_picture(image: Any) -> Array:
    """Convert an input to a picture in [0, 1]: `[H, W]` or `[H, W, 3]`."""
    pixels = np.asarray(image, float)
    if pixels.ndim == 4:
        pixels = pixels[0]
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3):
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[-1] != 3):
        expected = "[H, W] or [C, H, W] with one or three channels"
        raise InputError("image", expected, f"shape {np.shape(image)}")
    low, high = float(pixels.min()), float(pixels.max())
    return (pixels - low) / (high - low) if high > low else pixels * 0


def _nero_plot_sheet(
    array: xr.DataArray,
    panels: list[Panel],
    limits: tuple[float, float] | None,
    title: str,
    prefix: str,
    width: float | None,
) -> Figure:
    style.check_figure_width(width)
    models, order = plotted_model_names(array)
    sheet = Sheet(
        plotted_orbit(array, limits, prefix),
        models,
        {**style.model_colors(order), "": style.INK},
        {**style.model_lines(order), "": "-"},
        panels,
    )
    with style.styled():
        fig = draw_sheet(sheet, width)
        style.write_figure_title(fig, title)
    return fig


_PANELS = {
    "accuracy": "accuracy, mean over the orbit",
    "ece": "ECE, mean over the orbit",
    "invariance_gap": "invariance gap",
}


def averaging(table: xr.Dataset, *, width: float | None = None) -> Figure:
    """Draw accuracy, calibration error and invariance gap against the number of elements.

    Args:
        table: from `orbical.nero.averaging`.
        width: in inches; the width of a page by default.

    Returns:
        The figure. A ring marks the number of elements that is enough for each model.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", keep="probabilities", progress=False)
        >>> len(ob.figures.averaging(ob.nero.averaging(scan)).axes)
        3
    """
    style.check_figure_width(width)
    names = [str(name) for name in table["model"].values]
    colors, lines = style.model_colors(names), style.model_lines(names)
    numbers = table["elements"].values
    with style.styled():
        fig = style.figure(width or style.PAGE, (width or style.PAGE) * 0.36)
        for axes, (quantity, words) in zip(fig.subplots(1, 3), _PANELS.items(), strict=True):
            values = table[quantity]
            values = values.sel(place="mean") if "place" in values.dims else values
            for number, name in enumerate(names):
                curve = values.isel(model=number)
                axes.plot(numbers, curve, lines[name], color=colors[name], marker=".", label=name)
                enough = int(table["enough"][number])
                at = float(curve.sel(elements=enough))
                axes.plot(enough, at, "o", mfc="none", color=colors[name], ms=8, clip_on=False)
            axes.set(xscale="log", title=words, xlabel="elements, passes of the model")
            axes.set_xticks(numbers, [str(number) for number in numbers], minor=False)
            axes.minorticks_off()
            axes.set_ylim(0, 1 if quantity == "accuracy" else None)
            axes.grid(True, color=style.SOFT, alpha=0.2)
        labels, columns = style.legend_of(names, fig.get_figwidth() - 0.1)
        fig.legend(fig.axes[0].lines[::2], labels, loc="outside upper center", ncols=columns)
    return fig
