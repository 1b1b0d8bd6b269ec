"""The paper's sentences on molecules, each beside what was measured and what must be."""

from __future__ import annotations

from orbical.calibration import gence_floor

from ..pages import markdown, mean
from .contests import (
    ALIKE,
    Contest,
    agreement,
    agreements,
    better_bleeds_less,
    contest,
    epochs_of,
    shares,
    tail,
    times,
    untrained_rows,
)
from .numbers import Data, limit, networks_of, values
from .paper import SYMBOLS, TABLE
from .settings import (
    COMPARED,
    GIN_NAME,
    INVARIANT_NAME,
    ORIENTED_NAME,
    PRINTED,
    PROPERTIES,
    SHOWN,
)
from .writing import ends, number

ALONG = 0.6
"""A rank correlation beyond this is called one."""

FAVOURED = (
    " The network without the symmetry had fewer epochs; whether that favours its calibration was "
    "not tested."
)

MOST = 8
"""On so many of the eleven properties a network must win for a statement about most of them."""


def sentences(data: Data) -> str:
    """Write the table of the paper's sentences."""
    lines = [*_premises(data), *_figure(data), *_table(data), *_conclusions(data)]
    return markdown(["the paper", "verdict", "measured", "limit"], lines)


def at(data: Data, column: str, name: str, network: str, **chosen: str) -> float:
    """Give the mean of a column over seeds."""
    return mean(values(data, column, name, network, **chosen))


def _premises(data: Data) -> list[list[str]]:
    """What the experiment is said to be."""
    moved = [v for name in PROPERTIES for v in values(data, "defect", name, ORIENTED_NAME)]
    third = (
        " The third network here has no symmetry: turned, its answers change by up to "
        f"{number(max(moved))} deviations."
        if moved
        else ""
    )
    largest, where = max((limit(data, n)["bond_bleed"], SYMBOLS[n]) for n in PROPERTIES)
    ours = shares(data, INVARIANT_NAME)
    theirs = shares(data, INVARIANT_NAME, loss=PRINTED)
    stuck = {
        n: (at(data, "mae", "u0", n), at(data, "mae", "u0", n, loss=PRINTED)) for n in COMPARED
    }
    return [
        [
            "Of the two networks one has the symmetry E(3) and the other does not (6.1.2).",
            "corrected",
            "GIN sees no positions at all, so turning a molecule changes none of its answers. Both "
            "networks are E(3)-invariant, and differ in what they see." + third,
            "no change by a rotation, for both",
        ],
        [
            "The true aleatoric variance is 0 for every molecule (6.1.2).",
            "confirmed, but for GIN",
            f"{limit(data, SHOWN)['shared']:.1%} of the molecules share their bond graph with "
            "another one; GIN must answer both alike, and likelihood calls the difference noise.",
            f"NLL-optimal bleed of GIN at most {number(largest)} ({where}); 0 for the others",
        ],
        [
            "Four outputs are enough to tell the two kinds of uncertainty apart (6.1.2).",
            "corrected",
            "Likelihood depends on γ, α and β (1 + ν)/ν alone. Aleatoric share of the invariant "
            f"network {ends(ours)} by likelihood, {ends(theirs)} with the printed penalty: the "
            "loss and the start decide, on the same data.",
            "share 0: nothing here is noise",
        ],
        [
            "The loss is a likelihood with a penalty on errors (E).",
            "right, but it does not always train"
            if max(b / a for a, b in stuck.values()) > 2
            else "confirmed",
            "MAE of U₀ with the printed loss against likelihood after a start by squared error: "
            + "; ".join(f"{n} {number(b)} against {number(a)}" for n, (a, b) in stuck.items())
            + f" (the paper's are {number(TABLE['u0'].gin_mae)} and "
            f"{number(TABLE['u0'].invariant_mae)}). A Student t gives up on molecules that lie "
            "far off.",
            "an error of U₀ is one of U₀ atom",
        ],
    ]


def _figure(data: Data) -> list[list[str]]:
    """What is said of the dipole, Fig. 8."""
    mae, bleed, by_error = (
        [at(data, column, SHOWN, network) for network in COMPARED]
        for column in ("mae", "bleed_99", "bleed_error")
    )
    parts = ("aleatoric", "epistemic")
    ranks = [agreement(data, part) for part in parts]
    alone = {part: [r for n in COMPARED for r in agreements(data, part, n, n)] for part in parts}
    tails = {
        part: [tail(data, part, network) for network in COMPARED]
        for part in ("epistemic", "aleatoric")
    }
    fatter = sum(e > a for e, a in zip(*tails.values(), strict=True))
    return [
        [
            "On the dipole both networks have about the same error (Fig. 8).",
            "confirmed" if 1 / ALIKE < mae[0] / mae[1] < ALIKE else "not confirmed",
            f"MAE {number(mae[0])} and {number(mae[1])} deviations: GIN's is "
            f"{times(mae[0] / mae[1])}. The dipole depends on the shape.",
            f"predicting the mean {number(limit(data, SHOWN)['mean_mae'])}",
        ],
        [
            "On the dipole both networks have about the same bleed (6.1.2).",
            "confirmed" if 1 / ALIKE < bleed[0] / bleed[1] < ALIKE else "not confirmed",
            f"Bleed without the worst 1 % {number(bleed[0])} and {number(bleed[1])}: GIN's is "
            f"{times(bleed[0] / bleed[1])}; by their errors {number(by_error[0])} and "
            f"{number(by_error[1])}.",
            f"{number(limit(data, SHOWN)['bond_bleed'])} and 0",
        ],
        [
            "The uncertainties of the two networks agree with each other (Fig. 8).",
            "confirmed"
            if min(ranks) > ALONG
            else "in part"
            if max(ranks) > 0.4
            else "not confirmed",
            "Rank correlation over molecules between the two networks: aleatoric "
            f"{ranks[0]:.2f}, epistemic {ranks[1]:.2f}.",
            "two seeds of one network: " + ", ".join(f"{p} {ends(r)}" for p, r in alone.items())
            if all(alone.values())
            else "1 if both knew the same",
        ],
        [
            "Epistemic variances have the heavier tail of the two kinds (Fig. 8).",
            ("not confirmed", "for one of two", "confirmed")[fatter],
            "99 % quantile over the median, GIN and invariant: "
            + "; ".join(f"{p} {' and '.join(map(number, v))}" for p, v in tails.items())
            + ". The two differ by the factor 1/ν.",
            "none: likelihood does not fix ν",
        ],
    ]


