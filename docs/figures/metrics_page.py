"""Write the metric reference of the documentation from the registry.

    python docs/figures/metrics_page.py > docs/metrics.md

Names, meanings, units, directions, intervals, metric classes and losses are the registry's; what is
kept here, by name, is what only a page needs: the question that a measure answers, its formula, its
range and its source. `python docs/figures/metrics.py` makes the pictures.
"""

# ruff: noqa: E501, formulas and titles are easier to read whole
from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from orbical import calibration
from orbical.calibration.registry import KINDS, Measure


class Text(NamedTuple):
    """What the page says of a measure beside its entry."""

    question: str
    formula: str
    range: str
    source: str = ""


INTRODUCTION = r"""# Metric reference

{count} measures of calibration and accuracy, by what they are computed from. If you want one number,
use [`smooth_ece`](#smooth_ece) for a classifier and [`regression_esd_normalized`](#regression_esd_normalized)
for a regressor, beside a score such as [`nll`](#nll) that also sees accuracy.

```python
from orbical import calibration

calibration.MEASURES["ece"](confidence, correct, bins=10)  # one value
calibration.interval("ece", confidence, correct)  # with an interval, and the value by chance
calibration.classification_table(logits=logits, labels=labels)  # every measure that applies
```

The name is that of the entry in `MEASURES`, of the row in tables, and of the threshold in
`orbical check --max NAME=VALUE`. A scan can be measured, and checked, by measures of confidence and
correctness or, for regression with uncertainty, by those of regression and of aleatoric uncertainty.
Measures of all outputs need saved outputs.

*How to read the pictures.* All are of one example: 2,000 samples whose true probabilities are known,
classified with logits 1.8 times too large, and 2,000 targets with deviations 0.6 times too small. Left
is what the measure looks at. Right is its value as the confidence goes from too low to too high: the
dashed line is the calibrated model, the dotted one its target value, the point the example.

*Symbols.* $z_i$ is the confidence of sample $i$ and $y_i\in\{0,1\}$ whether it is correct;
$d_i=y_i-z_i$. $p_{ik}$ is the probability of class $k$ and $\ell_i$ the label. For regression,
$\mu_i$, $s_i$ or $\Sigma_i$ are the predicted mean, variance or covariance, $t_i$ the target, and
$e_i=\mu_i-t_i$. Bins $b$ have the share $w_b$ of the samples. *Intervals* are made by consistency
resampling (the data, and labels or targets of a calibrated model) or, for means over samples, by the
bootstrap or its normal limit; see [how far they can be trusted](intervals.md).

This page is generated: `python docs/figures/metrics_page.py > docs/metrics.md`.
"""

TITLES = {
    "pair": "Classification, from confidence and correctness",
    "outputs": "Classification, from all outputs",
    "regression": "Regression",
    "aleatoric": "Aleatoric uncertainty",
}

BY_CLASS = Text(
    "The same, for the probability of every class instead of the largest.",
    r"\frac1C\sum_k \mathrm{%s}(p_{\cdot k},\;\ell=k)",
    "as `%s`",
    "Kull et al. 2019",
)

