"""KIP text to syntax tree: a lexer and a parser by recursive descent, one function for each rule of the grammar.

The parser runs in linear time, nests no deeper than ``limits.MAX_KIP_DEPTH``, and either returns a tree or raises a
``KipRefused`` with line, column, the forms that were expected, and a hint.
"""

from __future__ import annotations

from kbcore.kip.parsing.parser import parse, spans

__all__ = ["parse", "spans"]
