"""Things named by text: `package.module:attribute` is the user's own code, and is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from .errors import InputError, unknown_name


def import_attribute(text: str, argument: str) -> Any:
    """Import `package.module:attribute`; a trailing `()` calls what was found.

    The current folder is searched too, as Python itself does for scripts.

    >>> import_attribute("math:pi", "model")
    3.141592653589793
    """
    called = text.endswith("()")
    module_name, _, attribute = text.removesuffix("()").partition(":")
    if not module_name or not attribute:
        raise InputError(f"{argument}: {text!r} given, package.module:attribute expected")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"{argument}: {text!r} cannot be imported: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            known = [known for known in dir(found) if not known.startswith("_")]
            raise unknown_name(f"{argument} {text!r}", name, known)
        found = getattr(found, name)
    return found() if called else found


def name_of(thing: Any) -> str:
    """Name a function, or an object that is called like one, as `module:name`.

    >>> import functools, math
    >>> name_of(math.sqrt), name_of(functools.partial(pow, 2))
    ('math:sqrt', 'functools:partial')
    """
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}:{kind.__qualname__}"
