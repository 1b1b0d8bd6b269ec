"""Weights that ship with the package: where they lie, and what their headers say."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from orbical.errors import InputError, unknown_name


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
