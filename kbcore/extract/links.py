"""Statements of links: URLs, ids, paths of documents, ``{type, target}`` and ``{edge: [ids]}``.

Nothing is looked up: an id is text, and a path is made relative to the root of the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from kbcore import limits
from kbcore.extract.facts import StatedLink
from kbcore.ids import check_id
from kbcore.model.values import field_problem, is_url, value_problem
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree
from kbcore.text.wording import shortened

RELATES_TO: Final = "relates_to"
DEFAULT_KIND: Final = "link"
_REVERSED: Final = {"superseded_by": "supersedes"}

_URL: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|mailto:)\S+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]{2}")
"""The beginning of a URL, also of one without a scheme of its own."""
_MARKDOWN_LINK: Final = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*+\])*+\]\(\s*+<?+([^()<>\s]++)>?+[^()]*+\)")
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]")
_ID_WORD: Final = re.compile(r"""[^\s,;|<>(){}"'`]+""")
_PLAIN_ID: Final = re.compile(r"[\w-]+")
"""Targets that can be neither a link, a URL nor a path, as most are."""
_DOCUMENT: Final = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)
_TEXT: Final = re.compile(r"\.(?:md|markdown|rst)\Z", re.IGNORECASE)
_TARGET_KEYS: Final = ("target", "to", "id")
_URL_KEYS: Final = ("url", "href")
_DESCRIBING: Final = (*_TARGET_KEYS, *_URL_KEYS, "type", "kind")
"""Keys that show a mapping to describe one link; the keys of any other mapping are names of edges."""

_MAX_NESTING: Final = 3
"""Lists in lists: ``- [[REQ-1]]`` is a list of a list to YAML and a wiki link to its author."""


class LinkTarget(msgspec.Struct, frozen=True):
    """The target of a link: a URL, a document (its path from the root), or an id."""

    text: str
    is_url: bool = False
    is_path: bool = False
    fault: str = ""


class Manner(msgspec.Struct, frozen=True):
    """The edge to a target; the members are those of ``StatedLink``."""

    edge: str | None = None
    kind: str = ""
    fields: dict[str, Any] = {}
    reverse: bool = False


BARE: Final = Manner()


