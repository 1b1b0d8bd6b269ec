"""Import objects by name, name objects, and check paths."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError, MissingExtra, OrbicalError, unknown_name

_ARCHIVES = ("zip://", "tar://", "libarchive://")  # zarr cannot open them through fsspec
_MOST_NAMES = 20


def import_attribute(text: str, argument: str) -> Any:
    """Import `package.module:attribute`; a trailing `()` calls what was found.

    >>> import_attribute("math:pi", "model")
    3.141592653589793
    """
    called = text.endswith("()")
    module_name, _, attribute = text.removesuffix("()").partition(":")
    if not module_name or not attribute:
        raise InputError(argument, "package.module:attribute", repr(text))
    found = import_module(text, argument)
    for name in attribute.split("."):
        if not hasattr(found, name):
            known = [known for known in dir(found) if not known.startswith("_")]
            near = difflib.get_close_matches(name, known, n=_MOST_NAMES)
            error = unknown_name(f"in {text!r}", name, near or known[:_MOST_NAMES])
            raise InputError(argument, problem=str(error))
        found = getattr(found, name)
    if not called:
        return found
    try:
        return found()
    except Exception as error:
        problem = f"{text!r} raised {type(error).__name__} when called: {words_of(error)}"
        raise InputError(argument, problem=problem) from error


def import_module(text: str, argument: str) -> Any:
    """Import the module of `package.module` or `package.module:attribute`.

    The current folder is searched too, as Python itself does for scripts.

    >>> import_module("math", "--import").pi
    3.141592653589793
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(text.partition(":")[0])
    except Exception as error:  # a file of the user's may raise anything
        why = words_of(error)
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        problem = f"{text!r} cannot be imported: {kind}{why}"
        raise InputError(argument, problem=problem, remedy=_as_module(text)) from error


def _as_module(text: str) -> str:
    """Return what to pass in place of a file or an address, "" for other texts.

    >>> _as_module("nets/mine.py:net"), _as_module("localhost:8000/v1#name")
    ("pass 'nets.mine:net'", "pass 'http://localhost:8000/v1#name'")
    """
    place, separator, attribute = text.partition(":")
    if place.endswith(".py"):
        module = place.removeprefix("./").removesuffix(".py").replace("/", ".")
        return f"pass '{module}{separator}{attribute}'"
    return f"pass 'http://{text}'" if "/v1" in attribute else ""


