"""The molecule study's tables, from its CSV files alone."""

from __future__ import annotations

from orbical.calibration import gence_floor

from ..pages import markdown, mean
from .numbers import Data, limit, networks_of, values
from .paper import SYMBOLS, learnt
from .settings import (
    ALL,
    COMPARED,
    GIN_NAME,
    INVARIANT_NAME,
    LIKELIHOOD,
    ORIENTED_NAME,
    PRINTED,
    PROPERTIES,
    SINGLE,
)
from .writing import about, ends, number


def settings_table(data: Data) -> str:
    """What was trained."""
    rows = data["results"]
    main = [row for row in rows if (row["target"], row["loss"]) == (ALL, LIKELIHOOD)]
    trained = {(row["network"], row["target"], row["loss"], row["seed"]): row for row in rows}
    seeds = sorted({row["seed"] for row in main})
    sizes = {row["network"]: (row["backbone"], row["parameters"]) for row in main}
    lengths = {row["network"]: (row["epochs"], row["steps"]) for row in main}
    turned = [row for row in main if row["network"] == ORIENTED_NAME and "defect" in row]
    lines = [
        ["trainings", str(len(trained))],
        ["seeds of the main ones", ", ".join(map(str, seeds))],
        *(
            [f"epochs and steps, {name}", f"{epochs}, {steps:,}"]
            for name, (epochs, steps) in lengths.items()
        ),
        *(
            [f"parameters, {name}: backbone, with heads", f"{backbone:,}, {whole:,}"]
            for name, (backbone, whole) in sizes.items()
        ),
        *(
            [
                f"largest change of an answer by a rotation, {ORIENTED_NAME}, deviations",
                number(max(row["defect"] for row in turned)),
            ]
            for _ in turned[:1]
        ),
        [
            "minutes of the longest training, several side by side on one H200",
            f"{max(row['seconds'] for row in rows) / 60:.1f}",
        ],
    ]
    return markdown(["setting", "value"], lines)


def untrained_table(data: Data) -> str:
    """The paper's errors beside that of the mean, and ours."""
    lines = []
    for name in PROPERTIES:
        bound = limit(data, name)
        cells = [SYMBOLS[name], number(bound["mean_mae"])]
        for network in COMPARED:
            error = bound.get(f"paper_{network.lower()}_mae")
            cells += (
                ["", ""] if error is None else [number(error), learnt(error, bound["mean_mae"])]
            )
        cells += [about(values(data, "mae", name, network)) for network in networks_of(data)]
        lines.append(cells)
    header = ["property", "predicting the mean"]
    header += ["paper, GIN", "", "paper, E(3)-invariant", ""]
    return markdown([*header, *networks_of(data)], lines)


def error_table(data: Data) -> str:
    """Errors in the units of the data."""
    lines = []
    for name in PROPERTIES:
        bound = limit(data, name)
        width = bound["deviation"]
        lines.append(
            [
                f"{SYMBOLS[name]} ({bound['unit']})",
                number(width),
                number(bound["mean_mae"] * width),
                *(
                    about([v * width for v in values(data, "mae", name, network)])
                    for network in networks_of(data)
                ),
                *(
                    number(bound[f"paper_{network.lower()}_mae"] * width)
                    if f"paper_{network.lower()}_mae" in bound
                    else ""
                    for network in COMPARED
                ),
                number(bound["bond_mae"] * width),
            ]
        )
    header = ["property", "deviation", "predicting the mean", *networks_of(data)]
    header += ["paper, GIN", "paper, E(3)-invariant", "least, by bonds alone"]
    return markdown(header, lines)


def bleed_table(data: Data) -> str:
    """Bleed beside its floor, what likelihood leads to, and the paper's."""
    lines = []
    for name in PROPERTIES:
        bound = limit(data, name)
        for network in networks_of(data):
            paper = bound.get(f"paper_{network.lower()}_bleed")
            lines.append(
                [
                    SYMBOLS[name],
                    network,
                    about(values(data, "bleed_99", name, network)),
                    ends(values(data, "bleed", name, network)),
                    f"{mean(values(data, 'unbounded', name, network)):.2%}",
                    number(bound["bond_bleed"]) if network == GIN_NAME else "0",
                    about(values(data, "bleed_error", name, network)),
                    "" if paper is None else number(paper),
                ]
            )
    header = ["property", "network", "bleed without the worst 1 %", "bleed of all, over seeds"]
    header += ["molecules with α < 1.01", "NLL-optimal, by what it sees", "by its errors"]
    return markdown([*header, "paper's bleed"], lines)


def parts_table(data: Data) -> str:
    """Where the variance goes: medians of both parts, the share, and what they know of errors."""
    lines = []
    for name in PROPERTIES:
        for network in networks_of(data):
            lines.append(
                [SYMBOLS[name], network]
                + [
                    about(values(data, column, name, network))
                    for column in (
                        *("aleatoric_50", "epistemic_50", "share"),
                        *("aleatoric_rank", "epistemic_rank", "parts_rank"),
                    )
                ]
            )
    header = ["property", "network", "median aleatoric", "median epistemic", "aleatoric share"]
    header += ["rank correlation: aleatoric, error", "epistemic, error", "aleatoric, epistemic"]
    return markdown(header, lines)


