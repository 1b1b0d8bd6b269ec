"""The figure of averaging over the orbit: what more elements gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .style import PAGE, SOFT, check_width, figure, model_colors, model_lines, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["averaging"]

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
    check_width(width)
    names = [str(name) for name in table["model"].values]
    colors, lines = model_colors(names), model_lines(names)
    numbers = table["elements"].values
    with styled():
        fig = figure(width or PAGE, (width or PAGE) * 0.36)
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
            axes.grid(True, color=SOFT, alpha=0.2)
        handles = fig.axes[0].get_legend_handles_labels()
        fig.legend(*handles, loc="outside upper center", ncols=len(names))
    return fig
