"""What the API pages show of docstrings and members, as extensions of griffe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from griffe import Class, Extension, Module

ALONE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)  # up to an empty line


class Examples(Extension):
    """Show the examples of docstrings as code.

    Griffe knows the section `Examples`; ours is called `Example`, and some docstrings have the
    lines alone. Both would be taken for quotations in Markdown.
    """

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rename the sections, and put examples that stand alone into one."""
        if obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = ALONE.sub(
                lambda found: "Examples:\n" + indent(found[0], "    "), text
            )


class OnceAtTheBase(Extension):
    """Document a method where it is defined first, and not again in each class that overrides it.

    A task or an action of orbical overrides up to seventeen methods, which matter only to those
    who write one of their own: they read the base.
    """

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Remove from each class the members that one of its bases has."""
        classes = list(_classes(pkg))
        repeated = [
            (each, name)
            for each in classes
            for name in each.members
            if not name.startswith("_") and any(name in base.members for base in each.mro())
        ]
        for each, name in repeated:
            each.del_member(name)


def _classes(module: Module) -> Iterator[Class]:
    for member in module.members.values():
        if member.is_alias:
            continue
        if member.is_module:
            yield from _classes(member)
        elif member.is_class:
            yield member
