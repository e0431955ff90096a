"""Values as Prolog text, for requests to an engine. Pure.

Sources: SWI-Prolog manual, sections 2.15.1.3 (character escapes) and 5.2 (strings).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

_ESCAPES: Final = {ord("\\"): "\\\\", ord("\n"): "\\n", ord('"'): '\\"', ord("'"): "\\'"} | {
    code: f"\\x{code:x}\\"
    for code in (
        *range(10), *range(11, 32), *range(0x7F, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
        *range(0x2060, 0x2070), 0xFEFF,
    )
}  # fmt: skip
"""Control characters, and marks of text direction: SWI-Prolog 10 takes these in a quoted text for a syntax error."""
_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_TABLE: Final = _ESCAPES | _SURROGATES


def string(text: str) -> str:
    """Return a text as a Prolog string; a lone surrogate becomes U+FFFD."""
    return f'"{text.translate(_TABLE)}"'


def atom(text: str) -> str:
    """Return a text as a quoted atom; a lone surrogate becomes U+FFFD."""
    return f"'{text.translate(_TABLE)}'"


def value(given: Any) -> str:
    """Return a JSON value as a term: texts are strings, objects are lists of ``Key-Value``, null is ``null``."""
    if isinstance(given, str):
        return string(given)
    if given is None or isinstance(given, bool):
        return {None: "null", True: "true", False: "false"}[given]
    if isinstance(given, int):
        return f"({given})" if given < 0 else str(given)
    if isinstance(given, float):
        return _float(given)
    if isinstance(given, Mapping):
        return listed(f"{atom(str(key))}-{value(one)}" for key, one in given.items())
    if isinstance(given, (list, tuple)):
        return listed(map(value, given))
    return string(str(given))


def _float(given: float) -> str:
    if math.isfinite(given):
        text = repr(given)
        mantissa, mark, exponent = text.partition("e")
        text = text if "." in mantissa else f"{mantissa}.0{mark}{exponent}"
        return f"({text})" if text[0] == "-" else text
    return "nan" if math.isnan(given) else "inf" if given > 0 else "(-inf)"


def listed(terms: Iterable[str]) -> str:
    """Return terms as a list."""
    return f"[{','.join(terms)}]"