TEXTS = {
    "accuracy": Text(
        "How often is the most probable class the label?", r"\frac1N\sum_i y_i", "0 to 1"
    ),
    "ece": Text(
        "By how much do confidence and accuracy differ, on average? Biased upwards: a calibrated model "
        "has a positive value, which `interval` reports beside it.",
        r"\sum_b w_b\,\lvert\mathrm{acc}_b-\mathrm{conf}_b\rvert",
        "0 to 1",
        "Naeini et al. 2015; Guo et al. 2017",
    ),
    "ece_l2": Text(
        "The same, with large gaps counting more.",
        r"\sqrt{\sum_b w_b\,(\mathrm{acc}_b-\mathrm{conf}_b)^2}",
        "0 to 1",
        "Kumar et al. 2019",
    ),
    "ece_max": Text(
        "How large is the gap where it is largest? Noisy: one bin decides.",
        r"\max_b\,\lvert\mathrm{acc}_b-\mathrm{conf}_b\rvert",
        "0 to 1",
        "Naeini et al. 2015",
    ),
    "ece_mass": Text(
        "The ECE with as many samples in every bin, for confidences that crowd near 1.",
        r"\sum_b w_b\,\lvert\mathrm{acc}_b-\mathrm{conf}_b\rvert,\quad w_b\approx 1/B",
        "0 to 1",
        "Nixon et al. 2019",
    ),
    "smooth_ece": Text(
        "How large is the gap, without a choice of bins? Continuous in the confidences; the bandwidth "
        r"$\sigma$ is the one at which the error equals it.",
        r"\int_0^1\lvert\frac1N\sum_i d_i\,K_\sigma(z_i,t)\rvert\,\mathrm{d}t",
        "0 to 1",
        "Błasiok and Nakkiran 2023",
    ),
    "sb_ece": Text(
        "The ECE with soft bins, so that it has a gradient.",
        r"\sqrt{\sum_b \frac{S_b}{N}\,(A_b-C_b)^2},\quad S_b=\sum_i u_{ib},\quad "
        r"u_{ib}=\mathrm{softmax}_b\big(-(z_i-c_b)^2/T\big)",
        "0 to 1",
        "Karandikar et al. 2021",
    ),
    "ks": Text(
        "By how much do cumulative accuracy and confidence differ at most? No bins, no parameter.",
        r"\max_t\frac1N\lvert\sum_{z_j\le t} d_j\rvert",
        "0 to 1",
        "Gupta et al. 2021",
    ),
    "esd": Text(
        "How large is the squared cumulative gap? Unbiased, so it can be negative; trainable.",
        r"\sum_i\frac{S_i^2-Q_i}{N(N-1)(N-2)},\quad S_i=\sum_{j\ne i,\,z_j\le z_i}d_j,\quad "
        r"Q_i=\sum_{j\ne i,\,z_j\le z_i}d_j^2",
        "about 0 to 1",
        "Yoon et al. 2023",
    ),
    "mmce": Text(
        "How large is the gap in the space of a kernel?",
        r"\frac1N\sqrt{\sum_{i,j}d_i\,d_j\,e^{-\lvert z_i-z_j\rvert/\varphi}}",
        "0 to 1",
        "Kumar et al. 2018",
    ),
    "mmce_squared": Text(
        "The same, squared: the form to train with, because its gradient is finite at zero.",
        r"\frac1{N^2}\sum_{i,j}d_i\,d_j\,e^{-\lvert z_i-z_j\rvert/\varphi}",
        "0 to 1",
        "Kumar et al. 2018",
    ),
    "skce": Text(
        "The same without pairing a sample with itself: unbiased, so it can be negative.",
        r"\frac1{N(N-1)}\sum_{i\ne j}d_i\,d_j\,e^{-\lvert z_i-z_j\rvert/\varphi}",
        "about 0 to 1",
        "Widmann et al. 2019",
    ),
    "ece_debiased": Text(
        "The squared ECE without what noise adds to it. Zero on average if calibrated.",
        r"\sum_b w_b\Big((\mathrm{acc}_b-\mathrm{conf}_b)^2-"
        r"\frac{\mathrm{acc}_b(1-\mathrm{acc}_b)}{n_b-1}\Big)",
        "about 0 to 1",
        "Kumar et al. 2019",
    ),
    "nll": Text(
        "How probable are the labels? A proper score: sees accuracy and calibration.",
        r"-\frac1N\sum_i\log p_{i\ell_i}",
        "0 to infinity",
    ),
    "brier": Text(
        "How far are the probabilities from the label? A proper score, and bounded.",
        r"\frac1N\sum_i\sum_k\big(p_{ik}-[\ell_i=k]\big)^2",
        "0 to 2",
        "Brier 1950",
    ),
    "brier_calibration": Text(
        "How much of the Brier score would recalibration remove?",
        r"\mathrm{Brier}(p)-\mathrm{Brier}(\tilde p),\quad\tilde p\;\mathrm{isotonic\;in\;each}\;p_k",
        "0 to 2",
        "Dimitriadis, Gneiting and Jordan 2021",
    ),
    "brier_refinement": Text(
        "How much would remain: what the model cannot tell apart.",
        r"\mathrm{Brier}(\tilde p)",
        "0 to 2",
        "Dimitriadis, Gneiting and Jordan 2021",
    ),
    "s_avuc": Text(
        "Are correct predictions certain and wrong ones uncertain? With $h$ the entropy over $\\log C$ "
        "and $t(h)$ a soft threshold.",
        r"\log\Big(1+\frac{n_{AU}+n_{IC}}{n_{AC}+n_{IU}}\Big)",
        "0 to infinity",
        "Karandikar et al. 2021",
    ),
    "squared_error": Text(
        "How far are the means from the targets? Does not see the variance.",
        r"\frac1N\sum_i\lVert e_i\rVert^2",
        "0 to infinity",
    ),
    "gaussian_nll": Text(
        "How probable are the targets? A proper score of mean and variance.",
        r"\frac1{2N}\sum_i\big(e_i^\top\Sigma_i^{-1}e_i+\log\det\Sigma_i+D\log 2\pi\big)",
        "any number",
    ),
    "ence": Text(
        "By which share does the error differ from the predicted deviation?",
        r"\sum_b w_b\,\frac{\lvert\mathrm{RMV}_b-\mathrm{RMSE}_b\rvert}{\mathrm{RMV}_b}",
        "0 to infinity",
        "Levi et al. 2022",
    ),
    "uce": Text(
        "By how much does the squared error differ from the predicted variance?",
        r"\sum_b w_b\,\lvert\mathrm{MSE}_b-\mathrm{MV}_b\rvert",
        "0 to infinity",
        "Laves et al. 2020",
    ),
    "quantile_calibration": Text(
        "Do 10 % of the targets lie below the predicted 10 % quantile? Sees a shifted mean too.",
        r"\frac1L\sum_p\lvert P\big(\Phi((t-\mu)/\sqrt s)\le p\big)-p\rvert",
        "0 to ½",
        "Kuleshov et al. 2018",
    ),
    "gaussian_crps": Text(
        "How far is the predicted distribution from the target? A proper score in the target's unit.",
        r"\frac1N\sum_i\int\big(F_i(x)-[t_i\le x]\big)^2\,\mathrm{d}x",
        "0 to infinity",
        "Gneiting and Raftery 2007",
    ),
    "regression_esd": Text(
        "Does the variance equal the mean squared error at every variance? Unbiased, without bins.",
        r"\mathrm{ESD\;of}\;d_i=e_i^2-s_i\;\mathrm{in\;the\;order\;of}\;s_i",
        "about 0 to infinity",
        "after Yoon et al. 2023",
    ),
    "mahalanobis_calibration": Text(
        "Do 90 % of the targets lie in the predicted 90 % ellipsoid? The same in every frame.",
        r"\frac1L\sum_p\lvert P\big(\chi^2_D(e^\top\Sigma^{-1}e)\le p\big)-p\rvert",
        "0 to ½",
    ),
    "gence": Text(
        "How far are absolute errors from their expected size? Not 0 for a calibrated Gaussian.",
        r"\frac1N\sum_i\frac{\lVert a_i-\lvert e_i\rvert\rVert^2}{\lVert a_i\rVert^2},\quad "
        r"a_i=\sqrt{2s_i/\pi}",
        "0 to infinity",
        "Berman et al., Eq. 8",
    ),
    "gence_sq": Text(
        "The same for squared errors.",
        r"\frac1N\sum_i\frac{\lVert s_i-e_i^2\rVert^2}{\lVert s_i\rVert^2}",
        "0 to infinity",
        "Berman et al., Eq. 9",
    ),
    "gence_fiber": Text(
        "GENCE with errors averaged first, so that a calibrated model has 0.",
        r"\sum_b w_b\,\lVert\mathbb E_b\Big[\frac{a-\lvert e\rvert}{\lVert a\rVert}\Big]\rVert^2",
        "0 to infinity",
        "after Berman et al.",
    ),
    "gence_sq_fiber": Text(
        "The same for squared errors.",
        r"\sum_b w_b\,\lVert\mathbb E_b\Big[\frac{s-e^2}{\lVert s\rVert}\Big]\rVert^2",
        "0 to infinity",
        "after Berman et al.",
    ),
    "regression_esd_normalized": Text(
        "Is the normalized squared error 1 at every variance? Unbiased, without bins and unit.",
        r"\mathrm{ESD\;of}\;d_i=e_i^\top\Sigma_i^{-1}e_i/D-1\;\mathrm{in\;the\;order\;of}\;\det\Sigma_i",
        "about 0 to infinity",
        "after Yoon et al. 2023",
    ),
    "aleatoric_bleed": Text(
        "How much noise does the model report where there is none?",
        r"\frac1N\sum_i\lVert s_i\rVert^2",
        "0 to infinity",
        "Berman et al., Definition 7",
    ),
}

