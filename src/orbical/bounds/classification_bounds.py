"""Bounds of accuracy and calibration error of classifiers with a symmetry.

Items are those of Berman et al., "On Uncertainty Calibration for Equivariant Functions" (P1).
Two of its statements never apply, because they are false: Proposition 2 (bi-Lipschitz upper bound)
and Proposition 5 (Lipschitz lower bound). Their reason is the counterexample of `docs/theory.md`.
"""

from __future__ import annotations

import numpy as np

from .._arrays import as_numpy
from ..errors import InputError
from . import table_checks as checks
from .any_model import any_model_bounds, own_model_accuracy
from .bound import (
    OPEN,
    ROUNDING,
    Bound,
    Bounds,
    estimated_bounds,
    inapplicable_bound,
    lower_bound,
    share_upper_bound,
)
from .fibers import Fibers, fiber_index
from .orbit_table import OrbitTable

__all__ = ["classification", "forced_overconfidence", "worst_predictions"]

Array = np.ndarray
_ECE = {
    "ece": "exact",
    **dict.fromkeys(
        ["prop1", "prop2", "thm4_fiberwise", "thm4", "cor1", "cor2", "fiber_free"], "upper"
    ),
    **dict.fromkeys(["thm5", "prop4", "prop5", "prop6", "forced_ece", "least_ece_lower"], "lower"),
    **dict.fromkeys(("least_ece_upper", "sharp_upper"), "upper"),
}
"""The bounds of the calibration error in their order, and their kind."""
TITLES = {
    "prop1": "Proposition 1, no symmetry",
    "prop2": "Proposition 2, false",
    "thm4_fiberwise": "Theorem 4, fiber by fiber",
    "thm4": "Theorem 4, as printed",
    "cor1": "Corollary 1",
    "cor2": "Corollary 2, two labels",
    "fiber_free": "Corollary 2, without fibers",
    "thm5": "Theorem 5",
    "prop4": "Proposition 4",
    "prop5": "Proposition 5, false",
    "prop6": "Proposition 6, an oracle's sampling error",
}
"""The statements of the literature, as figures and commands name them."""
_FALSE = {
    "prop2": "false: a model that is always wrong, with confidence x for x uniform on [.98, 1], "
    "has an ECE of .99, above its bound of .75; a bi-Lipschitz confidence is one-to-one, so no "
    "invariant one is",
    "prop5": "false: in Example 5 the invariant confidence 3/4 + c (sum x - sum x0) is calibrated, "
    "where the bound is positive",
}
"""The counterexamples to statements that never apply; `docs/theory.md` computes them."""
_OF_ORBITS = ("thm4", "cor2", "fiber_free", "prop4", "least_ece_lower", "least_ece_upper")
_NO_ORBITS = "needs the label masses of orbits; only errors of fibers are known"
_NO_CONFIDENCE = "needs confidences; the table has none"
_VARIES = "the model's outputs differ within an orbit, so it is not invariant; see any_ece"
_NO_PREDICTION = "needs the model's predictions; the table has none"


