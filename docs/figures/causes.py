"""Draw the bars of the guide "from a finding to its cause": `python docs/figures/causes.py`.

`python docs/figures/causes.py efficientnet` draws those of EfficientNet-Lite0 and prints its table,
with the packages and photographs of its audit. A few minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orbical as ob

FOLDER = Path(__file__).resolve().parents[1] / "guide" / "img"
BLOCKS = {
    **{f"block {place + 1}": f"features.{n}" for place, n in enumerate((3, 6, 10, 13, 16, 19))},
    "classifier": "classify",
}
STAGES = {
    "stem": "network._bn0",
    **{f"stage {n + 1}": f"network._blocks.{b}" for n, b in enumerate((0, 2, 4, 7, 10, 14, 15))},
    "pooling": "network._avg_pooling",
    "classifier": "network._fc",
}


def main() -> None:
    """Write a picture."""
    if sys.argv[1:] == ["efficientnet"]:
        from orbical_audits.models.efficientnet_lite import loaded, photographs

        name, layers, net, samples = "layers-efficientnet", STAGES, loaded(0), 24
        images, _ = photographs(0, samples)
    else:
        name, layers, net, samples = "layers", BLOCKS, ob.zoo.digits.load("plain"), 64
        images, _ = ob.datasets.mnist()
    found = ob.testing.layer_errors(
        net, images, group="cyclic:4", task="classification", layers=layers, samples=samples
    )
    print(found)
    ob.figures.save(ob.figures.layer_errors(found), FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
