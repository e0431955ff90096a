"""Settings of a source that can have no effect beside its others: each is a problem. Pure.

The settings are checked one by one before, as ``check`` does, so that each is of the kind that it must be. What a
profile states is never a problem: an entry that changes its files need not take out the rest.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kbcore.extract.sources import patterns
from kbcore.extract.sources.entry import folded
from kbcore.extract.sources.source import DATA, ENDINGS, TEXTS, texts
from kbcore.model.schema import CORE
from kbcore.text.validator import ConfigNode, shown

NO_EFFECT: Final = "no_effect"
_WORKBOOK: Final = frozenset({"xlsx"})
_NEEDED: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "sheet": (_WORKBOOK, "only workbooks have sheets"),
    "mentions": (TEXTS, "only Markdown, reStructuredText and AsciiDoc have links in texts"),
    "mentionIds": (TEXTS, "only Markdown, reStructuredText and AsciiDoc have links in texts"),
    "parts": (TEXTS | DATA, "each row or object is an entity already"),
}
"""Settings by the formats that they are for, and why."""


def check_globs(entry: ConfigNode, whole: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> None:
    """Keep the problem of a glob that an earlier entry has too: that one reads its files. Both entries are complete."""
    known = {_plain(glob): number for number, one in enumerate(before) for glob in texts(one["glob"])}
    for glob in texts(whole["glob"]):
        if _plain(glob) in known:
            message = f"The glob {shown(glob)} has no effect: sources[{known[_plain(glob)]}] reads these files."
            entry.wrong(NO_EFFECT, message, "The first source that means a file reads it: join the two, or change one.")


def check_effects(members: Mapping[str, ConfigNode], whole: Mapping[str, Any]) -> None:
    """Keep the problems of the members of an entry that have no effect; ``whole`` is the entry with its profile."""
    formats = _formats(whole)
    for key, (needed, what) in _NEEDED.items():
        if key in members and formats and not formats & needed:
            _of_format(members[key], key, what, formats)
    _check_items(members.get("items"), formats)
    for part in members["parts"].items() if "parts" in members else ():
        inner = part.members()
        _check_items(inner["items"], formats & (TEXTS | DATA))
        _check_statements(inner, {})
    if "mentionIds" in members and whole.get("mentions") is False:
        _no_effect(members["mentionIds"], "mentionIds", "`mentions` is false", "Leave one of the two out.")
    if "withFields" in members and not whole.get("with"):
        _no_effect(members["withFields"], "withFields", "`with` names no file", "Add `with`, or leave it out.")
    _check_statements(members, whole)


def _formats(whole: Mapping[str, Any]) -> frozenset[str]:
    """Return the formats of the files of an entry; none where a glob leaves the ending open."""
    if whole.get("format"):
        return frozenset({whole["format"]})
    endings = [posixpath.splitext(_plain(glob))[1].lower() for glob in texts(whole["glob"])]
    return frozenset(ENDINGS[one] for one in endings) if all(one in ENDINGS for one in endings) else frozenset()


def _plain(glob: str) -> str:
    return patterns.plain_glob(glob).removeprefix("./")


def _check_items(items: ConfigNode | None, formats: frozenset[str]) -> None:
    if items is None:
        return
    is_path = isinstance(items.value, str)
    if formats and not formats & (DATA | TEXTS):
        _of_format(items, "items", "each row or object is an entity already", formats)
    elif formats and not formats & (DATA if is_path else TEXTS):
        what = "a path leads into JSON, YAML and TOML alone" if is_path else "only texts have headings and lines"
        _of_format(items, "items", what, formats)
    if isinstance(items.value, dict) and "extent" in items.value and "line" not in items.value:
        _no_effect(items.members()["extent"], "extent", "it says what belongs to a `line`", "Leave it out.")


def _check_statements(members: Mapping[str, ConfigNode], whole: Mapping[str, Any]) -> None:
    """Check what an entry and a part have alike; ``whole`` has the keys of the profile too."""
    for key in ("fields", "links", "withFields"):
        if key in members:
            _check_repeated(members[key].members(), folded, whole.get(key, ()))
    for key in ("type", "status"):
        rule = members[key].members() if key in members and isinstance(members[key].value, dict) else {}
        if "map" in rule:
            _check_repeated(rule["map"].members(), lambda text: text.strip().lower())
    title = members["title"].members() if "title" in members and isinstance(members["title"].value, dict) else {}
    if "match" in title:
        names = [name for one in texts(title["match"].value) for name in patterns.placeholders(one)]
        if "title" not in {name.partition(":")[0] for name in names}:
            why, hint = "no pattern names the part `title`", 'For example "{number:d}. {title}".'
            _no_effect(title["match"], "match", why, hint)
    for link in members["links"].members().values() if "links" in members else ():
        for one in link.items() if isinstance(link.value, list) else [link]:
            _check_kind(one)


def _check_kind(rule: ConfigNode) -> None:
    if not isinstance(rule.value, dict) or "kind" not in rule.value:
        return
    edge = CORE.edges.get(rule.value["edge"].removeprefix("^"))
    if edge and not edge.needs_kind:
        _no_effect(rule.members()["kind"], "kind", f"`{edge.name}` has no kinds", "Leave it out, or use `relates_to`.")


def _check_repeated(members: Mapping[str, ConfigNode], fold: Callable[[str], str], others: Iterable[str] = ()) -> None:
    """Keep the problem of a key that means the same as one before it, or as one of the profile."""
    known: dict[str, str] = {}
    for key in others:
        known.setdefault(fold(key), key)
    for key, member in members.items():
        if "{" not in key and known.setdefault(fold(key), key) != key:
            message = (
                f"The key {shown(key)} means the same as {shown(known[fold(key)])}, and one of them has no effect."
            )
            member.wrong(NO_EFFECT, message, "Leave one of the two out: capitals do not matter.")


def _of_format(spot: ConfigNode, key: str, why: str, formats: Iterable[str]) -> None:
    _no_effect(spot, key, f"{why}, and the files are {' and '.join(sorted(formats))}", "Leave it out.")


def _no_effect(spot: ConfigNode, key: str, why: str, hint: str) -> None:
    spot.wrong(NO_EFFECT, f"`{key}` has no effect: {why}.", hint)