def classification(
    table: OrbitTable | Fibers, *, bins: int | None = None, level: float = 0.95
) -> Bounds:
    """Evaluate every classification bound on a table of orbits, or on given fibers.

    With r, p, M_p, m_p the mass, confidence, best and worst accuracy of a fiber, K_p = 1 - M_p,
    k and kappa the majority and minority dissent of an orbit, P2 the fibers that are at least half
    right:

    | key | value |
    |---|---|
    | `accuracy_ceiling`, `accuracy_floor` | 1 - sum k, 1 - sum kappa |
    | `ece` | sum r abs(Acc_p - p) |
    | `prop1` | sum r max(p, 1 - p) |
    | `prop2`, `prop5` | none: false as printed, their reason is a counterexample |
    | `thm4_fiberwise` | prop1 - sum over P2 of r K_p |
    | `thm4` | prop1 - k* r(P2), k* the least positive dissent; each P2 fiber needs one |
    | `cor1` | prop1 - min K_p r(P2) |
    | `cor2` | 1 - min K_p, two labels |
    | `fiber_free` | prop1 - sum of each orbit's least label mass (for two labels: prop1 - sum k) |
    | `thm5` | sum over p < m of r (m - p), m = min m_p |
    | `prop4` | the same with m' = 1 - sum kappa / min q |
    | `prop6` | eps with P(abs(mean of n oracle errors - ECE) <= eps) >= `level` |
    | `forced_ece` | sum r max(0, p - M_p, m_p - p), the error that no labeling of orbits avoids |
    | `least_ece_lower` | the same, exact on fibers of one orbit: min over labels |
    | `least_ece_upper` | some labeling has an ECE of at most this; equal to the former if exact |
    | `sharp_upper` | sum r max(M_p - p, p - m_p), attained by `worst_predictions` |

    The last rows hold for any model, invariant or not, with eps the share of samples that it does
    not answer as most of their orbit:

    | key | value |
    |---|---|
    | `broken_symmetry` | eps |
    | `broken_at_least` | accuracy - ceiling, which a model of this accuracy must break |
    | `any_accuracy` | min(1, ceiling + eps) |
    | `any_accuracy_sharp` | sum min(P(orbit, answer = c), P(orbit, label = c)), never more |
    | `any_ece` | mean confidence - `any_accuracy_sharp`, for any bins |

    Args:
        table: an `OrbitTable`, or `Fibers` from `fibers_from_errors`.
        bins: the bins of the ECE, which are then the fibers; None makes each distinct confidence a
            fiber. Ignored for given fibers.
        level: the probability with which `prop6` holds.

    Returns:
        The bounds by name.

    Raises:
        InputError: if the table is neither of the two, or `bins` or `level` is out of range.

    See Also:
        certified_ceiling: An interval for the population.
        compare_groups: Before anything is trained.
        regression: For values.

    Example:
        >>> table = OrbitTable([[0.3, 0.2], [0.5, 0.0]], confidence=[0.9, 0.7], predicted=[0, 0])
        >>> bounds = classification(table)
        >>> bounds["accuracy_ceiling"].value, round(bounds["ece"].value, 6)
        (0.8, 0.3)
        >>> round(bounds["forced_ece"].value, 6), round(bounds["sharp_upper"].value, 6)
        (0.15, 0.6)
    """
    checks.of_kind(table, OrbitTable, Fibers)
    checks.level(level)
    orbits, fibers = None, None
    if isinstance(table, Fibers):
        fibers = table
        ceiling, floor = float(fibers.mass @ fibers.best), float(fibers.mass @ fibers.worst)
    else:
        orbits = table
        fibers = None if orbits.confidence is None else orbits.unordered_fibers(bins)
        ceiling, floor = orbits.accuracy_ceiling, orbits.accuracy_floor
    varies = orbits is not None and orbits.outputs is not None and orbits.predicted is None
    found = _ece_bounds(orbits, fibers) | {"prop6": _oracle_ece_bound(orbits, level)}
    bounds = {
        "accuracy_ceiling": share_upper_bound(ceiling, "accuracy"),
        "accuracy_floor": lower_bound(floor, "accuracy"),
    }
    for name in _ECE:
        missing = _NO_ORBITS if orbits is None and name in _OF_ORBITS else _NO_PREDICTION
        missing = missing if fibers else _NO_CONFIDENCE
        missing = _FALSE.get(name, _VARIES if varies else missing)
        bounds[name] = found.get(name) or _no_bound(name, missing)
    accuracy = None if orbits is None else own_model_accuracy(orbits)
    if orbits is not None:
        bounds |= any_model_bounds(orbits, accuracy)
    own = None if fibers is None or fibers.accuracy is None else fibers.mass @ fibers.accuracy
    about = {
        "samples": None if orbits is None else orbits.samples,
        "orbits": None if orbits is None else len(orbits.mass),
        "labels": None if orbits is None else orbits.mass.shape[1],
        "fibers": None if fibers is None else len(fibers),
        "bins": bins if orbits is not None else None,
        "accuracy": None if own is None else float(own),
        "invariance_gap": None if orbits is None else orbits.invariance_gap,
        "model_accuracy": accuracy,
        "broken_along_orbits": None if orbits is None else orbits.broken_along_orbits,
        "averaged": orbits is not None and orbits.averaged,
        "tolerance": None if orbits is None else orbits.tolerance,
    }
    if orbits is not None and not orbits.closed:
        bounds["least_ece_upper"] = _no_bound("least_ece_upper", OPEN)
    if orbits is not None and orbits.tolerance is not None:
        bounds = estimated_bounds(bounds, orbits.tolerance)
    return Bounds(bounds, about)


def _upper_ece(value: float, reason: str = "") -> Bound:
    return share_upper_bound(value, "ece", reason)


def _lower_ece(value: float, reason: str) -> Bound:
    """Return a lower bound, with the reason if it is 0."""
    return lower_bound(value, "ece", reason=reason if value <= ROUNDING else "")


