"""Make the figures and numbers of the guide to decisions under uncertainty.

    python docs/figures/decisions.py

writes pictures to docs/guide/img and prints the numbers that the guide quotes, in about a minute on
one core. Everything comes from what ships with the package: the two digit networks, and the digits
of the extra `demo`.
"""

from __future__ import annotations

from pathlib import Path

import xarray as xr

import orbical as ob
from orbical.conformal import LAC, along_orbit
from orbical.conformal.orbit_coverage import CALIBRATED
from orbical.figures import save
from orbical.figures.calibration import error_along_orbit

IMAGES = Path(__file__).resolve().parents[1] / "guide" / "img"


def digits() -> ob.Scan:
    """Scan the two shipped networks along the circle."""
    return ob.scan(
        {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES},
        ob.datasets.mnist("test"),
        group="rotations:36",
        task="classification",
        keep="probabilities",
        progress=False,
    )


def sets(scan: ob.Scan) -> None:
    """Draw the coverage of sets along the circle, and print it with their size."""
    found = {place: along_orbit(scan, LAC(0.95), calibrate=place) for place in CALIBRATED}
    curves = [part.coverage for part in found.values()]
    words = ["the identity", "the orbit", "each position", "averaged scores"]
    name = xr.Variable("calibrated on", words)
    together = xr.concat(curves, dim=name, coords="different", compat="equals")
    together.attrs = curves[0].attrs
    together = together.transpose("model", "calibrated on", "element")
    save(error_along_orbit(together, limits=(0.0, 1.0)), IMAGES / "conformal-coverage.png")
    print(
        "| model | calibrated | coverage upright | mean | worst | mean size |\n" + "|---" * 6 + "|"
    )
    for model in scan.models:
        for place, part in found.items():
            covered, size = part.coverage.sel(model=model), part.size.sel(model=model)
            worst = int(covered.argmin("element"))
            print(
                f"| {model} | {place} | {float(covered[0]):.3f} | {float(covered.mean()):.3f} |"
                f" {float(covered[worst]):.3f} at {scan.group.name(worst)} |"
                f" {float(size.mean()):.2f} |"
            )


def averages(scan: ob.Scan) -> None:
    """Draw and print what averaging over the circle gains."""
    table = ob.nero.averaging(scan)
    save(ob.figures.averaging(table), IMAGES / "averaging.png")
    print("| network | elements | accuracy | gain | ECE | gap |\n" + "|---" * 6 + "|")
    for model in scan.models:
        one = table.sel(model=model)
        for number in table["elements"].values:
            row = one.sel(elements=number)
            accuracy, error = (float(row[k].sel(place="mean")) for k in ("accuracy", "ece"))
            gain, low, high = (float(row[k]) for k in ("gain", "gain_low", "gain_high"))
            print(
                f"| {model} | {number} | {accuracy:.3f} | {gain:+.3f} [{low:+.3f}, {high:+.3f}] |"
                f" {error:.3f} | {float(row['invariance_gap']):.3f} |"
            )
        print(f"{model}: enough {int(one['enough'])}")


def rejected(scan: ob.Scan) -> None:
    """Draw and print which score rejects the errors on upright digits, and along the circle."""
    for model in scan.models:
        curves = ob.selective.rejection(scan, model)
        if model == "augmented":
            save(ob.figures.risk_coverage_plot(curves), IMAGES / "risk-coverage.png")
        for name, curve in curves.items():
            print(
                f"| {model} | {name} | {curve.risk_at(1.0):.3f} | {curve.risk_at(0.9):.4f} |"
                f" {curve.aurc:.4f} [{curve.low:.4f}, {curve.high:.4f}] | {curve.best:.4f} |"
            )
    areas = ob.selective.along_orbit(scan)
    for model in scan.models:
        one = areas.sel(model=model)
        worst = int(one.argmax("element"))
        print(
            f"{model}: AURC {float(one[0]):.4f} upright, {float(one.mean()):.3f} mean,"
            f" {float(one[worst]):.3f} at {scan.group.name(worst)}"
        )


def main() -> None:
    """Make everything."""
    scan = digits()
    sets(scan)
    averages(scan)
    rejected(scan)


if __name__ == "__main__":
    main()
