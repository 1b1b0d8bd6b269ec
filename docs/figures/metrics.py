"""Make the pictures of the metric reference: one for each measure of the registry.

    python docs/figures/metrics.py

writes docs/guide/img/metrics/NAME.png. All are made from one example: 2,000 samples of three
classes whose true probabilities are known, with logits 1.8 times too large, and 2,000 targets of
two components whose noise is known, with deviations 0.6 times too small. The left panel shows what
the measure looks at; the right one its value, from the registered function, as the model goes from
underconfident to overconfident.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from PIL import Image
from scipy.stats import norm

from orbical import calibration
from orbical.calibration import MEASURES, Measure
from orbical.figures.style import FAINT, INK, MODELS, SOFT, figure, styled

FOLDER = Path(__file__).resolve().parents[1] / "guide" / "img" / "metrics"
SAMPLES, BINS = 2000, 10
LOGITS, DEVIATION = 1.8, 0.6
FACTORS = np.geomspace(0.33, 3, 25)
BLUE, ORANGE = MODELS[0], MODELS[1]
Arrays = dict[str, torch.Tensor]


@cache
def classifier(factor: float) -> Arrays:
    """The example's classifier with logits too large by a factor."""
    generator = torch.Generator().manual_seed(1)
    truth = torch.randn(SAMPLES, 3, generator=generator, dtype=torch.float64) * 1.6
    labels = torch.multinomial(truth.softmax(-1), 1, generator=generator)[:, 0]
    probs = (truth * factor).softmax(-1)
    confidence, correct = calibration.top_label(probs=probs, labels=labels)
    return {"probs": probs, "labels": labels, "confidence": confidence, "correct": correct}


@cache
def regressor(factor: float) -> Arrays:
    """The example's regressor with deviations too large by a factor."""
    generator = torch.Generator().manual_seed(2)
    spread = torch.rand(SAMPLES, 2, generator=generator, dtype=torch.float64) * 1.5 + 0.3
    target = spread * torch.randn(SAMPLES, 2, generator=generator, dtype=torch.float64)
    return {"target": target, "variance": (factor * spread).square()}


def value(entry: Measure, confident: float) -> float:
    """Compute a measure of the model that is too confident by a factor."""
    if entry.kind in ("pair", "outputs"):
        data = classifier(confident)
        if entry.kind == "pair":
            return float(entry(data["confidence"], data["correct"]))
        return float(entry(probs=data["probs"], labels=data["labels"]))
    data = regressor(1 / confident)
    if entry.kind == "aleatoric":
        return float(entry.function(data["variance"]).total)
    part = 0 if entry.one_target else slice(None)
    target, variance = data["target"][:, part], data["variance"][:, part]
    found = entry(torch.zeros_like(target), variance, target)
    return float(getattr(found, "error", found))


# What a measure looks at: one function each, which draws on axes.


def diagonal(ax: Axes, x: str, y: str, end: float = 1.0) -> None:
    """Draw the diagonal of a calibrated model, with labels of the axes."""
    ax.plot([0, end], [0, end], color=SOFT, lw=0.8, ls="--")
    ax.set(xlabel=x, ylabel=y, xlim=(0, end), ylim=(0, end * 1.05))


def bins(ax: Axes, power: int = 1, binning: str = "width", largest: bool = False) -> None:
    """Gaps between accuracy and confidence, by bin."""
    data = classifier(LOGITS)
    found = calibration.reliability(data["confidence"], data["correct"], bins=BINS, binning=binning)
    full = found.count > 0
    edges, z, y = found.edges.numpy(), found.confidence.numpy(), found.accuracy.numpy()
    gaps = np.where(full, np.abs(y - z), 0)
    for b in np.flatnonzero(full):
        marked = not largest or b == gaps.argmax()
        ax.bar(edges[b], y[b], edges[b + 1] - edges[b], align="edge", color=FAINT, ec="white")
        ax.plot([z[b], z[b]], [y[b], z[b]], color=ORANGE if marked else SOFT, lw=2 * power)
    diagonal(ax, "confidence", "accuracy")
    ax.set_xlim(1 / 3, 1)


def smooth(ax: Axes) -> None:
    """The gap of the smoothed accuracy."""
    data = classifier(LOGITS)
    found = calibration.reliability_curve(data["confidence"], data["correct"], resamples=20)
    ax.plot(found.place, found.accuracy, color=BLUE)
    ax.fill_between(found.place, found.accuracy, found.place, color=ORANGE, alpha=0.35, lw=0)
    diagonal(ax, "confidence", "accuracy, smoothed")
    ax.set_xlim(1 / 3, 1)


