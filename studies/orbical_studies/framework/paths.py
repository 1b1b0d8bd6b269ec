"""Where the files of a study are in a checkout of the repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orbical.errors import InputError

CHECKOUT = Path(__file__).resolve().parents[3]


def existing_file(path: Path, argument: str, remedy: str) -> Path:
    """Return the path of a file; refuse an argument if there is no such file.

    Args:
        path: Of the file.
        argument: What the error names.
        remedy: What to do about it.
    """
    if not path.is_file():
        raise InputError(argument, problem=f"there is no file {str(path)!r}", remedy=remedy)
    return path


@dataclass(frozen=True)
class Paths:
    """The files of one study.

    Attributes:
        name: Of the study.
        template: The hand-written page with places for numbers.
        results: Folder of the committed CSV files.
        page: The rendered page.
        work: Folder of large files between steps, not committed.
    """

    name: str
    template: Path
    results: Path
    page: Path
    work: Path

    @property
    def figures(self) -> Path:
        """Folder of the figures, beside the page."""
        return self.page.parent / self.name

    @property
    def protocol(self) -> Path:
        """What the page leaves out: words, rules and all tables."""
        return self.figures / "protocol.md"

    @classmethod
    def in_checkout(cls, name: str, root: Path = CHECKOUT) -> Paths:
        """Find the files of a study in the checkout that holds this package.

        Args:
            name: Of the study.
            root: Top folder of the checkout.

        Returns:
            The paths; refused where the package is installed apart from a checkout.
        """
        if not (root / "studies" / "pages").is_dir() or not (root / "docs" / "studies").is_dir():
            raise InputError(
                "orbical-study",
                "a checkout of the orbical repository",
                repr(str(root)),
                remedy="clone the repository and install it with: pip install -e . -e studies",
            )
        studies = root / "studies"
        return cls(
            name=name,
            template=studies / "pages" / f"{name}.md",
            results=studies / "results" / name,
            page=root / "docs" / "studies" / f"{name}.md",
            work=studies / "work" / name,
        )
