"""The metric reference of the documentation, written from the registry.

python -m orbical.calibration._reference > docs/metrics.md
"""

from __future__ import annotations

from itertools import groupby

from orbical import calibration
from orbical.calibration.registry import KINDS, Measure

_TITLES = {
    "pair": "Classification, from confidence and correctness",
    "outputs": "Classification, from all outputs",
    "regression": "Regression",
    "aleatoric": "Aleatoric uncertainty",
}
_INTRODUCTION = """# Metric reference

Every measure of `orbical.calibration`, from its registry. The name is that of the entry in
`MEASURES`, of the row in tables and of the threshold in `orbical check --max NAME=VALUE`. A scan
can be measured, and checked, by measures of confidence and correctness or, for regression with
uncertainty, by those of regression and of aleatoric uncertainty. Measures of all outputs need
saved outputs. Intervals are made by *consistency* resampling (the data, and labels or targets of a
calibrated model) or, for means over samples, by *bootstrap* or its normal limit.

This page is generated: `python -m orbical.calibration._reference > docs/metrics.md`.
"""
_HEAD = """| name | title | meaning | unit | best | interval | metric class | loss |
|---|---|---|---|---|---|---|---|"""


def page() -> str:
    """Return the page in Markdown."""
    parts = [_INTRODUCTION]
    entries = sorted(calibration.measures(), key=lambda entry: list(KINDS).index(entry.kind))
    for kind, members in groupby(entries, key=lambda entry: entry.kind):
        parts.append(f"\n## {_TITLES[kind]}\n\nFunctions of `{KINDS[kind]}`.\n\n{_HEAD}\n")
        parts += [_row(entry) for entry in members]
    return "".join(parts)


def _row(entry: Measure) -> str:
    best = "higher" if entry.higher_is_better else "lower"
    if entry.target is not None:
        best += f", calibrated: {entry.target:.4g}"
    module = "regression_metrics" if entry.kind == "regression" else "metrics"
    cells = (
        f"`{entry.name}`",
        entry.title,
        entry.meaning,
        entry.unit,
        best,
        entry.interval,
        f"`{module}.{entry.metric_class}`" if entry.metric_class else "",
        f"`losses.{entry.loss}`" if entry.loss else "",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
