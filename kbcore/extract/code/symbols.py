"""The symbols of one file of source code: what is defined where, and the digest of each definition.

The body of a symbol is its own: what the symbols inside of it hold is not counted. Comments, white space and the
docstrings of Python count nowhere. Positions are bytes of the file; lines begin with 1.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.extract.code import tokens
from kbcore.extract.code.languages import Language, Tools, tools_of

if TYPE_CHECKING:
    from tree_sitter import Node, Query

SCOPE: Final = "scope"
TEST: Final = "test"
MODULE: Final = "module"
_HOLDERS: Final = frozenset({"class", "struct", "trait", "interface", "enum", "record", "annotation", SCOPE})
"""Kinds of which a function is a method."""
_MAX_NESTED: Final = 500
"""Blocks, calls or definitions inside of each other: finding the statements of deeper ones takes more and more time."""
_MAX_SIGNS: Final = 1000
"""Signs and keywords that follow each other with nothing between them, which takes the square of their number."""
_SMALL: Final = 1000
"""Nodes of a part of the tree that is quick to read whatever it holds."""
_BLOCKS: Final = frozenset(
    {"block", "statement_block", "statement_list", "class_body", "declaration_list", "interface_body", "enum_body"}
    | {"arrow_function", "call_expression"}
)
_MAX_SIGNATURE_CHARS: Final = 300
_MAX_NAME_CHARS: Final = 120
_WORD: Final = re.compile(r"[\w$]+")
_SPACE: Final = re.compile(r"\s+")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]+")
_SIGNS_AND_WORDS: Final = re.compile(r"""\"[^\"\n]*\"|'[^'\n]*'|->|=>|::|\*\*|\.\.\.|[=!<>]=|[\w$]+|[^\s\w]""")
_LAST_COMMA: Final = re.compile(r" ,(?= [)\]])")
_NO_SPACE: Final = re.compile(r" (?=[)\].,:;(\[?])|(?<=[(\[.@#!&]) |(?<=::) |(?<=\*\*) ")
_RECEIVER: Final = re.compile(r"[\w$]+\s*(?=\[|\)|$)")
_EXPORTED: Final = re.compile(r"^(?:module\.)?exports\.|^this\.|\.prototype(?=\.)")
_MARK: Final = re.compile(rb"@\s*pytest\s*\.\s*mark\s*\.\s*(?:requirement|kb)\b")
_TEST_CALLS: Final = frozenset({"it", "test"})
_SUITE_CALLS: Final = frozenset({"describe", "suite", "context"})
_RUST_TEST: Final = re.compile(rb"#\s*\[\s*(?:\w+\s*::\s*)*test\b")
_JAVA_TEST: Final = re.compile(rb"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b")
_GO_TEST: Final = re.compile(r"(?:Test|Fuzz|Example)(?:[^a-z]|$)")
_Event = tuple[int, int, int, int]
"""Position, order at the same position, kind, and an argument: where a cut ends, or the number of a definition."""
_CLOSE, _OPEN, _BODY, _CUT, _KEEP, _STATEMENT, _BLOCK = range(7)
_STRUCTURE: Final = frozenset({_CLOSE, _OPEN, _BODY})
_SIGNS: Final = {_STATEMENT: tokens.STATEMENT, _BLOCK: tokens.BLOCK_END}


class Symbol(msgspec.Struct):
    """A definition. ``start`` and ``end`` hold its decorators and what wraps it; ``line`` is that of the definition.

    ``is_broken``: the parser found a fault in it, so that its digests may be those of something else.
    """

    name: str
    """The qualified name, with ``~2`` for the second of the same name, and so on."""
    kind: str
    line: int
    end_line: int
    start: int
    end: int
    start_line: int
    column: int
    signature: str = ""
    signature_hash: str = ""
    body_hash: str = ""
    body_sketch: str = ""
    is_test: bool = False
    is_broken: bool = False
    marks: tuple[tuple[int, str], ...] = ()
    """Decorators that are marks of requirements, each with its line."""


class Comment(msgspec.Struct, frozen=True):
    """A comment or docstring, with the line and the column where it begins, and the line where it ends.

    ``is_alone`` means that nothing is before it in its line.
    """

    text: str
    line: int
    end_line: int
    column: int
    start: int
    end: int
    is_alone: bool
    is_doc: bool = False


