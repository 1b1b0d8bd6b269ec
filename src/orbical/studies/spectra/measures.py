"""What trained networks' answers are worth: from the packed molecules and the results' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.calibration import aleatoric_bleed, ence, gence, gence_fibre, nll_optimal_bleed
from orbical.losses import nig_nll
from orbical.training.heads import Evidence

from ..pages import Row
from ..trials import FILE, read_lines
from .packing import Pack
from .settings import PENALTY, STEERABLE, Trial
from .signals import correlations, detail, partial_correlation, slope, squares_explained
from .training import scale_of

BINS = 10
POLE = 0.01
"""A network with alpha - 1 below this is near the pole of beta / (alpha - 1)."""
REGIONS = {
    "fingerprint": (0.0, 1800.0),
    "triple bonds": (1800.0, 2700.0),
    "hydrogen stretches": (2700.0, 1e9),
}
"""Parts of a spectrum in cm^-1."""


class Truth(NamedTuple):
    """Test spectra: scaled `[n, points]`, and the mean `[points]` and the width that undo it."""

    values: Tensor
    centre: Tensor
    width: Tensor

    @property
    def physical(self) -> Tensor:
        """Amplitudes in (km/mol per cm^-1)^1/2."""
        return self.centre + self.width * self.values


class Answers(NamedTuple):
    """A trained network: what is said of its training, and its answers to the test molecules."""

    row: Row
    test: Evidence
    example: Evidence

    @property
    def is_main(self) -> bool:
        """Whether it was trained as the paper's networks were, with the penalty."""
        return float(self.row["penalty"]) == PENALTY


def truth_of(data: Pack) -> Truth:
    """The test spectra, in units of the training spectra."""
    centre, width = scale_of(data)
    values = (data.targets[data.rows("test")].double() - centre) / width
    return Truth(values, centre, width)


def read_answers(folder: Path) -> list[Answers]:
    """Read every finished training of a folder."""
    found = []
    for row in read_lines(folder / FILE, option="out"):
        trial = Trial(row["network"], row["penalty"], row["seed"])
        with np.load(folder / f"{trial.stem}.npz") as file:
            four = torch.from_numpy(file["test"]).double()
        found.append(Answers(row, Evidence(*four[:, :-1]), Evidence(*four[:, -1])))
    return found


def scores(truth: Truth, answers: Answers) -> Row:
    """One network's numbers."""
    found = answers.test
    error = (found.gamma - truth.values).square()
    bleed = aleatoric_bleed(found.aleatoric)
    explained = squares_explained(truth.physical, _physical(truth, found.gamma))
    tallest = _tallest(truth)
    row: Row = {
        **{name: answers.row[name] for name in _KEPT},
        "r2_median": float(explained.median()),
        "r2_mean": float(explained.mean()),
        "r2_above": float((explained > 0.9).double().mean()),
        "r2_absorption": float(_absorption_explained(truth, found).median()),
        "mse": float(error.mean()),
        "nll": _likelihood(truth, found),
        "mse_median": float(error.median()),
        "mse_top": float(error.flatten()[tallest].sum() / error.sum()),
        "height_top": float(_over_truth(truth, found, tallest)),
        "bleed": float(bleed.total),
        "bleed_top": _top_share(found.aleatoric.square()),
        "near_pole": float((found.alpha - 1 < POLE).double().mean()),
        "optimal": float(optimal_bleed(truth, found).sum()),
        "typical": float(typical(found.aleatoric).sum()),
        "typical_error": float(typical(error).sum()),
        "noise_share": float(noise_share(found).median()),
        "aleatoric_median": float(found.aleatoric.median()),
        "epistemic_median": float(found.epistemic.median()),
        "nu_median": float(found.nu.median()),
        "gence": float(gence(found.gamma, found.variance, truth.values)),
        "gence_fibre": float(gence_fibre(found.gamma, found.variance, truth.values, bins=BINS)),
        "gence_point": float(gence_by_point(truth, found).median()),
        "ence": float(ence_by_point(truth, found).mean()),
        "inside_50": _inside(truth, found, 0.5),
        "inside_90": _inside(truth, found, 0.9),
    }
    height, steep, fine = truth.physical, slope(truth.physical), detail(truth.physical)
    pairs = {
        "epistemic": (found.aleatoric, found.epistemic),
        "error": (found.aleatoric, error),
        "height": (found.aleatoric, height),
        "slope": (found.aleatoric, steep),
        "detail": (found.aleatoric, fine),
        "error_height": (error, height),
        "error_slope": (error, steep),
        "error_detail": (error, fine),
        "epistemic_error": (found.epistemic, error),
        "noise_error": (found.nu, error),
        "noise_detail": (found.nu, fine),
    }
    for name, (one, other) in pairs.items():
        row |= {f"{name}_{kind}": value for kind, value in correlations(one, other).items()}
    row["slope_given_height"] = partial_correlation(found.aleatoric, steep, height)
    row["detail_given_height"] = partial_correlation(found.aleatoric, fine, height)
    row["height_given_detail"] = partial_correlation(found.aleatoric, height, fine)
    row["detail_given_error"] = partial_correlation(found.aleatoric, fine, error)
    row["error_given_detail"] = partial_correlation(found.aleatoric, error, fine)
    return row