def soft_bins(ax: Axes) -> None:
    """Membership of the soft bins."""
    z = np.linspace(1 / 3, 1, 300)
    centers = (np.arange(15) + 0.5) / 15
    share = np.exp(-((z[:, None] - centers) ** 2) / 0.01)
    share /= share.sum(1, keepdims=True)
    ax.plot(z, share, color=BLUE, lw=0.9)
    ax.set(xlabel="confidence", ylabel="membership of a bin", xlim=(1 / 3, 1), ylim=(0, None))


def cumulative(ax: Axes, area: bool = False) -> None:
    """Cumulative accuracy less cumulative confidence."""
    data = classifier(LOGITS)
    found = calibration.cumulative_curve(data["confidence"], data["correct"])
    x, d = found.threshold.numpy(), found.difference.numpy()
    ax.axhline(0, color=SOFT, lw=0.8, ls="--")
    ax.plot(x, d, color=BLUE)
    if area:
        ax.fill_between(x, d, 0, color=ORANGE, alpha=0.35, lw=0)
    else:
        worst = np.abs(d).argmax()
        ax.plot([x[worst]] * 2, [0, d[worst]], color=ORANGE, lw=2.5)
    ax.set(xlabel="confidence", ylabel="cumulative gap", xlim=(1 / 3, 1))


def pairs(ax: Axes, itself: bool = True) -> None:
    """Products of two samples' gaps, weighted by the kernel of their distance."""
    data = classifier(LOGITS)
    z, order = data["confidence"][:60].sort()
    d = data["correct"][:60][order].double() - z
    form = d[:, None] * d * (-(z[:, None] - z).abs() / 0.4).exp()
    form = form if itself else form.fill_diagonal_(float("nan"))
    ax.imshow(form, cmap="RdBu_r", vmin=-0.3, vmax=0.3, interpolation="nearest")
    ax.set(xlabel="sample, by confidence", ylabel="sample", xticks=[], yticks=[])


def witness(ax: Axes) -> None:
    """The smoothed gap of largest norm."""
    data = classifier(LOGITS)
    places = torch.linspace(1 / 3, 1, 200, dtype=torch.float64)
    d = data["correct"].double() - data["confidence"]
    kernel = (-(places[:, None] - data["confidence"]).abs() / 0.4).exp()
    gap = (kernel * d).mean(1)
    ax.axhline(0, color=SOFT, lw=0.8, ls="--")
    ax.plot(places, gap, color=BLUE)
    ax.fill_between(places, gap, 0, color=ORANGE, alpha=0.35, lw=0)
    ax.set(xlabel="confidence", ylabel="gap under the kernel", xlim=(1 / 3, 1))


def bias(ax: Axes) -> None:
    """The squared error of the calibrated model with and without its bias, by sample size."""
    data = classifier(1.0)
    sizes = [50, 100, 200, 400, 1000]
    for name, power, color, words in (
        ("ece_l2", 2, SOFT, "plain"),
        ("ece_debiased", 1, ORANGE, "debiased"),
    ):
        means = [
            np.mean(
                [
                    float(MEASURES[name](z, y)) ** power
                    for z, y in zip(
                        data["confidence"].split(n), data["correct"].split(n), strict=True
                    )
                ]
            )
            for n in sizes
        ]
        ax.plot(sizes, means, "o-", color=color, ms=3, label=words)
    ax.legend(fontsize=7)
    ax.set(xscale="log", xlabel="samples, calibrated", ylabel="squared error")


def correctness(ax: Axes) -> None:
    """Confidences of correct and of incorrect predictions."""
    data = classifier(LOGITS)
    right = data["correct"].bool()
    sets = [data["confidence"][right], data["confidence"][~right]]
    ax.hist(sets, bins=12, stacked=True, color=[BLUE, ORANGE], label=["correct", "wrong"])
    ax.legend(fontsize=7)
    ax.set(xlabel="confidence", ylabel="samples")


def terms(ax: Axes, entry: Measure) -> None:
    """The terms of a mean over samples."""
    data = classifier(LOGITS)
    assert entry.terms is not None
    found = entry.terms(probs=data["probs"], labels=data["labels"])
    ax.hist(found, bins=30, color=FAINT)
    ax.axvline(found.mean(), color=ORANGE, lw=2)
    ax.set(xlabel=f"{entry.title} of a sample", ylabel="samples", yscale="log")