class Module(msgspec.Struct, frozen=True):
    """The symbols and comments read of a file. ``fault_line`` is the line of the first syntax error, 0 for none.

    ``whole`` is the file itself as a symbol: its body is what is in no other symbol.
    """

    symbols: tuple[Symbol, ...]
    comments: tuple[Comment, ...]
    whole: Symbol
    data: bytes
    fault_line: int = 0


class _Definition(msgspec.Struct):
    """A definition before it is nested."""

    kind: str
    name: str
    node: Node
    name_start: int
    name_end: int
    start: int
    end: int
    line: int
    start_line: int
    column: int
    body: int
    holes: list[tuple[int, int]]
    """Parts of the signature that do not count."""
    prefix: str = ""
    qualified: str = ""
    parent: _Definition | None = None
    own: str = ""
    """The name as it is in the code, of which the body may speak."""


class TooNestedError(ValueError):
    """Code that would take too long to read. The message says why, ``line`` where."""

    def __init__(self, message: str, line: int) -> None:
        """Keep both."""
        super().__init__(message)
        self.line = line


def read_module(language: Language, data: bytes, path: str, *, has_tests: bool) -> Module:
    """Return the symbols and comments of a file; with ``has_tests``, which of them are tests, calls among these.

    Raises: ``TooNestedError``.
    """
    tools = tools_of(language)
    root = tools.parser.parse(data).root_node
    _check_effort(root)
    found = _nested(_definitions(language, tools, root, has_tests=has_tests))
    cuts = _captures(tools.cuts, root)
    comments = [_comment(node, data) for node in cuts.get("comment", ())]
    comments += [_comment(node, data, is_doc=True) for node in cuts.get("doc", ())]
    comments.sort(key=lambda one: one.start)
    whole, symbols = _with_digests(language, found, cuts, data, path)
    if has_tests:
        for definition, symbol in zip(found, symbols, strict=True):
            symbol.is_test = _is_test(language, definition, data)
    named = [symbol for symbol in symbols if symbol.kind != SCOPE]
    fault_line = _fault_line(root) if root.has_error else 0
    if fault_line:
        whole.is_broken = True
        for definition, symbol in zip(found, symbols, strict=True):
            symbol.is_broken = definition.node.has_error
    return Module(tuple(named), tuple(comments), whole, data, fault_line)


def _check_effort(root: Node) -> None:
    """Refuse a tree in which queries would take more than a time in proportion to its size. Raises: ``TooNestedError``.

    Only parts that are large are looked at.
    """
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        depth += node.type in _BLOCKS
        if depth > _MAX_NESTED:
            raise _too_nested(node)
        children = node.children
        if len(children) - node.named_child_count > _MAX_SIGNS:
            _check_signs(children)
        stack += [(one, depth) for one in children if one.descendant_count > _SMALL]


def _check_signs(nodes: Sequence[Node]) -> None:
    number = 0
    for one in nodes:
        number = 0 if one.is_named else number + 1
        if number > _MAX_SIGNS:
            message = f"more than {_MAX_SIGNS} signs or keywords follow each other with nothing between them"
            raise TooNestedError(message, one.start_point[0] + 1)


def _too_nested(node: Node) -> TooNestedError:
    message = f"more than {_MAX_NESTED} blocks, calls or definitions are inside of each other"
    return TooNestedError(message, node.start_point[0] + 1)


def _captures(query: Query, root: Node) -> dict[str, list[Node]]:
    from tree_sitter import QueryCursor  # noqa: PLC0415 - optional

    found: dict[str, list[Node]] = QueryCursor(query).captures(root)
    return found


def _matches(query: Query, root: Node) -> list[tuple[int, dict[str, list[Node]]]]:
    from tree_sitter import QueryCursor  # noqa: PLC0415 - optional

    found: list[tuple[int, dict[str, list[Node]]]] = QueryCursor(query).matches(root)
    return found


