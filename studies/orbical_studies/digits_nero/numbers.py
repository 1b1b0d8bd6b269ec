"""What the CSV files of the digits' NERO plots say."""

from __future__ import annotations

from pathlib import Path

from ..pages import Row, read_csv


class Numbers:
    """The CSV files of the page."""

    def __init__(self, folder: Path) -> None:
        self.networks = {row["network"]: row for row in read_csv(folder / "networks.csv")}
        self.digits = {
            (row["network"], row["digit"]): row for row in read_csv(folder / "digits.csv")
        }
        self.curves = read_csv(folder / "curves.csv")
        self.six_nine = {
            (row["network"], row["digit"], row["angle"]): row
            for row in read_csv(folder / "six-nine.csv")
        }
        self.maps = {row["network"]: row for row in read_csv(folder / "maps.csv")}

    @property
    def all_digits(self) -> list[int]:
        """The digits, in order."""
        return sorted({digit for _, digit in self.digits})

    def ranked(self, quantity: str, network: str = "plain") -> list[int]:
        """The digits from the smallest to the largest value."""
        return sorted(self.all_digits, key=lambda digit: self.digits[network, digit][quantity])

    def accuracy(self, network: str, angle: float) -> float:
        """The accuracy over all digits at an angle."""
        rows = [row for row in self.curves if (row["network"], row["angle"]) == (network, angle)]
        samples = sum(row["samples"] for row in rows)
        return float(sum(row["samples"] * row["accuracy"] for row in rows) / samples)

    def curve(self, network: str, digit: int, angle: float) -> Row:
        """What was measured of a digit at an angle: accuracy, and what it is mostly taken for."""
        wanted = (network, digit, angle)
        return next(
            row for row in self.curves if (row["network"], row["digit"], row["angle"]) == wanted
        )
