"""The spectra study's tables, from its finished rows."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from ..pages import Row, markdown
from .comparisons import budgets, orders, seeing, sureness
from .findings import sentences
from .learning import learning_table, shortfall
from .measures import REGIONS
from .numbers import (
    Data,
    by_squares,
    chosen,
    number,
    percent,
    share_of_region,
    span,
    spread,
    squares_done,
    values,
)
from .remedy import claims_table, remedy, squares_table
from .settings import BEST, BONDS, MOST_HEAVY, NETWORKS, PAPER_BLEED, PENALTY

HOW = {"_all": "all entries", "_along": "along a spectrum", "_across": "across molecules"}


def kinds(data: Data) -> list[tuple[str, float]]:
    """The paper's trainings, with and then without the penalty, as far as there are results."""
    every = [(network, penalty) for penalty in (PENALTY, 0.0) for network in reversed(NETWORKS)]
    return [kind for kind in every if chosen(data["results"], *kind)]


def settings_table(data: Data) -> str:
    """What was labelled and trained."""
    limits, rows = data["limits"][0], data["results"]
    main = [kind for kind in kinds(data) if kind[1] == PENALTY]
    lines = [
        ["molecules of QM9", f"up to {MOST_HEAVY} heavy atoms, in a seeded order"],
        ["labelled", f"{limits['molecules']:,}"],
        ["left out (no minimum, or not relaxed)", f"{limits['failed']:,}"],
        ["for training, validation, test", _splits(limits)],
        ["not told apart by bonds; test molecules with such a twin in training", _twins(limits)],
        ["trainings", f"{sum(row['taken'] == BEST for row in rows)}"],
        ["seeds", ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))],
    ]
    for network, penalty in main:
        own = chosen(rows, network, penalty)
        sizes = f"{own[0]['backbone']:,} + {own[0]['parameters'] - own[0]['backbone']:,}"
        lines.append([f"parameters of {network}, backbone + heads", sizes])
    for network, penalty in main:
        own = chosen(rows, network, penalty)
        steps = f"{spread(values(data, 'steps', network, penalty))}"
        best = f"{spread(values(data, 'best_epoch', network, penalty))}"
        seconds = f"{spread(values(data, 'seconds', network, penalty))}"
        lines.append([f"steps of {network}; best epoch; seconds", f"{steps}; {best}; {seconds}"])
    for network, _ in main:
        steps = spread(by_squares(data, "steps", network)) if squares_done(data) else "not trained"
        lines.append([f"steps of {network}, means by squares", steps])
    for network, penalty in main:
        worst = max(values(data, "defect", network, penalty))
        lines.append([f"change of {network} under a rotation, relative", f"{worst:.1e}"])
    return markdown(["setting", "value"], lines)


def _twins(limits: Row) -> str:
    return f"{limits['twins']:,}; {limits['twins_seen']:,}"


def _splits(limits: Row) -> str:
    return f"{limits['train']:,}, {limits['validation']:,}, {limits['test']:,}"


def accuracy_table(data: Data) -> str:
    """R^2, errors and likelihoods."""
    empty = [""] * 7
    lines = [
        ["*the paper*", "", "above 0.9, often near 1", *empty],
        ["*the mean spectrum*", "", number(data["limits"][0]["mean_r2"]), *empty],
    ]
    for network, penalty in kinds(data):
        lines.append(
            [
                *(network, number(penalty)),
                spread(values(data, "r2_median", network, penalty)),
                spread(values(data, "r2_above", network, penalty), percent),
                spread(values(data, "r2_absorption", network, penalty)),
                spread(values(data, "mse", network, penalty)),
                spread(values(data, "mse_top", network, penalty), percent),
                spread(values(data, "height_top", network, penalty), percent),
                spread(values(data, "mse_median", network, penalty)),
                spread(values(data, "nll", network, penalty)),
            ]
        )
    header = ["network", "penalty", "R², median", "R² above .9", "R² of absorption, median"]
    more = ["squared error, mean", "of it in the tallest tenth", "answer over truth there"]
    return markdown([*header, *more, "squared error, median", "NLL"], lines)