_KEPT = (
    *("network", "penalty", "seed", "parameters", "backbone", "train", "steps", "best_epoch"),
    *("validation_nll", "train_nll", "defect", "seconds"),
)


def typical(variance: Tensor) -> Tensor:
    """The square of the median variance over molecules, `[points]`: bleed without its pole.

    Bleed has the mean of squares in its place, which one entry with alpha near 1 can make any size.

    >>> typical(torch.tensor([[1.0], [3.0], [1e9]]))
    tensor([9.])
    """
    return variance.median(0).values.square()


def noise_share(found: Evidence) -> Tensor:
    """How much of a variance is reported as noise: aleatoric over both, `nu / (1 + nu)`."""
    return found.nu / (1 + found.nu)


def by_wavenumber(truth: Truth, answers: Answers, wavenumbers: Tensor) -> list[Row]:
    """One network's numbers at each wavenumber."""
    found = answers.test
    error = (found.gamma - truth.values).square()
    columns = {
        "wavenumber": wavenumbers,
        "bleed": aleatoric_bleed(found.aleatoric).per_coordinate,
        "optimal": optimal_bleed(truth, found),
        "typical": typical(found.aleatoric),
        "typical_error": typical(error),
        "noise_share": noise_share(found).median(0).values,
        "mse": error.mean(0),
        "ence": ence_by_point(truth, found),
        "gence": gence_by_point(truth, found),
        "variance": truth.values.var(0, correction=0),
    }
    names = ("network", "penalty", "seed")
    return [
        {name: answers.row[name] for name in names}
        | {name: float(values[place]) for name, values in columns.items()}
        for place in range(len(wavenumbers))
    ]


def optimal_bleed(truth: Truth, found: Evidence) -> Tensor:
    """The bleed `[points]` of a network that reports its whole error as noise, by likelihood.

    At each wavenumber the molecules are sorted by the network's own variance into bins; the
    likeliest variance of a bin is its mean squared error.
    """
    order = found.variance.argsort(0).argsort(0)
    bins = order * BINS // len(order)
    return torch.stack(
        [
            nll_optimal_bleed(truth.values[:, k], bins[:, k], fit=found.gamma[:, k]).total
            for k in range(bins.shape[1])
        ]
    )


def ence_by_point(truth: Truth, found: Evidence) -> Tensor:
    """Expected normalised calibration error of the predictive variance, `[points]`."""
    return ence(found.gamma.T, found.variance.T, truth.values.T, bins=BINS)


def gence_by_point(truth: Truth, found: Evidence) -> Tensor:
    """GENCE of each wavenumber by itself, `[points]`."""
    gamma, variance = found.gamma.T[..., None], found.variance.T[..., None]
    return gence(gamma, variance, truth.values.T[..., None])


def structural(data: Pack) -> Row:
    """What no network on bonds can know: molecules of one SMILES string, of several shapes.

    QM9's strings do not say which stereoisomer a molecule is.
    """
    centre, width = scale_of(data)
    values = (data.targets[:-1].double() - centre) / width
    _, orbit, counts = np.unique(data.smiles[:-1], return_inverse=True, return_counts=True)
    mean = np.zeros((len(counts), values.shape[1]))
    np.add.at(mean, orbit, values.numpy())
    best = torch.from_numpy((mean / counts[:, None])[orbit])
    twins = int(counts[counts > 1].sum())
    bleed = nll_optimal_bleed(values, torch.from_numpy(orbit)).total if twins else 0.0
    return {
        "molecules": len(values),
        "failed": data.failed,
        **{name: _count(data, name) for name in ("train", "validation", "test")},
        "twins": twins,
        "bonds_bleed": float(bleed),
        "bonds_mse": float((values - best).square().mean()),
        "label_mse": float((data.noise / width.square()).mean()),
        "label_bleed": float((data.noise / width.square()).square().sum()),
        "mean_r2": _mean_answer(data),
    }


def _count(data: Pack, split: str) -> int:
    return len(data.pos[data.rows(split)])


def _mean_answer(data: Pack) -> float:
    """R^2, median over test molecules, of answering the mean training spectrum always."""
    truth = truth_of(data)
    return float(squares_explained(truth.physical, truth.centre[None]).median())


