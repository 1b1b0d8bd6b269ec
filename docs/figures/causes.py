"""Draw the bars of the guide "from a finding to its cause": `python docs/figures/causes.py`."""

from __future__ import annotations

from pathlib import Path

import orbical as ob

TARGET = Path(__file__).resolve().parents[1] / "guide" / "img" / "layers.png"
BLOCKS = {
    **{f"block {place + 1}": f"features.{n}" for place, n in enumerate((3, 6, 10, 13, 16, 19))},
    "classifier": "classify",
}


def main() -> None:
    """Write the picture."""
    images, _ = ob.datasets.mnist()
    net = ob.zoo.digits.load("plain")
    found = ob.testing.layer_errors(
        net, images, group="cyclic:4", task="classification", layers=BLOCKS
    )
    ob.figures.save(ob.figures.layer_errors(found), TARGET)


if __name__ == "__main__":
    main()