SOURCES = """## Sources

- Berman, Ginesin, Pacini and Walters, *On Uncertainty Calibration for Equivariant Functions*; see [theory](theory.md).
- Błasiok and Nakkiran 2023, *Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing*.
- Brier 1950, *Verification of Forecasts Expressed in Terms of Probability*.
- Dimitriadis, Gneiting and Jordan 2021, *Stable Reliability Diagrams for Probabilistic Classifiers*.
- Gneiting and Raftery 2007, *Strictly Proper Scoring Rules, Prediction, and Estimation*.
- Guo et al. 2017, *On Calibration of Modern Neural Networks*.
- Gupta et al. 2021, *Calibration of Neural Networks using Splines*.
- Karandikar et al. 2021, *Soft Calibration Objectives for Neural Networks*.
- Kuleshov et al. 2018, *Accurate Uncertainties for Deep Learning Using Calibrated Regression*.
- Kull et al. 2019, *Beyond temperature scaling*.
- Kumar et al. 2018, *Trainable Calibration Measures for Neural Networks from Kernel Mean Embeddings*.
- Kumar et al. 2019, *Verified Uncertainty Calibration*.
- Laves et al. 2020, *Well-Calibrated Regression Uncertainty in Medical Imaging with Deep Learning*.
- Levi et al. 2022, *Evaluating and Calibrating Uncertainty Prediction in Regression Tasks*.
- Naeini et al. 2015, *Obtaining Well Calibrated Probabilities Using Bayesian Binning*.
- Nixon et al. 2019, *Measuring Calibration in Deep Learning*.
- Widmann et al. 2019, *Calibration tests in multi-class classification*.
- Yoon et al. 2023, *ESD: Expected Squared Difference as a Tuning-Free Trainable Calibration Measure*.
"""


