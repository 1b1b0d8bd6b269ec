"""The weight files of the networks: where they are, how they are read and written."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

from torch import nn

from orbical.errors import InputError, check_name

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class WeightFiles:
    """The files of one family of networks, `FAMILY-NAME.safetensors`.

    Attributes:
        family: first part of each file name.
        names: names of the networks.
        training: the module of the studies that trains them again.
    """

    family: str
    names: tuple[str, ...]
    training: str

    def weights_file(self, name: str, folder: str | Path | None = None) -> Path:
        """Return the path of a network's weights.

        Args:
            name: Name of the network.
            folder: Folder with the weights. By default, those that ship with the package.

        Raises:
            InputError: If the name is unknown or the file does not exist.

        Example:
            >>> WeightFiles("digits", ("augmented", "plain"), "train").weights_file("plane")
            Traceback (most recent call last):
                ...
            orbical.errors.InputError: name: unknown name 'plane'; did you mean 'plain'? ...
        """
        check_name("name", name, self.names)
        shipped = Path(str(resources.files(__package__))) / "weights"
        path = (shipped if folder is None else Path(folder)) / f"{self.family}-{name}.safetensors"
        if not path.is_file():
            raise InputError(
                "folder",
                f"a folder with {path.name!r}",
                repr(str(path.parent)),
                remedy=f"make the weights with: python -m {self.training} --out FOLDER",
            )
        return path

    def provenance(self, name: str, folder: str | Path | None = None) -> dict[str, str]:
        """Return how a network was trained and how accurate it is, from the header of its file.

        Args:
            name: Name of the network.
            folder: Folder with the weights. By default, those that ship with the package.
        """
        return read_zoo_header(self.weights_file(name, folder))


def read_zoo_header(path: str | Path) -> dict[str, str]:
    """Return the metadata in the header of a file of weights."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def restore_zoo_weights(net: Network, path: str | Path, strict: bool = True) -> Network:
    """Load weights into a network, in single precision, and switch it to evaluation mode."""
    from safetensors.torch import load_file

    weights = {key: value.float() for key, value in load_file(path).items()}
    net.load_state_dict(weights, strict=strict)
    return net.eval()
