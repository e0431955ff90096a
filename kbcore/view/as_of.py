"""A table of elements at a seq, as a relation: present ones, and those that ended only later."""

from __future__ import annotations

from kbcore.view.tables import LINK, NODE, SOURCE, WHOLE, Columns


def as_of(name: str, columns: Columns, at: str) -> str:
    """Return the rows of a table as of a seq, which is given as SQL."""
    listed = ", ".join(columns)
    return (
        f"(select {listed} from {name} where version <= {at} union all "
        f"select {listed} from {name}_history where version <= {at} and ended > {at})"
    )


def nodes(at: int | None, *, is_whole: bool = False) -> str:
    """Return the entities as of a seq, None for the head; it takes no parameter. ``is_whole`` adds the hidden ones."""
    name = WHOLE["node"] if is_whole else "node"
    return name if at is None else as_of(name, NODE, f"{at:d}")


def links(at: int | None) -> str:
    """Return all links in the same way."""
    return "link" if at is None else as_of("link", LINK, f"{at:d}")


def sources(at: int | None) -> str:
    """Return all source files in the same way."""
    return "source" if at is None else as_of("source", SOURCE, f"{at:d}")
