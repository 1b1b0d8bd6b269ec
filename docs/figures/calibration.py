"""Make the figures and numbers of the calibration guide.

    python docs/figures/calibration.py

writes pictures to docs/guide/img and prints the numbers that the guide quotes. Everything comes
from what ships with the package: the two digit networks, the digits of the extra `demo`, and worlds
whose truth is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import orbical as ob
from orbical.calibration.intervals import cells
from orbical.calibration.intervals.measure_intervals import Interval, interval
from orbical.calibration.intervals.reliability_curves import reliability_curve
from orbical.calibration.measure_tables import pair_table
from orbical.calibration.orbit.positions import along_orbit, pair_at
from orbical.figures import calibration as drawn
from orbical.figures import save
from orbical.figures.style import COLUMN, MODELS, SOFT, figure, styled

IMAGES = Path(__file__).resolve().parents[1] / "guide" / "img"
QUARTER = 9  # of 36 rotations


def calibrated_model_shows() -> None:
    """Draw the ECE of a perfectly calibrated model against the number of samples."""
    sizes = (100, 200, 500, 1000, 2000, 5000, 10_000, 50_000)
    with styled():
        fig = figure(COLUMN * 1.3, 2.8)
        axes = fig.subplots()
        for bins, color in zip((10, 15, 100), MODELS, strict=False):
            found = [_calibrated(size, bins) for size in sizes]
            axes.plot(sizes, [float(one.calibrated) for one in found], "o-", color=color, ms=3)
            ends = [
                [float(getattr(one, name)) for one in found]
                for name in ("calibrated_low", "calibrated_high")
            ]
            axes.fill_between(sizes, *ends, color=color, alpha=0.15, linewidth=0)
            axes.annotate(
                f"{bins} bins",
                (sizes[0], float(found[0].calibrated)),
                color=color,
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
            )
            if bins in (15, 100):
                for size in (200, 1000, 10_000):
                    value = float(found[sizes.index(size)].calibrated)
                    print(f"calibrated model, N = {size}, {bins} bins: ECE {value:.3f}")
        axes.set(xscale="log", xlabel="number of samples", ylabel="ECE of a calibrated model")
        axes.set_ylim(0, None)
        axes.grid(True, color=SOFT, alpha=0.2)
    save(fig, IMAGES / "calibrated-ece.png")


def _calibrated(size: int, bins: int) -> Interval:
    confidence = np.linspace(0.5, 1, size)
    return interval("ece", confidence, confidence > 0.75, bins=bins, resamples=400)


def coverage() -> None:
    """Print how often intervals hold the true ECE, ours and the percentile bootstrap's."""
    print("| true ECE | percentile bootstrap | orbical |\n|---|---|---|")
    for gap in (0.0, 0.03, 0.1):
        rng = np.random.default_rng(0)
        confidence = rng.uniform(0.5, 1, (1000, 1000))
        correct = rng.random((1000, 1000)) < confidence - gap
        found = interval("ece", confidence, correct, resamples=300)
        ours = ((found.low <= gap + 1e-9) & (found.high >= gap)).double().mean()
        print(f"| {gap:g} | {_percentile(confidence, correct, gap):.1%} | {ours:.1%} |")


def _percentile(confidence: NDArray, correct: NDArray, truth: float) -> float:
    z, y = torch.from_numpy(confidence), torch.from_numpy(correct)
    index, count = cells.bins_index(z, 15, "width")
    again = cells.tally(z, y, index, count).resampled(300, np.random.default_rng(1))
    low, high = cells.binned_error(again, "l1").quantile(torch.tensor([0.025, 0.975]).double(), 0)
    return float(((low <= truth) & (truth <= high)).double().mean())


def digits() -> ob.Scan:
    """Scan the two shipped networks along the circle."""
    nets = {name: ob.zoo.digits.load(name) for name in ("plain", "augmented")}
    return ob.scan(
        nets,
        ob.datasets.mnist("test"),
        group="rotations:36",
        task="classification",
        progress=False,
    )


def measures(scan: ob.Scan) -> None:
    """Print every measure of the plain network, upright and rotated by a quarter."""
    upright = pair_table(*pair_at(scan, scan.group.identity, "plain"))
    turned = pair_table(*pair_at(scan, QUARTER, "plain"))
    print("| measure | upright | if calibrated | rotated by 90° | if calibrated |")
    print("|---|---|---|---|---|")
    for name in upright:
        cells_ = (
            f"{_number(one.value)} [{_number(one.low)}, {_number(one.high)}]"
            f" | {_number(one.calibrated)}"
            for one in (upright[name], turned[name])
        )
        print(f"| {name} | {' | '.join(cells_)} |")


def _number(value: torch.Tensor) -> str:
    number = float(value)
    return f"{number:.3f}" if abs(number) >= 5e-3 or number == 0 else f"{number:.1e}"


def pictures(scan: ob.Scan) -> None:
    """Draw the networks' diagrams, and their calibration along the orbit."""
    pairs = {
        "plain, upright": pair_at(scan, scan.group.identity, "plain"),
        "plain, rotated by 90°": pair_at(scan, QUARTER, "plain"),
        "augmented, rotated by 90°": pair_at(scan, QUARTER, "augmented"),
    }
    diagrams = {name: reliability_curve(*given) for name, given in pairs.items()}
    save(drawn.reliability_diagram(diagrams), IMAGES / "reliability.png")
    curves = {name: ob.calibration.cumulative_curve(*given) for name, given in pairs.items()}
    save(drawn.cumulative_plot(curves), IMAGES / "cumulative.png")
    error = along_orbit(scan, "ece", interval=True)
    save(drawn.error_along_orbit(error), IMAGES / "ece-along-the-orbit.png")
    pooled = ob.calibration.pooled_over_orbit(scan, "ece")
    for name in scan.models:
        curve = error.sel(model=name)
        worst = int(curve.argmax("element"))
        print(
            f"{name}: ECE {float(curve[0]):.3f} upright, {float(curve.mean()):.3f} mean over the"
            f" orbit, {float(pooled.sel(model=name)):.3f} pooled over the orbit,"
            f" {float(curve[worst]):.3f} [{float(curve['low'][worst]):.3f},"
            f" {float(curve['high'][worst]):.3f}] at {scan.group.name(worst)}"
        )


def main() -> None:
    """Make everything."""
    calibrated_model_shows()
    coverage()
    scan = digits()
    measures(scan)
    pictures(scan)


if __name__ == "__main__":
    main()
