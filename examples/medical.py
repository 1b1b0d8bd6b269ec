"""Find enlarged adrenal glands in NIfTI files, in any orientation of the body.

Run: python examples/medical.py (on AdrenalMNIST3D where `ORBICAL_DATA` has it, otherwise on
generated shapes; needs the extra `medical`)

The glands are written as NIfTI files, a folder for each class, and read from there with the sides
of their voxels. A logistic regression of voxels knows glands in one orientation only; one of the
volume and of the moments about the principal axes does not depend on it.
"""

import os
from pathlib import Path

import nibabel
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

import orbical as ob

CLASSES = ["hyperplasia", "normal"]


def glands() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return shapes `[n, 28, 28, 28]` and whether they are normal, for training and test."""
    path = Path(os.environ.get("ORBICAL_DATA", "../shared/data")) / "volumes" / "adrenalmnist3d.npz"
    if path.is_file():
        with np.load(path) as file:
            shapes = {name: file[f"{name}_images"] for name in ("train", "test")}
            return shapes, {name: 1 - file[f"{name}_labels"].ravel() for name in shapes}
    random = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 28)] * 3, indexing="ij"))
    shapes, normal = {}, {}
    for name, count in (("train", 300), ("test", 100)):
        normal[name] = random.integers(0, 2, count)
        sides = (
            random.uniform(0.2, 0.5, (count, 3)) * [2, 1, 0.8] + 0.1 * (1 - normal[name])[:, None]
        )
        shapes[name] = np.stack(
            [(grid**2 / side[:, None, None, None] ** 2).sum(0) < 1 for side in sides]
        )
    return shapes, normal


def moments(volumes: Tensor) -> Tensor:
    """Return the volume and the moments about the principal axes `[n, 4]`, which do not turn."""
    mass = volumes[:, 0].double() + 1e-9
    mass = mass / (total := mass.sum((1, 2, 3), keepdim=True))
    line = torch.arange(mass.shape[-1], dtype=torch.float64)
    means = [mass.sum([d for d in (1, 2, 3) if d != axis]) @ line for axis in (1, 2, 3)]
    away = [line - mean[:, None] for mean in means]
    names = "dhw"
    spread = torch.stack(
        [
            torch.einsum(f"ndhw,n{names[a]},n{names[b]}->n", mass, away[a], away[b])
            for a in range(3)
            for b in range(3)
        ],
        1,
    ).reshape(-1, 3, 3)
    axes = torch.linalg.eigvalsh(spread).clamp_min(0).sqrt()
    return torch.cat([total.flatten(1).log(), axes], 1)


def voxels(volumes: Tensor) -> Tensor:
    """Return means of blocks of 4 x 4 x 4 voxels."""
    return F.avg_pool3d(volumes, 4).flatten(1)


def scanned(folder: Path) -> ob.Scan:
    """Write the test shapes to files, fit two models, and scan them on the files."""
    shapes, normal = glands()
    for number, (shape, label) in enumerate(zip(shapes["test"], normal["test"], strict=True)):
        path = folder / CLASSES[label] / f"{number:03}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        nibabel.save(nibabel.Nifti1Image(shape.astype(np.uint8), np.diag([1, 1, 1, 1.0])), path)
    # As the files are read: depth is the last axis, and rows count from the front.
    train = torch.tensor(shapes["train"].transpose(0, 3, 2, 1)[:, None, :, ::-1].astype(np.float32))
    models = {}
    for features in (voxels, moments):
        scaled = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        scaled.fit(features(train).numpy(), normal["train"])
        models[features.__name__] = lambda x, f=features, m=scaled: m.predict_proba(f(x).numpy())
    task = ob.tasks.Classification(outputs="probabilities")
    return ob.scan(models, folder, group="octahedral", task=task, progress=False)


def main() -> None:
    """Print AUROC, sensitivity and specificity upright, and at the worst orientation."""
    scan = scanned(Path("glands"))
    rates = ob.nero.binary_rates(scan, positive=CLASSES.index("hyperplasia"))
    for model in scan.models:
        one = rates.sel(model=model)
        worst = int(one["auroc"].argmin("element"))
        for words, element in (("as recorded", scan.group.identity), ("at worst", worst)):
            here = one.isel(element=element)
            values = (
                f"{name} {float(here[name]):.2f} [{float(here[name + '_low']):.2f}, "
                f"{float(here[name + '_high']):.2f}]"
                for name in ("auroc", "sensitivity", "specificity")
            )
            print(f"{model:>8} {words:>11}: {', '.join(values)}")


if __name__ == "__main__":
    main()
