"""What trained networks' answers are worth: from the packed molecules and the results' files."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orbical.calibration import aleatoric_bleed
from orbical.losses import nig_nll
from orbical.training.heads import Evidence

from ..pages import Row
from .answers import Answers, Truth, middle, physical, squared_error
from .calibrated import calibration, calibration_scores, floors
from .limits import BINS, likeliest_variance
from .packing import Pack
from .settings import PENALTY, SQUARES, STEERABLE, is_kind
from .signals import correlations, detail, partial_correlation, slope, squares_explained

POLE = 0.01
"""A network with alpha - 1 below this is near the pole of beta / (alpha - 1)."""
REGIONS = {
    "fingerprint": (0.0, 1800.0),
    "triple bonds": (1800.0, 2700.0),
    "hydrogen stretches": (2700.0, 1e9),
}
"""Parts of a spectrum in cm^-1."""


def scores(truth: Truth, answers: Answers) -> Row:
    """One network's numbers."""
    found = answers.test
    error = squared_error(truth, found)
    likeliest = likeliest_variance(truth, found)
    explained = squares_explained(truth.physical, physical(truth, found.gamma))
    tallest = _tallest(truth)
    row: Row = {
        **{name: answers.row[name] for name in _KEPT if name in answers.row},
        "r2_median": middle(explained),
        "r2_mean": float(explained.mean()),
        "r2_above": float((explained > 0.9).double().mean()),
        "r2_absorption": middle(_absorption_explained(truth, found)),
        "mse": float(error.mean()),
        "nll": _likelihood(truth, found),
        **_likelihood_by_height(truth, found, tallest),
        "mse_median": middle(error),
        "mse_top": float(error.flatten()[tallest].sum() / error.sum()),
        "height_top": float(_over_truth(truth, found, tallest)),
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
        **calibration_scores(truth, found),
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


_KIND = ("network", "penalty", "means", "parts", "taken", "seed")
"""What tells a row from others."""
_KEPT = (
    *(*_KIND, "parameters", "backbone", "train", "steps", "best_epoch", "validation_nll"),
    *("validation_last", "train_nll", "train_mse", "defect", "seconds"),
)


def typical(variance: Tensor) -> Tensor:
    """The square of the median variance over molecules, `[points]`: bleed without its pole.

    Bleed has the mean of squares in its place, which one entry with alpha near 1 can make any size.

    >>> typical(torch.tensor([[1.0], [3.0], [1e9]]))
    tensor([9.])
    """
    return variance.quantile(0.5, dim=0).square()


def noise_share(found: Evidence) -> Tensor:
    """How much of a variance is reported as noise: aleatoric over both, `nu / (1 + nu)`."""
    return found.nu / (1 + found.nu)


def by_wavenumber(truth: Truth, answers: Answers, wavenumbers: Tensor) -> list[Row]:
    """One network's numbers at each wavenumber."""
    found = answers.test
    error = squared_error(truth, found)
    likeliest = likeliest_variance(truth, found)
    own, floor = calibration(truth.values, found), floors(found)
    columns = {
        "wavenumber": wavenumbers,
        "bleed": aleatoric_bleed(found.aleatoric).per_coordinate,
        "optimal": likeliest.square().mean(0),
        "typical": typical(found.aleatoric),
        "typical_limit": typical(likeliest),
        "noise_share": noise_share(found).quantile(0.5, dim=0),
        "mse": error.mean(0),
        "ence": own["ence"],
        "ence_floor": floor["ence"],
        "gence": own["gence_point"],
        "gence_floor": floor["gence_point"],
        "variance": truth.values.var(0, correction=0),
    }
    return [
        {name: answers.row[name] for name in _KIND}
        | {name: float(values[place]) for name, values in columns.items()}
        for place in range(len(wavenumbers))
    ]


def bins_of_signal(truth: Truth, answers: Answers) -> list[Row]:
    """Median squared error and variances in ten bins of a signal's height, slope and detail."""
    found = answers.test
    error = squared_error(truth, found)
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
                {key: answers.row[key] for key in _KIND}
                | {"signal": name, "bin": place + 1}
                | {"level": float(signal.flatten()[entries].mean())}
                | {"mse": middle(error.flatten()[entries])}
                | {"aleatoric": middle(found.aleatoric.flatten()[entries])}
                | {"epistemic": middle(found.epistemic.flatten()[entries])}
            )
    return rows


