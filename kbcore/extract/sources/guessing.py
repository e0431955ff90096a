"""An entry of ``sources`` for documents of a folder that no profile knows, guessed from their keys and names. Pure.

Nothing is guessed without a sign that the documents are records: a key or a number of their own, a status, or a folder
with a name such as ``decisions``. Pages of a manual have none of these.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract.sources import profiles
from kbcore.extract.sources.document import INDEX
from kbcore.extract.sources.entry import Entry, folded
from kbcore.extract.sources.recognition import LookedAtFile
from kbcore.ids import check_id
from kbcore.model.schema import ANY, CORE
from kbcore.text.globs import glob_of

_MOST_OF: Final = 0.8
_NUMBERED_OF: Final = 0.6
"""The part of file names with a number from which the number is the id; the glob means no others."""
_ID_KEYS: Final = ("id", "key", "issue-key", "identifier", "uid", "number", "no", "ref", "issue-id", "req-id")
_TITLE_KEYS: Final = ("title", "name", "summary", "subject", "heading")
_STATE_KEYS: Final = frozenset({"status", "state", "priority", "severity", "issue-type", "resolution"})
_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "adr": (
        "adr",
        "adrs",
        "decision",
        "decisions",
        "design-decisions",
        "rfc",
        "rfcs",
        "proposals",
        "peps",
        "decision-log",
    ),
    "req": ("req", "reqs", "requirement", "requirements", "srs", "user-requirements", "system-requirements"),
    "scenario": ("scenario", "scenarios", "use-case", "use-cases", "usecases", "user-stories", "stories"),
    "test": ("test-cases", "testcases", "test-case", "tests", "test", "test-plans"),
    "component": ("component", "components", "services"),
    "flag": ("flags", "feature-flags"),
    "task": ("task", "tasks", "issues", "tickets", "backlog", "todos"),
}
"""Words of folders, by the type of what is there."""
_SURE: Final = frozenset({"adr", "req", "scenario"})
"""Types of folders whose documents need no other sign."""
_KEYS_OF: Final[Mapping[str, frozenset[str]]] = {
    "adr": frozenset({"decision-makers", "deciders", "supersedes", "superseded-by", "rfc", "pep", "adr", "decision"}),
    "test": frozenset({"steps", "expected", "expected-result", "preconditions", "test-type"}),
    "scenario": frozenset({"given", "when", "then"}),
    "req": frozenset({"acceptance-criteria", "rationale", "verification", "fit-criterion", "normative"}),
    "task": frozenset({"assignee", "milestone", "due", "sprint", "story-points", "dependencies", "reporter"}),
}
_WORDS: Final[Mapping[str, str]] = {
    "requirement": "req", "functional": "req", "story": "req", "user story": "req", "feature": "req", "epic": "req",
    "need": "req", "decision": "adr", "architecture decision": "adr", "rfc": "adr", "proposal": "adr",
    "test case": "test", "testcase": "test", "use case": "scenario", "service": "component", "module": "component",
    "bug": "task", "defect": "task", "issue": "task", "sub-task": "task", "ticket": "task", "chore": "task",
}  # fmt: skip
"""The names of the types in other tools."""
_LINKS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("supersedes", "replaces", "obsoletes"), "supersedes"),
    **dict.fromkeys(("verifies", "tests", "validates"), "^verified_by"),
    **dict.fromkeys(("validated-by", "tested-by"), "verified_by"),
    **dict.fromkeys(("superseded-by", "replaced-by", "obsoleted-by"), "^supersedes"),
    **dict.fromkeys(
        ("requires", "depends-on", "depends", "related", "relates-to", "see-also", "parent", "extends", "blocks",
         "blocked-by", "dependencies", "references", "refs", "implements", "amends", "updates",
         "satisfies", "refines", "derived-from", "traces-to", "constrains", "constrained-by"),
        "relates_to",
    ),
}  # fmt: skip
_NUMBERED: Final = re.compile(r"([A-Za-z][A-Za-z]*(?:[-_][A-Za-z]+)*)?([-_]?)(\d{1,6})(?:([-_. ]).*)?")
_NAMES_ONE: Final = re.compile(r"\d|/|\.md$")
"""Characters of a value that is another document's id or path: a parent of a page in a menu has none of these."""
_OF_DECISIONS: Final = "adr-tools"
"""The profile that knows the words of a section Status."""
_PAGE: Final = "doc"
_STEM: Final = "{file.stem}"
_NO_RECORDS: Final = ("**/README*", "**/index*", "**/*template*")
"""Files that an id made of the name of the file would make entities of."""
_MARKDOWN: Final = frozenset({".md", ".markdown"})
_HEADED: Final = re.compile(r"^#{1,6}[ \t]+\[?([A-Z][A-Z0-9]{1,15})-\d{1,6}(?:\]|:|[ \t])[ \t]*\S", re.MULTILINE)
_PREFIXES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("REQ", "FR", "NFR", "SRS", "US", "SYS"), "req"),
    **dict.fromkeys(("ADR", "RFC", "DEC"), "adr"),
    **dict.fromkeys(("TEST", "TC"), "test"),
    **dict.fromkeys(("SC", "UC"), "scenario"),
}
"""The types of entities, by the beginnings of their ids."""
_ITEMS: Final = 200