def _table(data: Data) -> list[list[str]]:
    """What is said of Table 1."""
    rows = untrained_rows(data)
    weak = rows["worse"] + rows["hardly"]
    agree, correlation = better_bleeds_less(data)
    total = len(PROPERTIES)
    verdict = "corrected" if agree >= MOST and correlation > ALONG else "in part"
    return [
        [
            "Table 1 compares networks of like accuracy, errors within 0.25 (6.1.2).",
            f"{len(weak)} of {len(TABLE)} rows compare untrained networks" if weak else "confirmed",
            f"{', '.join(weak) or 'None'}: neither network is much better than predicting the "
            f"mean. {', '.join(rows['one']) or 'None'}: one of the two is not.",
            "errors of the mean: see below",
        ],
        [
            "Which network bleeds less follows neither from its error nor from its symmetry "
            "(6.1.2).",
            verdict if agree > total / 2 else "confirmed",
            f"Trained, the more accurate network bleeds less on {agree} of {total} properties; "
            f"over networks and properties error and bleed have rank correlation "
            f"{correlation:.2f}.",
            "calibrated: bleed = (aleatoric share × squared error)²",
        ],
        [
            "The lower bound of the bleed says nothing here: it is 0, presumably because the "
            "symmetry is correct (6.1.2).",
            "true, for another reason",
            "The bound is 0 under any symmetry, right or wrong, because the truth is 0 and every "
            "network may answer 0. What likelihood leads to is the squared error.",
            "structural bound 0; NLL-optimal bleed below",
        ],
    ]


def _conclusions(data: Data) -> list[list[str]]:
    """What the paper concludes on symmetry."""
    columns = ("mae", "bleed_99", "coverage", "ence", "gence")
    seen = {c: contest(data, c, INVARIANT_NAME, GIN_NAME) for c in columns}
    if ORIENTED_NAME not in networks_of(data):
        return [
            [
                "A correct symmetry hardly changes bleed (6.1.2), and need not calibrate better "
                "than a network of the same size without it (9).",
                "not answered by these two",
                "Both are invariant. The one that sees distances, against GIN: bleed "
                f"{times(seen['bleed_99'].ratio)} ({seen['bleed_99'].text}), coverage error "
                f"{times(seen['coverage'].ratio)} ({seen['coverage'].text}).",
                "0; floors in the table of calibration",
            ]
        ]
    free = {c: contest(data, c, INVARIANT_NAME, ORIENTED_NAME) for c in columns}
    bleed, coverage = free["bleed_99"], free["coverage"]
    return [
        [
            "A correct symmetry hardly changes bleed (6.1.2), and does not prevent it (9).",
            _of_bleed(bleed, bool(shorter(data))),
            f"With the symmetry, against without: bleed {times(bleed.ratio)} ({bleed.text}; "
            f"{bleed.range}), error {times(free['mae'].ratio)} ({free['mae'].text}). The invariant "
            f"network against GIN: bleed {times(seen['bleed_99'].ratio)} ({seen['bleed_99'].text})."
            + shorter(data),
            "0 for all three",
        ],
        [
            "A correct symmetry need not calibrate better than a network of the same size without "
            "it (9).",
            "not confirmed" if coverage.first >= MOST else "not contradicted: it is not seen to",
            f"With the symmetry, on molecules as stored: coverage error {times(coverage.ratio)} "
            f"({coverage.text}), ENCE {times(free['ence'].ratio)} ({free['ence'].text}), GENCE "
            f"{times(free['gence'].ratio)} ({free['gence'].text}). Against GIN: coverage error "
            f"{times(seen['coverage'].ratio)} ({seen['coverage'].text}). ENCE has a common floor, "
            "which brings its ratios near 1." + (FAVOURED if shorter(data) else ""),
            f"calibrated: coverage error and ENCE at their floors, GENCE {number(gence_floor)} "
            "for a Gaussian, a little more for a Student t",
        ],
    ]


def _of_bleed(bleed: Contest, unequal: bool) -> str:
    """Judge what the symmetry does to bleed."""
    if bleed.surely_alike:
        return "confirmed"
    if bleed.ratio > ALIKE:
        return "confirmed: it does not lower bleed"
    if unequal or bleed.alike:
        return "confirmed that it does not prevent bleed; open whether it lowers it"
    return "it lowers bleed, and does not prevent it"


def shorter(data: Data) -> str:
    """Say where the network without symmetry had fewer epochs than the others."""
    least, most = (epochs_of(data, name) for name in (ORIENTED_NAME, INVARIANT_NAME))
    if least == most:
        return ""
    return (
        f" The oriented network had {least} epochs and the others {most}, for want of time on the "
        "device: a difference may come from that alone."
    )