def _ece_bounds(orbits: OrbitTable | None, fibers: Fibers | None) -> dict[str, Bound]:
    """Return the bounds of the calibration error, without those that need what is not known."""
    if fibers is None:
        return {}
    r, p, best, worst = fibers.mass, fibers.confidence, fibers.best, fibers.worst
    prop1 = float(r @ np.maximum(p, 1 - p))
    over, under = p - best, worst - p
    sharp = -float(r @ np.minimum(over, under))
    forced = np.maximum(over, under, out=over)
    np.maximum(forced, 0, out=forced)
    found = {
        "prop1": _upper_ece(prop1),
        "thm5": _bound_of_theorem5(orbits, fibers),
        "forced_ece": _lower_ece(float(r @ forced), "every fiber can be calibrated on average"),
        "sharp_upper": _upper_ece(sharp),
    }
    if orbits is not None:
        least = float((orbits.orbit_mass - orbits.minority_dissent).sum())
        found |= {
            **_least_ece_bounds(orbits, fibers, forced),
            "cor2": _corollary2(orbits, fibers),
            "fiber_free": _upper_ece(prop1 - least),
            "prop4": _proposition4(orbits, fibers),
        }
    if fibers.accuracy is None:
        return found
    half_right = fibers.accuracy >= 0.5
    least_error, there = fibers.least_error, r * half_right
    share = float(there.sum())
    reason = "" if share > 0 else "no fiber is at least half right, so nothing is gained on prop1"
    found |= {
        "ece": Bound(float(r @ np.abs(fibers.accuracy - p)), "ece", "exact"),
        "thm4_fiberwise": _upper_ece(prop1 - float(there @ least_error), reason),
        "cor1": _upper_ece(prop1 - float(least_error.min()) * share, reason),
    }
    if orbits is not None:
        least = float(np.where(orbits.dissent > 0, orbits.dissent, np.inf).min())
        if least == np.inf:
            found["thm4"] = _no_bound("thm4", "no orbit is incorrect: every dissent is 0")
        elif (half_right & (least_error <= 0)).any():
            why = "a fiber that is at least half right holds no incorrect orbit"
            found["thm4"] = _no_bound("thm4", why)
        else:
            found["thm4"] = _upper_ece(prop1 - least * share, reason)
    return found


def _least_ece_bounds(orbits: OrbitTable, fibers: Fibers, forced: Array) -> dict[str, Bound]:
    """Bracket the least ECE of all invariant labelings with these confidences.

    On a fiber of one orbit the labels can be tried. On others, relabeling one orbit after another
    leads from the worst to the best accuracy in steps of at most max - min of its label masses; so
    where the confidence lies between the two, some accuracy is within half of the largest step.
    """
    assert fibers.index is not None
    assert orbits.confidence is not None
    held = orbits.orbit_mass > 0
    if held.all() and len(fibers) == len(orbits.mass):
        exact = _label_distance_bound(orbits.mass, orbits.orbit_mass * orbits.confidence, held)
        return _bracket(exact, exact, "attained: every fiber holds one orbit")
    alone = np.bincount(fibers.index[held], minlength=len(fibers)) == 1
    single = held if alone.all() else held & alone[fibers.index]
    exact = _label_distance_bound(orbits.mass, orbits.orbit_mass * orbits.confidence, single)
    several = held & ~single
    step = np.zeros(len(fibers))
    spread = (orbits.minority_dissent - orbits.dissent)[several]  # max - min of the label masses
    np.maximum.at(step, fibers.index[several], spread)
    rest = ~alone
    forced = fibers.mass * forced
    low = exact + float(forced[rest].sum())
    high = exact + float(np.where(forced > ROUNDING, forced, step / 2)[rest].sum())
    reason = "attained: every fiber holds one orbit" if alone.all() else ""
    return _bracket(low, high, reason)


def _bracket(low: float, high: float, reason: str) -> dict[str, Bound]:
    return {
        "least_ece_lower": lower_bound(low, "ece", reason=reason),
        "least_ece_upper": share_upper_bound(high, "least_ece", reason),
    }


def _label_distance_bound(mass: Array, claimed: Array, chosen: Array) -> float:
    """Return the sum over chosen orbits of the least distance of a label's mass from the claim."""
    if not chosen.all():
        mass, claimed = mass[chosen], claimed[chosen]
    total = 0.0
    for start in range(0, len(mass), 4096):  # blocks stay in the cache
        block = slice(start, start + 4096)
        apart = np.subtract(mass[block].T, claimed[block], order="C")  # rows of labels are short
        total += float(np.abs(apart, out=apart).min(0).sum())
    return total


def _no_bound(name: str, reason: str) -> Bound:
    return inapplicable_bound(
        "least_ece" if name == "least_ece_upper" else "ece", _ECE[name], reason
    )


def _corollary2(orbits: OrbitTable, fibers: Fibers) -> Bound:
    if orbits.mass.shape[1] != 2:
        reason = f"needs two labels, the table has {orbits.mass.shape[1]}; see fiber_free"
        return _no_bound("cor2", reason)
    return _upper_ece(1 - float(fibers.least_error.min()))


