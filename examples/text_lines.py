"""Read lines of digits, slant them, and see how many characters are wrong.

Run: python examples/text_lines.py (lines of MNIST digits where these are at hand, see
`orbical.datasets.full_mnist`; of the 8 x 8 digits of scikit-learn otherwise)

Both readers cut a line at its empty columns and classify what lies between, with the same network.
A slant closes the gaps, and changes the digits. One reader first takes the slant out again: of some
slants the one that leaves most columns empty.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orbical as ob
from orbical.errors import InputError

SLANTS = ob.groups.shear(0.6, 9)


def digits() -> tuple[Tensor, Tensor]:
    """Return images [N, 1, S, S] of digits, with an empty rim, and their classes."""
    try:
        images, labels = ob.datasets.full_mnist(split="test")
        return F.avg_pool2d(images[:4000], 2), labels[:4000]
    except InputError:
        images, labels = ob.datasets.digits()
        return F.pad(images, (1, 1, 1, 1)), labels


def lines(images: Tensor, labels: Tensor, count: int, seed: int) -> tuple[Tensor, list[str]]:
    """Return lines of four to six digits, [count, 1, S, 8 S], and their texts."""
    random = torch.Generator().manual_seed(seed)
    side = images.shape[-1]
    pages, texts = torch.zeros(count, 1, side, 8 * side), []
    for page in pages:
        chosen = torch.randint(len(images), (int(torch.randint(4, 7, (), generator=random)),),
                               generator=random)  # fmt: skip
        place = side
        for digit in images[chosen, 0]:
            columns = digit.amax(0) > 0.1
            inked = digit[:, columns]
            page[0, :, place : place + inked.shape[1]] = inked
            place += inked.shape[1] + side // 3
        texts.append("".join(str(int(label)) for label in labels[chosen]))
    return pages, texts


class Reader:
    """Cuts a line at empty columns, and classifies each piece."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.side = images.shape[-1]
        layers = nn.Linear(self.side**2, 48), nn.Tanh(), nn.Linear(48, 10)
        self.net = nn.Sequential(nn.Flatten(), *layers)
        pieces = torch.stack([self.centered(image[0]) for image in images])
        optimizer = torch.optim.LBFGS(self.net.parameters(), max_iter=30)

        def loss() -> Tensor:
            optimizer.zero_grad()
            weights = sum(part.square().sum() for part in self.net.parameters())
            value = F.cross_entropy(self.net(pieces), labels) + 1e-4 * weights
            value.backward()
            return value

        optimizer.step(loss)

    def centered(self, piece: Tensor) -> Tensor:
        """Return the ink of a piece in the middle of a square."""
        columns = (piece.amax(0) > 0.1).nonzero()[:, 0]
        if len(columns):
            piece = piece[:, columns[0] : columns[-1] + 1]
        room = self.side - piece.shape[1]
        if room < 0:
            return F.interpolate(piece[None, None], (self.side, self.side))[0, 0]
        return F.pad(piece, (room // 2, room - room // 2))

    def pieces(self, line: Tensor) -> list[Tensor]:
        """Return what lies between the empty columns of a line [S, W]."""
        inked = F.pad((line.amax(0) > 0.1).int(), (1, 1))
        starts, ends = ((inked.diff() == step).nonzero()[:, 0].tolist() for step in (1, -1))
        return [self.centered(line[:, a:b]) for a, b in zip(starts, ends, strict=True)]

    @torch.inference_mode()
    def __call__(self, pages: Tensor) -> tuple[list[str], Tensor]:
        """Return texts, and the product of the probabilities of their digits."""
        cut = [self.pieces(line) for line in pages[:, 0]]
        every = torch.stack([piece for line in cut for piece in line])
        sure, digit = self.net(every).softmax(-1).max(-1)
        counts = [len(line) for line in cut]
        texts = ["".join(map(str, part.tolist())) for part in digit.split(counts)]
        return texts, torch.stack([part.prod() for part in sure.split(counts)])


def straightened(pages: Tensor) -> Tensor:
    """Return lines without their slant."""
    tried = ob.actions.Images().apply(SLANTS, pages)
    empty = (tried.amax(-2) < 0.1).sum((-1, -2))
    return tried[empty.argmax(0), torch.arange(len(pages))]


def scanned() -> tuple[dict[str, Any], ob.Scan]:
    """Train a network, and scan both readers over slants."""
    torch.manual_seed(0)
    images, labels = digits()
    train, test = slice(0, 1500), slice(1500, None)
    plain = Reader(images[train], labels[train])
    models = {"plain": plain, "straightened": lambda pages: plain(straightened(pages))}
    scan = ob.scan(
        models,
        lines(images[test], labels[test], 40, seed=1),
        group=SLANTS,
        task=ob.tasks.Text(length=16),
        keep="inputs",
        progress=False,
    )
    return models, scan


def main() -> None:
    """Print and draw the result."""
    _, scan = scanned()
    error = ob.calibration.along_orbit(scan, "ece")
    summary = ob.nero.summary(scan)
    for number, model in enumerate(scan.models):
        cer = scan.data["cer"].sel(model=model).mean("sample").values
        exact = scan.data["correct"].sel(model=model).mean("sample").values
        print(
            f"{model:>12}: {cer[SLANTS.identity]:.1%} of characters wrong upright, {cer.max():.1%} "
            f"at worst; {exact[SLANTS.identity]:.0%} of lines exactly right upright, "
            f"{exact.min():.0%} at worst; ECE {float(error[number].max()):.2f} at worst; "
            f"{float(summary['changed'][number]):.0%} of lines change"
        )
    ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "text-lines.png")
    # ob.view(scan, models)


if __name__ == "__main__":
    main()
