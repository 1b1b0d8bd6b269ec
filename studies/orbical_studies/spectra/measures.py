"""Measure the predictions of trained networks, from the packed molecules and the trainings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.bounds import ValueTable, nll_optimal_bleed
from orbical.calibration import aleatoric_bleed
from orbical.losses import nig_nll
from orbical.training import Evidence

from ..framework import rows_of
from ..networks.molecules import bond_hashes
from .calibration import BINS, calibration, calibration_scores, floors, likeliest_variance
from .packing import TURNED, Pack
from .settings import PAPER, PENALTY, REMEDY
from .signals import correlations, detail, partial_correlation, slope, squares_explained

Row = dict[str, Any]
POLE = 0.01
"""A network with alpha - 1 below this is near the pole of beta / (alpha - 1)."""
ALIKE = 1e-4
"""Two spectra are the same if their mean square difference is a smaller share of the variance."""
KIND = ("network", "training", "penalty", "parts", "seed")
KEPT = (
    *(*KIND, "parameters", "backbone", "train", "steps", "best_epoch", "validation_nll"),
    *("validation_last", "train_nll", "train_mse", "defect", "seconds"),
)


class Truth(NamedTuple):
    """Test spectra: scaled `[n, points]`, and the mean `[points]` and the width that undo it."""

    values: Tensor
    center: Tensor
    width: Tensor

    def physical(self, values: Tensor) -> Tensor:
        """Return amplitudes in (km/mol per cm^-1)^1/2."""
        return self.center + self.width * values

    @property
    def height(self) -> Tensor:
        """The true amplitudes."""
        return self.physical(self.values)

    def explained(self, gamma: Tensor) -> Tensor:
        """Compute R^2 of each molecule."""
        return squares_explained(self.height, self.physical(gamma))


class Answers(NamedTuple):
    """A trained network: its training, and its predictions for the test and paper's molecules."""

    row: Row
    test: Evidence
    example: Evidence

    @property
    def kind(self) -> Row:
        """What tells its rows from others."""
        return {name: self.row[name] for name in KIND}

    @property
    def compared(self) -> bool:
        """Whether it was trained with the penalty on all molecules."""
        return bool(self.row["penalty"] == PENALTY and self.row["parts"] == 1)


def truth_of(data: Pack) -> Truth:
    """Return the test spectra, in units of the training spectra."""
    center, width = data.scale()
    return Truth((data.targets[data.rows("test")].double() - center) / width, center, width)


