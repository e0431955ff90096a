"""Entries of ReqIF, the exchange format of the OMG for requirements: one for each object of a specification. Pure.

An entry has the attributes of its object by their names, ``IDENTIFIER``, ``LONG-NAME``, ``TYPE`` (the name of its
type) and ``relations``: for each relation that begins at it the attributes of the object at its end, and ``relation``,
the name of its type. ``parent`` has the attributes of the object above it in the first hierarchy.

XML with a document type is refused, and so is one that is nested too deep: neither occurs in ReqIF, and entities that
are defined in a document type can make a small file endless.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from xml.parsers import expat

import msgspec

from kbcore.extract.sources.entry import Entry, FileEntries
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree

_MAX_DEPTH: Final = 200
_INVALID: Final = "invalid_reqif"
_HINT: Final = "Export it again from the tool that wrote it."
_NO_ATTRIBUTES: Final[dict[str, str]] = {}


class _Refused(ValueError):
    """The file is left out for this reason."""


class _Node(msgspec.Struct):
    """An element of XML: ``inner`` are the elements and texts in it."""

    tag: str
    attributes: dict[str, str]
    line: int
    inner: list[_Node | str] = []

    def nodes(self, *tags: str) -> Iterator[_Node]:
        """Yield the elements that a path of tags leads to."""
        for node in self.inner:
            if isinstance(node, _Node) and node.tag == tags[0]:
                if tags[1:]:
                    yield from node.nodes(*tags[1:])
                else:
                    yield node

    def elements(self) -> Iterator[_Node]:
        """Yield the elements in this one."""
        yield from (node for node in self.inner if isinstance(node, _Node))

    def text(self) -> str:
        """Return all text in this element, a line for each block of XHTML."""
        parts: list[str] = []
        stack: list[_Node | str] = [self]
        while stack:
            one = stack.pop()
            if isinstance(one, str):
                parts.append(one)
            else:
                if one.tag in {"p", "div", "br", "li", "tr"}:
                    stack.append("\n")
                stack += reversed(one.inner)
        lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
        return "\n".join(line for line in lines if line)


def entries(data: bytes) -> FileEntries:
    """Return the objects of a ReqIF file."""
    try:
        root = _read(data)
    except _Refused as error:
        return FileEntries(
            [], [FileProblem(0, _INVALID, f"this is no ReqIF that is read: {error}", _HINT)], is_complete=False
        )
    except expat.ExpatError as error:
        message = f"this is no XML: {expat.ErrorString(error.code)}"
        return FileEntries([], [FileProblem(error.lineno, _INVALID, message, _HINT)], is_complete=False)
    except (LookupError, ValueError) as error:  # an encoding that is unknown, or has several bytes for a character
        problem = FileProblem(1, _INVALID, f"this is no XML that can be decoded: {error}", _HINT)
        return FileEntries([], [problem], is_complete=False)
    if root.tag != "REQ-IF":
        problem = FileProblem(root.line, _INVALID, f"the root is `{root.tag}`, not `REQ-IF`", _HINT)
        return FileEntries([], [problem], is_complete=False)
    return _of_content(root)


def _read(data: bytes) -> _Node:
    """Return the root of XML. Raises: ``_Refused``, ``expat.ExpatError``."""
    top = _Node("", _NO_ATTRIBUTES, 0, [])
    stack = [top]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > _MAX_DEPTH:
            message = f"it is nested more than {_MAX_DEPTH} deep, in line {parser.CurrentLineNumber}"
            raise _Refused(message)
        node = _Node(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber, [])
        stack[-1].inner.append(node)
        stack.append(node)

    def refuse(*_: Any) -> None:
        message = "it has a document type"
        raise _Refused(message)

    def end(_: str) -> None:
        stack.pop()

    def take(text: str) -> None:
        stack[-1].inner.append(text)

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = take
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(data, True)
    return next(top.elements())


class _Names(msgspec.Struct):
    """The names of types, attributes and enumerated values by their identifiers."""

    types: dict[str, str] = {}
    attributes: dict[str, str] = {}
    values: dict[str, str] = {}


def _name(node: _Node) -> str:
    return node.attributes.get("LONG-NAME") or node.attributes.get("IDENTIFIER", "")


def _of_content(root: _Node) -> FileEntries:
    content = next(root.nodes("CORE-CONTENT", "REQ-IF-CONTENT"), None)
    if content is None:
        return FileEntries(
            [], [FileProblem(root.line, _INVALID, "it has no `REQ-IF-CONTENT`", _HINT)], is_complete=False
        )
    names = _Names({}, {}, {})
    for datatype in (one for types in content.nodes("DATATYPES") for one in types.elements()):
        for value in datatype.nodes("SPECIFIED-VALUES", "ENUM-VALUE"):
            names.values[value.attributes.get("IDENTIFIER", "")] = _name(value)
    for kind in (one for types in content.nodes("SPEC-TYPES") for one in types.elements()):
        names.types[kind.attributes.get("IDENTIFIER", "")] = _name(kind)
        for attribute in (one for held in kind.nodes("SPEC-ATTRIBUTES") for one in held.elements()):
            names.attributes[attribute.attributes.get("IDENTIFIER", "")] = _name(attribute)
    tree = TextTree(None, {}, [])
    result = FileEntries([], [])
    found: dict[str, Entry] = {}
    for node in content.nodes("SPEC-OBJECTS", "SPEC-OBJECT"):
        entry = _object(node, names, tree)
        found.setdefault(node.attributes.get("IDENTIFIER", ""), entry)
        result.entries.append(entry)
    _relate(content, names, found)
    for specification in content.nodes("SPECIFICATIONS", "SPECIFICATION"):
        _place(specification, found)
    return result


def _object(node: _Node, names: _Names, tree: TextTree) -> Entry:
    values: dict[str, Any] = {name: text for name, text in node.attributes.items() if text}
    lines = dict.fromkeys(values, node.line)
    for value in (one for held in node.nodes("VALUES") for one in held.elements()):
        key = next((one.text().strip() for held in value.nodes("DEFINITION") for one in held.elements()), "")
        name, text = names.attributes.get(key, key), _value(value, names)
        if name and text and name not in values:
            values[name], lines[name] = text, value.line
    kind = next((one.text().strip() for held in node.nodes("TYPE") for one in held.elements()), "")
    values["TYPE"], lines["TYPE"] = names.types.get(kind, kind), node.line
    tree.places[id(values)] = lines
    return Entry(values, tree, node.line)


def _value(node: _Node, names: _Names) -> Any:
    """Return the value of an attribute: text, or a list of the enumerated values."""
    if node.tag == "ATTRIBUTE-VALUE-ENUMERATION":
        chosen = [one.text().strip() for one in node.nodes("VALUES", "ENUM-VALUE-REF")]
        texts = [names.values.get(one, one) for one in chosen]
        return texts[0] if len(texts) == 1 else texts
    if node.tag == "ATTRIBUTE-VALUE-XHTML":
        return "\n".join(one.text() for one in node.nodes("THE-VALUE"))
    return node.attributes.get("THE-VALUE", "")


def _texts(entry: Entry) -> dict[str, str]:
    return {name: value for name, value in entry.values.items() if isinstance(value, str)}


def _relate(content: _Node, names: _Names, found: dict[str, Entry]) -> None:
    """Add the relations to the objects at which they begin."""
    for node in content.nodes("SPEC-RELATIONS", "SPEC-RELATION"):
        ends = [
            next((one.text().strip() for held in node.nodes(tag) for one in held.elements()), "")
            for tag in ("SOURCE", "TARGET", "TYPE")
        ]
        begin = found.get(ends[0])
        if begin is None:
            continue
        end = found.get(ends[1])
        listed = begin.values.setdefault("relations", [])
        begin.tree.places[id(begin.values)].setdefault("relations", node.line)
        begin.tree.places.setdefault(id(listed), []).append(node.line)
        listed.append(
            {**(_texts(end) if end else {"IDENTIFIER": ends[1]}), "relation": names.types.get(ends[2], ends[2])}
        )


def _place(specification: _Node, found: dict[str, Entry]) -> None:
    """Note of each object which one is above it."""
    stack: list[tuple[_Node, Entry | None]] = [(specification, None)]
    while stack:
        holder, above = stack.pop()
        for node in holder.nodes("CHILDREN", "SPEC-HIERARCHY"):
            key = next((one.text().strip() for one in node.nodes("OBJECT", "SPEC-OBJECT-REF")), "")
            entry = found.get(key)
            if entry is not None and above is not None and "parent" not in entry.values:
                parent: dict[str, Any] = {
                    name: value for name, value in _texts(above).items() if name not in {"TYPE", "parent"}
                }
                entry.values["parent"] = parent
                entry.tree.places[id(entry.values)]["parent"] = node.line
                entry.tree.places[id(parent)] = dict.fromkeys(parent, node.line)
            stack.append((node, entry or above))