def bleed_table(data: Data) -> str:
    """Bleed beside its limits."""
    limits = data["limits"][0]
    lines = [["*the paper, other data and units*", "", number(PAPER_BLEED), *[""] * 9]]
    for network, penalty in kinds(data):
        blind = limits["bonds_bleed"] if network == BONDS else 0.0
        lines.append(
            [
                *(network, number(penalty)),
                span(values(data, "bleed", network, penalty)),
                spread(values(data, "bleed_top", network, penalty), percent),
                spread(values(data, "near_pole", network, penalty), percent),
                spread(values(data, "optimal", network, penalty)),
                span(values(data, "typical", network, penalty)),
                span(values(data, "typical_total", network, penalty)),
                span(values(data, "typical_limit", network, penalty)),
                spread(values(data, "noise_share", network, penalty), percent),
                number(blind),
                number(limits["label_bleed"]),
            ]
        )
    return markdown(
        [
            *("network", "penalty", "bleed", "of it in the largest 1% of entries"),
            *("entries with α − 1 < 0.01", "NLL-optimal bleed, if all error were noise"),
            *("typical bleed", "typical, if all its variance were noise"),
            *("typical, if all error were noise", "share called noise, median"),
            *("NLL-optimal for what it cannot see", "of the labels themselves"),
        ],
        lines,
    )


def regions_table(data: Data) -> str:
    """Which part of the spectrum holds bleed and error."""
    names = {"typical": "typical bleed", "mse": "squared error"}
    lines = []
    for network, penalty in kinds(data):
        rows = chosen(data["wavenumbers"], network, penalty)
        cells = [
            percent(share_of_region(rows, name, region)) for region in REGIONS for name in names
        ]
        peak = max(rows, key=lambda row: row["typical"])
        lines.append([network, number(penalty), *cells, f"{peak['wavenumber']:.0f} cm⁻¹"])
    header = [f"{region}: {what}" for region in REGIONS for what in names.values()]
    return markdown(["network", "penalty", *header, "most typical bleed at"], lines)


def calibration_table(data: Data) -> str:
    """Calibration of the whole predictive distribution, each value beside its floor."""
    measures = {
        "gence": "GENCE",
        "gence_point": "of one wavenumber, median",
        "gence_fiber": "GENCE, fibre means",
        "ence": "ENCE, mean over wavenumbers",
    }
    lines = []
    for network, penalty in kinds(data):
        line = [network, number(penalty)]
        for name in measures:
            line += [
                spread(values(data, name, network, penalty)),
                number(fmean(values(data, f"{name}_floor", network, penalty))),
            ]
        for name in ("inside_50", "inside_90"):
            line.append(spread(values(data, name, network, penalty), percent))
        lines.append(line)
    header = [title for name in measures.values() for title in (name, "calibrated")]
    ends = ["inside the 50% interval", "inside the 90% interval"]
    return markdown(["network", "penalty", *header, *ends], lines)


def correlations_table(data: Data) -> str:
    """Rank correlations, of the networks with the penalty."""
    pairs = {
        "epistemic": "aleatoric and epistemic variance",
        "error": "aleatoric variance and squared error",
        "epistemic_error": "epistemic variance and squared error",
        "noise_error": "share called noise and squared error",
        "noise_detail": "share called noise and detail",
        "height": "aleatoric variance and height",
        "slope": "aleatoric variance and slope",
        "detail": "aleatoric variance and detail",
        "error_height": "squared error and height",
        "error_slope": "squared error and slope",
        "error_detail": "squared error and detail",
    }
    single = {
        "detail_given_height": "aleatoric variance and detail, height taken off",
        "height_given_detail": "aleatoric variance and height, detail taken off",
        "detail_given_error": "aleatoric variance and detail, squared error taken off",
        "error_given_detail": "aleatoric variance and squared error, detail taken off",
    }
    first, *others = (network for network, penalty in kinds(data) if penalty == PENALTY)

    def shown(name: str, network: str) -> str:
        return spread(values(data, name, network, PENALTY))

    lines = [
        [
            title,
            *(shown(name + end, first) for end in HOW),
            *(shown(f"{name}_all", other) for other in others),
        ]
        for name, title in pairs.items()
    ]
    lines += [
        [title, shown(name, first), "", "", *(shown(name, other) for other in others)]
        for name, title in single.items()
    ]
    header = [f"{first}, {how}" for how in HOW.values()]
    return markdown(["rank correlation of", *header, *(f"{o}, all entries" for o in others)], lines)


TABLES: dict[str, Callable[[Data], str]] = {
    "settings": settings_table,
    "sentences": sentences,
    "accuracy": accuracy_table,
    "orders": orders,
    "budgets": budgets,
    "sureness": sureness,
    "bleed": bleed_table,
    "seeing": seeing,
    "regions": regions_table,
    "calibration": calibration_table,
    "correlations": correlations_table,
    "squares": squares_table,
    "remedy": remedy,
    "claims": claims_table,
    "learning": learning_table,
    "shortfall": shortfall,
}
