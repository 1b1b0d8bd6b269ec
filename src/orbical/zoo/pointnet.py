"""Classifiers of point clouds: a point network, and a rotation-invariant one.

`PointNet` takes coordinates; two of them, trained with and without random rotations, ship with the
package for generated furniture. `InvariantNet` is built with e3nn (the extra `equivariant`): its
outputs are the same for every rotation of a cloud, by construction. All take clouds
`[n, points, 3]`, or padded ones as `{"pos": [n, points, 3], "mask": [n, points]}`.
`orbical_studies.zoo_training.point_networks` trains them again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orbical._imports_and_paths import import_extra
from orbical.errors import InputError

from . import _weights

__all__ = [
    "WIDTHS", "InvariantNet", "PointNet", "classes_of", "fields_of", "load", "provenance",
    "weights_file",
]  # fmt: skip

NAMES = ("plain", "augmented", "invariant")
WIDTHS = (32, 64, 128)
SHELLS, DEGREE, CHANNELS = 8, 5, 8
FILES = _weights.WeightFiles("points", NAMES, "orbical_studies.zoo_training.point_networks")
weights_file, provenance = FILES.weights_file, FILES.provenance
_REACH = 1.25  # radius of the outermost shell; clouds lie in the unit ball, about their middle


def fields_of(clouds: Any) -> tuple[Tensor, Tensor | None]:
    """Return the positions and the mask of a batch of clouds.

    Args:
        clouds: Tensor `[n, points, 3]`, or `{"pos": [n, points, 3], "mask": [n, points]}`.

    Returns:
        The positions, and the mask or None.

    Raises:
        InputError: If a shape is wrong.

    Example:
        >>> fields_of(torch.zeros(2, 5, 3))[1] is None
        True
        >>> fields_of(torch.zeros(2, 5, 2))
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: clouds: expected shape (n, points, 3), got shape (2, 5, 2)
    """
    pos, mask = (clouds["pos"], clouds.get("mask")) if isinstance(clouds, dict) else (clouds, None)
    if pos.ndim != 3 or pos.shape[-1] != 3:
        raise InputError("clouds", "shape (n, points, 3)", pos)
    if mask is not None and mask.shape != pos.shape[:2]:
        raise InputError("clouds", f"a mask of shape {tuple(pos.shape[:2])}", mask)
    return pos, mask


class PointNet(nn.Module):
    """A network on each point, then the maximum and the mean over points, then two layers.

    The order of the points does not matter, and padding (mask false) is ignored. In training mode
    batch norm includes padding: train on clouds without padding.

    Args:
        classes: Number of classes.
        widths: Widths of the layers on each point.
        dropout: Dropout probability before the last layer.

    Example:
        >>> PointNet(8)(torch.zeros(2, 100, 3)).shape
        torch.Size([2, 8])

    Paper: Qi et al. 2017 without the input and feature transforms, which would hide how the network
    itself responds to a rotation. NERO, section 3.3, uses a point transformer; both are invariant
    under permutations and not under rotations.
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
        """Compute the logits.

        Args:
            clouds: Tensor `[n, points, 3]`, or `{"pos": [n, points, 3], "mask": [n, points]}`.

        Returns:
            Logits `[n, classes]`.
        """
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


def _e3nn(module: str) -> Any:
    return import_extra(f"e3nn.{module}", "equivariant", "the invariant network")


class InvariantNet(nn.Module):
    """A classifier that is invariant under rotations by construction, built with e3nn.

    A cloud is described by its moments `sum_i R_k(|x_i|) Y_lm(x_i / |x_i|)` about its mean: radial
    shells `R_k` times spherical harmonics `Y_lm`, which transform as the representation l of O(3).
    Equivariant linear maps and tensor products mix them, and only invariants (scalars and norms)
    reach the classifier. The output is therefore invariant under rotations, reflections,
    translations and permutations, up to rounding.

    Args:
        classes: Number of classes.
        shells: Number of radial functions.
        degree: Largest l of the spherical harmonics.
        channels: Number of features of each l.

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
        o3, norms = _e3nn("o3"), _e3nn("nn").BatchNorm
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
        """Compute the moments of each cloud, `[n, shells * (degree + 1)^2]`, without parameters."""
        pos, mask = fields_of(clouds)
        seen = pos.new_ones(pos.shape[:2]) if mask is None else mask.to(pos.dtype)
        share = seen / seen.sum(1, keepdim=True).clamp_min(1)
        centered = pos - (pos * share[..., None]).sum(1, keepdim=True)
        radius = centered.norm(dim=-1, keepdim=True)
        width = _REACH / (len(self.centers) - 1)
        shells = torch.exp(-(((radius - self.centers) / width) ** 2)) * share[..., None]
        harmonics = _e3nn("o3").spherical_harmonics(self.degrees, centered, True)
        found = torch.bmm(shells.transpose(1, 2), harmonics)  # [n, shells, (degree + 1)^2]
        blocks = found.split([2 * d + 1 for d in self.degrees], -1)
        return torch.cat([block.flatten(1) for block in blocks], 1)

    def forward(self, clouds: Any) -> Tensor:
        """Compute the logits `[n, classes]` of clouds, which may be padded."""
        mixed = self.mix(self.normalize(self.moments(clouds)))
        product = self.again(self.multiply(mixed, mixed))
        invariants = [
            *(mixed[:, : self.scalars], self.size_mixed(mixed)),
            *(product[:, : self.scalars], self.size_product(product)),
        ]
        result: Tensor = self.classify(torch.cat(invariants, 1))
        return result


def load(name: str, folder: str | Path | None = None) -> nn.Module:
    """Load a network for generated furniture: `"plain"`, `"augmented"` or `"invariant"`.

    Args:
        name: Name of the network; `"invariant"` needs the extra `equivariant`.
        folder: Folder with the weights. By default, those that ship with the package.

    Returns:
        The network, in evaluation mode.

    Raises:
        InputError: If the name is unknown or the file does not exist.
        MissingExtra: If e3nn is not installed.

    Example:
        >>> load("plain")(torch.zeros(1, 256, 3)).shape
        torch.Size([1, 8])
    """
    network = InvariantNet if name == "invariant" else PointNet
    return _weights.restore_zoo_weights(
        network(len(classes_of(name, folder))), weights_file(name, folder)
    )


def classes_of(name: str, folder: str | Path | None = None) -> tuple[str, ...]:
    """Return the names of a network's classes.

    Args:
        name: Name of the network.
        folder: Folder with the weights. By default, those that ship with the package.

    Returns:
        The names, in the order of the logits.

    Example:
        >>> classes_of("plain")[:3]
        ('bed', 'chair', 'lamp')
    """
    return tuple(ast.literal_eval(provenance(name, folder)["classes"]))