def explained_rows(truth: Truth, answers: Answers) -> list[Row]:
    """R^2 of the test molecules, as a hundred steps from the worst to the best."""
    values = squares_explained(truth.physical, physical(truth, answers.test.gamma))
    shares = torch.linspace(0, 1, 101, dtype=values.dtype)
    return [
        {name: answers.row[name] for name in _KIND} | {"share": float(share), "r2": float(value)}
        for share, value in zip(shares, values.quantile(shares), strict=True)
    ]


def samples(data: Pack, truth: Truth, everyone: list[Answers]) -> list[Row]:
    """Three spectra as in the paper's Fig. 9: its own molecule, a usual one and a poor one.

    Beside the steerable network's answer to each stands that of the same network whose means were
    learnt by squares, where there is one.
    """
    mine = [one for one in everyone if one.row["network"] == STEERABLE]
    first = next((one for one in mine if one.is_main), everyone[0])
    other = next((one for one in mine if is_kind(one.row, PENALTY, SQUARES)), None)
    explained = squares_explained(truth.physical, physical(truth, first.test.gamma))
    order = explained.argsort()
    chosen = {"usual": int(order[len(order) // 2]), "poor": int(order[len(order) // 10])}

    def of(one: Answers, place: int) -> Evidence:
        return Evidence(*(values[place] for values in one.test))

    beside = other.example if other else None
    rows = _sample("paper", data, truth, len(data.pos) - 1, first.example, beside)
    for kind, place in chosen.items():
        beside = of(other, place) if other else None
        rows += _sample(kind, data, truth, place, of(first, place), beside)
    return rows


def _sample(
    kind: str, data: Pack, truth: Truth, place: int, found: Evidence, beside: Evidence | None
) -> list[Row]:
    columns: dict[str, Any] = {
        "wavenumber": data.wavenumbers,
        "truth": data.targets[place].double(),
        "answer": physical(truth, found.gamma),
        "aleatoric": truth.width * found.aleatoric.sqrt(),
        "epistemic": truth.width * found.epistemic.sqrt(),
    }
    fixed = {
        "kind": kind,
        "smiles": data.smiles[place],
        "r2": float(squares_explained(columns["truth"], columns["answer"])),
    }
    if beside:
        columns["answer_squares"] = physical(truth, beside.gamma)
        fixed["r2_squares"] = float(squares_explained(columns["truth"], columns["answer_squares"]))
    return [
        fixed | {name: float(values[k]) for name, values in columns.items()}
        for k in range(len(data.wavenumbers))
    ]


def _absorption_explained(truth: Truth, found: Evidence) -> Tensor:
    """R^2 of each molecule's absorption, the square of what is learnt."""
    answer = physical(truth, found.gamma).clamp(min=0).square()
    return squares_explained(truth.physical.square(), answer)


def _likelihood(truth: Truth, found: Evidence) -> float:
    total = nig_nll(found.gamma, found.nu, found.alpha, found.beta, truth.values)
    return float(total) / truth.values.shape[1]


def _likelihood_by_height(truth: Truth, found: Evidence, tallest: Tensor) -> Row:
    """Negative log-likelihood of one entry, in the mean over the tallest and over the others."""
    is_tall = torch.zeros(truth.values.numel(), dtype=torch.bool)
    is_tall[tallest] = True
    entries = [values.flatten() for values in (*found, truth.values)]

    def of(chosen: Tensor) -> float:
        gamma, nu, alpha, beta, target = (values[chosen] for values in entries)
        return float(nig_nll(gamma, nu, alpha, beta, target))

    return {"nll_top": of(is_tall), "nll_rest": of(~is_tall)}


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
    answer = physical(truth, found.gamma).flatten()[places]
    return answer.sum() / truth.physical.flatten()[places].sum()