def calibration_table(data: Data) -> str:
    """Calibration, each measure beside the value of a calibrated network."""
    lines = [["*calibrated Gaussian*", "", number(gence_floor), "", "0", "", "0", "", "0", "1"]]
    for name in PROPERTIES:
        for network in networks_of(data):
            lines.append(
                [SYMBOLS[name], network]
                + [
                    about(values(data, column, name, network))
                    if spread
                    else number(mean(values(data, column, name, network)))
                    for column, spread in (
                        ("gence", True),
                        ("gence_own", False),
                        ("ence", True),
                        ("ence_floor", False),
                        ("coverage", True),
                        ("coverage_floor", False),
                        ("esd", True),
                        ("square", True),
                    )
                    if values(data, column, name, network)
                ]
            )
    header = ["property", "network", "GENCE", "its floor", "ENCE", "its floor"]
    header += ["coverage error", "its floor", "normalised ESD", "mean e²/s"]
    return markdown(header, lines)


def turned_table(data: Data) -> str:
    """The network without symmetry on molecules as they are stored and turned."""
    if ORIENTED_NAME not in networks_of(data):
        return "*The oriented network is not among these results.*"
    texts = {"mae": "MAE", "nll": "NLL", "coverage": "coverage error", "bleed_99": "bleed"}
    lines = []
    for name in PROPERTIES:
        cells = [SYMBOLS[name]]
        for column in texts:
            cells.append(about(values(data, column, name, INVARIANT_NAME)))
            cells += [
                about(values(data, column, name, ORIENTED_NAME, frame=frame))
                for frame in ("given", "turned")
            ]
        lines.append(cells)
    header = ["property"]
    for text in texts.values():
        header += [f"{text}, invariant", "oriented, as stored", "oriented, turned"]
    return markdown(header, lines)


def printed_table(data: Data) -> str:
    """The loss that the paper prints, beside likelihood after a start by squares."""
    lines = []
    for name in PROPERTIES:
        bound = limit(data, name)
        for network in COMPARED:
            cells = [SYMBOLS[name], network]
            for column in ("mae", "bleed_99", "share", "coverage", "alpha"):
                cells += [
                    about(values(data, column, name, network)),
                    about(values(data, column, name, network, loss=PRINTED)),
                ]
            key = f"paper_{network.lower()}_mae"
            cells.insert(4, number(bound[key]) if key in bound else "")
            lines.append(cells)
    header = ["property", "network", "MAE", "MAE, printed loss", "MAE, paper"]
    for column in ("bleed without the worst 1 %", "aleatoric share", "coverage error", "α"):
        header += [column, "printed"]
    return markdown(header, lines)


def consistency_table(data: Data) -> str:
    """What physics ties together."""
    texts = {
        "u0": "mean error of U₀, eV",
        "u": "mean error of U, eV",
        "u0_atom": "mean error of U₀ atom, eV: the same quantity as U₀",
        "u_less_u0": "mean error of U − U₀, eV",
        "u0_less_atoms": "U₀ and U₀ atom contradict each other by, eV",
        "disordered": "share with A < B or B < C",
        "negative": "share of negative dipoles, ⟨R²⟩ and gaps",
    }
    lines = []
    for column, text in texts.items():
        found = (
            [
                row[column]
                for row in data["consistency"]
                if (row["network"], row["loss"]) == (network, LIKELIHOOD)
            ]
            for network in networks_of(data)
        )
        lines.append([text, *map(about, found), *_printed_errors(data, column)])
    return markdown(["", *networks_of(data), "paper, GIN", "paper, E(3)-invariant"], lines)


def _printed_errors(data: Data, column: str) -> list[str]:
    """Give the paper's errors of an energy in eV, and nothing where it prints none."""
    if column not in ("u0", "u", "u0_atom"):
        return [""] * len(COMPARED)
    bound = limit(data, column)
    return [number(bound[f"paper_{name.lower()}_mae"] * bound["deviation"]) for name in COMPARED]


def single_table(data: Data) -> str:
    """Properties with a backbone of their own, beside the shared one."""
    texts = {
        "mae": "MAE",
        "bleed_99": "bleed without the worst 1 %",
        "share": "aleatoric share",
        "gence": "GENCE",
        "ence": "ENCE",
        "coverage": "coverage error",
        "nll": "NLL",
    }
    lines = []
    for name in SINGLE:
        for column, text in texts.items():
            cells = [SYMBOLS[name], text]
            for network in COMPARED:
                cells += [
                    about(values(data, column, name, network)),
                    about(values(data, column, name, network, target=name)),
                ]
            lines.append(cells)
    header = ["property", "measure"]
    for network in COMPARED:
        header += [f"{network}, shared", f"{network}, its own"]
    return markdown(header, lines)


def convergence_table(data: Data) -> str:
    """What the last tenth of the epochs still gained, and how training molecules fare."""
    lines = []
    for name in PROPERTIES:
        cells = [SYMBOLS[name]]
        for network in networks_of(data):
            gain = values(data, "gain", name, network)
            error = values(data, "mae", name, network)
            seen = values(data, "seen_mae", name, network)
            cells += [
                f"{mean(gain):.1%}" if gain else "",
                number(mean(error) / mean(seen)) if seen else "",
            ]
        lines.append(cells)
    header = ["property"]
    for network in networks_of(data):
        header += [f"{network}: last tenth", "test / training error"]
    return markdown(header, lines)


TABLES = {
    "settings": settings_table,
    "untrained": untrained_table,
    "errors": error_table,
    "bleed": bleed_table,
    "parts": parts_table,
    "calibration": calibration_table,
    "turned": turned_table,
    "printed": printed_table,
    "consistency": consistency_table,
    "single": single_table,
    "convergence": convergence_table,
}