def scores(truth: Truth, answers: Answers) -> Row:
    """Measure one network."""
    found, values, height = answers.test, truth.values, truth.height
    error = (found.gamma - values).square()
    likeliest = likeliest_variance(values, found)
    r2 = truth.explained(found.gamma)
    answer = truth.physical(found.gamma)
    absorption = squares_explained(height.square(), answer.clamp(min=0).square())
    tall = torch.zeros(values.numel(), dtype=torch.bool)
    tall[height.flatten().argsort(descending=True)[: values.numel() // 10]] = True
    tall = tall.view_as(values)
    row = {
        **{name: answers.row[name] for name in KEPT},
        "r2_median": middle(r2),
        "r2_mean": float(r2.mean()),
        "r2_above": float((r2 > 0.9).double().mean()),
        "r2_absorption": middle(absorption),
        "mse": float(error.mean()),
        "nll": float(nig_nll(*found, values)) / values.shape[1],
        "nll_top": float(nig_nll(*Evidence(*(part[tall] for part in found)), values[tall])),
        "nll_rest": float(nig_nll(*Evidence(*(part[~tall] for part in found)), values[~tall])),
        "mse_median": middle(error),
        "mse_top": float(error[tall].sum() / error.sum()),
        "height_top": float(answer[tall].sum() / height[tall].sum()),
        "bleed": float(aleatoric_bleed(found.aleatoric).total),
        "bleed_top": _top_share(found.aleatoric.square()),
        "near_pole": float((found.alpha - 1 < POLE).double().mean()),
        "optimal": float(likeliest.square().mean(0).sum()),
        "typical": float(typical(found.aleatoric).sum()),
        "typical_total": float(typical(found.variance).sum()),
        "typical_limit": float(typical(likeliest).sum()),
        "noise_share": middle(noise_share(found)),
        "aleatoric_median": middle(found.aleatoric),
        "epistemic_median": middle(found.epistemic),
        "nu_median": middle(found.nu),
        **calibration_scores(values, found),
    }
    steep, fine, aleatoric = slope(height), detail(height), found.aleatoric
    pairs = {
        "epistemic": (aleatoric, found.epistemic),
        "error": (aleatoric, error),
        "height": (aleatoric, height),
        "slope": (aleatoric, steep),
        "detail": (aleatoric, fine),
        "error_height": (error, height),
        "error_slope": (error, steep),
        "error_detail": (error, fine),
        "epistemic_error": (found.epistemic, error),
        "noise_error": (found.nu, error),
        "noise_detail": (found.nu, fine),
    }
    for name, pair in pairs.items():
        row |= {f"{name}_{kind}": value for kind, value in correlations(*pair).items()}
    given = {
        "slope_given_height": (steep, height),
        "detail_given_height": (fine, height),
        "height_given_detail": (height, fine),
        "detail_given_error": (fine, error),
        "error_given_detail": (error, fine),
    }
    return row | {name: partial_correlation(aleatoric, *pair) for name, pair in given.items()}


def middle(values: Tensor) -> float:
    """Compute the median of all entries, between the two in the middle if their number is even.

    >>> middle(torch.tensor([1.0, 2.0]))
    1.5
    """
    return float(values.flatten().quantile(0.5))


def typical(variance: Tensor) -> Tensor:
    """Compute the square of the median variance over molecules, `[points]`: bleed without its pole.

    Bleed has the mean of squares instead, which one entry with alpha near 1 can make arbitrarily
    large.

    >>> typical(torch.tensor([[1.0], [3.0], [1e9]]))
    tensor([9.])
    """
    return variance.quantile(0.5, dim=0).square()


def noise_share(found: Evidence) -> Tensor:
    """Compute the share of the variance reported as noise: aleatoric over both, `nu / (1 + nu)`."""
    return found.nu / (1 + found.nu)


def noise_range(found: Evidence) -> Row:
    """Return the least and the largest share called noise over wavenumbers, medians of molecules.

    >>> found = Evidence(*torch.tensor([[0.0, 0.0], [1.0, 3.0], [2.0, 2.0], [1.0, 1.0]])[:, None])
    >>> noise_range(found)
    {'noise_least': 0.5, 'noise_most': 0.75}
    """
    medians = noise_share(found).quantile(0.5, dim=0)
    return {"noise_least": float(medians.min()), "noise_most": float(medians.max())}


def _top_share(terms: Tensor) -> float:
    """Compute how much of a sum the largest hundredth of its terms holds."""
    largest = terms.flatten().sort(descending=True).values
    return float(largest[: max(1, len(largest) // 100)].sum() / largest.sum())


def by_wavenumber(truth: Truth, answers: Answers, wavenumbers: Tensor) -> list[Row]:
    """Measure one network at each wavenumber."""
    found, values = answers.test, truth.values
    likeliest = likeliest_variance(values, found)
    own, floor = calibration(values, found), floors(found)
    columns = {
        "wavenumber": wavenumbers,
        "bleed": aleatoric_bleed(found.aleatoric).per_coordinate,
        "optimal": likeliest.square().mean(0),
        "typical": typical(found.aleatoric),
        "typical_limit": typical(likeliest),
        "noise_share": noise_share(found).quantile(0.5, dim=0),
        "mse": (found.gamma - values).square().mean(0),
        "ence": own["ence"],
        "ence_floor": floor["ence"],
        "gence": own["gence_point"],
        "gence_floor": floor["gence_point"],
        "variance": values.var(0, correction=0),
    }
    return rows_of(answers.kind, columns)


def bins_of_signal(truth: Truth, answers: Answers) -> list[Row]:
    """Compute median squared error and variances in ten bins of height, slope and detail."""
    found, rows = answers.test, []
    error = (found.gamma - truth.values).square()
    tables = {"mse": error, "aleatoric": found.aleatoric, "epistemic": found.epistemic}
    for name, of in (("height", torch.Tensor.clone), ("slope", slope), ("detail", detail)):
        signal = of(truth.height).flatten()
        for place, entries in enumerate(signal.argsort().chunk(BINS)):
            row = {"signal": name, "bin": place + 1, "level": float(signal[entries].mean())}
            row |= {key: middle(values.flatten()[entries]) for key, values in tables.items()}
            rows.append(answers.kind | row)
    return rows


def explained(truth: Truth, answers: Answers) -> list[Row]:
    """Compute R^2 of the test molecules as a hundred steps from the worst to the best."""
    shares = torch.linspace(0, 1, 101, dtype=torch.float64)
    r2 = truth.explained(answers.test.gamma).quantile(shares)
    return rows_of(answers.kind, {"share": shares, "r2": r2})


def samples(data: Pack, truth: Truth, everyone: list[Answers]) -> list[Row]:
    """Return three spectra as in the paper's Fig. 9: its own molecule, a median and a poor one.

    Beside the steerable network's prediction is that of the same network with the remedy.
    """
    first, beside = (
        next(
            one
            for one in everyone
            if one.compared and (one.row["network"], one.row["training"]) == ("steerable", training)
        )
        for training in (PAPER, REMEDY)
    )
    order = truth.explained(first.test.gamma).argsort().tolist()
    chosen = {"paper": -1, "usual": order[len(order) // 2], "poor": order[len(order) // 10]}
    rows = []
    for kind, place in chosen.items():
        gamma, other = (
            (one.example.gamma if place < 0 else one.test.gamma[place]) for one in (first, beside)
        )
        found = first.example if place < 0 else Evidence(*(part[place] for part in first.test))
        target = data.targets[place].double()
        answer, squares = truth.physical(gamma), truth.physical(other)
        head = {
            **{"kind": kind, "smiles": data.smiles[place]},
            "r2": float(squares_explained(target, answer)),
            "r2_squares": float(squares_explained(target, squares)),
        }
        columns = {
            **{"wavenumber": data.wavenumbers, "truth": target, "answer": answer},
            "aleatoric": truth.width * found.aleatoric.sqrt(),
            "epistemic": truth.width * found.epistemic.sqrt(),
            "answer_squares": squares,
        }
        rows += rows_of(head, columns)
    return rows


def limits(data: Pack) -> Row:
    """Return what no network on bonds can know, the labels' exactness, and the mean spectrum's R^2.

    Twins are molecules that `bond_hashes` cannot tell apart, whose bonds are the same to GIN: other
    isomers for the most part, and now and then one molecule that was written in two ways.
    """
    center, width = data.scale()
    values = (data.targets[:-1].double() - center) / width
    hashes = bond_hashes({"pos": data.pos[:-1], "numbers": data.numbers[:-1]})
    _, orbit, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    mean = np.zeros((len(counts), values.shape[1]))
    np.add.at(mean, orbit, values.numpy())
    residual = (values - torch.from_numpy((mean / counts[:, None])[orbit])).square()
    twin = torch.from_numpy(counts[orbit] > 1)
    bleed = nll_optimal_bleed(ValueTable(orbit, values.numpy())).sum() if bool(twin.any()) else 0.0
    # Two spectra lie half of their difference from their mean, whose square is a quarter of it.
    alike = twin & (residual.mean(1) < ALIKE / 4)
    seen = np.isin(orbit[data.rows("test")], orbit[data.rows("train")])
    noise, truth = data.noise / width.square(), truth_of(data)
    return {
        **{"molecules": len(values), "failed": data.failed},
        **{name: len(data.pos[data.rows(name)]) for name in ("train", "validation", "test")},
        "twins": int(twin.sum()),
        "twins_alike": int(alike.sum()),
        "twins_seen": int(seen.sum()),
        "bonds_bleed": float(bleed),
        "bonds_mse": float(residual.mean()),
        "turned": TURNED,
        "label_mse": float(noise.mean()),
        "label_bleed": float(noise.square().sum()),
        "mean_r2": middle(squares_explained(truth.height, center[None])),
    }
