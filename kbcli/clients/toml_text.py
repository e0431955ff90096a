"""Sets keys of one table of a TOML text, adds to a list, takes either out, and leaves every other line as it is. Pure.

Only tables of the form ``[a.b]`` are changed; where the same is written in another form, it is left to a person.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

_HEADER: Final = re.compile(r"[ \t]*\[")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""A line with its end. Other characters that end a line for Python may be part of a text."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


class NotToml(Exception):
    """The text is no TOML, or what is to be changed is written in a form that is not changed."""


def parse(text: str) -> dict[str, Any]:
    """Return what a text says. Raises: ``NotToml``."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise NotToml(str(error)) from error


def with_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with these keys in the table at a path: set there if it is, else in a new one at the end.

    Raises: ``NotToml``.
    """
    before = parse(text)
    wanted = _merged(before, path, values)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = _LINE.findall(text)
    at = next((at for at, line in enumerate(lines) if _is_header(line, path)), None)
    if at is None:
        if _has(before, path):
            raise NotToml(f"`{'.'.join(path)}` is written there in another form than as a table [{'.'.join(path)}]")
        gap = "" if not text.strip() else newline if text.endswith(("\n", "\r")) else newline * 2
        table = [f"[{'.'.join(map(_key, path))}]", *(_line(key, value) for key, value in values.items())]
        changed = text + gap + newline.join(table) + newline
    else:
        changed = "".join(_changed(lines, at, values, newline))
    if not _says(changed, wanted):
        raise NotToml(f"the table [{'.'.join(path)}] is written in a form that is not changed")
    return changed


def with_listed(text: str, path: Sequence[str], key: str, value: str) -> str:
    """Return the text with a text in the list under a key of the table at a path; the list is made if it is missing.

    A list keeps its other texts and comments, in whatever form the table is written.

    Raises: ``NotToml``.
    """
    before = parse(text)
    if not _has(before, [*path, key]):
        return with_table(text, path, {key: [value]})
    listed = _get(before, [*path, key])
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise NotToml(f"`{'.'.join([*path, key])}` is no list of texts")
    if value in listed:
        return text
    wanted = _merged(before, path, {key: [value, *listed]})
    for found in re.finditer(rf"\b{re.escape(key)}[\"']?[ \t]*=[ \t]*\[", text):
        changed = _with_first(text, found.end(), _value(value), is_only=not listed)
        if _says(changed, wanted):
            return changed
    raise NotToml(f"`{'.'.join([*path, key])}` is written in a form that is not changed")


def without_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at a path and those below it; comments before the next one stay.

    Raises: ``NotToml``.
    """
    before = parse(text)
    if not _has(before, path):
        return text
    kept = list[str]()
    for gap, section in _sections(text):
        is_unwanted = bool(section) and _is_header(section[0], path, may_be_below=True)
        kept += gap if not is_unwanted or any(line.strip() for line in gap) else []
        kept += [] if is_unwanted else section
    changed = "".join(kept)
    if not _says(changed, _lacking(before, path)):
        raise NotToml(f"`{'.'.join(path)}` is written in a form that is not changed")
    return changed


