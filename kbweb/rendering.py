"""Templates to HTML: the environment of Jinja, in which every text is escaped that no template marks as markup."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kbcore.text.escaping import escape_controls, escape_lines
from kbcore.text.wording import pluralize

_COMMAND: Final = re.compile(r"`([^`]+)`")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kbweb", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "lines": escape_lines,
        "shown": shown,
        "commands": commands,
        "count": count,
        "percent": percent,
        "day": day,
        "number": "{:,}".format,
    }
    return environment


def render(template: str, **values: Any) -> str:
    """Return a template of ``kbweb/templates`` as HTML."""
    return _environment().get_template(template).render(**values)


@cache
def asset(name: str) -> Markup:
    """Return a file of ``kbweb/static`` as text that goes into a page as it is."""
    return Markup(files("kbweb").joinpath("static", name).read_text("utf-8"))  # noqa: S704 - it is a file of this package


def shown(value: Any) -> str:
    """Return a stored value as a reader sees it: control characters and what reorders text are written out."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    if isinstance(value, dict):
        return "; ".join(f"{shown(key)}: {shown(one)}" for key, one in value.items())
    return escape_controls(str(value))


def commands(text: str) -> Markup:
    """Return a sentence as a reader sees it, in which what is between two backticks is code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(shown(text)))))  # noqa: S704 - it was escaped


def count(number: int, noun: str) -> str:
    """Return ``1 file`` or ``2,000 files``."""
    return f"{number:,} {pluralize(number, noun).partition(' ')[2]}"


def percent(value: float | None) -> str:
    """Return a percentage as text; a dash where nothing needs it."""
    return "-" if value is None else f"{value:g} %"


def day(at: str) -> str:
    """Return the time of a record to the minute, in UTC."""
    return at[:16].replace("T", " ")
