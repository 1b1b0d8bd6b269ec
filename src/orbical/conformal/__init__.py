"""Conformal prediction: sets and intervals that contain the truth with a chosen probability.

| to | use |
|---|---|
| predict sets of classes | `LAC` (smallest), `APS` (adaptive), `RAPS` (for many classes) |
| predict intervals | `Absolute` (one width), `Normalized` (by the predicted deviation), `CQR` |
| ask for the coverage in each category, or at each position | `Mondrian` |
| predict the same set along the orbit | `OrbitAveraged` |
| measure coverage and size at each position of a scan | `along_orbit`, `coverage_table` |

Split conformal prediction scores how badly an answer fits the outputs of a model, and keeps every
answer whose score is at most a quantile of the scores of held-out samples. The guarantee

    P(the set of a new sample contains its truth) >= coverage

needs one assumption: the new sample and the calibration samples are exchangeable, for example
drawn independently from one distribution. It does not need a good model. The probability is over
both the calibration samples and the new one: for a given calibration set of n samples the coverage
varies, as a Beta distribution with a standard deviation of about `sqrt(coverage (1 - coverage) /
n)`. It is marginal: an average over samples, not a statement about each class or each input.

Rotated inputs are not exchangeable with upright ones. Calibrate where you will use the sets:

| calibrated | the guarantee holds for |
|---|---|
| at one position, scores `[N, C]` | new samples at that position only |
| on the whole orbit, scores `[N, K, C]` | a new sample at a position drawn by the weights |
| at each position, `Mondrian` | a new sample at each position |
| with group-averaged scores, `OrbitAveraged` | a new sample, with one set for its whole orbit |

>>> import numpy as np
>>> import orbical as ob
>>> rng = np.random.default_rng(0)
>>> probs = rng.dirichlet(np.ones(5), 2000)
>>> labels = (probs.cumsum(1) > rng.random((2000, 1))).argmax(1)
>>> sets = ob.conformal.LAC(coverage=0.9, outputs="probabilities").fit(probs[:1000], labels[:1000])
>>> found = sets.predict_set(probs[1000:])  # [N, C], whether a set contains a class
>>> bool(abs(found[np.arange(1000), labels[1000:]].mean() - 0.9) < 0.03)
True
"""

from .class_sets import APS, LAC, RAPS, ConformalSets
from .orbit_coverage import (
    CALIBRATED,
    OrbitCoverage,
    along_orbit,
    conformal_halves,
    conformal_tests,
    coverage_table,
    finished_rows_of_coverage,
    holds_values,
    rows_of_coverage,
)
from .quantiles import conformal_quantile
from .target_intervals import CQR, Absolute, ConformalIntervals, Normalized
from .wrappers import Mondrian, OrbitAveraged

__all__ = [
    "APS", "CALIBRATED", "CQR", "LAC", "RAPS", "Absolute", "ConformalIntervals",
    "ConformalSets", "Mondrian", "Normalized", "OrbitAveraged", "OrbitCoverage", "along_orbit",
    "conformal_quantile", "coverage_table", "holds_values",
]  # fmt: skip
