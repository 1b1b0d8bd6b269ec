"""The reference of all commands, made from their help, as a hook of mkdocs."""

from __future__ import annotations

import html
import re
from typing import Any

from mkdocs.structure.files import File
from typer.main import get_command

from orbical.cli import _register, app

OPENING = """# Command line: all options

All commands and options, as `orbical COMMAND --help` prints them. Every command is also a
function: see the [API](api/index.md).

| to | command |
|---|---|
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page."""
    files.append(File.generated(config, "cli.md", content=page()))
    return files


def page() -> str:
    """Return the page in Markdown."""
    _register()
    group = get_command(app)
    commands = group.commands  # type: ignore[attr-defined]
    rows = (
        f"| {_first_line(command)} | [`orbical {name}`](#orbical-{name}) |\n"
        for name, command in commands.items()
    )
    return OPENING + "".join(rows) + "".join(_section(*item, group) for item in commands.items())


def _first_line(command: Any) -> str:
    line = str(command.help or "").split("\n")[0].rstrip(".")
    return _escaped(line[:1].lower() + line[1:])


def _section(name: str, command: Any, group: Any) -> str:
    parent = group.make_context("orbical", [], resilient_parsing=True)
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    arguments = " ".join(command.collect_usage_pieces(context))
    text = (
        f"\n## orbical {name}\n\n```sh\norbical {name} {arguments}\n```\n\n{_prose(command.help)}\n"
    )
    sections: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            title = "Arguments" if parameter.param_type_name == "argument" else panel
            label = re.sub(r" ?<[^>]*>", "", record[0])
            sections.setdefault(title, []).append(f"| `{label}` | {_escaped(record[1])} |\n")
    for title, rows in sections.items():
        kind = "argument" if title == "Arguments" else "option"
        text += f"\n**{title}**\n\n| {kind} | meaning |\n|---|---|\n{''.join(rows)}"
    return text


def _prose(words: str | None) -> str:
    """Return the help of a command with its examples as code."""
    plain = str(words or "").replace("\b\n", "")
    return re.sub(r"(?m)^(?:orbical .*\n(?: +.*\n)*)+", r"```sh\n\g<0>```\n", plain)


def _escaped(words: str) -> str:
    return html.escape(words, quote=False).replace("|", "\\|")
