"""Small pictures for figures and pages: groups, and point clouds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from .._text import counted
from ..errors import InputError, whole_number
from ..groups import Group, as_group
from .style import INK, MODELS, PAGE, SOFT, Look, check_figure_width, figure, fitted_label, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["cloud_picture", "group_picture", "look_from", "molecule_picture"]

Array = np.ndarray
_FLAG = np.array([[0, 0], [0, 1], [0.55, 1], [0.55, 0.8], [0.2, 0.8], [0.2, 0.6], [0.4, 0.6],
                  [0.4, 0.4], [0.2, 0.4], [0.2, 0]])  # fmt: skip
_MOST_DRAWN = 400
_COLOR = (0.85, 0.3, 0.2)


def group_picture(*groups: Group | str, width: float | None = None) -> Figure:
    """Draw groups by what their elements do to one shape.

    Args:
        groups: one or more groups or their texts.
        width: in inches; by default that of a page, less for up to two groups.

    Returns:
        The figure, a panel for each group. Elements that keep the hand of the shape are blue, those
        that mirror it orange; the shape itself is black.

    Raises:
        InputError: if no group is given.

    Example:
        >>> len(group_picture("octahedral", "rotations:8").axes)
        2
    """
    check_figure_width(width)
    if not groups:
        raise InputError("groups", "at least one group", "none")
    chosen = [as_group(group) for group in groups]
    columns = min(len(chosen), 4)
    rows = -(-len(chosen) // columns)
    wide = width or PAGE * min(1.0, columns / 3)
    with styled():
        fig = figure(wide, wide / columns * 1.12 * rows)
        for number, group in enumerate(chosen):
            part = next((name for name in _DRAWN if name in group.parts), "")
            panel = fig.add_subplot(rows, columns, number + 1)
            _DRAWN.get(part, _draw_number_picture)(panel, group, _drawn(len(group), group.identity))
            spec = fitted_label(group.spec, wide / columns - 0.15, 7, lines=1)
            panel.set_title(f"{spec}\n{counted(len(group), 'element')}", fontsize=7)
    return fig


def _drawn(count: int, identity: int) -> Array:
    """Return the elements that are drawn, the identity last, on top of the others."""
    some = np.unique(np.linspace(0, count - 1, min(count, _MOST_DRAWN)).astype(int))
    return np.append(some[some != identity], identity)


def _colors_of_elements(maps: Array) -> list[str]:
    """Return a color for each element, black for the last, which is the identity."""
    mirrored = np.linalg.det(maps[:-1, :-1, :-1]) < 0
    return [*np.where(mirrored, MODELS[1], MODELS[0]).tolist(), INK]


def _transformed(maps: Array, shape: Array) -> Array:
    """Move places `[P, d]` by homogeneous matrices, to `[K, P, d]`."""
    wide = np.concatenate([shape, np.ones((len(shape), 1))], 1)
    found = np.einsum("kij,pj->kpi", maps, wide)
    return np.asarray(found[..., :-1] / found[..., -1:])


def _draw_plane_picture(panel: Axes, group: Group, some: Array) -> None:
    from matplotlib.collections import PolyCollection

    maps = group.parts["plane"][some]
    size, start, apart = _flag_size_in_picture(maps)
    shapes, colors = _transformed(maps, size * (_FLAG + start)), _colors_of_elements(maps)
    look: Look = {"facecolors": "none", "edgecolors": colors[:-1], "lw": 0.6}
    if apart:  # what lies on top of each other is drawn by its outlines
        look = {"facecolors": colors[:-1], "alpha": np.clip(12 / len(maps), 0.12, 0.6), "lw": 0}
    panel.add_collection(PolyCollection(list(shapes[:-1]), **look))
    panel.add_collection(PolyCollection(list(shapes[-1:]), facecolors=[INK], lw=0))
    reach = np.abs(shapes).max() * 1.05
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    panel.axhline(0, color=SOFT, lw=0.4, zorder=0)
    panel.axvline(0, color=SOFT, lw=0.4, zorder=0)


def _flag_size_in_picture(maps: Array) -> tuple[float, Array, bool]:
    """Return the size of a flag that can be seen, where it starts, and whether flags lie apart."""
    middle = np.array([-0.3, -0.5])
    if maps[:, -1, :-1].any():
        return 0.3 / float(np.abs(maps[:, -1, :-1]).max()), middle, False
    linear, shift = maps[:, :2, :2], float(np.abs(maps[:, :2, 2]).max())
    isometric = np.allclose(linear @ linear.transpose(0, 2, 1), np.eye(2))
    if shift > 0:
        return shift / 3, middle, isometric
    return 1.0, np.array([1.2, 0.05]) if isometric else middle, isometric


def _draw_space_picture(panel: Axes, group: Group, some: Array) -> None:
    """Draw space from the front and a little above, z up; what is near is darker."""
    from matplotlib.collections import PolyCollection

    maps = group.parts["space"][some]
    shift = float(np.abs(maps[:, :3, 3]).max())
    size = shift / 6 if shift > 0 else float(np.clip(1.6 / np.sqrt(len(maps)), 0.1, 0.55))
    # A flag in the plane that touches a ball where no symmetry of a solid keeps it.
    out = np.array([0.37, 0.22, 0.9])
    out /= np.linalg.norm(out)
    across = np.cross([0.0, 1.0, 0.0], out)
    across /= np.linalg.norm(across)
    flat = size * (_FLAG - [0.25, 0.5])
    flag = flat[:, :1] * across + flat[:, 1:] * np.cross(out, across) + out * (shift == 0)
    # Across, up, towards the viewer.
    seen = _transformed(maps, flag)[..., [1, 2, 0]] @ look_from().T
    depth = seen[..., 2].mean(1)
    near = (depth - depth.min()) / max(float(np.ptp(depth)), 1e-9)
    order, colors = np.argsort(depth), np.array(_colors_of_elements(maps))
    alpha = 0.25 + 0.75 * near[order]
    look: Look = {"facecolors": colors[order], "alpha": alpha, "lw": 0}
    panel.add_collection(PolyCollection(list(seen[order, :, :2]), **look))
    reach = np.abs(seen[..., :2]).max() * 1.02
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    panel.set_axis_off()


def _draw_color_picture(panel: Axes, group: Group, some: Array) -> None:
    color = group.parts["color"] @ [*_COLOR, 1.0]
    columns = int(np.ceil(np.sqrt(len(group))))
    cells = np.ones((-(-len(group) // columns) * columns, 3))
    cells[: len(group)] = np.clip(color[:, :3], 0, 1)
    panel.imshow(cells.reshape(-1, columns, 3))
    row, column = divmod(group.identity, columns)
    panel.plot(column, row, "+", color="white", ms=8)
    panel.set(xticks=[], yticks=[])


def _draw_number_picture(panel: Axes, group: Group, some: Array) -> None:
    """Draw the elements of any other part: a row of a table for each, or dots on a line."""
    if not group.parts:
        panel.set_axis_off()
        return
    values = np.asarray(next(iter(group.parts.values())), float)
    if values.ndim > 1:
        panel.imshow(values.reshape(len(values), -1), aspect="auto", interpolation="nearest")
        panel.set(xlabel="entry", ylabel="element")
    else:
        panel.plot(np.arange(len(values)), values, "o", color=MODELS[0], ms=4)
        panel.plot(group.identity, values[group.identity], "o", color=INK, ms=5)
        panel.set(xlabel="element", ylabel=next(iter(group.parts)))


_Drawing = Callable[["Axes", Group, Array], None]
_DRAWN: dict[str, _Drawing] = {
    "space": _draw_space_picture,
    "plane": _draw_plane_picture,
    "color": _draw_color_picture,
}


YAW_DEG, PITCH_DEG = 30.0, 20.0


def look_from(yaw_deg: float = YAW_DEG, pitch_deg: float = PITCH_DEG) -> Array:
    """Return the rotation to the frame of a viewer.

    Args:
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        A matrix with the rows across, up (y) and towards the viewer.

    Example:
        >>> look_from(0, 0).tolist()
        [[1.0, 0.0, -0.0], [-0.0, 1.0, -0.0], [0.0, 0.0, 1.0]]
    """
    yaw, pitch = np.deg2rad([yaw_deg, pitch_deg])
    (cos, sin), (up, down) = (np.cos(yaw), np.sin(yaw)), (np.cos(pitch), np.sin(pitch))
    return np.array([[cos, 0, -sin], [-sin * down, up, -cos * down], [sin * up, down, cos * up]])


def cloud_picture(
    points: object,
    mask: object = None,
    *,
    size: int = 160,
    yaw_deg: float = YAW_DEG,
    pitch_deg: float = PITCH_DEG,
) -> Array:
    """Draw a cloud as seen from the front right and a little above; near points are darker.

    Args:
        points: `[points, 3]`, y up, shown from the origin to the farthest point.
        mask: `[points]`, which points exist; None uses all.
        size: height and width in pixels.
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        Gray values `[size, size]`, 1 for the background, for `orbical.figures.individual`.

    Raises:
        InputError: if the points are not `[points, 3]`, or the size is below 8.

    Example:
        >>> picture = cloud_picture([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], size=32)
        >>> picture.shape, bool(picture[:16].min() < 1), float(picture[20:].min())
        ((32, 32), True, 1.0)
    """
    cloud = np.asarray(points, float)
    if cloud.ndim != 2 or cloud.shape[1] != 3:
        raise InputError("points", "shape [points, 3]", cloud)
    size = whole_number("size", size, 8)
    if mask is not None:
        cloud = cloud[np.asarray(mask, bool)]
    picture = np.ones((size, size))
    if not len(cloud):
        return picture
    radius = max(float(np.linalg.norm(cloud, axis=1).max()), 1e-9)
    across, up, near = (look_from(yaw_deg, pitch_deg) @ cloud.T) / radius
    half = size / 2
    column = np.round(half + across * half * 0.92 - 0.5).astype(int)
    row = np.round(half - up * half * 0.92 - 0.5).astype(int)
    shade = 0.45 - 0.4 * near  # 0.05 in front, 0.85 behind
    for down, right in _disc_of_point(size, len(cloud)):
        place = (np.clip(row + down, 0, size - 1), np.clip(column + right, 0, size - 1))
        np.minimum.at(picture, place, shade)
    return picture


def _disc_of_point(size: int, count: int) -> Array:
    """Return the pixels `[pixels, 2]` of a point about its place; few points are larger discs."""
    side = int(np.clip(round(0.62 * size / count**0.75), 1, max(1, size // 7)))
    steps = np.arange(side) - side // 2
    pixels: Array = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
    inside: Array = np.linalg.norm(pixels - steps.mean(), axis=1) <= side / 2
    return np.asarray(pixels[inside])


ATOMS: dict[int, tuple[str, str, float]] = {
    1: ("H", "#e8e8e8", 0.31),
    2: ("He", "#b9e8ee", 0.28),
    3: ("Li", "#b07cc6", 1.28),
    5: ("B", "#e8a28e", 0.84),
    6: ("C", "#5a5f66", 0.76),
    7: ("N", "#4a6fe3", 0.71),
    8: ("O", "#e0443e", 0.66),
    9: ("F", "#6bbf4b", 0.57),
    11: ("Na", "#9a63c9", 1.66),
    12: ("Mg", "#4f9d3a", 1.41),
    13: ("Al", "#a9a3a3", 1.21),
    14: ("Si", "#c9a26d", 1.11),
    15: ("P", "#e8862b", 1.07),
    16: ("S", "#e3c229", 1.05),
    17: ("Cl", "#3fae3f", 1.02),
    19: ("K", "#7d4fae", 2.03),
    20: ("Ca", "#3f8f4f", 1.76),
    26: ("Fe", "#c86432", 1.32),
    29: ("Cu", "#b87333", 1.32),
    30: ("Zn", "#7f86b0", 1.22),
    35: ("Br", "#9a3b26", 1.2),
    53: ("I", "#7a2a8c", 1.39),
}
"""Symbol, color and radius in ångström of elements that are drawn as themselves."""
_OTHER = ("", "#c05c9b", 1.30)
_BOND, _EDGE = "#8c8c8c", "#262626"
_FINER = 3
"""Pixels of the drawing for each pixel of the picture, to smooth the edges."""


def molecule_picture(
    positions: object,
    numbers: object,
    *,
    size: int = 160,
    yaw_deg: float = YAW_DEG,
    pitch_deg: float = PITCH_DEG,
) -> Array:
    """Draw a molecule as discs and bonds, as seen from the front right and a little above.

    Colors are the usual ones of the elements, as in the interactive view. Atoms are joined if they
    are closer than 1.2 times the sum of their radii.

    Args:
        positions: `[atoms, 3]` in Å, y up, shown from the origin to the farthest atom.
        numbers: `[atoms]`, atomic numbers; 0 is padding.
        size: height and width in pixels.
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        Colors `[size, size, 3]`, 1 for the background, for `orbical.figures.individual`.

    Raises:
        InputError: if positions and numbers do not fit, or the size is below 8.

    Example:
        >>> picture = molecule_picture([[0.0, 0.0, 0.0], [0.0, 0.0, 1.16]], [6, 8], size=48)
        >>> picture.shape, float(picture[0, 0].min())
        ((48, 48, 3), 1.0)
    """
    kinds = np.asarray(numbers, int)
    atoms = np.asarray(positions, float)
    if kinds.ndim != 1 or atoms.shape != (len(kinds), 3):
        given = f"{atoms.shape} and {kinds.shape}"
        raise InputError("positions", "shape [atoms, 3], with numbers [atoms]", given)
    size = whole_number("size", size, 8)
    atoms, kinds = atoms[kinds > 0], kinds[kinds > 0]
    if not len(kinds):
        return np.ones((size, size, 3))
    fine = Image.new("RGB", (size * _FINER, size * _FINER), "white")
    pen = ImageDraw.Draw(fine)
    half = size * _FINER / 2
    unit = half * 0.85 / max(float(np.linalg.norm(atoms, axis=1).max()), 0.8)
    across, up, near = look_from(yaw_deg, pitch_deg) @ atoms.T
    places = np.stack([half + across * unit, half - up * unit], -1)
    _, color, radius = zip(*(ATOMS.get(int(kind), _OTHER) for kind in kinds), strict=True)
    reach = np.linalg.norm(atoms[:, None] - atoms[None], axis=-1)
    bonded = reach < 1.2 * np.add.outer(radius, radius)
    order, disc = np.argsort(near), 0.45 * np.array(radius) * unit
    for rank, atom in enumerate(order):
        for other in order[:rank]:
            if bonded[atom, other]:  # from the edge of the atom that lies behind
                way = places[atom] - places[other]
                start = places[other] + way * min(disc[other] / max(np.hypot(*way), 1e-9), 1.0)
                pen.line([*start, *places[atom]], _BOND, max(1, round(0.12 * unit)))
        box = [*(places[atom] - disc[atom]), *(places[atom] + disc[atom])]
        pen.ellipse(box, color[atom], _EDGE, _FINER)
    return np.asarray(fine.reduce(_FINER)) / 255
