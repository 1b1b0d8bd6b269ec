"""Groups on signals along one axis: shifts, sign and gain. `time_reversal` reverses them too."""

from __future__ import annotations

import numpy as np

from .catalog import register
from .group import Group, Layout, as_text, grid_line, make_group, tiles
from .plane import log_line


@register("shifts:8:1")
def shifts(radius: float, step: float = 1) -> Group:
    """Return shifts of a signal along its axis, in samples, within `radius`, drawn as a line.

    Neighboring shifts are `step` apart; a step that is not whole needs interpolation.

    >>> shifts(2).coords["shift"].tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """
    line = grid_line("shifts", radius, step, 1)
    return make_group(
        f"shifts:{as_text(radius)}:{as_text(step)}",
        {"shift": line},
        coords={"shift": line},
        layout=Layout("line", np.arange(len(line)), {"shift": line}),
        measure="uniform on the sampled window",
        closed=len(line) == 1,
    )


@register()
def sign() -> Group:
    """Return the group of a signal and its negative.

    >>> sign().parts["gain"].tolist()
    [1.0, -1.0]
    """
    factor = np.array([1.0, -1.0])
    return make_group(
        "sign", {"gain": factor}, coords={"sign": factor}, layout=tiles(np.arange(2)[:, None])
    )


@register()
def gains(low: float = 0.25, high: float = 4.0, n: int = 9) -> Group:
    """Return n factors of the amplitude between `low` and `high`, log-uniform, drawn as a line.

    >>> gains(0.5, 2, 3).coords["gain"].tolist()
    [0.5, 1.0, 2.0]
    """
    factor, weights = log_line("gains", low, high, n)
    return make_group(
        f"gains:{as_text(low)}:{as_text(high)}:{len(factor)}",
        {"gain": factor},
        coords={"gain": factor},
        layout=Layout("line", np.arange(len(factor)), {"gain": factor}),
        measure="log-uniform on the sampled window",
        closed=len(factor) == 1,
        weights=weights,
    )
