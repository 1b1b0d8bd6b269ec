"""What the paper prints: its Table 1, and the words of its section 6.1.2."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A row of the paper's Table 1: z-scored errors, and aleatoric bleed."""

    gin_mae: float
    invariant_mae: float
    gin_bleed: float
    invariant_bleed: float


TABLE = {
    "lumo": Printed(0.4404, 0.6710, 0.0081, 3.0288),
    "gap": Printed(0.6877, 0.7283, 0.0013, 3.0287),
    "u0": Printed(0.2563, 0.0563, 0.0333, 0.0053),
    "u": Printed(0.2558, 0.0563, 0.0323, 0.0053),
    "u0_atom": Printed(0.1908, 0.1458, 0.0193, 0.0052),
    "g_atom": Printed(0.7954, 0.7706, 0.0000, 0.0014),
    "rotational_a": Printed(0.0667, 0.2504, 0.0000, 0.0014),
    "rotational_b": Printed(0.1625, 0.0992, 0.0066, 0.0040),
    "rotational_c": Printed(0.0780, 0.0493, 0.0008, 0.0013),
    "r2": Printed(0.8621, 0.8956, 0.0005, 0.0013),
}
"""Table 1 of Berman et al., in its order."""

SYMBOLS = {
    "lumo": "ε LUMO",
    "gap": "Δε",
    "u0": "U₀",
    "u": "U",
    "u0_atom": "U₀ atom",
    "g_atom": "G atom",
    "rotational_a": "A",
    "rotational_b": "B",
    "rotational_c": "C",
    "r2": "⟨R²⟩",
    "dipole": "dipole",
}

HARDLY = 0.2
"""Below this share of the mean's error gained, a network hardly learnt."""


def skill(error: float, of_mean: float) -> float:
    """Give the share of the error of the best constant that a network does away with.

    >>> skill(0.2, 0.8)
    0.75
    """
    return 1 - error / of_mean


def learnt(error: float, of_mean: float) -> str:
    """Say in words what an error is, beside that of predicting the mean.

    >>> learnt(0.8621, 0.72), learnt(0.7, 0.8), learnt(0.1, 0.8)
    ('no better than the mean', 'hardly better than the mean', 'learnt')
    """
    gained = skill(error, of_mean)
    if gained <= 0:
        return "no better than the mean"
    return "hardly better than the mean" if gained < HARDLY else "learnt"