def _definitions(language: Language, tools: Tools, root: Node, *, has_tests: bool) -> list[_Definition]:
    """Return the definitions in order of their places, each once: by the first pattern that means it."""
    found: dict[tuple[int, int], tuple[int, _Definition]] = {}
    declared = cache(_declared)
    matches = _matches(tools.definitions, root)
    if has_tests and tools.calls:
        matches += [(1000, captured) for _, captured in _matches(tools.calls, root) if _names_test(captured["call"][0])]
    for number, captured in matches:
        [name] = captured["name"][:1]
        kind = next(one for one in captured if one not in {"name", "receiver", "call"})
        [node] = captured[kind]
        place = (node.start_byte, node.end_byte)
        if place in found and found[place][0] <= number:
            continue
        if kind == TEST and _last_word(captured["call"][0]) in _SUITE_CALLS:
            kind = SCOPE
        wrapping = _outer(language, node, declared)
        found[place] = number, _definition(language, kind, wrapping, (node, name), captured.get("receiver", ()))
    return sorted((one for _, one in found.values()), key=lambda one: (one.start, -one.end, one.name_start))


def _names_test(call: Node) -> bool:
    word = _last_word(call)
    return word in _TEST_CALLS or word in _SUITE_CALLS


def _last_word(call: Node) -> str:
    """Return the function that is called, without what follows it, as in ``it.only``."""
    return (call.text or b"").decode("utf-8", "replace").partition(".")[0]


def _definition(
    language: Language, kind: str, wrapping: tuple[Node, Node], named: tuple[Node, Node], receiver: Sequence[Node]
) -> _Definition:
    """Return a definition; ``wrapping`` is that of ``_outer``, ``named`` its node and that of its name."""
    (outer, start), (node, name) = wrapping, named
    own = (name.text or b"").decode("utf-8", "replace")
    text, prefix = own, ""
    holes = [(name.start_byte, name.end_byte)]
    if kind == SCOPE and language.name == "rust":
        text = _type_name(own)
        trait = node.child_by_field_name("trait")
        if trait is not None:
            text += f".{_type_name((trait.text or b'').decode('utf-8', 'replace'))}"
    elif name.type == "member_expression":
        text = _EXPORTED.sub("", own)
        own = text.rpartition(".")[2]
    elif name.type in {"string", "template_string"}:
        text = own[1:-1]
    elif name.type == "type" and (found := _WORD.match(own)):
        text = own = found[0]
    if receiver:
        holes.append((receiver[0].start_byte, receiver[0].end_byte))
        said = (receiver[0].text or b"").decode("utf-8", "replace")
        prefix = next((one[0].strip() for one in _RECEIVER.finditer(said)), "")
    body = _body(node, name)
    wanted = _UNPRINTABLE.sub(" ", _SPACE.sub(" ", text)).strip()[:_MAX_NAME_CHARS] or "_"
    return _Definition(
        kind,
        wanted,
        node,
        name.start_byte,
        name.end_byte,
        start.start_byte,
        max(outer.end_byte, node.end_byte),
        name.start_point[0] + 1,
        start.start_point[0] + 1,
        start.start_point[1],
        body,
        holes,
        prefix,
        own=own,
    )


def _type_name(text: str) -> str:
    """Return the name of a type of Rust without its path, references and parameters."""
    words = _WORD.findall(text.partition("<")[0].replace("dyn ", " ").replace("mut ", " "))
    return words[-1] if words else "_"


def _outer(language: Language, node: Node, declared: Callable[[Node], int]) -> tuple[Node, Node]:
    """Return the node that holds a definition and nothing else, and the one where it begins: with its attributes.

    ``declared`` is ``_declared``.
    """
    outer = node
    while (parent := outer.parent) is not None and parent.type in language.wrappers:
        if parent.type not in {"decorated_definition", "export_statement"} and declared(parent) > 1:
            break
        outer = parent
    start = outer
    while language.attributes and (before := start.prev_named_sibling) is not None:
        if before.type not in language.attributes:
            break
        start = before
    return outer, start


def _declared(parent: Node) -> int:
    """Return how many definitions a declaration has beside each other."""
    if parent.type in {"field_declaration", "local_variable_declaration"}:
        return sum(one.type == "variable_declarator" for one in parent.named_children)
    return sum(not one.is_extra for one in parent.named_children)


