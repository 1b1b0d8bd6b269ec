"""Numbers and figures of the galaxy study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import linregress
from scipy.stats import t as student_t

from orbical.figures import LINES, MODELS, SOFT

from ..framework import Results, fixed, verdict, where
from ..framework.drawing import legend_outside, subplots
from ..framework.statistics import effect, simultaneous
from .settings import EQUALS, PHOTOGRAPHS, PLAIN

TITLES = {"efigi": "EFIGI", "galaxyzoo2": "Galaxy Zoo 2", "generated": "generated"}
LETTERS = {"cyclic": "C", "dihedral": "D"}
LABELS = {"accuracy": "accuracy", "ece": "ECE, 15 bins", "esd": "ESD (1e-3)"}
SCALES = {"accuracy": 1.0, "ece": 1.0, "esd": 1e3}
WIDTH = 6.2
# Networks whose NERO plots are drawn.
SHOWN = {"plain": "plain", "C_4": "$C_{4}$", "C_12": "$C_{12}$", "D_12": "$D_{12}$"}
DECIDING = {
    "accuracy": ("slope", "gain", "early", "late", "blur", "gain lost"),
    "ece": ("slope", "gain"),
    "esd": ("slope", "gain"),
}
"""The contrasts that decide about claims, by measure; of each the mean over families and blurs."""


def short(network: str) -> str:
    """Name a network by its group.

    >>> short("dihedral:4"), short("cyclic:1")
    ('D_4', 'plain')
    """
    family, order = network.split(":")
    return "plain" if network == PLAIN else f"{LETTERS[family]}_{order}"


def signed(value: float, digits: int = 1) -> str:
    """Format a difference with its sign; a rounded 0 has none.

    >>> signed(1.23), signed(-0.04)
    ('+1.2', '0.0')
    """
    text = fixed(value, digits)
    return f"+{text}" if float(text) > 0 else text


def judged(rows: pd.DataFrame) -> str:
    """Judge the claim that a number is above 0 from the intervals in some rows.

    >>> judged(pd.DataFrame({"above": [True, False], "below": [False, False]}))
    'confirmed in 1 of 2, otherwise open'
    """
    above, below, count = rows["above"].sum(), rows["below"].sum(), len(rows)
    if above and below:
        return f"mixed: for it in {above}, against it in {below} of {count}"
    word = "confirmed" if above else "contradicted" if below else "open"
    part = f" in {above + below} of {count}, otherwise open"
    return word + part if 0 < above + below < count else word


def in_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Change contrasts to points, ESD to thousandths; `shown` is value and interval as text."""
    thousandths = rows["measure"] == "esd"
    ends = rows[["value", "low", "high"]].mul(np.where(thousandths, 1e3, 1e2), axis=0)
    texts = [
        [signed(number, 2 if small else 1) for number in line]
        for line, small in zip(ends.to_numpy(), thousandths, strict=True)
    ]
    return rows.assign(
        **ends,
        shown=[f"{value} [{low}, {high}]" for value, low, high in texts],
        reach=np.maximum(-ends["low"], ends["high"]),
        above=ends["low"] > 0,
        below=ends["high"] < 0,
    )


