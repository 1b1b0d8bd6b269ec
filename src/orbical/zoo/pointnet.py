"""Classifiers of point clouds: a point network, and one that no rotation can change.

`PointNet` sees coordinates; two of them, trained with and without random rotations, ship with the
package for generated furniture. `InvariantNet` is built with e3nn (the extra `equivariant`): its
answers are the same for every rotation of a cloud, by construction. All take clouds
`[n, points, 3]`, or padded ones as `{"pos": [n, points, 3], "mask": [n, points]}`.
`orbical.zoo.pointnet_training` makes the weights again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orbical.errors import InputError, MissingExtra
from orbical.zoo import shipped

NAMES = ("plain", "augmented", "invariant")
WIDTHS = (32, 64, 128)
SHELLS, DEGREE, CHANNELS = 8, 5, 8
_REACH = 1.25  # radius of the outermost shell; clouds lie in the unit ball, about their middle


def fields_of(clouds: Any) -> tuple[Tensor, Tensor | None]:
    """Take positions and mask from a batch of clouds, or refuse it.

    Args:
        clouds: `[n, points, 3]`, or `{"pos": [n, points, 3], "mask": [n, points]}`.

    Returns:
        positions, and the mask where there is one.

    Example:
        >>> fields_of(torch.zeros(2, 5, 3))[1] is None
        True
        >>> fields_of(torch.zeros(2, 5, 2))
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: clouds: shape (2, 5, 2) given, [n, points, 3] expected
    """
    pos, mask = (clouds["pos"], clouds.get("mask")) if isinstance(clouds, dict) else (clouds, None)
    if pos.ndim != 3 or pos.shape[-1] != 3:
        raise InputError(f"clouds: shape {tuple(pos.shape)} given, [n, points, 3] expected")
    if mask is not None and mask.shape != pos.shape[:2]:
        raise InputError(
            f"clouds: a mask of shape {tuple(mask.shape)} given, {tuple(pos.shape[:2])} expected"
        )
    return pos, mask


class PointNet(nn.Module):
    """A network on each point, then the maximum and the mean over points, then two layers.

    The order of the points does not matter, and padded places (mask false) count for nothing.
    While it trains, batch norm sees every place: give it clouds without padding then.

    Args:
        classes: number of classes.
        widths: of the layers on each point.
        dropout: share of features left out before the last layer while it trains.

    Example:
        >>> PointNet(8)(torch.zeros(2, 100, 3)).shape
        torch.Size([2, 8])

    Paper: Qi et al. 2017 without the transformers of input and features, which would hide how the
    network itself answers a rotation. NERO, section 3.3, takes a point transformer; both are
    invariant under permutations and not under rotations.
    """

    def __init__(self, classes: int, widths: Sequence[int] = WIDTHS, dropout: float = 0.3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise((3, *widths)):
            layers += [
                nn.Linear(before, after, bias=False),
                nn.BatchNorm1d(after),
                nn.ReLU(inplace=True),
            ]
        self.each = nn.Sequential(*layers)
        self.classify = nn.Sequential(
            *(nn.Linear(2 * widths[-1], widths[-1], bias=False), nn.BatchNorm1d(widths[-1])),
            *(nn.ReLU(), nn.Dropout(dropout), nn.Linear(widths[-1], classes)),
        )

    def forward(self, clouds: Any) -> Tensor:
        """Answer the logits `[n, classes]`."""
        pos, mask = fields_of(clouds)
        features = self.each(pos.reshape(-1, 3)).reshape(*pos.shape[:2], -1)
        if mask is None:
            highest, mean = features.amax(1), features.mean(1)
        else:
            seen = mask[..., None].to(features.dtype)
            highest = (features * seen).amax(1)  # features are not negative
            mean = (features * seen).sum(1) / seen.sum(1).clamp_min(1)
        result: Tensor = self.classify(torch.cat([highest, mean], 1))
        return result


class InvariantNet(nn.Module):
    """A classifier that cannot tell a cloud from its rotations, built with e3nn.

    A cloud becomes its moments `sum_i R_k(|x_i|) Y_lm(x_i / |x_i|)` about its mean: radial shells
    `R_k` times spherical harmonics `Y_lm`, which turn as the representation l of O(3). Equivariant
    linear maps and tensor products mix them, and only what does not turn (scalars and norms) goes
    on to the classes. So the answer is invariant under rotations, mirrors, shifts and
    permutations, up to rounding.

    Args:
        classes: number of classes.
        shells: radial functions.
        degree: largest l of the spherical harmonics.
        channels: features of each l.

    Example:
        >>> net = InvariantNet(8).eval()
        >>> cloud = torch.rand(1, 50, 3, generator=torch.Generator().manual_seed(0))
        >>> turned = cloud @ torch.linalg.qr(cloud[0, :3]).Q
        >>> torch.allclose(net(turned), net(cloud), atol=1e-5)
        True
    """

    centers: Tensor

    def __init__(
        self, classes: int, shells: int = SHELLS, degree: int = DEGREE, channels: int = CHANNELS
    ) -> None:
        super().__init__()
        o3, norms = _e3nn()
        self.degrees = list(range(degree + 1))

        def each_degree(count: int, highest: int) -> Any:
            return o3.Irreps([(count, (d, (-1) ** d)) for d in range(highest + 1)])

        moments, hidden = each_degree(shells, degree), each_degree(channels, degree)
        product = each_degree(channels, min(3, degree))
        self.normalize = norms(moments)
        self.mix = o3.Linear(moments, hidden)
        self.multiply = o3.FullyConnectedTensorProduct(hidden, hidden, product)
        self.again = norms(product)
        self.size_mixed, self.size_product = o3.Norm(hidden), o3.Norm(product)
        # Scalars keep their sign beside their size.
        scalars = (4 + degree + min(3, degree)) * channels
        self.scalars = channels
        self.classify = nn.Sequential(
            *(nn.BatchNorm1d(scalars), nn.Linear(scalars, 64), nn.ReLU()),
            *(nn.Dropout(0.3), nn.Linear(64, classes)),
        )
        self.register_buffer("centers", torch.linspace(0, _REACH, shells), persistent=False)

    def moments(self, clouds: Any) -> Tensor:
        """Give the moments of each cloud, `[n, shells * (degree + 1)^2]`: nothing here learns."""
        pos, mask = fields_of(clouds)
        seen = pos.new_ones(pos.shape[:2]) if mask is None else mask.to(pos.dtype)
        share = seen / seen.sum(1, keepdim=True).clamp_min(1)
        centered = pos - (pos * share[..., None]).sum(1, keepdim=True)
        radius = centered.norm(dim=-1, keepdim=True)
        width = _REACH / (len(self.centers) - 1)
        shells = torch.exp(-(((radius - self.centers) / width) ** 2)) * share[..., None]
        harmonics = _e3nn()[0].spherical_harmonics(self.degrees, centered, True)
        found = torch.bmm(shells.transpose(1, 2), harmonics)  # [n, shells, (degree + 1)^2]
        blocks = found.split([2 * d + 1 for d in self.degrees], -1)
        return torch.cat([block.flatten(1) for block in blocks], 1)

    def forward(self, clouds: Any) -> Tensor:
        """Answer the logits `[n, classes]`."""
        mixed = self.mix(self.normalize(self.moments(clouds)))
        product = self.again(self.multiply(mixed, mixed))
        invariants = [
            *(mixed[:, : self.scalars], self.size_mixed(mixed)),
            *(product[:, : self.scalars], self.size_product(product)),
        ]
        result: Tensor = self.classify(torch.cat(invariants, 1))
        return result


def _e3nn() -> tuple[Any, Any]:
    try:
        from e3nn import o3
        from e3nn.nn import BatchNorm
    except ImportError:
        raise MissingExtra("e3nn", "equivariant", "the invariant network") from None
    return o3, BatchNorm


def random_rotations(count: int, generator: torch.Generator) -> Tensor:
    """Draw rotation matrices `[count, 3, 3]`, uniform on SO(3), from normal quaternions.

    Example:
        >>> turns = random_rotations(5, torch.Generator().manual_seed(0))
        >>> bool(((turns @ turns.mT - torch.eye(3)).abs() < 1e-5).all())
        True
    """
    quaternions = torch.randn(count, 4, generator=generator, device=generator.device)
    w, x, y, z = nn.functional.normalize(quaternions, dim=1).unbind(1)
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack(rows, 1).reshape(-1, 3, 3)


def load(name: str, folder: str | Path | None = None) -> nn.Module:
    """Load a network for generated furniture: `"plain"`, `"augmented"` or `"invariant"`.

    Args:
        name: which; `"invariant"` needs the extra `equivariant`.
        folder: where `orbical.zoo.pointnet_training` put the weights; None takes those that ship.

    Returns:
        The network, in evaluation mode.

    Example:
        >>> load("plain")(torch.zeros(1, 256, 3)).shape
        torch.Size([1, 8])
    """
    path = weights_file(name, folder)
    classes = len(classes_of(name, folder))
    net = InvariantNet(classes) if name == "invariant" else PointNet(classes)
    return shipped.restored(net, path)


def provenance(name: str, folder: str | Path | None = None) -> dict[str, str]:
    """How a network's weights were made and how good it is, from the header of its file.

    Example:
        >>> provenance("augmented")["rotate"]
        'True'
    """
    return shipped.header(weights_file(name, folder))


def classes_of(name: str, folder: str | Path | None = None) -> tuple[str, ...]:
    """The names of a network's classes.

    Example:
        >>> classes_of("plain")[:3]
        ('bed', 'chair', 'lamp')
    """
    return tuple(ast.literal_eval(provenance(name, folder)["classes"]))


def weights_file(name: str, folder: str | Path | None = None) -> Path:
    """The path of a network's weights; an error that says how to make them where absent.

    Example:
        >>> weights_file("plane")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'plane'; did you mean 'plain'? ...
    """
    maker = "python -m orbical.zoo.pointnet_training --out FOLDER"
    return shipped.weights_file("points", name, NAMES, folder, maker)
