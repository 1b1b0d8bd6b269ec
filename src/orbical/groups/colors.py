"""Groups on the colors of images.

Colors are red, green and blue as numbers, and are not clipped: a clipped color has lost what its
inverse would need.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from ..errors import whole_number
from .catalog import register
from .group import Group, Layout, as_text, few_enough, homogeneous, make_group
from .plane import log_line


@register()
def hue(n: int = 12) -> Group:
    """Return n equally spaced rotations of the hue, about the axis of grays, drawn as a circle.

    A third of a turn takes red to green, green to blue and blue to red.

    >>> (hue(3).parts["color"][1] @ [1, 0, 0, 1]).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    n = whole_number("n", n, 1)
    few_enough(f"hue:{n}", n)
    angle = np.arange(n) * 360.0 / n
    vector = np.deg2rad(angle)[:, None] * np.ones(3) / np.sqrt(3)
    return make_group(
        f"hue:{n}",
        {"color": homogeneous(Rotation.from_rotvec(vector).as_matrix())},
        coords={"hue": angle},
        layout=Layout("circle", np.arange(n), {"angle": angle}),
    )


@register()
def brightness(low: float = 0.5, high: float = 2.0, n: int = 9) -> Group:
    """Return n factors of brightness between `low` and `high`, log-uniform, drawn as a line.

    >>> brightness(0.5, 2, 3).coords["brightness"].tolist()
    [0.5, 1.0, 2.0]
    """
    factor, weights = log_line("brightness", low, high, n)
    return make_group(
        f"brightness:{as_text(low)}:{as_text(high)}:{len(factor)}",
        {"color": homogeneous(factor[:, None, None] * np.eye(3))},
        coords={"brightness": factor},
        layout=Layout("line", np.arange(len(factor)), {"brightness": factor}),
        measure="log-uniform on the sampled window",
        closed=len(factor) == 1,
        weights=weights,
    )