def _sections(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the tables of a text in their order, each with the empty lines and comments before it."""
    found: list[tuple[list[str], list[str]]] = [([], [])]
    gap = list[str]()
    for line in _LINE.findall(text):
        if not line.strip() or line.lstrip().startswith("#"):
            gap.append(line)
        elif _HEADER.match(line):
            found.append((gap, [line]))
            gap = []
        else:
            found[-1][1].extend([*gap, line])
            gap = []
    return [*found, (gap, [])]


def without_listed(text: str, path: Sequence[str], key: str, value: str) -> str:
    """Return the text without a text in the list under a key of the table at a path.

    A list that is then empty goes, and with it a table that has nothing else. Raises: ``NotToml``.
    """
    before = parse(text)
    listed = _get(before, [*path, key]) if _has(before, [*path, key]) else None
    if not isinstance(listed, list) or value not in listed:
        return text
    left = [one for one in listed if one != value]
    if not left and set(_get(before, path)) == {key}:
        return without_table(text, path)
    wanted = _merged(before, path, {key: left}) if left else _lacking(before, [*path, key])
    item, begin = re.escape(_value(value)), rf"\b{re.escape(key)}[\"']?[ \t]*="
    forms = [rf"[ \t]*{item}[ \t]*,[ \t]*(?:\r?\n)?", rf"[ \t]*,\s*{item}", rf"{item}"]
    if not left:
        forms = [rf"[ \t]*{begin}[ \t]*\[[^\]]*\][ \t]*\r?\n?"]
    for form in forms:
        for found in re.finditer(form, text):
            gap = " " if text[found.start() : found.start() + 1] == " " and found[0][-1:] == " " else ""
            for filler in (gap, ""):
                changed = text[: found.start()] + filler + text[found.end() :]
                if _says(changed, wanted):
                    return changed
    raise NotToml(f"`{'.'.join([*path, key])}` is written in a form that is not changed")


def _lacking(whole: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return what a text says without what is at a path; a table that is then empty and was only implied goes too."""
    first, *rest = path
    inner = _lacking(whole[first], rest) if rest else {}
    return {key: value for key, value in whole.items() if key != first} | ({first: inner} if inner else {})


def _with_first(text: str, at: int, item: str, *, is_only: bool) -> str:
    """Return the text with an item put first into the list that begins before ``at``."""
    # A list over several lines gets a line more.
    if first := re.compile(r"[ \t]*(?:#[^\r\n]*)?(\r?\n)([ \t]*)").match(text, at):
        return f"{text[: first.end()]}{item},{first[1]}{first[2]}{text[first.end() :]}"
    return f"{text[:at]}{item}{'' if is_only else ', '}{text[at:]}"


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def line_of(error: NotToml) -> str:
    """Return the place that an error names, or the empty text."""
    found = re.search(r"at line (\d+)", str(error))
    return f":{found[1]}" if found else ""


def _changed(lines: list[str], at: int, values: Mapping[str, Any], newline: str) -> list[str]:
    end = next((one for one in range(at + 1, len(lines)) if _HEADER.match(lines[one])), len(lines))
    body, left = lines[at + 1 : end], dict(values)
    kept: list[str] = []
    while body:
        key = next((key for key in left if re.match(rf"[ \t]*\"?{re.escape(key)}\"?[ \t]*=", body[0])), None)
        if key is None:
            kept.append(body.pop(0))
            continue
        length = _length(body)
        is_same = parse("".join(body[:length]))[key] == left[key]
        kept += body[:length] if is_same else [_line(key, left[key]) + newline]
        del body[:length], left[key]
    blank = len(kept)
    while blank and not kept[blank - 1].strip():
        blank -= 1
    head = lines[at] if lines[at].endswith("\n") else lines[at] + newline
    if left and blank and not kept[blank - 1].endswith("\n"):
        kept[blank - 1] += newline
    kept[blank:blank] = [_line(key, value) + newline for key, value in left.items()]
    return [*lines[:at], head, *kept, *lines[end:]]


def _length(body: list[str]) -> int:
    """Return how many lines the assignment takes that the first of them begins. Raises: ``NotToml``."""
    for length in range(1, len(body) + 1):
        try:
            tomllib.loads("".join(body[:length]))
        except tomllib.TOMLDecodeError:
            continue
        return length
    raise NotToml("a value of the table does not end")


def _is_header(line: str, path: Sequence[str], *, may_be_below: bool = False) -> bool:
    """Return whether a line begins the table at a path, or with ``may_be_below`` one below it."""
    if not _HEADER.match(line) or line.lstrip().startswith("[["):
        return False
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    for key in path:
        if not isinstance(found, dict) or list(found) != [key]:
            return False
        found = found[key]
    return may_be_below or bool(found == {})


def _has(whole: Mapping[str, Any], path: Sequence[str]) -> bool:
    found: Any = whole
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


def _get(whole: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = whole
    for key in path:
        found = found[key]
    return found


def _merged(whole: Mapping[str, Any], path: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    if not path:
        return {**whole, **values}
    inner = whole.get(path[0], {})
    if not isinstance(inner, dict):
        raise NotToml(f"`{path[0]}` is no table")
    return {**whole, path[0]: _merged(inner, path[1:], values)}


def _line(key: str, value: Any) -> str:
    return f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    # JSON's texts and lists of texts are TOML's as well, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)
