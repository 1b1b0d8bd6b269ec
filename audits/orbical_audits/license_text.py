"""Text that may be copied, and fonts that are free: what pages and lines are drawn from."""

from __future__ import annotations

from functools import cache

from PIL import ImageFont

from .environment import CHECKOUT

FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Bold")


@cache
def license_words() -> list[str]:
    """Return the words of the license of this project.

    >>> license_words()[:2]
    ['Apache', 'License']
    """
    return (CHECKOUT / "LICENSE").read_text("utf-8").split()


def free_font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """Return a font of the files that matplotlib carries."""
    from matplotlib import get_data_path

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}.ttf", size)