class LinkReader:
    """Collects the links that one entity of one document states."""

    def __init__(self, path: str, subject: str, tree: TextTree, edge_names: AbstractSet[str]) -> None:
        self.path = path
        self.subject = subject
        self.tree = tree
        self.edge_names = edge_names
        self.urls: list[str] = []
        self.links: dict[tuple[Any, ...], StatedLink] = {}
        self.problems: list[FileProblem] = []

    def edge(self, key: str) -> str | None:
        """Return the edge that a key names, or None. Hyphens and capitals do not matter."""
        if key in self.edge_names:
            return key
        folded = key.replace("-", "_").lower()
        return folded if folded in self.edge_names or _REVERSED.get(folded) in self.edge_names else None

    def read(self, value: Any, line: int, edge: str | None = None) -> None:
        """Add what is under ``links``, or under the name of an edge."""
        for item, item_line in self._items(value, line, 0):
            if isinstance(item, str):
                for word in words(item):
                    self.add(word, item_line, BARE if edge is None else Manner(edge))
            elif any(key in item for key in _DESCRIBING):
                self._described(item, item_line, edge)
            elif edge is None:
                for key, ends in item.items():
                    self._named(key, ends, self.tree.line(item, key) or item_line)
            else:
                self._fault(item_line, "a link needs a target", "Write `{target: ID}`, or the id alone.")

    def add(self, word: str, line: int, manner: Manner = BARE) -> None:
        """Take in one link to one target, as typed."""
        target = parse_target(word, self.path)
        if target.fault:
            self._fault(
                line, f"{in_quotes(shortened(word, 80))} is no target of a link: {target.fault}", "Correct the target."
            )
            return
        if target.is_url:
            self._url(target.text, line, manner)
            return
        edge, kind, reverse = manner.edge, manner.kind, manner.reverse
        if edge in _REVERSED and edge not in self.edge_names:
            edge, reverse = _REVERSED[edge], not reverse
        if edge == RELATES_TO:
            kind = kind or DEFAULT_KIND
        link = StatedLink(self.subject, target.text, edge, kind, manner.fields, line, target.is_path, reverse)
        self.links.setdefault((target.text, target.is_path, edge, kind, reverse), link)

    def _url(self, url: str, line: int, manner: Manner) -> None:
        if manner.edge is not None:
            message = f"an edge ({manner.edge}) cannot lead to a URL: {shortened(url, 80)}"
            self._fault(line, message, "Put URLs under `links`, without a type.")
        elif not is_url(url):
            message = f"{in_quotes(shortened(url, 80))} is no URL that may be followed; it is left out"
            self.problems.append(FileProblem(line, "bad_url", message, "Remove it.", "warning"))
        elif url not in self.urls:
            self.urls.append(url)

    def _items(self, value: Any, line: int, depth: int) -> Iterator[tuple[Any, int]]:
        """Yield texts and mappings with their lines, out of lists in lists too."""
        if value is None:
            return
        if isinstance(value, str | dict):
            yield value, line
        elif depth == _MAX_NESTING:
            self._fault(line, "links are nested too deep", "Write one list of ids.")
        else:
            for index, item in enumerate(value):
                yield from self._items(item, self.tree.line(value, index) or line, depth + 1)

    def _named(self, key: str, ends: Any, line: int) -> None:
        """Take in ``edge: ids``. A name in front of a URL is a label."""
        if isinstance(ends, str) and _URL.fullmatch(ends):
            self.add(ends, line)
        elif len(key) > limits.MAX_NAME_CHARS:
            self._fault(line, f"{in_quotes(shortened(key, 40))} is no name of an edge: it is too long", "Shorten it.")
        else:
            self.read(ends, line, self.edge(key) or key)

    def _described(self, item: dict[str, Any], line: int, edge: str | None) -> None:
        """Take in ``{type, target, kind, confidence, …}``."""
        rest = dict(item)
        url = next((rest[key] for key in _URL_KEYS if isinstance(rest.get(key), str)), None)
        if url is not None and not any(key in rest for key in _TARGET_KEYS):
            self.add(url, line)
            return
        targets = next((rest.pop(key) for key in _TARGET_KEYS if key in rest), None)
        stated, kind = rest.pop("type", None), rest.pop("kind", None) or ""
        if not isinstance(stated, str | None) or not isinstance(kind, str):
            self._fault(line, "`type` and `kind` of a link must be text", "Write one name each.")
            return
        if max(len(stated or ""), len(kind)) > limits.MAX_NAME_CHARS:
            self._fault(line, "`type` or `kind` of a link is too long", f"The limit is {limits.MAX_NAME_CHARS}.")
            return
        if stated:
            edge = self.edge(stated) or stated
        manner = Manner(edge, kind, self._fields(rest, line))
        ends = [(end, at) for end, at in self._items(targets, line, 0) if isinstance(end, str)]
        if not ends:
            self._fault(line, "a link has no target", "Write `target: ID`.")
        for end, at in ends:
            for word in words(end):
                self.add(word, at, manner)

    def _fields(self, rest: dict[str, Any], line: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in rest.items():
            if value is None:
                continue
            if key == "confidence":
                number = _number(value)
                if field_problem("confidence", number):
                    self._fault(line, "`confidence` must be a number from 0 to 1", "For example 0.8.")
                else:
                    fields[key] = number
                continue
            members = value if key in {"attributes", "metadata"} and isinstance(value, dict) else {key: value}
            prefix = "metadata." if key == "metadata" else "attributes."
            for name, member in members.items():
                fault = value_problem({name: member})
                if fault:
                    self._fault(line, f"`{shortened(name, 40)}` of a link {fault.message}", fault.hint)
                elif member is not None:
                    fields[prefix + name] = member
        return fields

    def _fault(self, line: int, message: str, hint: str) -> None:
        self.problems.append(FileProblem(line, "bad_link", message, hint))


def words(text: str) -> list[str]:
    """Return the targets in one text: several only where commas part what could be ids, paths or URLs."""
    text = text.strip()
    if "," not in text:
        return [text] if text else []
    parts = [part.strip() for part in text.split(",")]
    parts = [part for part in parts if part]
    if all(_ID_WORD.fullmatch(part) or _WIKILINK.fullmatch(part) or _MARKDOWN_LINK.fullmatch(part) for part in parts):
        return parts
    return [text]


def parse_target(text: str, path: str) -> LinkTarget:
    """Return what a target, as typed in the document at ``path``, leads to; ``fault`` if it leads nowhere."""
    if _PLAIN_ID.fullmatch(text):
        return LinkTarget(text, fault=check_id(text) or "")
    wiki = _WIKILINK.fullmatch(text)
    marked = _MARKDOWN_LINK.fullmatch(text)
    if wiki:
        text = wiki[1].partition("#")[0].strip()
    elif marked:
        text = marked[1]
    elif text.startswith("<") and text.endswith(">"):
        text = text[1:-1]
    if _URL.fullmatch(text):
        fault = "it is too long" if len(text.encode()) > limits.MAX_TEXT_BYTES else ""
        return LinkTarget(text, is_url=True, fault=fault)
    file = text.partition("#")[0].partition("?")[0].strip()
    if _DOCUMENT.search(file):
        return _document(file, path)
    if marked:
        return LinkTarget(text, fault="it is neither a URL nor a Markdown file")
    return LinkTarget(text, fault=check_id(text) or "")


def parse_path(text: str, path: str) -> str | None:
    """Return the document, from the root, that a link in the text of the document at ``path`` leads to, or None."""
    file = text.partition("#")[0].partition("?")[0].strip()
    if not _TEXT.search(file) or _SCHEME.match(text):
        return None
    target = _document(file, path)
    return None if target.fault else target.text


def targets_in(text: str, path: str) -> list[str]:
    """Return the ids and documents that a phrase names: its links, else its one word. URLs are left out."""
    found = [match[0] for match in re.finditer(f"{_WIKILINK.pattern}|{_MARKDOWN_LINK.pattern}", text)]
    word = text.strip().rstrip(".")
    if not found and _ID_WORD.fullmatch(word):
        found = [word]
    parsed = ((target, parse_target(target, path)) for target in found)
    return [target for target, meaning in parsed if not meaning.is_url and not meaning.fault]


def _document(file: str, path: str) -> LinkTarget:
    file = unquote(file).replace("\\", "/")
    joined = file.lstrip("/") if file.startswith("/") else posixpath.join(posixpath.dirname(path), file)
    normal = posixpath.normpath(joined)
    if normal == ".." or normal.startswith("../"):
        return LinkTarget(file, fault="it is outside of the repository")
    if "\0" in normal or len(normal) > limits.MAX_TEXT_BYTES // 4:
        return LinkTarget(file, fault="it is no path")
    return LinkTarget(normal, is_path=True)


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None
