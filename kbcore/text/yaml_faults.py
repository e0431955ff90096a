"""YAML errors worded for the author of the file: line and column in the file, plain words, a remedy."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from kbcore.text.decoding import place
from kbcore.text.problems import FileProblem

CODE: Final = "invalid_yaml"

_QUOTE: Final = 'Put the value in quotes: `key: "value"`.'
_HAS_COMMENT: Final = re.compile(r"[ \t]#")
_COMMENTED: Final = "Put what holds ` #` in quotes: what follows that sign is a comment."
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_WORDS: Final = (
    ("mapping values are not allowed", "a value without quotes holds `: `", _QUOTE),
    ("cannot start any token", "a value without quotes begins with {character}", _QUOTE),
    ("violates indentation", "a tab is used to indent", "Indent with spaces."),
    ("could not find expected ':'", "this line is no `key: value`", "Give it a key, or indent it under one."),
    ("unexpected end of stream", "a quote that opens here is never closed", "Close the quote."),
    ("',' or ']'", "a list that opens with `[` is not closed", "Close it with `]`."),
    ("',' or '}'", "a mapping that opens with `{{` is not closed", "Close it with `}}`."),
    ("did not find expected node content", "a value is missing", "Write the value, or remove the sign before it."),
    ("did not find expected key", "something follows a value that is complete", _QUOTE),
    (
        "unknown escape character",
        "a `\\` in double quotes begins no known escape",
        "Double it, or use single quotes.",
    ),
    ("scanning an alias", "a value without quotes begins with `*`", _QUOTE),
    ("scanning an anchor", "a value without quotes begins with `&`", _QUOTE),
    ("scanning a directive", "a line begins with `%`", "Put it in quotes, or remove it."),
    ("block sequence entries", "a list begins on the line of its key", "Begin the list on the next line."),
    (
        "expected comment or line break",
        "text follows `|` or `>`",
        "Put the text on the next line, or in quotes.",
    ),
    ("the tag ", "{problem}", "Remove the tag: KB takes every value as text."),
    ("names no value", "{problem}", _QUOTE),
    ("a key must be", "{problem}", 'Put the value in quotes if it begins with a brace: `key: "{{…}}"`.'),
    ("second document", "{problem}", "Keep one document: remove the line `---` before it."),
    ("nested deeper", "it is {problem}", "Make the structure flatter."),
    ("more than", "there are {problem}", "Split the file, or use fewer aliases."),
)
_FROM_THE_START: Final = ("unexpected end of stream", "could not find expected ':'", "',' or '")
"""Faults reported at the place where they begin: the library's own place is where it stopped."""


def explain(error: yaml.YAMLError, text: str, first_line: int) -> FileProblem:
    """Return the problem of a YAML text that begins on ``first_line`` of its file."""
    found = _UNPRINTABLE.search(text)
    if isinstance(error, yaml.reader.ReaderError) and found:
        line, column = place(text, found.start(), first_line)
        message = f"U+{ord(found[0]):04X} is no character that YAML allows"
        return FileProblem(line, CODE, message, "Remove it, or write it as an escape in double quotes.", column=column)
    problem = str(getattr(error, "problem", None) or error)
    mark = _mark(error, problem, text)
    line, column = (mark.line + first_line, mark.column + 1) if mark else (first_line, 0)
    end = place(text, len(text.rstrip("\n")), first_line)
    if line > end[0]:
        line, column = end
    words = f"{getattr(error, 'context', None) or ''} {problem}"
    character = _character(text, line - first_line, column)
    if character == "\t":
        words = "violates indentation"
    for key, message, hint in _WORDS:
        if key in words:
            is_cut = "',' or '" in key and _HAS_COMMENT.search(_line(text, line - first_line))
            return FileProblem(
                line,
                CODE,
                "not valid YAML: "
                + message.format(character=f"`{character}`" if character != "`" else "a backtick", problem=problem),
                _COMMENTED if is_cut else hint.replace("{{", "{").replace("}}", "}"),
                column=column,
            )
    return FileProblem(line, CODE, f"not valid YAML: {words.strip()}", "Correct the line.", column=column)


def _mark(error: yaml.YAMLError, problem: str, text: str) -> Any:
    """Return the place to report; one after the end of the text gives way to where the fault began."""
    at = getattr(error, "problem_mark", None)
    start = getattr(error, "context_mark", None)
    is_behind = at is not None and at.line > text.rstrip("\n").count("\n")
    is_at_start = is_behind or any(key in problem for key in _FROM_THE_START)
    return start if start is not None and is_at_start else at


def _character(text: str, line: int, column: int) -> str:
    return _line(text, line)[column - 1 : column] if column else ""


def _line(text: str, number: int) -> str:
    """Return a line, counted from 0; "" where there is none."""
    lines = text.split("\n")
    return lines[number] if 0 <= number < len(lines) else ""