def _bound_of_theorem5(orbits: OrbitTable | None, fibers: Fibers) -> Bound:
    floor = float(fibers.worst.min())
    least, labels = fibers.confidence.min(), None if orbits is None else orbits.mass.shape[1]
    value = 0.0
    if least < floor:
        value = float(fibers.mass @ np.maximum(0, floor - fibers.confidence))
    if labels is not None and least >= 1 / labels:
        reason = f"every confidence is at least 1/{labels}, which no accuracy floor exceeds"
    else:
        reason = "no confidence lies below the least accuracy floor of a fiber"
    return _lower_ece(value, reason)


def _proposition4(orbits: OrbitTable, fibers: Fibers) -> Bound:
    held = orbits.orbit_mass[orbits.orbit_mass > 0]
    if len(held) > 1:  # m' <= 1 - 2 (1 - 1/C) <= 0, up to rounding
        return _lower_ece(0.0, "m' is never positive with two or more orbits")
    floor = 1 - float(orbits.minority_dissent.sum() / held.min())
    value = float(fibers.mass @ np.maximum(0, floor - fibers.confidence))
    return _lower_ece(value, "no confidence below m'")


def _oracle_ece_bound(orbits: OrbitTable | None, level: float) -> Bound:
    from ..calibration import oracle_bound

    quantity = "ece_deviation"
    if orbits is None or orbits.samples is None:
        return inapplicable_bound(quantity, "upper", "the number of samples is not known")
    return Bound(
        oracle_bound(orbits.samples, level),
        quantity,
        "upper",
        reason="for an oracle that knows Acc_p, not for an ECE estimated from data",
    )


def worst_predictions(table: OrbitTable, *, bins: int | None = None) -> Array:
    """Return the predictions of the invariant classifier that attains `sharp_upper`.

    On each fiber every orbit takes its majority label, or every orbit its minority label,
    whichever accuracy is farther from the confidence.

    Args:
        table: orbits with confidences.
        bins: as in `classification`.

    Returns:
        Labels `[O]`, one for each orbit.

    Raises:
        InputError: if the table has no confidences.

    Example:
        >>> table = OrbitTable([[0.3, 0.2], [0.5, 0.0]], confidence=[0.9, 0.7])
        >>> worst_predictions(table)
        array([1, 1])
    """
    checks.of_kind(table, OrbitTable)
    if table.confidence is None:
        raise InputError("table", "confidences", "none")
    index = fiber_index(table.confidence, bins)

    def gathered(values: Array) -> Array:
        return np.bincount(index, weights=values)

    claimed = gathered(table.orbit_mass * table.confidence)
    under = gathered(table.orbit_mass - table.dissent) - claimed
    over = claimed - gathered(table.orbit_mass - table.minority_dissent)
    return np.asarray(np.where((under > over)[index], table.mass.argmax(1), table.mass.argmin(1)))


def forced_overconfidence(table: OrbitTable, confidence: Array) -> tuple[Array, Array]:
    """Return the calibration error a symmetry forces on confident models, as two curves in p.

    The first, `(p - ceiling)_+`, holds for every invariant model whose mean confidence is p. The
    second, `sum_o q (p - M_o)_+` with M_o the best accuracy on orbit o, is forced when each orbit
    is a fiber of its own, with a confidence near p: real-valued confidences. The first never
    exceeds the second.

    Args:
        table: orbits with label masses; confidences in it are not used.
        confidence: `[P]`, values p at which to evaluate.

    Returns:
        The two curves, `[P]` each.

    Raises:
        InputError: if a confidence is outside [0, 1].

    Example:
        >>> table = OrbitTable([[0.25, 0.25], [0.5, 0.0]])
        >>> mean, orbitwise = forced_overconfidence(table, np.array([0.5, 0.8, 1.0]))
        >>> mean.round(3), orbitwise.round(3)
        (array([0.  , 0.05, 0.25]), array([0.  , 0.15, 0.25]))
    """
    checks.of_kind(table, OrbitTable)
    p = as_numpy("confidence", confidence, np.float64)
    if p.ndim != 1 or p.size == 0 or p.min() < 0 or p.max() > 1:
        raise InputError("confidence", "a list of values in [0, 1]", "others")
    held = table.orbit_mass > 0
    mass = table.orbit_mass[held]
    best = 1 - table.dissent[held] / mass
    order = np.argsort(best)
    best, mass = best[order], mass[order]
    below = np.searchsorted(best, p, side="left")
    cumulative_mass = np.concatenate([[0.0], np.cumsum(mass)])
    cumulative_right = np.concatenate([[0.0], np.cumsum(mass * best)])
    orbitwise = np.maximum(0, p * cumulative_mass[below] - cumulative_right[below])
    return np.maximum(0, p - table.accuracy_ceiling), orbitwise