def parts(ax: Axes, part: str) -> None:
    """The two parts of the Brier score."""
    data = classifier(LOGITS)
    found = calibration.brier_parts(probs=data["probs"], labels=data["labels"])
    left = 0.0
    for name in ("refinement", "calibration"):
        width = float(getattr(found, name))
        ax.barh(0, width, left=left, color=ORANGE if name == part else FAINT)
        ax.annotate(name, (left, 0.5), fontsize=7, color=INK)
        left += width
    ax.set(xlabel="Brier score", yticks=[], ylim=(-1, 1.3))


def classes(ax: Axes, name: str) -> None:
    """The measure of each class, and their mean."""
    data = classifier(LOGITS)
    found = [
        float(MEASURES[name](data["probs"][:, k], data["labels"] == k))
        for k in range(data["probs"].shape[1])
    ]
    ax.bar(range(len(found)), found, color=FAINT)
    ax.axhline(np.mean(found), color=ORANGE, lw=2)
    ax.set(xlabel="class", ylabel=f"{MEASURES[name].title} of the class", xticks=range(len(found)))


def predictions(ax: Axes) -> None:
    """Targets about their mean, with the predicted deviations."""
    data = regressor(DEVIATION)
    spread = data["variance"][:40, 0].sqrt()
    ax.vlines(range(40), -spread, spread, color=BLUE, lw=1.2)
    ax.plot(range(40), data["target"][:40, 0], ".", color=ORANGE, ms=4)
    ax.set(xlabel="sample", ylabel="target and deviation", xticks=[])


def spread_bins(ax: Axes, root: bool) -> None:
    """Error against predicted spread, by bins of equal mass."""
    data = regressor(DEVIATION)
    s, order = data["variance"][:, 0].sort()
    e = data["target"][:, 0][order].square()
    s, e = s.reshape(BINS, -1).mean(1), e.reshape(BINS, -1).mean(1)
    s, e = (s.sqrt(), e.sqrt()) if root else (s, e)
    ax.vlines(s, s, e, color=ORANGE, lw=2)
    ax.plot(s, e, "o", color=BLUE, ms=3.5)
    words = ("root mean variance", "RMSE") if root else ("mean variance", "mean squared error")
    diagonal(ax, *words, float(e.max()))


def coverage(ax: Axes, name: str) -> None:
    """Observed shares against levels."""
    data = regressor(DEVIATION)
    part = 0 if MEASURES[name].one_target else slice(None)
    target = data["target"][:, part]
    found = getattr(calibration, name)(torch.zeros_like(target), data["variance"][:, part], target)
    ax.plot(found.levels, found.observed, color=BLUE)
    ax.fill_between(found.levels, found.observed, found.levels, color=ORANGE, alpha=0.35, lw=0)
    diagonal(ax, "level", "observed share")


def distribution(ax: Axes) -> None:
    """A predicted distribution function against the step at the target."""
    x = np.linspace(-3, 3, 300)
    below, step = norm.cdf(x), (x >= 1.2).astype(float)
    ax.plot(x, below, color=BLUE)
    ax.plot(x, step, color=INK, lw=1)
    ax.fill_between(x, below, step, color=ORANGE, alpha=0.35, lw=0)
    ax.set(xlabel="target, in deviations", ylabel="probability below")


def spread_cumulative(ax: Axes, normalized: bool) -> None:
    """Cumulative excess of the squared error, in the order of the predicted variance."""
    data = regressor(DEVIATION)
    s, order = data["variance"][:, 0].sort()
    e = data["target"][:, 0][order].square()
    d = (e / s - 1 if normalized else e - s).cumsum(0) / SAMPLES
    ax.axhline(0, color=SOFT, lw=0.8, ls="--")
    ax.plot(s, d, color=BLUE)
    ax.fill_between(s, d, 0, color=ORANGE, alpha=0.35, lw=0)
    ax.set(xlabel="predicted variance", ylabel="cumulative excess")