def text_of(entry: Measure) -> Text:
    """Return the words of a measure; those of classes are derived from the measure's own."""
    if not entry.name.startswith("classwise_"):
        return TEXTS[entry.name]
    name = entry.name.removeprefix("classwise_")
    title = calibration.MEASURES[name].title.replace(" ", r"\;")
    return BY_CLASS._replace(formula=BY_CLASS.formula % title, range=BY_CLASS.range % name)


def page() -> str:
    """Return the page in Markdown."""
    entries = sorted(calibration.measures(), key=lambda entry: list(KINDS).index(entry.kind))
    groups = [(kind, [*members]) for kind, members in groupby(entries, key=lambda one: one.kind)]
    parts = [INTRODUCTION.replace("{count}", str(len(entries)))]
    for kind, members in groups:
        parts.append(f"\n## {TITLES[kind]}\n\nFunctions of `{KINDS[kind]}`.\n\n{overview(members)}")
        parts += [section(entry) for entry in members]
    return "".join([*parts, "\n", SOURCES])


def overview(entries: list[Measure]) -> str:
    """Return the table of a group."""
    head = "| name | what it answers | best |\n|---|---|---|\n"
    rows = (
        f"| [`{entry.name}`](#{entry.name}) | {text_of(entry).question} | {best(entry)} |\n"
        for entry in entries
    )
    return head + "".join(rows)


def best(entry: Measure) -> str:
    """Return the direction, and the value of a calibrated model."""
    words = "higher" if entry.higher_is_better else "lower"
    return words if entry.target is None else f"{words}, calibrated: {entry.target:.4g}"


def section(entry: Measure) -> str:
    """Return what the page says of one measure."""
    text = text_of(entry)
    module = "regression_metrics" if entry.kind == "regression" else "metrics"
    facts = {
        "unit": entry.unit,
        "range": text.range,
        "best": best(entry),
        "interval": entry.interval,
        "metric": f"`calibration.{module}.{entry.metric_class}`" if entry.metric_class else "",
        "loss": f"`losses.{entry.loss}`" if entry.loss else "",
        "source": text.source,
    }
    told = " · ".join(f"*{name}* {fact}" for name, fact in facts.items() if fact)
    image = f"guide/img/metrics/{entry.name}.png"
    return f"""
### {entry.title} {{ #{entry.name} }}

{entry.meaning[0].upper()}{entry.meaning[1:]}. {text.question}

$${text.formula}$$

![{entry.title}: what it looks at, and its value from too little to too much confidence]({image})

`{call(entry)}`

{told}
"""


def call(entry: Measure) -> str:
    """Return the call, with the options of the entry."""
    arrays = {
        "pair": "confidence, correct",
        "outputs": "probs=probs, labels=labels",
        "regression": "mean, variance, target",
        "aleatoric": "aleatoric",
    }[entry.kind]
    options = "".join(f", {name}={value!r}" for name, value in entry.settings.items() if value)
    return f'MEASURES["{entry.name}"]({arrays}{options})'


if __name__ == "__main__":
    print(page(), end="")
