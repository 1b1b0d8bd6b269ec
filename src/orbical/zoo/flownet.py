"""Two compact flow networks for particle images that differ in one thing: the directions they saw.

Both have the same architecture, budget and kinds of flow, made on the spot by
`orbical.datasets.particle_pairs`. `directed` saw every flow as the laboratory sets it up: streams
from the left, steps at the floor, vortices counter-clockwise (only turbulence has no direction).
`symmetric` saw each pair moved by a random element of D4 x time reversal. They ship as
safetensors in half precision; this makes them again (on a GPU, in minutes):

    python -m orbical.zoo.flownet train --out FOLDER
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orbical.errors import InputError
from orbical.zoo import shipped

NAMES = ("directed", "symmetric")
CHANNELS = (16, 32, 48, 64)
DECODERS = ((32, 32, 24), (64, 64, 48, 32), (64, 48, 32), (64, 48, 32))
RADIUS = 2


class FlowNet(nn.Module):
    """Coarse to fine: features of both frames, correlated, warped and refined on four levels.

    On each level (1/8, 1/4, 1/2 and the whole resolution) the second frame's features are warped
    by the flow found so far, correlated with the first frame's within two pixels, and a few
    convolutions turn correlation, features and flow into what the flow lacks. Each pair is
    brought to mean 0 and standard deviation 1 first, so brightness and contrast do not matter.
    437,808 parameters.

    Example:
        >>> FlowNet()(torch.rand(1, 2, 1, 64, 64)).shape
        torch.Size([1, 2, 64, 64])

    In the manner of PWC-Net and LiteFlowNet, the family of the NERO paper's learned model.
    """

    def __init__(self) -> None:
        super().__init__()
        encoders, decoders = [], []
        before = 1
        for level, (after, widths) in enumerate(zip(CHANNELS, DECODERS, strict=True)):
            encoders.append(_encoder(before, after, stride=1 if level == 0 else 2))
            decoders.append(_decoder(after + (2 * RADIUS + 1) ** 2 + 2, widths))
            before = after
        self.encoders, self.decoders = nn.ModuleList(encoders), nn.ModuleList(decoders)

    def forward(self, pairs: Tensor) -> Tensor:
        """Estimate displacements.

        Args:
            pairs: `[n, 2, c, h, w]`, at least 16 pixels on each side; channels are averaged.

        Returns:
            `[n, 2, h, w]` in pixels, dx to the right and dy down.
        """
        return self.levels(pairs)[0]

    def levels(self, pairs: Tensor) -> list[Tensor]:
        """Estimate the flow on every level, the finest first, each in pixels of its own level."""
        frames, (height, width) = _standardized(pairs)
        first, second = [], []
        features = frames
        for encode in self.encoders:
            features = encode(features)
            before, after = features.chunk(2)
            first.append(before)
            second.append(after)
        flow = torch.zeros_like(first[-1][:, :2])
        flows: list[Tensor] = []
        for level in reversed(range(len(CHANNELS))):
            if flows:
                flow = 2 * F.interpolate(
                    flows[0], scale_factor=2, mode="bilinear", align_corners=False
                )
                seen = warped(second[level], flow)
            else:
                seen = second[level]
            match = correlation(first[level], seen)
            flows.insert(0, flow + self.decoders[level](torch.cat([match, first[level], flow], 1)))
        flows[0] = flows[0][..., :height, :width]
        return flows


def _encoder(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, 1),
        nn.LeakyReLU(0.1, inplace=True),
        nn.Conv2d(after, after, 3, 1, 1),
        nn.LeakyReLU(0.1, inplace=True),
    )


def _decoder(before: int, widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number, width in enumerate(widths):
        reach = 2 if number == 1 else 1
        layers += [nn.Conv2d(before, width, 3, 1, reach, reach), nn.LeakyReLU(0.1, inplace=True)]
        before = width
    last = nn.Conv2d(before, 2, 3, 1, 1)
    nn.init.zeros_(last.bias)  # type: ignore[arg-type]
    nn.init.normal_(last.weight, std=1e-3)
    return nn.Sequential(*layers, last)


def _standardized(pairs: Tensor) -> tuple[Tensor, tuple[int, int]]:
    """Give both frames, first frames first, padded to multiples of 8; and the size before."""
    if pairs.ndim != 5 or pairs.shape[1] != 2 or min(pairs.shape[-2:]) < 16:
        raise InputError(
            f"pairs: shape {tuple(pairs.shape)} given, [n, 2, channel, row, column] of at least "
            "16 x 16 pixels expected"
        )
    gray = pairs.float().mean(2)
    mean = gray.mean((1, 2, 3), keepdim=True)
    gray = (gray - mean) / gray.std((1, 2, 3), keepdim=True).clamp_min(1e-3)
    height, width = gray.shape[-2:]
    step = 2 ** (len(CHANNELS) - 1)
    gray = F.pad(gray, (0, -width % step, 0, -height % step), mode="replicate")
    return gray.transpose(0, 1).reshape(-1, 1, *gray.shape[-2:]), (height, width)


def warped(features: Tensor, flow: Tensor) -> Tensor:
    """Fetch features from where a flow points: `features(p + flow(p))`, the border repeated.

    >>> ramp = torch.arange(4.0).expand(1, 1, 4, 4)
    >>> warped(ramp, torch.tensor([0.5, 0.0]).reshape(1, 2, 1, 1).expand(1, 2, 4, 4))[0, 0, 0]
    tensor([0.5000, 1.5000, 2.5000, 3.0000])
    """
    height, width = flow.shape[-2:]
    y = torch.arange(height, device=flow.device)[:, None] + 0.5
    x = torch.arange(width, device=flow.device) + 0.5
    places = ((x + flow[:, 0]) * (2 / width) - 1, (y + flow[:, 1]) * (2 / height) - 1)
    return F.grid_sample(
        features, torch.stack(places, -1), padding_mode="border", align_corners=False
    )


def correlation(first: Tensor, second: Tensor, radius: int = RADIUS) -> Tensor:
    """Mean product of features with those up to `radius` pixels away.

    Returns:
        `[n, (2 radius + 1)^2, h, w]`, the rows of displacements one after the other.

    >>> correlation(torch.ones(1, 4, 8, 8), torch.ones(1, 4, 8, 8))[0, 12, 0, 0]
    tensor(1.)
    """
    height, width = first.shape[-2:]
    around = F.pad(second, (radius, radius, radius, radius))
    rows = [
        torch.stack(
            [
                (first * around[..., dy : dy + height, dx : dx + width]).mean(1)
                for dx in range(2 * radius + 1)
            ],
            1,
        )
        for dy in range(2 * radius + 1)
    ]
    return torch.cat(rows, 1)


@torch.inference_mode()
def error_by_element(net: nn.Module, pair: Tensor, flow: Tensor, batch: int = 16) -> Tensor:
    """Mean end-point error of a network at each of the 16 elements of D4 x time reversal.

    Args:
        net: pairs `[n, 2, c, h, h]` to displacements `[n, 2, h, h]`.
        pair, flow: what it is tested on.
        batch: pairs at once.

    Returns:
        `[16]`, in the order of `orbical.groups.parse("dihedral:4*time_reversal")`: the identity
        first.
    """
    from orbical.actions import ImagePair, VectorField
    from orbical.groups import dihedral, product, time_reversal

    group = product(dihedral(4), time_reversal())
    errors = torch.zeros(len(group), device=pair.device)
    for rows in torch.arange(len(pair)).split(batch):
        for number, (images, truth) in enumerate(
            zip(
                ImagePair().apply(group, pair[rows]),
                VectorField().apply(group, flow[rows]),
                strict=True,
            )
        ):
            errors[number] += (net(images) - truth).norm(dim=1).mean((1, 2)).sum()
    return errors.cpu() / len(pair)


def load(name: str, folder: str | Path | None = None) -> FlowNet:
    """Load one of the two trained networks, `"directed"` or `"symmetric"`.

    Args:
        name: which.
        folder: where `write` put the weights; None takes those that ship with the package.

    Returns:
        The network in evaluation mode, in single precision.

    Example:
        >>> load("symmetric")(torch.rand(1, 2, 1, 32, 32)).shape
        torch.Size([1, 2, 32, 32])
    """
    return shipped.restored(FlowNet(), weights_file(name, folder))


def provenance(name: str, folder: str | Path | None = None) -> dict[str, str]:
    """How a network's weights were made and how good it is, from the header of its file.

    Example:
        >>> provenance("directed")["moved by D4 x time reversal"]
        'False'
    """
    return shipped.header(weights_file(name, folder))


def weights_file(name: str, folder: str | Path | None = None) -> Path:
    """The path of a network's weights; an error that says how to make them where absent.

    Example:
        >>> weights_file("direct")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'direct'; did you mean 'directed'? ...
    """
    maker = "python -m orbical.zoo.flownet train --out FOLDER"
    return shipped.weights_file("flownet", name, NAMES, folder, maker)


if __name__ == "__main__":
    from orbical.zoo.flownet_training import main

    main()
