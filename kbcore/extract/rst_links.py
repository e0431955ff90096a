"""The documents that a reStructuredText document links to: roles ``:doc:``, entries of a ``toctree``, and hyperlinks.

In a PEP, the role ``:pep:`` and ``PEP 8`` in the text mean the one of this number beside it.

Code, comments and literals state nothing, nor does a name that begins with ``/``: the folder of the site, from which it
is counted, is not known here. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kbcore.extract.links import parse_path

_ROLE: Final = re.compile(r":doc:`(?:[^`<]*<([^`<>]+)>|([^`<>]+))`")
_HYPERLINK: Final = re.compile(r"(?<!:)`[^`<]*<([^`<>\s]+)>`__?")
_TARGET: Final = re.compile(r"[ \t]*\.\. _[^:]+:[ \t]+(\S+)[ \t]*$")
_DIRECTIVE: Final = re.compile(r"[ \t]*\.\.[ \t]+([\w:.+-]+)::")
_COMMENT: Final = re.compile(r"[ \t]*\.\.(?:[ \t]|$)(?![ \t]*(?:_|\[|\|))")
_LITERAL: Final = re.compile(r"``.+?``(?!`)")
_ENTRY: Final = re.compile(r"(?:.*<([^<>]+)>|([^:<>*?\[\s][^<>*?\[]*))$")
_CODE: Final = frozenset({"code", "code-block", "sourcecode", "literalinclude", "math", "raw", "doctest", "testcode"})
_PEP_FILE: Final = re.compile(r"(?:.*/)?pep-\d{4}\.rst")
_PEP: Final = re.compile(r":pep:`(?:[^`<]*<)?(\d{1,4})(?:#[^`<>]*)?>?`|\bPEPs?[ -](\d{1,4})\b(?!\.\d)")
_TOCTREE: Final = "toctree"


def linked_documents(body: str, first_line: int, path: str) -> Iterator[tuple[str, int]]:
    """Yield the paths of the documents that the text of the document at ``path`` links to, each with its line."""
    ending, is_pep = posixpath.splitext(path)[1], _PEP_FILE.fullmatch(path) is not None
    for number, line, is_entry in lines_of_text(enumerate(body.split("\n"), first_line)):
        for name in _entry(line) if is_entry else _names(line):
            found = None if name.startswith("/") else parse_path(f"{name}{ending}", path)
            if found is not None:
                yield found, number
        for place in () if is_entry else (*_places(line), *(_peps(line, ending) if is_pep else ())):
            found = parse_path(place, path)
            if found is not None:
                yield found, number


def lines_of_text(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines that are no code and no comment: the number, the line, whether it is an entry of a toctree."""
    skipped_from = toctree_from = -1
    for number, line in lines:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if skipped_from >= 0 and depth > skipped_from:
            continue
        skipped_from = -1
        if toctree_from >= 0 and depth > toctree_from:
            yield number, line, True
            continue
        toctree_from = -1
        directive = _DIRECTIVE.match(line)
        if directive:
            toctree_from = depth if directive[1] == _TOCTREE else -1
            skipped_from = depth if directive[1] in _CODE else -1
        elif _COMMENT.match(line) and not _TARGET.match(line):
            skipped_from = depth
            continue
        elif line.rstrip().endswith("::"):
            skipped_from = depth
        yield number, line, False


def _entry(line: str) -> Iterator[str]:
    found = _ENTRY.match(line.strip())
    name = (found[1] or found[2]).strip() if found else ""
    if name and name != "self":
        yield name.removesuffix(".rst")


def _names(line: str) -> Iterator[str]:
    """Yield the names of documents in roles of a line."""
    for found in _ROLE.finditer(_LITERAL.sub("", line)):
        yield (found[1] or found[2]).strip()


def _peps(line: str, ending: str) -> Iterator[str]:
    """Yield the files of the PEPs that a line names."""
    for found in _PEP.finditer(_LITERAL.sub("", line)):
        yield f"pep-{int(found[1] or found[2]):04}{ending}"


def _places(line: str) -> Iterator[str]:
    """Yield the places of hyperlinks of a line."""
    target = _TARGET.match(line)
    if target:
        yield target[1]
    for found in _HYPERLINK.finditer(_LITERAL.sub("", line)):
        yield found[1]