def deciding(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Choose the contrasts that decide about claims, and correct them for their number."""
    listed = [(name, measure) for measure, names in DECIDING.items() for name in names]
    named = contrasts.set_index(["contrast", "measure"]).index.isin(listed)
    mean = (contrasts["family"] == "both") & (contrasts["data"] != "generated")
    mirrors = (contrasts["data"] == "generated") & (contrasts["family"] == "dihedral")
    spoiled = mirrors & (contrasts["contrast"] == "gain") & (contrasts["measure"] != "accuracy")
    return simultaneous(contrasts[named & (mean | spoiled)])


def symmetry(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Choose the contrasts of a group with its plain network of equal size, corrected."""
    mean = (contrasts["family"] == "both") & (contrasts["contrast"] == "symmetry")
    return in_points(simultaneous(contrasts[mean & contrasts["measure"].isin(DECIDING)]))


def slopes_by_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Fit accuracy and ECE of the networks at the paper's size against log2 of the order.

    Returns:
        A row a catalog and head: slopes in points per doubling with intervals over trainings, for
        two catalogs and two heads at once, and `whole`, whether the trainings that the rule asks
        for are there.
    """
    found = []
    for (data, head), some in rows.groupby(["data", "head"], sort=False):
        groups = {*zip(some["family"], some["order"], strict=True)}
        asked = {("cyclic", 1), *((f, n) for f in LETTERS for n in (4, 8, 12))}
        row: dict[str, Any] = {"data": data, "head": head, "trained": len(some)}
        row["whole"] = asked <= groups
        for measure in ("accuracy", "ece") if row["whole"] else ():
            fitted = linregress(np.log2(some["order"]), 100 * some[measure])
            reach = student_t.ppf(1 - 0.05 / 8, len(some) - 2) * fitted.stderr
            ends = (fitted.slope - reach, fitted.slope + reach)
            row[measure] = f"{fitted.slope:+.2f} [{ends[0]:+.2f}, {ends[1]:+.2f}]"
            falls = measure == "ece" and ends[1] < 0  # the claim is that it depends on the order
            row[f"{measure}_verdict"] = verdict(ends[0] > 0 or falls, refuted=ends[1] < 0)
        found.append(row)
    return pd.DataFrame(found)


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    rows = _networks(results)
    paper = results["paper"]
    heads = paper.pivot(index=["data", "family", "order"], columns="head").sort_index()
    heads = heads[heads["accuracy"].notna().all(axis=1)]  # groups that both heads are trained with
    sizes, shift, kinds = (results[name] for name in ("sizes", "shift", "kinds"))
    of_size = in_points(results["size_contrasts"].query("family == 'both' and contrast == 'size'"))
    moved = symmetry(results["shift_contrasts"])
    photographs = rows[rows["data"].isin(PHOTOGRAPHS)]
    decided = in_points(deciding(results["contrasts"]))
    each = in_points(results["contrasts"].query("family != 'both' and measure != 'overconfidence'"))
    place, chance = ["data", "family", "blur"], ["accuracy", "overconfidence"]
    spread = photographs.groupby([*place, "order"])["ece"].mean().groupby(place)
    ranks = rows[["ece", "refitted_ece"]].groupby(rows["data"]).rank().groupby(rows["data"])

    def contrast(found: pd.DataFrame, name: str, *measures: str) -> pd.DataFrame:
        return found.query("contrast == @name and measure in @measures")

    return {
        "titles": TITLES,
        "letters": LETTERS,
        "at_100": heads,
        "not_invariant": heads["gap_circle"].query("order > 1").eval("flat > pooled"),
        "slopes_at_100": slopes_by_order(paper).set_index(["data", "head"]),
        "signed": signed,
        "judged": judged,
        "rows": rows,
        "data": dict(iter(rows.groupby("data", sort=False))),
        "photographs": photographs,
        "each": partial(contrast, each[each["data"].isin(PHOTOGRAPHS)]),
        "means": partial(contrast, decided[decided["data"].isin(PHOTOGRAPHS)]),
        "comparisons": len(decided),
        "spoiled": decided[decided["data"] == "generated"],
        "places": list(each[place].drop_duplicates().itertuples(index=False, name=None)),
        "shown": each.set_index([*place, "measure", "contrast"])["shown"],
        "ranges": spread.max() - spread.min(),
        "widths": photographs.groupby(place)["ece_width"].mean(),
        "sharp": rows[rows["blur"] == 0].groupby(["data", "short"]),
        "defects": photographs[photographs["short"] != "plain"].groupby("short")["defect_group"],
        "correlations": ranks.corr().xs("ece", level=1)["refitted_ece"],
        "angles": _circles(results),
        "bounds": results["bounds"],
        "neighbors": results["neighbours"],
        "coverage": results["coverage"],
        "equals": {sized(group): sized(f"plain:{n}") for group, n in EQUALS.items()},
        "equal": symmetry(results["size_contrasts"]),
        "moved": moved,
        "helped": sum(_effect(row) == "helps" for row in moved.itertuples()),
        "harmed": sum(_effect(row) == "harms" for row in moved.itertuples()),
        "elsewhere": _elsewhere(shift),
        "of_size": of_size[of_size["measure"].isin(DECIDING)],
        "effect": _effect,
        "trained": sizes,
        "kinds": kinds,
        "kind": kinds.query("data != tested and not moved").set_index("data").to_dict("index"),
        "own": kinds.query("data == tested and not moved"),
        "turned": kinds.query("data == tested and moved")["extrinsic"],
        "pairs": _single_pairs(results["shift_contrasts"]),
        "chance": where(shift, data="efigi", tested="galaxyzoo2").groupby("network")[chance].mean(),
        "sizes": _by_size(sizes, "data", "network"),
        "shift": _by_size(shift, "data", "network", "tested"),
    }


def _by_size(rows: pd.DataFrame, *keys: str) -> Any:
    """Group the comparison of sizes, its networks named."""
    return rows.assign(network=rows["network"].map(sized)).groupby([*keys], sort=False)


def _effect(row: Any) -> str:
    """Describe what the symmetry does to a measure: high accuracy is good, a high error bad."""
    return effect(row.low, row.high, 1 if row.measure == "accuracy" else -1)


def _elsewhere(shift: pd.DataFrame) -> dict[str, dict[str, pd.Series]]:
    """Return by catalog the mean measures on the other one, of groups and plain networks."""
    other = shift[(shift["data"] != shift["tested"]) & (shift["network"] != PLAIN)]
    kind = np.where(other["network"].isin(EQUALS), "group", "plain")
    means = other.groupby(["data", kind])[["accuracy", "spirals", "said", "auc"]].mean()
    return {data: {of: means.loc[data, of] for of in ("group", "plain")} for data in PHOTOGRAPHS}


def _single_pairs(contrasts: pd.DataFrame) -> dict[str, pd.Series]:
    """Return by catalog what the symmetry changes for each group and blur, accuracy in points."""
    apart = contrasts.query("family != 'both' and contrast == 'symmetry' and measure == 'accuracy'")
    return {data: 100 * rows["value"] for data, rows in apart.groupby("data", sort=False)}


def sized(network: str) -> str:
    """Name a network of the comparison of sizes.

    >>> sized("plain:24"), sized("dihedral:12")
    ('plain, 24 fields', 'D_12')
    """
    kind, count = network.split(":")
    return f"plain, {count} fields" if kind == "plain" else short(network)


def _networks(results: Results) -> pd.DataFrame:
    rows = results["results"]
    return rows.assign(
        short=rows["network"].map(short),
        excess=rows["ece"] - rows["ece_calibrated"],
        above=rows["ece"] > rows["ece_calibrated_high"],
        ece_width=rows["ece_high"] - rows["ece_low"],
    )


def _circles(results: Results) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the measures along the circle without blur, by data set and network."""
    angles = results["angles"]
    sharp = angles[angles["blur"] == 0]
    return dict(iter(sharp.groupby(["data", sharp["network"].map(short)], sort=False)))


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw measures against the order, NERO plots, the gap and refitted ECE, and mirrors."""
    rows = _networks(results)
    for data in PHOTOGRAPHS:
        yield f"{data}.png", _orders(rows[rows["data"] == data])
    yield "sizes.png", _sizes(results)
    yield "nero.png", _nero(results)
    yield "invariance.png", _invariance(rows)
    yield "mirrors.png", _mirrors(rows[rows["data"] == "generated"], results["bounds"])


def _orders(rows: pd.DataFrame) -> Figure:
    """Draw all measures against the order, for both families and all blurs."""
    blurs = dict(iter(rows.groupby("blur")))
    fig, panels = subplots(
        len(LABELS), len(LETTERS), 5.2, WIDTH, sharey="row", sharex=True, grid="both"
    )
    for line, (measure, title) in zip(panels, LABELS.items(), strict=True):
        for ax, family in zip(line, LETTERS, strict=True):
            for place, (blur, at_blur) in enumerate(blurs.items()):
                shift = 1 + 0.05 * (place - (len(blurs) - 1) / 2)
                style = {"color": MODELS[place], "label": f"blur {blur:g} px"}
                _along(ax, at_blur[at_blur["family"] == family], measure, shift, style)
            if measure != "accuracy":
                floor = rows["ece_calibrated"].mean() if measure == "ece" else 0.0
                ax.axhline(floor, color=SOFT, ls=":", lw=1.2, label="a calibrated network's")
            _order_axis(ax, sorted(rows["order"].unique()))
        line[0].set_ylabel(title)
    for (top, *_, bottom), letter in zip(panels.T, LETTERS.values(), strict=True):
        top.set_title(f"${letter}_n$", loc="left")
        bottom.set_xlabel("order n")
    legend_outside(panels[1, 0], "upper center", ncols=4, fontsize=7)
    return fig


def _sizes(results: Results) -> Figure:
    """Draw what the symmetry changes at equal size, on the same catalog and on the other one."""
    tables = {"the same catalog": "size_contrasts", "the other catalog": "shift_contrasts"}
    titles = {"accuracy": "accuracy (points)", "ece": "ECE (points)", "esd": "ESD (1e-3)"}
    fig, panels = subplots(1, 3, 2.3, sharey=True, grid="x")
    for ax, measure in zip(panels, titles, strict=True):
        for place, (words, table) in enumerate(tables.items()):
            found = symmetry(results[table])
            rows = found[found["measure"] == measure]
            for line, row in enumerate(rows.itertuples()):
                y = line + 0.2 * (place - 0.5)
                label = f"tested on {words}" if line == 0 else None
                ax.plot([row.low, row.high], [y, y], color=MODELS[place], lw=1.2)
                ax.plot([row.value], [y], "o", ms=4, color=MODELS[place], label=label)
        ax.axvline(0, color=SOFT, lw=0.8)
        ax.set_xlabel(titles[measure])
        ax.set_yticks(range(len(rows)), [f"trained on\n{TITLES[name]}" for name in rows["data"]])
        ax.set_ylim(len(rows) - 0.5, -0.5)
    legend_outside(ax, "upper center", ncols=2)
    return fig


def _along(ax: Any, rows: pd.DataFrame, measure: str, shift: float, style: dict[str, Any]) -> None:
    """Draw one line over the orders: means over seeds, intervals of the test set, and each seed."""
    orders = rows.groupby("order")
    middles = [_seeds(ax, n * shift, found, measure, style["color"]) for n, found in orders]
    ax.plot([n * shift for n in orders.groups], middles, "-o", ms=3.5, lw=1.3, **style)


def _seeds(ax: Any, at: float, rows: pd.DataFrame, measure: str, color: str) -> float:
    """Draw each seed and the interval of the test set; return the mean over seeds.

    The interval is drawn from end to end, whether or not it contains the mean: an unbiased ESD may
    be negative, its interval never is.
    """
    each = SCALES[measure] * rows[[measure, f"{measure}_low", f"{measure}_high"]]
    middle, low, high = each.mean()
    ax.vlines(at, low, high, color=color, lw=0.8)
    ax.plot([at] * len(each), each[measure], ".", ms=3, alpha=0.6, color=color)
    return float(middle)


def _order_axis(ax: Any, orders: list[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(orders, [str(order) for order in orders])
    ax.minorticks_off()


def _nero(results: Results) -> Figure:
    """Draw accuracy, confidence and ECE over the rotation of the test images (NERO plots)."""
    circles, rows = _circles(results), results["results"]
    measures, whole = ("accuracy", "confidence", "ece"), np.linspace(0, 2 * np.pi, 100)
    fig, panels = subplots(
        len(PHOTOGRAPHS), 3, 2.1 * len(PHOTOGRAPHS) + 0.5, WIDTH, subplot_kw={"projection": "polar"}
    )
    for line, data in zip(panels, PHOTOGRAPHS, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            drawn = {name: circles.get((data, name)) for name in SHOWN}
            for color, (name, circle) in zip(MODELS, drawn.items(), strict=False):
                if circle is not None:
                    turn = np.radians([*circle["angle"], 360.0])
                    values = [*circle[measure], circle[measure].iloc[0]]
                    ax.plot(turn, values, color=color, lw=1.1, label=SHOWN[name])
            if measure == "ece":
                floor = rows.loc[rows["data"] == data, "ece_calibrated"].mean()
                ax.plot(whole, 0 * whole + floor, ":", color=SOFT, lw=1.2, label="calibrated")
            _polar_axis(ax, measure, pd.concat(drawn.values())[measure])
        line[0].set_ylabel(TITLES[data], labelpad=22, fontweight="bold")
    for ax, measure in zip(panels[0], measures, strict=True):
        ax.set_title(LABELS.get(measure, measure), loc="center")
    legend_outside(panels[0, 2], ncols=6, fontsize=7)
    return fig


def _polar_axis(ax: Any, measure: str, drawn: pd.Series) -> None:
    """Let the radius begin at 0 for an error, and below the least value for a share."""
    low = 0.0 if measure == "ece" else 0.05 * np.floor(20 * drawn.min() - 1)
    high = 0.01 * np.ceil(100 * drawn.max() + 0.5)
    ring = (low + high) / 2
    ax.set_ylim(low, high)
    ax.set_yticks([ring, high], ["", ""])
    words = f"center {low:.3g}, ring {ring:.3g}, rim {high:.3g}"  # below, where no curve crosses it
    ax.text(0.5, -0.13, words, transform=ax.transAxes, ha="center", va="top", fontsize=6)
    ax.set_xticks(np.radians([0, 90, 180, 270]), ["0°", "90°", "180°", "270°"], fontsize=6)
    ax.tick_params(pad=-2)


def _invariance(rows: pd.DataFrame) -> Figure:
    """Draw the invariance gap over the circle against the order, and the refitted ECE."""
    gaps = rows[rows["blur"] == 0].groupby(["data", "family", "order"])["gap_circle"].mean()
    fig, (left, right) = subplots(1, 2, 2.7, grid="both")
    for color, (data, found) in zip(MODELS, rows.groupby("data", sort=False), strict=False):
        for line, (family, letter) in zip(LINES, LETTERS.items(), strict=False):
            label = f"{TITLES[str(data)]}, ${letter}_n$"
            style = {"ls": line, "marker": "o", "ms": 3, "color": color}
            left.plot(gaps[data, family], label=label, **style)
        style = {"ms": 2.5, "mew": 0, "alpha": 0.6, "color": color}
        right.plot(found["ece"], found["refitted_ece"], "o", label=TITLES[str(data)], **style)
    left.set(xlabel="order n", ylabel="invariance gap over the circle")
    left.set_ylim(bottom=0)
    _order_axis(left, sorted(rows["order"].unique()))
    most = rows[["ece", "refitted_ece"]].max().max() * 1.05
    right.plot([0, most], [0, most], color=SOFT, lw=0.8, ls=":")
    right.set(xlim=(0, most), ylim=(0, most), aspect="equal")
    right.set(xlabel="ECE of the network's own softmax", ylabel="ECE, refitted on the test set")
    for ax in (left, right):
        ax.legend(fontsize=6.5, handlelength=3)
    return fig


def _mirrors(rows: pd.DataFrame, bounds: pd.DataFrame) -> Figure:
    """Draw accuracy and ECE on generated galaxies, with the bounds of mirror-invariance."""
    orders = sorted(rows["order"].unique())
    ends = bounds.groupby(bounds["network"].str.split(":").str[1].astype(int))
    lower, upper = ends["lower"].mean(), ends["upper"].mean()
    ceiling = bounds["ceiling"].iloc[0]
    fig, panels = subplots(1, 2, 3.0, grid="both")
    for ax, measure in zip(panels, ("accuracy", "ece"), strict=True):
        for place, (family, letter) in enumerate(LETTERS.items()):
            style = {"color": MODELS[place], "label": f"${letter}_n$"}
            _along(ax, rows[rows["family"] == family], measure, 1 + 0.03 * place, style)
        _order_axis(ax, orders)
        ax.set(xlabel="order n", ylabel=LABELS[measure])
    panels[0].axhline(ceiling, color=SOFT, ls="--", lw=1.2)
    words = {"s": "ceiling of mirror-invariance", "ha": "right", "fontsize": 7, "color": SOFT}
    panels[0].text(max(orders), ceiling + 0.01, **words)
    panels[0].set_ylim(min(0.5, ceiling - 0.1), 1.02)
    band = {"color": MODELS[1], "alpha": 0.12, "lw": 0, "label": "sharp interval of $D_n$"}
    panels[1].fill_between(lower.index, lower, upper, **band)
    legend_outside(panels[1])
    return fig
