"""Bundle the front end's modules into one script, and its style sheets into one text.

A notebook and a report need a single text, and a browser loads one file faster than two hundred.
Each file becomes a function of its own, so that names cannot clash, in the order of their imports.
Only the plain forms of import and export that the front end uses are supported; others raise an
error.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import InputError

_FORMS = (
    'import { a, b as c } from "./x.js"; import * as x from "./x.js"; export function, async '
    "function, const or class; export { a, b as c }; export default"
)
_STATEMENT = re.compile(
    r'^import\s*(?:\{(?P<taken>[^{}]*)\}|\*\s*as\s+(?P<all>[\w$]+))\s*from\s*"(?P<source>[^"]+)";?$'
    r"|^export\s*\{(?P<given>[^{}]*)\};?$"
    r'|^export\s*\*\s*as\s+(?P<passed>[\w$]+)\s*from\s*"(?P<from>[^"]+)";?$'
    r"|^export\s+(?P<value>(?:async\s+)?function\s*\*?\s*|class\s+|const\s+(?=[\w$]+\s*=))"
    r"(?P<name>[\w$]+)"
    r"|^export\s+(?P<default>default)\s+"
    r"|^[ \t]*(?:import|export)\b(?!\s*[:=(.,]).*$"
    r"|^(?:(?!//).)*\bimport\s*(?:\(|\.\s*meta\b).*$",
    re.MULTILINE,
)
_NAME = re.compile(r"\s*([\w$]+)(?:\s+as\s+([\w$]+))?\s*$")
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)"')
_STYLES = re.compile(r'(?:<link rel="stylesheet"[^>]*>\s*)+(?=</head>)')
_SCRIPT = re.compile(r'(?<=<script type="module" src=")[^"]+')


def bundle(entry: str, sources: Mapping[str, str]) -> str:
    """Join a module and everything it imports into the text of one ES module.

    Args:
        entry: Path of the first module; its default export is that of the bundle.
        sources: Text of each module by path, such as `draw/scales.js`.

    >>> print(bundle("app.js", {
    ...     "app.js": 'import { two } from "./two.js";\\nexport default { four: two * two };',
    ...     "two.js": "export const two = 2;",
    ... }))
    const module_0 = (() => {
    const two = 2;
    return { two };
    })();
    const module_1 = (() => {
    const { two } = module_0;
    const default_ = { four: two * two };
    return { default: default_ };
    })();
    export default module_1.default;
    <BLANKLINE>
    """
    if entry not in sources:
        raise InputError("entry", "the path of a module", repr(entry))
    texts: list[str] = []
    done: dict[str, tuple[str, dict[str, str]]] = {}  # the name and the exports of each module

    def add(path: str, above: tuple[str, ...]) -> tuple[str, dict[str, str]]:
        if path in above:
            raise InputError(path, problem=f"circular import {' > '.join((*above, path))}")
        if path in done:
            return done[path]
        exports: dict[str, str] = {}

        def rewritten(found: re.Match[str]) -> str:
            line = sources[path].count("\n", 0, found.start()) + 1
            if found["default"]:
                exports["default"] = "default_"
                return "const default_ = "
            if found["name"]:
                exports[found["name"]] = found["name"]
                return f"{found['value']}{found['name']}"
            pairs = _names(found["taken"] or found["given"] or "")
            source = found["source"] or found["from"]
            if pairs is None or not (source or found["given"] is not None):
                got = found[0].strip()[:80]
                raise InputError(f"{path}:{line}", _FORMS, remedy=f"got {got!r}")
            if not source:
                exports.update({name: own for own, name in pairs})
                return ""
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), source))
            if not source.startswith(("./", "../")) or target not in sources:
                raise InputError(f"{path}:{line}", "a relative path to a module", repr(source))
            module, known = add(target, (*above, path))
            for name, _ in pairs:
                if name not in known:
                    raise InputError(f"{path}:{line}", problem=f"{target} exports no {name!r}")
            if found["passed"]:
                exports[found["passed"]] = found["passed"]
            return f"const {found['all'] or found['passed'] or _object(pairs)} = {module};"

        body = _STATEMENT.sub(rewritten, sources[path]).rstrip("\n")
        done[path] = f"module_{len(done)}", exports
        result = _object([*exports.items()])
        texts.append(f"const {done[path][0]} = (() => {{\n{body}\nreturn {result};\n}})();\n")
        return done[path]

    module, exports = add(entry, ())
    if "default" in exports:
        texts.append(f"export default {module}.default;\n")
    return "".join(texts)


def web_sources() -> dict[str, str]:
    """Read every module of the front end, by path.

    >>> "moves/index.js" in web_sources()
    True
    """
    found = _read_static_files()
    return {path: found[path].content.decode() for path in found if path.endswith(".js")}


def web_style() -> str:
    """Read the style sheets that `index.html` names as one text, in its order.

    >>> ".orbical .section {" in web_style()
    True
    """
    found = _read_static_files()
    names = _STYLE.findall(found["index.html"].content.decode())
    return "\n".join(found[name].content.decode() for name in names)


@cache
def page_files() -> dict[str, StaticFile]:
    """Return the files of the served page, with one script and one style sheet.

    >>> sorted(page_files())
    ['app.css', 'app.js', 'icon.svg', 'index.html']
    """
    found = _read_static_files()
    page = found["index.html"].content.decode()
    (entry,) = _SCRIPT.findall(page)
    script, style = bundle(entry, web_sources()), web_style()
    mark = hashlib.sha256(f"{script}{style}".encode()).hexdigest()[:12]  # browsers keep the files
    page = _STYLES.sub(f'<link rel="stylesheet" href="app.css?{mark}" />\n  ', page)
    texts = {"index.html": _SCRIPT.sub(f"app.js?{mark}", page), "app.js": script, "app.css": style}
    made = {
        path: StaticFile(text.encode(), TYPES[Path(path).suffix]) for path, text in texts.items()
    }
    return {"icon.svg": found["icon.svg"], **made}


def _names(text: str) -> list[tuple[str, str]] | None:
    """Parse a list of names, each with the name it gets; None if it is malformed."""
    found = [_NAME.match(word) for word in text.split(",") if word.strip()]
    return None if None in found else [(one[1], one[2] or one[1]) for one in found if one]


def _object(pairs: list[tuple[str, str]]) -> str:
    inner = ", ".join(name if name == own else f"{name}: {own}" for name, own in pairs)
    return f"{{ {inner} }}" if inner else "{}"


TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    """A file of the page: its content and MIME type."""

    content: bytes
    type: str


def _read_static_files() -> dict[str, StaticFile]:
    """Read every file of the page, by path below `web/`."""
    web = Path(__file__).with_name("web")
    return {
        path.relative_to(web).as_posix(): StaticFile(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(web.rglob("*"))
        if path.suffix in TYPES
    }


def icon() -> str:
    """Read the mark of the page, as SVG: an orbit with a point on it."""
    return Path(__file__).with_name("web").joinpath("icon.svg").read_text("utf-8").strip()
