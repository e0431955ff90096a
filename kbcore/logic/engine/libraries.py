"""The libraries of SWI-Prolog that every engine has loaded, and those that a workspace may load beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.logic.engine.terms import listed

PRELOADED: Final = (
    "lists", "apply", "aggregate", "pairs", "ordsets", "yall", "clpfd", "error", "dif", "when", "occurs", "terms",
    "sort",
)  # fmt: skip
"""Always loaded, so that naming one of them changes nothing."""

_BUILT_IN: Final = ("between",)
"""Built in where other systems have a library of that name."""

LISTED: Final = (
    "assoc", "rbtrees", "ugraphs", "heaps", "nb_set", "option", "clpb", "clpr", "simplex", "strings", "varnumbers",
    "random", "solution_sequences", "dicts", "dcg/basics", "dcg/high_order",
)  # fmt: skip
"""May be loaded: what they export does nothing but compute (``engine/prolog/allowed.pl`` names what is left out)."""

LIBRARIES_VARIABLE: Final = "KB_LIBRARIES"
_NAME: Final = re.compile(r"[a-z]\w*(/[a-z]\w*)?", re.ASCII)


class Libraries(msgspec.Struct, frozen=True):
    """The libraries to load at the start, and the names that were given and cannot be loaded."""

    names: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


NO_LIBRARIES: Final = Libraries()


def chosen(env: Mapping[str, str], given: Iterable[str] = ()) -> Libraries:
    """Return the libraries of the variable ``KB_LIBRARIES`` and those ``given``, each a list with commas."""
    texts = [env.get(LIBRARIES_VARIABLE, ""), *given]
    names = dict.fromkeys(name for text in texts for part in text.split(",") if (name := part.strip()))
    loaded = tuple(name for name in names if name in LISTED)
    return Libraries(loaded, tuple(name for name in names if name not in (*LISTED, *PRELOADED, *_BUILT_IN)))


def names_term(names: Sequence[str]) -> str:
    """Return the names of libraries as a list of terms."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(name)
    return listed(names)
