"""Bundle the front end's modules into one script, and its style sheets into one text.

The server serves the modules as they are; a notebook and a report need a single text. Each file
becomes a function of its own, so that names cannot clash, in the order of their imports. Only the
plain forms of import and export that the front end uses are supported; others raise an error.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable

from ..errors import InputError

_FORMS = (
    'import { a, b as c } from "./x.js"; import * as x from "./x.js"; export function, async '
    "function, const or class; export { a, b as c }; export default"
)
_IMPORT_NAMES = re.compile(r'import\s*\{([^{}]*)\}\s*from\s*"([^"]+)";?\s*$')
_IMPORT_ALL = re.compile(r'import\s*\*\s*as\s+([\w$]+)\s+from\s*"([^"]+)";?\s*$')
_EXPORT_NAMES = re.compile(r"export\s*\{([^{}]*)\};?\s*$")
_EXPORT_VALUE = re.compile(
    r"export\s+((?:async\s+)?function\s*\*?\s*([\w$]+)|const\s+([\w$]+)\s*=|class\s+([\w$]+))"
)
_EXPORT_DEFAULT = re.compile(r"export\s+default\s+")
_NAME = re.compile(r"([\w$]+)(?:\s+as\s+([\w$]+))?$")
_STATEMENT = re.compile(r"\s*(?:import|export)\b(?!\s*[:=(.,])")
_UNKNOWN = re.compile(r"\bimport\s*(?:\(|\.\s*meta\b)")
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)"')


@dataclass
class _Module:
    """A parsed file: its imports (line, module, names), its own lines and its exports."""

    needs: list[tuple[int, str, list[str]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    gives: dict[str, str] = field(default_factory=dict)


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
    order = _in_order(entry, sources)
    places = {path: place for place, path in enumerate(order)}
    text = "".join(_wrapped(order[path], path, places) for path in order)
    if "default" in order[entry].gives:
        text += f"export default module_{places[entry]}.default;\n"
    return text


def web_sources() -> dict[str, str]:
    """Read every module of the front end, by path.

    >>> "moves/index.js" in web_sources()
    True
    """
    return dict(_read(files(__package__).joinpath("web"), ""))


def web_style() -> str:
    """Read the style sheets that `index.html` names as one text, in its order.

    >>> ".orbical .section {" in web_style()
    True
    """
    web = files(__package__).joinpath("web")
    names = _STYLE.findall(web.joinpath("index.html").read_text("utf-8"))
    return "\n".join(web.joinpath(*name.split("/")).read_text("utf-8") for name in names)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found = []
    for item in sorted(folder.iterdir(), key=lambda one: one.name):
        if item.is_dir():
            found += _read(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".js"):
            found.append((prefix + item.name, item.read_text("utf-8")))
    return found


def _in_order(entry: str, sources: Mapping[str, str]) -> dict[str, _Module]:
    """Parse the modules that are needed, each after its imports."""
    done: dict[str, _Module] = {}

    def visit(path: str, above: tuple[str, ...]) -> None:
        if path in done:
            return
        if path in above:
            raise InputError(f"{path}: circular import {' > '.join((*above, path))}")
        module = _parsed(path, sources)
        for line, needed, names in module.needs:
            visit(needed, (*above, path))
            for name in names:
                if name not in done[needed].gives:
                    raise InputError(f"{path}:{line}: {needed} exports no {name!r}")
        done[path] = module

    if entry not in sources:
        raise InputError(f"entry: expected the path of a module, got {entry!r}")
    visit(entry, ())
    return done


def _parsed(path: str, sources: Mapping[str, str]) -> _Module:
    module = _Module()
    rows = sources[path].splitlines()
    number = 0
    while number < len(rows):
        first, row = number + 1, rows[number]
        number += 1
        if _UNKNOWN.search(row.split("//")[0]):
            raise _refused(path, first, row)
        if not _STATEMENT.match(row):
            module.lines.append(row)
            continue
        if re.match(r"(?:import|export)\s*\{", row):  # the list of names may run over lines
            while "}" not in row and number < len(rows):
                row = f"{row} {rows[number].strip()}"
                number += 1
        _take(module, path, first, row, sources)
    return module


def _take(
    module: _Module, path: str, line: int, statement: str, sources: Mapping[str, str]
) -> None:
    """Record one import or export."""
    if found := _IMPORT_NAMES.match(statement):
        pairs = _names(path, line, statement, found[1])
        place = _need(module, path, line, found[2], [name for name, _ in pairs], sources)
        names = ", ".join(name if name == own else f"{name}: {own}" for name, own in pairs)
        module.lines.append(f"const {{ {names} }} = {place};")
    elif found := _IMPORT_ALL.match(statement):
        place = _need(module, path, line, found[2], [], sources)
        module.lines.append(f"const {found[1]} = {place};")
    elif found := _EXPORT_NAMES.match(statement):
        for own, name in _names(path, line, statement, found[1]):
            module.gives[name] = own
    elif found := _EXPORT_VALUE.match(statement):
        name = found[2] or found[3] or found[4]
        module.gives[name] = name
        module.lines.append(found[1] + statement[found.end() :])
    elif found := _EXPORT_DEFAULT.match(statement):
        module.gives["default"] = "default_"
        module.lines.append("const default_ = " + statement[found.end() :])
    else:
        raise _refused(path, line, statement)


def _need(
    module: _Module,
    path: str,
    line: int,
    given: str,
    names: list[str],
    sources: Mapping[str, str],
) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), given))
    if not given.startswith(("./", "../")) or target not in sources:
        raise InputError(f"{path}:{line}: expected a relative path to a module, got {given!r}")
    module.needs.append((line, target, names))
    return f"@{target}@"


def _names(path: str, line: int, statement: str, text: str) -> list[tuple[str, str]]:
    pairs = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        found = _NAME.match(word)
        if found is None:
            raise _refused(path, line, statement)
        pairs.append((found[1], found[2] or found[1]))
    return pairs


def _wrapped(module: _Module, path: str, places: Mapping[str, int]) -> str:
    body = "\n".join(module.lines)
    for _, needed, _ in module.needs:
        body = body.replace(f"= @{needed}@;", f"= module_{places[needed]};")
    gives = ", ".join(
        name if name == own else f"{name}: {own}" for name, own in module.gives.items()
    )
    given = f"return {{ {gives} }};" if gives else "return {};"
    return f"const module_{places[path]} = (() => {{\n{body}\n{given}\n}})();\n"


def _refused(path: str, line: int, statement: str) -> InputError:
    return InputError(f"{path}:{line}: expected {_FORMS}; got {statement.strip()[:80]!r}")