def _body(node: Node, name: Node) -> int:
    """Return where the body of a definition begins; everything before it is the signature."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right") or node.child_by_field_name("type")
    if value is not None and value.type == "expression_list":
        value = value.named_child(0)
    for holder in (node, value):
        body = holder.child_by_field_name("body") if holder is not None else None
        if body is not None:
            return body.start_byte
    if node.type == "call_expression":
        return name.end_byte
    if value is not None and node.type in {"type_spec", "type_alias"}:
        return value.start_byte
    return name.end_byte if "type" in node.type or node.type == "macro_definition" else node.end_byte


def _nested(found: list[_Definition]) -> list[_Definition]:
    """Give each definition its qualified name, and the definition that it is in."""
    around: list[_Definition] = []
    times: Counter[str] = Counter()
    for one in found:
        while around and around[-1].end <= one.start:
            around.pop()
        if len(around) == _MAX_NESTED:
            raise _too_nested(one.node)
        parent = one.parent = around[-1] if around else None
        around.append(one)
        name = f"{one.prefix}.{one.name}" if one.prefix else one.name
        one.qualified = f"{parent.qualified}.{name}" if parent else name
        if one.kind == "function" and parent and parent.kind in _HOLDERS and parent.node.type != "call_expression":
            one.kind = "method"
        if one.kind == SCOPE:
            continue
        times[one.qualified] += 1
        if times[one.qualified] > 1:
            one.qualified = f"{one.qualified}~{times[one.qualified]}"
    return found


def _events(
    found: Sequence[_Definition], cuts: dict[str, list[Node]], marks: Sequence[tuple[int, int]]
) -> list[_Event]:
    starts = {one.start for one in found}
    events: list[_Event] = []
    for number, one in enumerate(found):
        events += (
            (one.start, 2, _OPEN, number),
            (max(one.body, one.start), 3, _BODY, number),
            (one.end, 1, _CLOSE, number),
        )
        events += [(start, 4, _CUT, end) for start, end in one.holes]
    for name in ("comment", "doc"):
        events += [(node.start_byte, 4, _CUT, node.end_byte) for node in cuts.get(name, ())]
    events += [(node.start_byte, 5, _KEEP, node.end_byte) for node in cuts.get("string", ())]
    for node in cuts.get("statement", ()):
        start = node.start_byte
        if start not in starts:
            events.append((start, 6, _STATEMENT, 0))
    events += [(node.end_byte, 0, _BLOCK, 0) for node in cuts.get("block", ())]
    events += [(start, 4, _CUT, end) for start, end in marks]
    events.sort()
    return events


def _marks(found: Sequence[_Definition]) -> Iterator[tuple[Node, _Definition]]:
    """Yield the decorators that are marks of requirements, which say nothing of the code, with what they are at."""
    for one in found:
        outer = one.node.parent
        if outer is None or outer.type != "decorated_definition":
            continue
        for child in outer.children:
            if child.type == "decorator" and _MARK.match(child.text or b""):
                yield child, one


def _with_digests(
    language: Language, found: Sequence[_Definition], cuts: dict[str, list[Node]], data: bytes, path: str
) -> tuple[Symbol, list[Symbol]]:
    """Return the file as a symbol, and the symbols in it."""
    marked = list(_marks(found))
    split = tokens.split_by_lines if language.ends_by_line else tokens.split
    marked_ranges = [(mark.start_byte, mark.end_byte) for mark, _ in marked]
    lists = _token_lists(_events(found, cuts, marked_ranges), len(found), data, split)
    marks: dict[int, list[tuple[int, str]]] = {}
    for mark, one in marked:
        text = (mark.text or b"").decode("utf-8", "replace")
        marks.setdefault(one.start, []).append((mark.start_point[0] + 1, text))
    comments = sorted((node.start_byte, node.end_byte) for node in cuts.get("comment", ()))
    symbols = [
        _symbol(one, pair, data, tuple(marks.get(one.start, ())), comments)
        for one, pair in zip(found, zip(lists.signatures, lists.bodies, strict=True), strict=True)
    ]
    whole = Symbol(path, MODULE, 1, data.count(b"\n") + 1, 0, len(data), 1, 0)
    whole.body_hash = tokens.digest(lists.outside)
    whole.body_sketch = tokens.sketch(lists.outside)
    return whole, symbols


class _TokenLists(msgspec.Struct):
    """The tokens of each definition, by number, and those outside of all."""

    signatures: list[list[bytes]]
    bodies: list[list[bytes]]
    outside: list[bytes]


def _token_lists(
    events: Sequence[_Event], number: int, data: bytes, split: Callable[[bytes, int, int], list[bytes]]
) -> _TokenLists:
    """Return the tokens between the events, each with the innermost definition that is open there."""
    found = _TokenLists([[] for _ in range(number)], [[] for _ in range(number)], [])
    opened: list[list[bytes]] = [found.outside]
    numbers: list[int] = []
    at = 0
    for position, _, kind, argument in events:
        if position < at and kind not in _STRUCTURE:
            continue  # in what is cut already
        if position > at:
            opened[-1] += split(data, at, position)
            at = position
        if kind == _CUT:
            at = max(at, argument)
        elif kind == _KEEP:
            opened[-1].append(data[position:argument])
            at = argument
        elif kind in _SIGNS:
            opened[-1].append(_SIGNS[kind])
        elif kind == _OPEN:
            opened.append(found.signatures[argument])
            numbers.append(argument)
        elif kind == _CLOSE:
            opened.pop()
            numbers.pop()
        elif numbers and numbers[-1] == argument:
            opened[-1] = found.bodies[argument]
    opened[-1] += split(data, at, len(data))
    return found


def _symbol(
    one: _Definition,
    lists: tuple[list[bytes], list[bytes]],
    data: bytes,
    marks: tuple[tuple[int, str], ...],
    comments: Sequence[tuple[int, int]],
) -> Symbol:
    signature, body = lists
    node, own = one.node, one.own.encode()
    end_row, end_column = node.end_point
    return Symbol(
        one.qualified,
        one.kind,
        one.line,
        max(one.line, end_row + (end_column > 0)),
        one.start,
        one.end,
        one.start_line,
        one.column,
        _shown(data, node.start_byte, max(one.body, one.name_end), comments),
        tokens.digest(signature, own),
        tokens.digest(body, own),
        tokens.sketch(body),
        marks=marks,
    )


def _shown(data: bytes, start: int, end: int, comments: Sequence[tuple[int, int]]) -> str:
    """Return a signature as text that is the same however it is spaced and commented."""
    pieces = []
    for number in range(bisect_left(comments, (start, 0)), len(comments)):
        comment_start, comment_end = comments[number]
        if comment_start >= end:
            break
        pieces.append(data[start:comment_start])
        start = comment_end
    pieces.append(data[start:end])
    text = " ".join(_SIGNS_AND_WORDS.findall(b" ".join(pieces).decode("utf-8", "replace")))
    text = _NO_SPACE.sub("", _LAST_COMMA.sub("", text))
    return _UNPRINTABLE.sub(" ", text)[:_MAX_SIGNATURE_CHARS].rstrip(" {:=>")


def _comment(node: Node, data: bytes, *, is_doc: bool = False) -> Comment:
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    text = (node.text or b"").decode("utf-8", "replace")
    end_line = end_row + 1 if end_column else end_row
    is_alone = not data[node.start_byte - column : node.start_byte].strip()
    return Comment(text, row + 1, max(end_line, row + 1), column, node.start_byte, node.end_byte, is_alone, is_doc)


def _is_test(language: Language, one: _Definition, data: bytes) -> bool:
    """Return whether a definition is a test, as the test runner of its language finds them."""
    if one.kind == TEST:
        return True
    if one.kind not in {"function", "method"}:
        return False
    head = data[one.start : one.name_start]
    if language.name == "python":
        parent = one.parent
        return one.name.startswith("test") and (parent is None or parent.kind == "class")
    if language.name == "go":
        return one.kind == "function" and one.parent is None and _GO_TEST.match(one.name) is not None
    if language.name == "rust":
        return _RUST_TEST.search(head) is not None
    return language.name == "java" and _JAVA_TEST.search(head) is not None


def _fault_line(root: Node) -> int:
    """Return the line of the first fault that the parser found."""
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((one for one in node.children if one.has_error or one.is_missing), None)
        if inner is None:
            break
        node = inner
    return node.start_point[0] + 1