def vectors(ax: Axes, squares: bool, fibers: bool) -> None:
    """Absolute errors against their expected size, by component."""
    data = regressor(DEVIATION)
    s, e = data["variance"].flatten(), data["target"].abs().flatten()
    x, y = (s, e.square()) if squares else ((2 * s / np.pi).sqrt(), e)
    end = float(x.max()) * 1.6
    ax.plot(x[:400], y[:400], ".", color=FAINT, ms=3)
    if fibers:
        order = x.argsort()
        means = [one[order].reshape(BINS, -1).mean(1) for one in (x, y)]
        ax.vlines(means[0], *means, color=ORANGE, lw=2)
        ax.plot(*means, "o", color=BLUE, ms=3.5)
    words = ("predicted variance", "squared error") if squares else ("expected |error|", "|error|")
    diagonal(ax, *words, end)


def bleed(ax: Axes) -> None:
    """Aleatoric variances of noise-free data."""
    ax.hist(regressor(DEVIATION)["variance"].flatten(), bins=30, color=ORANGE)
    ax.axvline(0, color=SOFT, ls="--")
    ax.set(xlabel="aleatoric variance, true: 0", ylabel="samples")


def look(entry: Measure) -> Callable[[Axes], None]:
    """Return the function that draws what a measure looks at."""
    if entry.name.startswith("classwise_"):
        return partial(classes, name=entry.name.removeprefix("classwise_"))
    drawn: dict[str, Any] = {
        "accuracy": correctness,
        "ece": bins,
        "ece_l2": partial(bins, power=2),
        "ece_max": partial(bins, largest=True),
        "ece_mass": partial(bins, binning="mass"),
        "smooth_ece": smooth,
        "sb_ece": soft_bins,
        "ks": cumulative,
        "esd": partial(cumulative, area=True),
        "mmce": witness,
        "mmce_squared": pairs,
        "skce": partial(pairs, itself=False),
        "ece_debiased": bias,
        "nll": partial(terms, entry=entry),
        "brier": partial(terms, entry=entry),
        "brier_calibration": partial(parts, part="calibration"),
        "brier_refinement": partial(parts, part="refinement"),
        "s_avuc": correctness,
        "squared_error": predictions,
        "gaussian_nll": predictions,
        "ence": partial(spread_bins, root=True),
        "uce": partial(spread_bins, root=False),
        "quantile_calibration": partial(coverage, name="quantile_calibration"),
        "gaussian_crps": distribution,
        "regression_esd": partial(spread_cumulative, normalized=False),
        "mahalanobis_calibration": partial(coverage, name="mahalanobis_calibration"),
        "gence": partial(vectors, squares=False, fibers=False),
        "gence_sq": partial(vectors, squares=True, fibers=False),
        "gence_fiber": partial(vectors, squares=False, fibers=True),
        "gence_sq_fiber": partial(vectors, squares=True, fibers=True),
        "regression_esd_normalized": partial(spread_cumulative, normalized=True),
        "aleatoric_bleed": bleed,
    }
    found: Callable[[Axes], None] = drawn[entry.name]
    return found


def response(ax: Axes, entry: Measure) -> None:
    """The value of a measure from underconfident to overconfident models."""
    factors = FACTORS if entry.kind in ("pair", "outputs") else FACTORS[4:-4]
    ax.axvline(1, color=SOFT, lw=0.8, ls="--")
    if entry.target is not None:
        ax.axhline(entry.target, color=SOFT, lw=0.8, ls=":")
    ax.plot(factors, [value(entry, float(factor)) for factor in factors], color=BLUE)
    shown = LOGITS if entry.kind in ("pair", "outputs") else 1 / DEVIATION
    ax.plot(shown, value(entry, shown), "o", color=ORANGE, ms=5)
    ax.set(xscale="log", xlabel="under-      confidence, factor      over-", ylabel=entry.title)
    ax.set_xticks([0.5, 1, 2], ["½", "1", "2"])
    ax.minorticks_off()


def picture(entry: Measure) -> Path:
    """Draw a measure and write the picture, with few colors because it is small."""
    with styled():
        fig = figure(5.4, 1.9, dpi=130)
        left, right = fig.subplots(1, 2)
        look(entry)(left)
        response(right, entry)
        stream = io.BytesIO()
        fig.savefig(stream)
    path = FOLDER / f"{entry.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(stream).convert("RGB").quantize(64).save(path, optimize=True)
    return path


if __name__ == "__main__":
    sizes = [picture(entry).stat().st_size for entry in MEASURES.values()]
    print(f"{len(sizes)} pictures, {sum(sizes) // 1024} kB")
