"""Weights that ship with the package: written, found and read, with what their headers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar

from torch import Tensor, nn

from orbical.errors import InputError, unknown_name

Network = TypeVar("Network", bound=nn.Module)


def weights_file(
    family: str, name: str, names: Sequence[str], folder: str | Path | None, maker: str
) -> Path:
    """The path of a network's weights; an error that says how to make them where absent.

    Args:
        family: begins the name of the file.
        name: of the network.
        names: of all networks of the family.
        folder: with the weights, or None for those of the package.
        maker: the command that makes them.

    Example:
        >>> weights_file("digits", "plane", ("augmented", "plain"), None, "make")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'plane'; did you mean 'plain'? ...
    """
    if name not in names:
        raise unknown_name("name", name, names)
    place = Path(str(resources.files(__package__))) / "weights" if folder is None else Path(folder)
    path = place / f"{family}-{name}.safetensors"
    if not path.is_file():
        raise InputError(
            f"folder: there is no file {path.name!r} in {str(place)!r}; "
            f"expected weights made by: {maker}"
        )
    return path


def header(path: str | Path) -> dict[str, str]:
    """How weights were made and how good the network is, from the header of their file."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def write(weights: Mapping[str, Tensor], path: str | Path, facts: Mapping[str, str]) -> Path:
    """Write weights to a file, with how they were made in its header; its folder is made too."""
    from safetensors.torch import save

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    # Not save_file, whose files only their owner may read, even inside a wheel.
    path.write_bytes(save(held, metadata=dict(facts)))
    return path


def restored(net: Network, path: str | Path) -> Network:
    """Give a network the weights of a file, and make it ready to answer in single precision.

    Example:
        >>> import tempfile
        >>> net = nn.Linear(2, 1).half()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write(net.state_dict(), Path(folder) / "net.safetensors", {"seed": "0"})
        ...     again, facts = restored(nn.Linear(2, 1), path), header(path)
        >>> again.weight.dtype, bool((again.weight == net.weight).all()), facts
        (torch.float32, True, {'seed': '0'})
    """
    from safetensors.torch import load_file

    net.load_state_dict({key: value.float() for key, value in load_file(path).items()})
    return net.eval()
