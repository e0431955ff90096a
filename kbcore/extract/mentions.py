"""The links in the text of a document: the documents and ids that it mentions.

Of reStructuredText they are read by ``rst_links``. Of any other text inline links, reference links, and wiki links to
documents are read. Code, HTML comments, images, URLs and links within the document state nothing. An id in brackets
counts only where it begins as the settings say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kbcore import limits
from kbcore.extract import prose, rst_links
from kbcore.extract.facts import StatedLink
from kbcore.extract.links import parse_path
from kbcore.ids import check_id
from kbcore.model.schema import MENTIONS
from kbcore.text.problems import FileProblem

_DOCUMENT: Final = re.compile(r"\.(?:md|markdown|rst)\b", re.IGNORECASE)
_RST: Final = ".rst"
_TEXT: Final = r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*+\])*+)\]"
_TITLE: Final = r"""(?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+"""
_PLACE: Final = r"(?:<(?P<angled>[^<>\n]*+)>|(?P<plain>(?:[^\s()<>]|\([^\s()]*+\))++))"
_LINK: Final = re.compile(rf"(?P<image>!?){_TEXT}(?:\(\s*+{_PLACE}{_TITLE}\s*+\)|\[(?P<label>[^\[\]]*+)\])?+")
_DEFINITION: Final = re.compile(r""" {0,3}\[(?!\^)([^\[\]]++)\]:[ \t]*+(?:<([^<>]*+)>|(\S++))[ \t]*+(?:["'(].*)?$""")
_TICKS: Final = re.compile(r"\\*+(`++)")
_ESCAPED: Final = re.compile(r"\\[\[\]()!<>\\]")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_BLANKS: Final = re.compile(r"\s+")

_Lines = list[tuple[int, str]]
"""Lines of a text with their numbers."""


def mentions(
    body: str, first_line: int, path: str, subject: str, beginnings: Sequence[str] = ()
) -> tuple[list[StatedLink], list[FileProblem]]:
    """Return what a text mentions, each document and id once, with the line of the first link to it.

    ``path`` is that of the document, ``subject`` the entity that it defines; ids in brackets count if they begin with
    one of ``beginnings``. More links than a document may have are a problem.
    """
    if path.lower().endswith(_RST):
        targets = ((target, True, line) for target, line in rst_links.linked_documents(body, first_line, path))
        return _links(targets, path, subject)
    if "[" not in body or not (_DOCUMENT.search(body) or any(f"[{one}" in body for one in beginnings)):
        return [], []
    return _links(_targets(body, first_line, path, tuple(beginnings)), path, subject)


def _links(
    targets: Iterable[tuple[str, bool, int]], path: str, subject: str
) -> tuple[list[StatedLink], list[FileProblem]]:
    """Return a link to each of these targets that is not the document itself, and a problem where they are too many."""
    found: dict[tuple[str, bool], StatedLink] = {}
    for target, is_path, line in targets:
        if target != (path if is_path else subject) and (target, is_path) not in found:
            if len(found) == limits.MAX_MENTIONS:
                message = f"the text links to more than {limits.MAX_MENTIONS} documents; the others are not recorded"
                hint = "Leave the document out of `mentions` in the settings, or split it."
                return list(found.values()), [FileProblem(line, "more_mentions", message, hint, "warning")]
            link = StatedLink(subject, target, MENTIONS, line=line, is_path=is_path, in_text=True)
            found[target, is_path] = link
    return list(found.values()), []


class _Reference(NamedTuple):
    """A target as typed, and whether it is the text of a reference, which may be an id and is no path."""

    target: str
    is_text: bool


def _targets(body: str, first_line: int, path: str, beginnings: tuple[str, ...]) -> Iterator[tuple[str, bool, int]]:
    """Yield the targets of links in their order: a path or an id, which of both, and the line."""
    paragraphs = list(_paragraphs(_without_code(prose.prose_lines(body, first_line))))
    defined: dict[str, str] = {}
    for _, line in itertools.chain.from_iterable(paragraphs):
        if "]:" in line and (definition := _DEFINITION.match(line)):
            defined.setdefault(_label(definition[1]), definition[2] or definition[3] or "")
    for lines in paragraphs:
        kept = ["" if "]:" in line and _DEFINITION.match(line) else line for _, line in lines]
        text = "\n".join(kept)
        if "[" not in text:
            continue
        text = _ESCAPED.sub("  ", _without_spans(text))
        at = breaks = 0
        for found in _LINK.finditer(text):
            breaks += text.count("\n", at, found.start())
            at, number = found.start(), lines[breaks][0]
            for target, is_text in _meant(found, defined):
                document = None if is_text else parse_path(target, path)
                if document is not None:
                    yield document, True, number
                elif is_text and target.startswith(beginnings) and check_id(target) is None:
                    yield target, False, number


def _meant(found: re.Match[str], defined: Mapping[str, str]) -> Iterator[_Reference]:
    """Yield what a link may lead to."""
    if found["image"]:
        return
    target = found["angled"] if found["angled"] is not None else found["plain"]
    inner = found["text"]
    if target is not None:
        yield _Reference(target, is_text=False)
    elif "](" in inner:
        # Brackets around links are text.
        for one in _LINK.finditer(inner):
            yield from _meant(one, defined)
    elif inner.startswith("[") and inner.endswith("]"):
        wiki = inner[1:-1].partition("|")[0].rstrip("\\").strip()
        yield _Reference(wiki, is_text=not _DOCUMENT.search(wiki))
    else:
        label = _label(found["label"] or inner)
        if label in defined:
            yield _Reference(defined[label], is_text=False)
        else:
            yield from (_Reference(one.strip(), is_text=True) for one in (inner, found["label"]) if one)


def _label(text: str) -> str:
    return _BLANKS.sub(" ", text.strip()).casefold()


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[_Lines]:
    """Yield the runs of lines that are not blank: a link does not go on after a blank line."""
    for has_text, run in itertools.groupby(lines, key=lambda line: bool(line[1].strip())):
        if has_text:
            yield list(run)


def _without_code(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines without code that is indented, and without fences in items of a list; such lines become blank."""
    in_list, is_code, was_blank = False, False, True
    fence, indent = "", 0
    for number, line in lines:
        is_blank = not line.strip()
        expanded = line.expandtabs(4)
        depth = len(expanded) - len(expanded.lstrip(" "))
        if fence and (is_blank or depth >= indent):
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield number, ""
            continue
        fence = ""
        if not is_blank:
            in_list = bool(_ITEM.match(line)) or (in_list and (depth > 0 or not was_blank))
            is_code = depth >= 4 and not in_list and (was_blank or is_code)  # noqa: PLR2004 - as CommonMark has it
            opened = _FENCE.match(line) if in_list and depth else None
            if opened:
                fence, indent = opened[1], depth
        yield number, "" if is_code or fence else line
        was_blank = is_blank


def _without_spans(text: str) -> str:
    """Return a text with blanks in place of its spans of code; line feeds stay."""
    if "`" not in text:
        return text
    runs = [(found.start(1), found.end(1), (found.start(1) - found.start()) % 2) for found in _TICKS.finditer(text)]
    later: dict[int, list[int]] = {}
    for start, end, _ in reversed(runs):
        later.setdefault(end - start, []).append(start)
    kept: list[str] = []
    at = 0
    for start, end, is_escaped in runs:
        size = end - start
        if start < at or is_escaped:
            continue
        waiting = later[size]
        while waiting and waiting[-1] <= start:
            waiting.pop()
        if waiting:
            close = waiting[-1] + size
            kept += [text[at:start], re.sub(r"[^\n]", " ", text[start:close])]
            at = close
    return "".join([*kept, text[at:]])
