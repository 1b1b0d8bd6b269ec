"""Actions on pixels: images, windows on larger images, pairs of frames, vector fields.

Interpolated rotation is not a group action. So a group that lies in D4 moves square images exactly,
by index; any other group resamples all its elements alike, the identity included, and the action
defect says what the resampling costs.

An image rotated by 45 degrees has corners that no camera saw. Where the group is not D4, a model
should see only what was seen: `PairWindow` gives it the central `size` pixels of pairs that are
large enough for every element, and `FieldWindow` moves its outputs, and the larger truth, alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .._trees import to_device
from .._warnings import warn
from ..errors import InputError, check_name, whole_number
from ..groups import Elements, Group
from . import pixel_grids
from .action import (
    Action,
    ActionCache,
    OfFinite,
    action_matrices,
    check_affine_action,
    relative_action_loss,
)

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
PADDINGS = {"zeros": "zeros", "border": "border", "reflect": "reflection"}
_MOST_CHANNELS = 4  # gray, colors, and how opaque they are
_KEPT_GRID_NUMBERS = 2**24  # 64 MB in single precision
_Grids = list[tuple[Any, Tensor]]


class Images(OfFinite):
    """Images `[B, C, H, W]`, moved about their center.

    `interpolation` is `nearest` (class maps: no value is invented), `bilinear` or `bicubic` (less
    blur), `padding` what lies outside: `zeros`, `border` or `reflect`. One sampling grid per
    element serves the whole batch. An element that shrinks averages what falls into one pixel,
    except with `nearest`.

    See Also:
        ColorImages: For groups of colors.
        Window: A view inside larger images, in which nothing is lost at the border.
        ClassMaps: For maps that are predicted.

    >>> import torch
    >>> from orbical.groups import cyclic
    >>> Images().apply(cyclic(4), torch.tensor([[[[1., 2.], [3., 4.]]]]))[1, 0, 0]
    tensor([[2., 4.],
            [1., 3.]])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", "row", "column")
    drawn_as: ClassVar[str] = "image"

    def __init__(self, interpolation: str = "bilinear", padding: str = "zeros") -> None:
        check_name("interpolation", interpolation, INTERPOLATIONS)
        check_name("padding", padding, PADDINGS)
        self.interpolation = interpolation
        self.padding = padding
        self._kept = ActionCache()

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, H, W]`; integers become float32, whatever the group."""
        if elements.exact_on_grid:
            return pixel_grids.move_pixels_exactly(
                elements, x if x.is_floating_point() else x.float()
            )
        return self._resample(elements, x)

    def _view_size(self, x: Tensor) -> tuple[int, ...]:
        """Return the height and width of what is shown of images."""
        return tuple(x.shape[-2:])

    def _resample(self, elements: Elements, x: Tensor) -> Tensor:
        size = self._view_size(x)
        whole = not x.is_floating_point()
        dtype = torch.float32 if whole else x.dtype
        # Half precision knows places in an image to a tenth of a pixel, which is not enough.
        x = x.float() if whole or x.dtype.itemsize < 4 else x
        count, height, width = len(elements), *x.shape[-2:]
        planes = x.reshape(len(x), -1, height, width)
        sample = partial(
            F.grid_sample,
            mode=self.interpolation,
            padding_mode=PADDINGS[self.padding],
            align_corners=False,
        )
        found = []
        for index, grid in self._grids(elements, x, size):
            chosen = planes if len(planes) == 1 else planes[index]
            found.append((index, pixel_grids.sampled_pixels(sample, chosen, grid, size)))
        moved = found[0][1]
        if len(found) > 1:
            moved = x.new_empty(count, planes.shape[1], *size)
            for index, part in found:
                moved[index] = part
        return moved.to(dtype).reshape(count, *x.shape[1:-2], *size)

    def _grids(self, elements: Elements, x: Tensor, size: tuple[int, ...]) -> _Grids:
        """Return sampling grids `[K, h, w n, 2]`, and the elements that take n places for a pixel.

        They are cached while the elements are in use.
        """
        kept = self._kept.of(elements)
        key = (x.dtype, x.device, tuple(x.shape[-2:]), tuple(size))
        if key in kept:
            return cast(_Grids, kept[key])
        scale = np.array([2.0 / x.shape[-1], 2.0 / x.shape[-2]])
        sources = pixel_grids.pixel_sources(elements, size, x.device, scale)
        grids = []
        filtered = self.interpolation != "nearest"
        for index, offsets in pixel_grids.pixel_grid_offsets(elements, filtered):
            spread = to_device(torch.as_tensor(offsets * scale), sources.device)[:, None, None]
            places = sources[index][..., None, :] + spread
            grids.append((index, places.flatten(2, 3).to(x)))
        if sum(grid.numel() for _, grid in grids) <= _KEPT_GRID_NUMBERS:
            kept[key] = grids
        return grids

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask `[K, H, W]` of pixels that come from inside the image; None if all do."""
        if elements.exact_on_grid:
            return None
        size = tuple(x.shape[-2:])
        inside = partial(pixel_grids.pixels_inside, elements, size, x)
        return self._kept.get(elements, ("inside", x.device, size), inside)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the shape, and that quarter turns meet square images."""
        super().check(group, x)
        check_square_images(group, x)
        if _ends_in_channels(x):
            warn(
                f"data: images of shape {tuple(x.shape)} are taken as [sample, channel, row, "
                f"column], {x.shape[-2]} x {x.shape[-1]} pixels; if channels come last, move them",
            )


class _ImageView(Images):
    """What views share: the central `size` pixels of images that may be larger."""

    _fixed = frozenset({"padding"})
    _outside: ClassVar[str] = "border"

    def __init__(self, size: int, interpolation: str = "bilinear") -> None:
        super().__init__(interpolation, self._outside)
        self.size = whole_number("size", size, 1)

    def _view_size(self, x: Tensor) -> tuple[int, ...]:
        return self.size, self.size

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask of pixels that come from inside the larger image; None if all do."""
        if elements.exact_on_grid:
            return None
        inside = pixel_grids.pixels_inside(elements, (self.size, self.size), x)
        return None if bool(inside.all()) else inside


class Window(_ImageView):
    """A field of view of `size` pixels that moves inside larger images `[B, C, H, W]`.

    The content shifts by the element, and what enters the view is real image: nothing is invented
    at the border. Whole-pixel shifts are crops, exact and without a copy until they are batched;
    other elements resample, with the `interpolation` of `Images`.

    See Also:
        Images: Whole images.

    >>> import torch
    >>> from orbical.groups import translations
    >>> image = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> Window(2).apply(translations(1), image)[4, 0, 0]    # the identity: the center
    tensor([[ 5.,  6.],
            [ 9., 10.]])
    """

    _outside: ClassVar[str] = "zeros"

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Crop `x[1, B, C, H, W]` to `[K, B, C, size, size]`, or resample if it has to."""
        offsets = self._offsets(elements, x)
        if offsets is None:
            return self._resample(elements, x)
        return pixel_grids.crops(x.expand(len(elements), *x.shape[1:]), offsets, self.size)

    def _offsets(self, elements: Elements, x: Tensor) -> np.ndarray | None:
        """Return the first row and column `[K, 2]` of each crop, or None if a crop is not enough.

        Kept while the elements are in use, as sampling grids are.
        """
        sides = tuple(x.shape[-2:])
        return self._kept.get(elements, sides, partial(self._whole_offsets, elements, sides))

    def _whole_offsets(self, elements: Elements, sides: tuple[int, ...]) -> np.ndarray | None:
        frame = pixel_grids.pixel_frame(elements)
        start = (np.array(sides[::-1]) - self.size) / 2
        corner = start - frame[:, :2, 2]
        whole = np.rint(corner)
        inside = (whole >= 0).all() and (whole <= 2 * start).all()
        still = np.eye(3)[:, :2]  # neither turned nor seen from aside
        moves = (frame[:, :, :2] != still).any() or (corner != whole).any()
        return None if moves or not inside else whole[:, ::-1].astype(np.int64)

    def defect(self, elements: Elements, x: Tensor, moved: Tensor | None = None) -> Tensor:
        """Measure what resampling there and back costs inside the view; crops cost nothing."""
        if self._offsets(elements, x) is not None:
            return torch.zeros(len(elements), len(x), device=x.device)
        there = Images(self.interpolation, self.padding)._resample(elements, x[None])
        back = self._resample(elements.inverse(), there)
        parts = {"plane": np.tile(np.eye(3), (len(elements), 1, 1))}
        unmoved = Elements(parts, len(elements), elements.exact_on_grid)
        still = self._resample(unmoved, x[None])
        return relative_action_loss(back, still)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that no element moves the view out of the image."""
        Action.check(self, group, x)
        check_window_fits_images(x, self.size)
        if not pixel_grids.view_stays_inside(group, self.size, tuple(x.shape[-2:])):
            room = (min(x.shape[-2:]) - self.size) // 2
            raise InputError(
                "group",
                problem=f"{group.spec} moves the window of {self.size} pixels out of images of "
                f"{x.shape[-2]} x {x.shape[-1]}",
                remedy=f"the largest admissible radius is {room}",
            )


class MapView(_ImageView):
    """What is predicted in a `Window`: the central `size` pixels of maps that may be larger.

    Every element is resampled, and the border continues outside.
    """

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Resample `x[K or 1, B, C, H, W]` to `[K, B, C, size, size]`."""
        return self._resample(elements, x)


class ImagePair(Images):
    """Two frames `[B, 2, C, H, W]`: the plane moves both, reversed time swaps them.

    `interpolation` and `padding` are those of `Images`.
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "time")
    dims: ClassVar[tuple[str, ...]] = ("sample", "2", "channel", "row", "column")
    drawn_as: ClassVar[str] = "pair"

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, 2, C, H, W]`."""
        moved = super().move(elements, x)
        if "time" not in elements.parts:
            return moved
        backward = torch.as_tensor(elements.parts["time"] < 0, device=x.device)
        return torch.where(backward.reshape(-1, 1, 1, 1, 1, 1), moved.flip(2), moved)


class VectorField(Images):
    """Displacements `[B, 2, H, W]` in pixels (dx to the right, dy down): moved and rotated.

    An element `A` of the plane carries a vector `v` at `p` to `A v` at `A p`; reversed time
    changes its sign. `interpolation` and `padding` are those of `Images`.
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "time")
    dims: ClassVar[tuple[str, ...]] = ("sample", "2", "row", "column")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, 2, H, W]`."""
        moved = super().move(elements, x)
        turn = pixel_grids.pixel_frame(elements)[:, :2, :2]
        if "time" in elements.parts:
            turn = turn / elements.parts["time"][:, None, None]
        return torch.einsum("kij,kbjhw->kbihw", action_matrices(turn, moved), moved)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the shape, and that vectors can be rotated."""
        super().check(group, x)
        check_affine_action(group, "VectorField")


def check_window_fits_images(x: Tensor, size: int) -> None:
    """Refuse images that are smaller than a window."""
    if min(x.shape[-2:]) < size:
        raise InputError(
            "data",
            f"at least {size} x {size} pixels, the size of the window",
            x,
            remedy="pass the task a smaller one, input=ob.actions.Window(size) (--input "
            "window:SIZE)",
        )


def check_square_images(group: Group, x: Any) -> None:
    """Refuse quarter turns of images that are not square."""
    if 0 in x.shape[1:]:
        raise InputError("data", "some pixels", f"images of shape {tuple(x.shape)}")
    turned = group.exact_on_grid and "plane" in group.parts and group.parts["plane"][:, 0, 1].any()
    if turned and x.shape[-1] != x.shape[-2]:
        side = min(x.shape[-2:])
        raise InputError(
            "data",
            f"square images, because {group.spec} rotates them by 90 degrees",
            f"{x.shape[-2]} x {x.shape[-1]} pixels",
            remedy="channels come before rows and columns"
            if _ends_in_channels(x)
            else f"crop them, images in files with size={side} (--size {side})",
        )


def _ends_in_channels(x: Tensor) -> bool:
    """Check whether images look like `[N, H, W, C]`."""
    return x.ndim == 4 and x.shape[-1] <= _MOST_CHANNELS < min(x.shape[1:3])


class ColorImages(Images):
    """Images `[B, 3, H, W]` in red, green and blue: moved as `Images`, and recolored.

    `hue` and `brightness` change the colors, groups of the plane move the pixels, and a product
    such as `rotations:8*hue:6` does both. Colors are not clipped. `interpolation` and
    `padding` are those of `Images`.

    >>> import torch
    >>> from orbical.groups import hue
    >>> red = torch.tensor([1.0, 0, 0]).reshape(1, 3, 1, 1)
    >>> ColorImages().apply(hue(3), red)[1].flatten()
    tensor([0., 1., 0.])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "color")
    in_place: ClassVar[tuple[str, ...]] = ("color",)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move and recolor `x[K or 1, B, 3, H, W]`."""
        moved = super().move(elements, x)
        if "color" not in elements.parts:
            return moved
        colors = action_matrices(elements.parts["color"], moved)[:, None]  # [K, 1, 4, 4]
        mixed = colors[..., :3, :3] @ moved.flatten(-2)
        return (mixed + colors[..., :3, 3:]).reshape(moved.shape)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that there are three channels."""
        super().check(group, x)
        if x.shape[1] != 3:
            raise InputError(
                "data",
                "images [sample, 3, row, column] in red, green and blue for the action ColorImages",
                x,
            )


def _largest_view(elements: Elements, height: int, width: int) -> int:
    """Return the side of the largest central square that no element moves out of an image.

    >>> from orbical.groups import rotations
    >>> _largest_view(rotations(8), 256, 256)    # (256 - 1) / sqrt(2) + 1
    181
    """
    back = pixel_grids.pixel_frame(elements.inverse())
    reach = np.abs(back[:, :2, :2]).sum(-1)  # of a square of half-side 1, along each axis
    room = np.array([(width - 1) / 2, (height - 1) / 2]) - np.abs(back[:, :2, 2])
    return max(0, int(np.floor(1 + 2 * float((room / reach).min()) + 1e-9)))


def central_window_of_images(x: Tensor, size: int) -> Tensor:
    """Return the central square of `[..., H, W]`.

    >>> import torch
    >>> central_window_of_images(torch.arange(16).reshape(4, 4), 2)
    tensor([[ 5,  6],
            [ 9, 10]])
    """
    top, left = (x.shape[-2] - size) // 2, (x.shape[-1] - size) // 2
    return x[..., top : top + size, left : left + size]


class _Central(_ImageView):
    """What pairs and fields share: the central `size` pixels, moved exactly or resampled."""

    def __init__(self, size: int, interpolation: str = "bicubic") -> None:
        super().__init__(size, interpolation)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, ..., H, W]` to `[K, B, ..., size, size]`."""
        return super().move(
            elements, central_window_of_images(x, self.size) if elements.exact_on_grid else x
        )


class PairWindow(_Central, ImagePair):
    """The central `size` pixels of larger pairs `[B, 2, C, H, W]`, rotated inside them.

    `interpolation` is that of `Images`; nothing lies outside, so there is no padding.

    >>> import torch
    >>> from orbical.groups import rotations
    >>> PairWindow(32).apply(rotations(8), torch.rand(1, 2, 1, 48, 48)).shape
    torch.Size([8, 1, 2, 1, 32, 32])
    """

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return None: `check` ensures that everything comes from inside."""
        return None

    def defect(self, elements: Elements, x: Tensor, moved: Tensor | None = None) -> Tensor:
        """Measure what resampling there and back costs inside the view; exact moves are free."""
        if elements.exact_on_grid:
            return torch.zeros(len(elements), len(x), device=x.device)
        there = ImagePair(self.interpolation, self.padding).apply(elements, x)
        return relative_action_loss(
            self.move(elements.inverse(), there), central_window_of_images(x, self.size)[None]
        )

    def check(self, group: Group, x: Tensor) -> None:
        """Check that no element takes the view out of the images."""
        super().check(group, x)
        check_affine_action(group, "PairWindow")
        height, width = x.shape[-2:]
        largest = min(_largest_view(group, height, width), height, width)
        if self.size > largest:
            raise InputError(
                "group",
                problem=f"{group.spec} takes the central view of {self.size} pixels out of images "
                f"of {height} x {width}",
                remedy=f"the largest admissible size is {largest}",
            )
        if (height - self.size) % 2 or (width - self.size) % 2:
            raise InputError(
                "size",
                f"a number as even or odd as the images of {height} x {width}, so that the "
                "view lies on whole pixels",
                self.size,
            )


class FieldWindow(_Central, VectorField):
    """Flow at the central `size` pixels: predictions `[B, 2, size, size]`, or a larger truth."""

    def check(self, group: Group, x: Tensor) -> None:
        """Check the size of what moves."""
        super().check(group, x)
        check_window_fits_images(x, self.size)
