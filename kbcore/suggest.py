"""The nearest known name to a mistyped one: what "did you mean" says."""

from __future__ import annotations

from collections.abc import Iterable

from kbcore.visible import in_quotes


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is most like the word, or the empty text when none is alike."""
    import difflib  # noqa: PLC0415 - only failures pay for it

    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold(), name)
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint sentence with the nearest name, or with the names there are when none is near."""
    names = list(known)
    near = nearest(word, names)
    if near:
        return f"Did you mean {in_quotes(near)}?"
    return f"Known: {', '.join(sorted(names)[:40])}." if names else ""