class Guess(msgspec.Struct, frozen=True):
    """A way to read the files of one folder and ending; ``tail`` is the part of the glob after the folder.

    ``entry`` has no glob. Without an entry they are documents of the markdown extractor, of this type.
    """

    type: str
    tail: str
    entry: dict[str, Any] | None = None

    @property
    def alike(self) -> str:
        """The key that is the same for folders that one entry describes."""
        return json.dumps([self.type, self.tail, self.entry], sort_keys=True)


def of_texts(folder: str, ending: str, names: Sequence[str], files: Sequence[LookedAtFile]) -> Guess | None:
    """Return how the texts of a folder may be read, by some of them; None where nothing says that they are records."""
    entries = [(posixpath.basename(one.path), one.document) for one in files]
    known = [(name, entry) for name, entry in entries if entry is not None]
    if not known:
        return None
    if ending in _MARKDOWN and (headed := _of_headings(folder, names, files)):
        return headed
    common, several = _common_keys([entry for _, entry in known]), len(names) > 1
    hint = _of_folder(folder)
    key = _unique_key([entry for _, entry in known], common)
    is_own = key == "id" and ending in _MARKDOWN and (several or "type" in common or "status" in common)
    if is_own and all(type_ in CORE.entities for type_ in _texts([entry for _, entry in known], "type")):
        type_ = _type(hint, common, [entry for _, entry in known])
        links = _links([entry for _, entry in known], "{id}", type_)
        is_plain = not links or "type" in common
        return Guess(type_, f"*{ending}", None if is_plain else {"type": type_, "id": "{id}", "links": links})
    numbered = _numbering(names)
    is_record = key is not None or bool(common & _STATE_KEYS) or bool(numbered and (hint or len(common) > 1))
    if not (several and (is_record or hint in _SURE)):
        return None
    type_ = _type(hint, common, [entry for _, entry in known])
    tail, id_ = f"*{ending}", ""
    if key is not None:
        id_ = _id_of_key(key, type_, [entry for _, entry in known])
    elif numbered:
        tail, id_ = numbered[0] + ending, numbered[1].format(prefix=f"{_prefix(type_)}-")
    else:
        id_ = _STEM
    entry: dict[str, Any] = {"type": _type_rule(type_, [one for _, one in known]), "id": id_}
    links = _links([one for _, one in known], id_, type_)
    if type_ == "adr" and "status" not in common and _has_section(files, "Status"):
        known_id = profiles.read(_OF_DECISIONS)["source"]["id"]
        entry = {"profile": _OF_DECISIONS, **({} if id_ == known_id else {"id": id_})}
    if id_ == _STEM:
        entry["ignore"] = [*_NO_RECORDS]
    return Guess(type_, tail, {**entry, **({"links": links} if links else {})})


def _has_section(files: Sequence[LookedAtFile], heading: str) -> bool:
    return 2 * sum(file.has_heading(heading) for file in files) > len(files)


def _of_headings(folder: str, names: Sequence[str], files: Sequence[LookedAtFile]) -> Guess | None:
    """Return how documents may be read of which headings begin several entities each, such as ``## REQ-12 Log in``."""
    prefixes: set[str] = set()
    having: list[str] = []
    for file in files:
        found = [match[1] for match in _HEADED.finditer(file.text)]
        own = {prefix for prefix in found if found.count(prefix) > 1}
        if own:
            having.append(posixpath.basename(file.path))
        prefixes |= own
    if len(prefixes) != 1:
        return None
    prefix = prefixes.pop()
    hint = _of_folder(folder) or _of_folder(posixpath.splitext(having[0])[0].lower())
    type_ = _PREFIXES.get(prefix) or hint or "req"
    is_one = len(having) < _MOST_OF * len(files) or len(names) == 1
    if is_one and len(having) > 1:
        return None  # a glob that means these files alone is for a person to write
    ending = posixpath.splitext(having[0])[1]
    shapes = (
        "[{prefix}-{{number:d}}] {{title}}",
        "{prefix}-{{number:d}}: {{title}}",
        "{prefix}-{{number:d}} {{title}}",
    )
    items = {"heading": [shape.format(prefix=prefix) for shape in shapes]}
    entry = {"items": items, "type": type_, "id": f"{prefix}-{{number}}", "title": "title"}
    return Guess(type_, glob_of(having[0]) if is_one else f"*{ending}", entry)