def import_extra(module: str, extra: str, purpose: str, package: str | None = None) -> Any:
    """Import a module of an optional package, or raise an error that names the extra.

    >>> import_extra("no_such.module", "chemistry", "a molecule")
    Traceback (most recent call last):
    orbical.errors.MissingExtra: a molecule needs the package 'no_such': pip install ...
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(package or module.partition(".")[0], extra, purpose) from None


def existing_file(argument: str, given: str | Path) -> Path:
    """Return the path of a file, or raise.

    >>> existing_file("--data", "gone.npz")
    Traceback (most recent call last):
    orbical.errors.InputError: --data: expected a file, got 'gone.npz', which does not exist
    """
    path = Path(given)
    if not path.is_file():
        there = "is not a regular file" if path.exists() else "does not exist"
        why = "is a folder" if path.is_dir() else there
        raise InputError(argument, "a file", f"{str(given)!r}, which {why}")
    return path


@contextmanager
def reading(argument: str, given: object, kind: str) -> Iterator[None]:
    """Raise whatever the reader of a user's file raises as an error about the file.

    A damaged file makes the libraries that read it raise anything, so this is the one place that
    turns it into a message; every reader of files is called inside it.

    >>> with reading("data", "run.csv", "a table"):
    ...     {}["column"]
    Traceback (most recent call last):
    orbical.errors.InputError: data: 'run.csv' cannot be read as a table (KeyError: 'column')
    """
    try:
        yield
    except OrbicalError:
        raise
    except Exception as error:
        plain = isinstance(error, ValueError | OSError) and str(error)
        why = words_of(error) if plain else f"{type(error).__name__}: {words_of(error)}"
        problem = f"{_shortened(given)} cannot be read as {kind} ({why.removesuffix(': ')})"
        raise InputError(argument, problem=problem) from error


FETCHED: dict[Path, str] = {}
"""The URLs of the local copies that this process made or found."""


def local_file(argument: str, given: Any) -> Path:
    """Return the path of a file; one at a URL is fetched once, and again when it has changed.

    >>> str(local_file("data", "digits.npy"))
    'digits.npy'
    """
    if "://" not in str(given):
        return Path(given).expanduser()
    remote: Any = as_path(argument, given)
    if isinstance(remote, Path):
        return remote
    try:
        # Not `ukey`, which is the address alone where files come from a web server.
        state = f"{given} {sorted(remote.fs.info(remote.path).items())}"
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        digest = hashlib.sha256(state.encode()).hexdigest()[:32]
        copy = caches / "orbical" / "files" / digest / str(remote.name)
        if not copy.exists():
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            building = copy.with_name(f"{uuid.uuid4().hex}.partial")
            remote.fs.get_file(remote.path, str(building))
            building.replace(copy)
    except FileNotFoundError as error:
        got = f"{_shortened(given)}, which does not exist"
        raise InputError(argument, "a file", got) from error
    except Exception as error:  # of any file system
        problem = f"{_shortened(given)} cannot be fetched: {words_of(error)}"
        raise InputError(argument, problem=problem) from error
    FETCHED[copy] = str(given)
    return copy


def as_path(argument: str, given: Any) -> Path:
    """Return the path of a store; `~` is expanded and links are followed.

    A URL becomes a `UPath` of universal-pathlib, which has the methods of a path.
    """
    if "://" in str(given):
        return _path_from_url(argument, given)
    if not isinstance(given, str | os.PathLike) or not str(given):
        raise InputError(argument, "the path of a folder, or a URL", repr(given))
    try:
        path = Path(given).expanduser()
        path.lstat()
        return path.resolve() if path.is_symlink() else path
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(argument, problem=f"{_shortened(given)} cannot be used: {why}") from error


def _path_from_url(argument: str, given: Any) -> Path:
    """Return a path on a remote file system that fsspec knows."""
    if str(given).startswith(_ARCHIVES):
        got = f"the archive {_shortened(given)}"
        raise InputError(argument, "a folder, or the URL of one", got, remedy="unpack it first")
    places = import_extra("upath", "remote", "a URL", "universal-pathlib")
    try:
        local = str(given).startswith(("file:", "local:"))
        options = {} if local else {"use_listings_cache": False}  # others write there too
        path: Any = places.UPath(given, **options)
        protocol = path.fs.protocol
        if not path.protocol:
            raise ValueError("no protocol")
    except ImportError as error:  # the package of this protocol, which fsspec names
        problem = f"{_shortened(given)} cannot be used: {error}"
        raise InputError(argument, problem=problem) from error
    except (OSError, ValueError, TypeError) as error:
        expected = "a folder, or a URL that fsspec knows"
        raise InputError(argument, expected, _shortened(given)) from error
    local = "file" in ([protocol] if isinstance(protocol, str) else protocol)
    return Path(path.path) if local else path


def _shortened(given: Any) -> str:
    text = repr(str(given))
    return text if len(text) < 100 else f"{text[:97]}..."


def words_of(error: BaseException) -> str:
    """Return the message of an error on one line.

    >>> words_of(ValueError("two\\n  lines"))
    'two lines'
    """
    return " ".join(str(error).split())


def name_of(thing: object) -> str:
    """Return the name of a function or a callable object as `module:name`.

    >>> import functools, math
    >>> name_of(math.sqrt), name_of(functools.partial(pow, 2)), name_of(str.lower)
    ('math:sqrt', 'functools:partial', 'builtins:str.lower')
    """
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    owner = getattr(kind, "__objclass__", kind)  # of a method that is written in C
    module = getattr(kind, "__module__", None) or getattr(owner, "__module__", None) or "builtins"
    return f"{module}:{kind.__qualname__}"
