"""Show the examples of docstrings as code, as an extension of griffe.

Griffe knows the section `Examples`; ours is called `Example`, and some docstrings have the lines
alone. Both would be taken for quotations in Markdown.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

from griffe import Extension

ALONE = re.compile(r"^>>> .*(?:\n\S.*)*", re.MULTILINE)


class Examples(Extension):
    """Rename the sections, and put examples that stand alone into one."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = ALONE.sub(
                lambda found: "Examples:\n" + indent(found[0], "    "), text
            )