def of_table(path: str, entries: Sequence[Entry], items: str = "") -> Guess | None:
    """Return how the rows of a table, or the items of a list, may be read; None where they are no records."""
    entries = entries[:_ITEMS]
    if len(entries) < 2:  # noqa: PLR2004 - one row says nothing
        return None
    common = _common_keys(entries)
    key = _unique_key(entries, common, most_of=1.0)
    title = next((one for one in _TITLE_KEYS if one in common), None)
    if key is None or title is None or not common & (_STATE_KEYS | {"type", "description"}):
        return None
    hint = _of_folder(posixpath.splitext(path)[0].replace("_", "-").lower())
    type_ = _type(hint, common, entries)
    id_ = _id_of_key(key, type_, entries)
    entry = {"type": _type_rule(type_, entries), "id": id_, "title": _written(entries, title)}
    state = next((one for one in ("status", "state") if one in common), None)
    links = _links(entries, id_, type_)
    more = {"items": items} if items else {}
    if state and state != "status":
        more["status"] = state
    return Guess(type_, posixpath.basename(path), {**more, **entry, **({"links": links} if links else {})})


def item_paths(root: Any) -> list[str]:
    """Return the paths to the lists of objects of a JSON document that may be entries."""
    if isinstance(root, list):
        return ["$[*]"] if any(isinstance(one, dict) for one in root) else []
    found = root.items() if isinstance(root, dict) else ()
    return [
        f"$.{key}[*]"
        for key, value in found
        if re.fullmatch(r"[A-Za-z_][\w-]*", key) and isinstance(value, list) and value and isinstance(value[0], dict)
    ]


def default_type(*, has_state: bool) -> str:
    """Return the type of documents of which nothing tells the type.

    What has a status or a priority is asked for or to be done, which is a requirement as far as rules go. Without one,
    documents are pages: as requirements they would be reported to lack tests.
    """
    return _PAGE if _PAGE in CORE.entities and not has_state else "req"


def _of_folder(folder: str) -> str:
    """Return the type that a folder, or the one above, is called after; "" for none."""
    for part in reversed(folder.split("/")[-2:]):
        word = folded(part).strip("_.")
        for type_, words in _FOLDERS.items():
            if word in words:
                return _known(type_)
    return ""


def _known(type_: str) -> str:
    return type_ if type_ in CORE.entities else "req"


def _common_keys(entries: Sequence[Entry]) -> frozenset[str]:
    counts: dict[str, int] = {}
    for entry in entries:
        for key in {folded(one) for one, value in entry.values.items() if value is not None}:
            counts[key] = counts.get(key, 0) + 1
    return frozenset(key for key, count in counts.items() if count >= _MOST_OF * len(entries))


def _texts(entries: Iterable[Entry], key: str) -> list[str]:
    return [text for text in (entry.text_of(key) for entry in entries) if text]


def _unique_key(entries: Sequence[Entry], common: Collection[str], most_of: float = _MOST_OF) -> str | None:
    """Return the key whose values can be ids: one of the usual names, else one with a number in each value."""
    named = {*_ID_KEYS, *_TITLE_KEYS}
    others = [key for key in (folded(one) for one in entries[0].values) if key in common and key not in named]
    for key in (*(one for one in _ID_KEYS if one in common), *others):
        values = _texts(entries, key)
        if len(values) < most_of * len(entries) or len({*values}) < most_of * len(values):
            continue
        if any(check_id(one) or " " in one for one in values):
            continue
        is_number = all(re.fullmatch(r"(?:[A-Za-z]{1,12}[-_]?)?\d{1,8}", one) for one in values)
        is_own = is_number and 1 < len(values) == len({*values}) and not _is_counter(key)
        if key in _ID_KEYS or is_own:
            return key
    return None


def _is_counter(key: str) -> bool:
    words = ("position", "order", "weight", "date", "created", "updated", "priority", "version", "year", "points")
    return any(word in key for word in words)


