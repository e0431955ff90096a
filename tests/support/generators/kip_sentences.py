"""The grammar of ``kbcore/kip/grammar.py`` at work: sentences derived from it, and a recogniser written from it alone.

Neither knows the parser; together they hold it to the grammar from both sides. Every variable is ``?t``, so that what
the grammar only says in words (UPDATE reads its own target) holds in each sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kbcore.kip.grammar import GRAMMAR, KEYWORDS

_PIECE = re.compile(r'"[^"]+"|[A-Za-z]+|[()|?*+]')
SIGNS = frozenset("{}()[],:|!<>") | {"==", "!=", "<=", ">=", "&&", "||"}
TOKENS = {
    "VARIABLE": ("?t",),
    "PATH": ("?t.name", "?t.attributes.tier"),
    "TARGET": ("?t",),
    "WAY": ("?t", "?t.attributes.tier"),
    "STRING": ('"Person"', '"a\\n\\u00e9\\""', '"// no comment"', '""'),
    "PARAMETER": (":p", ":limit"),
    "NUMBER": ("7", "-1.5", "0", "2e3"),
    "WHOLE": ("1", "3"),
    "LEAST": ("0", "1", ":p"),
    "MOST": ("1", "3", ":p"),
    "KEY": ("status", "id", "LIMIT", "true", '"two words"'),
}
NUMBERS = frozenset({"0", "1", "3", "7"})


class Form(NamedTuple):
    """A part of a rule: ``kind`` is literal, token, rule, seq, alt, opt or many."""

    kind: str
    parts: tuple[Any, ...]


@cache
def rules() -> dict[str, Form]:
    """Return the rules of the grammar by name, in its order."""
    found: dict[str, Form] = {}
    for rule in re.split(r"\n(?=\w)", GRAMMAR.strip()):
        name, _, body = rule.partition("::=")
        pieces = _PIECE.findall(body)
        found[name.strip()] = _alternatives(pieces)
        assert not pieces, f"{name}: {pieces}"
    return found


def _alternatives(pieces: list[str]) -> Form:
    branches = [_sequence(pieces)]
    while pieces and pieces[0] == "|":
        pieces.pop(0)
        branches.append(_sequence(pieces))
    return Form("alt", tuple(branches)) if len(branches) > 1 else branches[0]


def _sequence(pieces: list[str]) -> Form:
    parts = []
    while pieces and pieces[0] not in {"|", ")"}:
        piece = pieces.pop(0)
        if piece == "(":
            form = _alternatives(pieces)
            assert pieces.pop(0) == ")"
        elif piece[0] == '"':
            form = Form("literal", (piece[1:-1],))
        else:
            form = Form("token" if piece in TOKENS else "rule", (piece,))
        sign = pieces.pop(0) if pieces and pieces[0] in {"?", "*", "+"} else ""
        if sign:
            form = Form("opt", (form,)) if sign == "?" else Form("many", (form, int(sign == "+")))
        parts.append(form)
    return Form("seq", tuple(parts))


@cache
def _depths() -> dict[str, int]:
    """Return how deep the shallowest derivation of each rule is."""
    depths = dict.fromkeys(rules(), 1000)
    for _ in rules():
        for name, form in rules().items():
            depths[name] = min(depths[name], 1 + _depth(form, depths))
    return depths


def _depth(form: Form, depths: dict[str, int]) -> int:
    if form.kind == "rule":
        return depths[form.parts[0]]
    if form.kind == "alt":
        return min(_depth(one, depths) for one in form.parts)
    if form.kind == "seq":
        return max(_depth(one, depths) for one in form.parts)
    return _depth(form.parts[0], depths) if form.kind == "many" and form.parts[1] else 0


@st.composite
def sentences(draw, rule: str = "command", budget: int = 12):
    """Draw a sentence of a rule as a list of tokens, each key once."""
    keys = iter(range(10_000))

    def derive(form: Form, budget: int) -> Iterator[str]:
        if form.kind == "literal":
            yield form.parts[0]
        elif form.kind == "token":
            [name] = form.parts
            yield f"k{next(keys)}" if name == "KEY" and draw(st.booleans()) else _token(draw, name, keys)
        elif form.kind == "rule":
            yield from derive(rules()[form.parts[0]], budget - 1)
        elif form.kind == "seq":
            for one in form.parts:
                yield from derive(one, budget)
        elif form.kind == "alt":
            depths = [_depth(one, _depths()) for one in form.parts]
            fit = [one for one, depth in zip(form.parts, depths, strict=True) if depth <= budget]
            yield from derive(draw(st.sampled_from(fit or [form.parts[depths.index(min(depths))]])), budget)
        else:
            least = form.parts[1] if form.kind == "many" else 0
            most = least + (budget > _depth(form.parts[0], _depths()))
            for _ in range(draw(st.integers(least, most + (form.kind == "many" and budget > 9)))):
                yield from derive(form.parts[0], budget - 1)

    return list(derive(rules()[rule], budget))


def _token(draw, name: str, keys: Iterator[int]) -> str:
    if name == "KEY":
        return f'"key {next(keys)}"'
    return draw(st.sampled_from(TOKENS[name]))


@st.composite
def texts(draw, tokens):
    """Draw a text of the tokens, with blanks and comments between them wherever they may stand."""
    parts = [draw(_GAPS)]
    for one, following in zip(tokens, [*tokens[1:], ""], strict=True):
        gap = draw(_GAPS)
        is_needed = following and one not in SIGNS and following not in SIGNS
        parts += [one, gap or (" " if is_needed or following[:1] == ":" else "")]
    return "".join(parts)


_GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\t", '// a comment { " :p\n', " //\n "])


def matches(token: str, name: str) -> bool:
    """Tell whether a token can stand for a name in capitals."""
    if name == "KEY":
        return bool(re.fullmatch(r'[A-Za-z_]\w*|".*"', token))
    if name in {"LEAST", "MOST", "WHOLE"}:
        return token in NUMBERS or (name != "WHOLE" and token[0] == ":" and token != ":")
    if name == "PARAMETER":
        return token[0] == ":" and token != ":"
    if name == "STRING":
        return token[0] == '"'
    if name == "NUMBER":
        return bool(re.fullmatch(r"-?\d.*", token))
    return token == "?t" if name in {"VARIABLE", "TARGET"} else token[:2] == "?t" and (name == "WAY" or "." in token)


Item = tuple[str, tuple[Any, ...], int, int]


@cache
def _productions() -> dict[str, list[tuple[Form, ...]]]:
    """Return the grammar without its shorthands: each name with sequences of literals, tokens and rules."""
    found: dict[str, list[tuple[Form, ...]]] = {}

    def plain(form: Form) -> Form:
        if form.kind in {"literal", "token", "rule"}:
            return form
        name = f"#{len(found)}"
        found[name] = []
        if form.kind == "alt":
            found[name] = [(plain(one),) for one in form.parts]
        elif form.kind == "seq":
            found[name] = [tuple(plain(one) for one in form.parts)]
        else:
            inner = plain(form.parts[0])
            again = (inner, Form("rule", (name,))) if form.kind == "many" else (inner,)
            found[name] = [again, (inner,) if form.kind == "many" and form.parts[1] else ()]
        return Form("rule", (name,))

    for name, form in rules().items():
        found[name] = [(plain(form),)]
    return found


@cache
def _empty() -> frozenset[str]:
    """Return the names that may stand for nothing."""
    empty: set[str] = set()
    for _ in _productions():
        empty |= {
            name
            for name, bodies in _productions().items()
            if any(all(one.kind == "rule" and one.parts[0] in empty for one in body) for body in bodies)
        }
    return frozenset(empty)


def recognises(tokens: list[str], rule: str = "command") -> bool:
    """Tell by Earley's algorithm whether the grammar derives the tokens."""
    columns: list[dict[Item, None]] = [{} for _ in range(len(tokens) + 1)]
    columns[0] = {(rule, body, 0, 0): None for body in _productions()[rule]}
    for place, column in enumerate(columns):
        waiting = list(column)
        while waiting:
            name, body, dot, start = waiting.pop()
            new: list[Item] = []
            if dot == len(body):
                wanted = Form("rule", (name,))
                for of, parts, at, since in list(columns[start]):
                    if at < len(parts) and parts[at] == wanted:
                        new.append((of, parts, at + 1, since))
            elif body[dot].kind == "rule":
                [other] = body[dot].parts
                new += ((other, one, 0, place) for one in _productions()[other])
                new += [(name, body, dot + 1, start)] if other in _empty() else []
            elif place < len(tokens) and _fits(tokens[place], body[dot]):
                columns[place + 1][name, body, dot + 1, start] = None
            for item in new:
                if item not in column:
                    column[item] = None
                    waiting.append(item)
    return any(name == rule and dot == len(body) and start == 0 for name, body, dot, start in columns[-1])


def _fits(token: str, form: Form) -> bool:
    return token == form.parts[0] if form.kind == "literal" else matches(token, form.parts[0])


def words() -> list[str]:
    """Return every token that a sentence can have, for who wants to put one where it does not belong."""
    return sorted({*SIGNS, *KEYWORDS, *(one for some in TOKENS.values() for one in some)})