def bins_of_signal(truth: Truth, answers: Answers) -> list[Row]:
    """Median squared error and variances in ten bins of a signal's height, slope and detail."""
    found = answers.test
    error = (found.gamma - truth.values).square()
    signals = {
        "height": truth.physical,
        "slope": slope(truth.physical),
        "detail": detail(truth.physical),
    }
    rows = []
    for name, signal in signals.items():
        order = signal.flatten().argsort()
        for place, entries in enumerate(order.chunk(BINS)):
            rows.append(
                {key: answers.row[key] for key in ("network", "penalty", "seed")}
                | {"signal": name, "bin": place + 1}
                | {"level": float(signal.flatten()[entries].mean())}
                | {"mse": float(error.flatten()[entries].median())}
                | {"aleatoric": float(found.aleatoric.flatten()[entries].median())}
                | {"epistemic": float(found.epistemic.flatten()[entries].median())}
            )
    return rows


def explained_rows(truth: Truth, answers: Answers) -> list[Row]:
    """R^2 of the test molecules, as a hundred steps from the worst to the best."""
    values = squares_explained(truth.physical, _physical(truth, answers.test.gamma))
    shares = torch.linspace(0, 1, 101, dtype=values.dtype)
    names = ("network", "penalty", "seed")
    return [
        {name: answers.row[name] for name in names} | {"share": float(share), "r2": float(value)}
        for share, value in zip(shares, values.quantile(shares), strict=True)
    ]


def samples(data: Pack, truth: Truth, everyone: list[Answers]) -> list[Row]:
    """Three spectra as in the paper's Fig. 9: its own molecule, a usual one and a poor one."""
    first = next((a for a in everyone if a.row["network"] == STEERABLE and a.is_main), everyone[0])
    explained = squares_explained(truth.physical, _physical(truth, first.test.gamma))
    order = explained.argsort()
    chosen = {"usual": int(order[len(order) // 2]), "poor": int(order[len(order) // 10])}
    rows = _sample("paper", data, truth, len(data.pos) - 1, first.example)
    for kind, place in chosen.items():
        rows += _sample(kind, data, truth, place, Evidence(*(v[place] for v in first.test)))
    return rows


def _sample(kind: str, data: Pack, truth: Truth, place: int, found: Evidence) -> list[Row]:
    columns: dict[str, Any] = {
        "wavenumber": data.wavenumbers,
        "truth": data.targets[place].double(),
        "answer": _physical(truth, found.gamma),
        "aleatoric": truth.width * found.aleatoric.sqrt(),
        "epistemic": truth.width * found.epistemic.sqrt(),
    }
    fixed = {
        "kind": kind,
        "smiles": data.smiles[place],
        "r2": float(squares_explained(columns["truth"], columns["answer"])),
    }
    return [
        fixed | {name: float(values[k]) for name, values in columns.items()}
        for k in range(len(data.wavenumbers))
    ]


def _absorption_explained(truth: Truth, found: Evidence) -> Tensor:
    """R^2 of each molecule's absorption, the square of what is learnt."""
    answer = _physical(truth, found.gamma).clamp(min=0).square()
    return squares_explained(truth.physical.square(), answer)


def _physical(truth: Truth, gamma: Tensor) -> Tensor:
    return truth.centre + truth.width * gamma


def _likelihood(truth: Truth, found: Evidence) -> float:
    total = nig_nll(found.gamma, found.nu, found.alpha, found.beta, truth.values)
    return float(total) / truth.values.shape[1]


def _top_share(terms: Tensor) -> float:
    """How much of a sum the largest hundredth of its terms holds."""
    largest = terms.flatten().sort(descending=True).values
    return float(largest[: max(1, len(largest) // 100)].sum() / largest.sum())


def _tallest(truth: Truth) -> Tensor:
    """The places of the tallest tenth of all entries."""
    order = truth.physical.flatten().argsort(descending=True)
    return order[: len(order) // 10]


def _over_truth(truth: Truth, found: Evidence, places: Tensor) -> Tensor:
    """The answers' height over the truth's, in some of the entries."""
    answer = _physical(truth, found.gamma).flatten()[places]
    return answer.sum() / truth.physical.flatten()[places].sum()


def _inside(truth: Truth, found: Evidence, share: float) -> float:
    """How many truths lie inside the central interval of the predicted Student t."""
    from scipy import stats

    scale = (found.beta * (1 + found.nu) / (found.alpha * found.nu)).sqrt()
    reach = stats.t.ppf((1 + share) / 2, (2 * found.alpha).numpy()) * scale.numpy()
    return float(np.mean(np.abs((truth.values - found.gamma).numpy()) <= reach))
