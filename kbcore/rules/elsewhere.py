"""The entities of other repositories, as far as a check of one repository knows them. Plain data."""

from __future__ import annotations

import msgspec

from kbcore.ids import in_other_repo


class KnownReferences(msgspec.Struct, frozen=True):
    """The references to other repositories, ``REPO:ID``, that lead to an entity: ``known``.

    Nobody has looked where ``known`` is None: then no rule says anything of them. ``repos`` are the repositories that
    were looked at, ``unread`` those of which that was not possible. ``edges`` are the edges of a requirement to what is
    in another repository, whoever states them: the requirement, as ``REPO:ID`` or by its id here, and the edge type.
    Of ``known`` nobody has accepted ``proposed``. ``own`` is the repository that is checked, "" where it has no name:
    with it in front an id names nothing.
    """

    known: frozenset[str] | None = None
    repos: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    edges: frozenset[tuple[str, str]] = frozenset()
    proposed: frozenset[str] = frozenset()
    own: str = ""

    def seen_from(self, repo: str) -> KnownReferences:
        """Return the same for a check of this repository, whose requirements have no name of it in their ids."""
        own = {(end.removeprefix(f"{repo}:"), type_) for end, type_ in self.edges if end.startswith(f"{repo}:")}
        return msgspec.structs.replace(self, edges=frozenset(own), own=repo)

    def has(self, end: str) -> bool:
        """Tell whether nothing is wrong with an end of an edge that does not exist in its own repository."""
        named = in_other_repo(end)
        if named is not None and named[0] == self.own:
            return False
        if self.known is None:
            return named is not None
        return end in self.known or (named is not None and named[0] in self.unread)

    def covers(self, end: str) -> bool:
        """Tell whether a requirement is covered by such an end: it is there, and not only proposed."""
        return self.has(end) and end not in self.proposed