def _written(entries: Sequence[Entry], key: str) -> str:
    """Return a key as the documents write it."""
    return next((one for entry in entries for one in entry.values if folded(one) == key), key)


def _id_of_key(key: str, type_: str, entries: Sequence[Entry]) -> str:
    written = _written(entries, key)
    if not all(value.isdecimal() for value in _texts(entries, key)):
        return f"{{{written}}}"
    prefix = _prefix(type_) if key in _ID_KEYS else written.upper()
    return f"{prefix}-{{{written}}}"


def _prefix(type_: str) -> str:
    return type_.upper()


def _numbering(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the tail of the glob and the template of the id of files with numbers in their names; else None.

    ``{prefix}`` in the template is for the caller to fill.
    """
    stems = [posixpath.splitext(one)[0] for one in names if not INDEX.fullmatch(one)]
    found = [match for match in map(_NUMBERED.fullmatch, stems) if match]
    if not stems or len(found) < _NUMBERED_OF * len(stems):
        return None
    prefixes = {(match[1] or "") + match[2] for match in found}
    has_rest = any(match[4] for match in found)
    if len(prefixes) == 1:
        prefix, part = prefixes.pop(), found[0][4] or "-"
        if has_rest and {match[4] for match in found} != {part}:
            part = ""
        tail = f"{prefix}{{number:d}}" + ((f"{part}{{slug}}" if part else "*") if has_rest else "")
        own = prefix.rstrip("-_")
        return tail, (f"{own.upper()}-{{{{number}}}}" if own else "{prefix}{{number}}")
    return None if has_rest else ("*", "{{file.stem}}")


def _type(hint: str, common: Collection[str], entries: Sequence[Entry]) -> str:
    if hint:
        return hint
    scores = {type_: len(keys & {*common}) for type_, keys in _KEYS_OF.items()}
    best = max(scores, key=lambda one: scores[one])
    if scores[best]:
        return _known(best)
    said = {_WORDS.get(text.lower(), text.lower()) for text in _texts(entries, "type")}
    stated = [one for one in said if one in CORE.entities]
    return stated[0] if len(said) == 1 and stated else default_type(has_state=bool({*common} & _STATE_KEYS))


def _type_rule(type_: str, entries: Sequence[Entry]) -> str | dict[str, Any]:
    """Return the type, or the rule that takes it out of a field where its values are names of types."""
    for key in ("type", "issue-type", "kind"):
        values = {*_texts(entries, key)}
        known = {text: _known(_WORDS.get(text.lower(), text.lower())) for text in sorted(values) if _is_type(text)}
        if 2 * len(known) > len(values):
            default = max(known.values(), key=[*known.values()].count) if type_ == _PAGE else type_
            return {"field": _written(entries, key), "map": known, "default": default}
    return type_


def _is_type(text: str) -> bool:
    return text.lower() in _WORDS or text.lower() in CORE.entities


def _links(entries: Sequence[Entry], id_: str, type_: str) -> dict[str, Any]:
    """Return rules for keys that name other documents; a plain number means the document of that number.

    An edge that may not lead from documents of the type, or to them, becomes ``relates_to``.
    """
    found: dict[str, Any] = {}
    placeholder = re.search(r"\{[^{}]*\}", id_)
    for entry in entries:
        for written, value in entry.values.items():
            key = folded(written)
            if key not in _LINKS or written in found:
                continue
            pieces = [one.strip() for one in (value if isinstance(value, list) else str(value).split(",")) if one]
            if not pieces or not all(isinstance(one, str) and _NAMES_ONE.search(one) for one in pieces):
                continue
            edge = _LINKS[key] if _may_begin(_LINKS[key], type_) else "relates_to"
            is_number = all(one.isdecimal() for one in pieces)
            rule: dict[str, Any] = {"edge": edge, **({"kind": key} if edge == "relates_to" else {})}
            if is_number and placeholder and not id_.startswith("{"):
                rule["id"] = id_.replace(placeholder[0], "{value}")
            elif written in CORE.edges:
                continue
            found[written] = {**rule, **({} if isinstance(value, list) else {"split": ","})}
    return found


def _may_begin(edge: str, type_: str) -> bool:
    """Return whether an edge, or with ``^`` the edge turned round, may lead away from entities of a type."""
    known = CORE.edges.get(edge.removeprefix("^"))
    ends = () if known is None else known.to_types if edge.startswith("^") else known.from_types
    return not ends or bool({type_, ANY} & {*ends})
