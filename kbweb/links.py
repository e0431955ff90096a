"""The addresses of pages: in one file, each is an element with an id; on a server, each has an address of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import quote, urlencode


class Links(Protocol):
    """The addresses of pages, as the value of ``href``."""

    def page(self, name: str, **asked: str | int | Sequence[str]) -> str:
        """Return where a page is, such as ``coverage``, with what is asked of it."""

    def entity(self, id_: str) -> str:
        """Return where the page of an entity is, "" where it has none."""

    def record(self, seq: int) -> str:
        """Return where the page of a record is, "" where it has none."""


class FileLinks:
    """The addresses in one file: of pages, and of the entities that have one."""

    def __init__(self, entities: frozenset[str]) -> None:
        self._entities = entities

    def page(self, name: str, **asked: str | int | Sequence[str]) -> str:
        """Return the fragment of a page; what is asked of it is chosen there."""
        del asked
        return f"#{name}"

    def entity(self, id_: str) -> str:
        """Return the fragment of an entity, which is the id of its element after ``#``."""
        return f"#e/{quote(id_, safe='')}" if id_ in self._entities else ""

    def record(self, seq: int) -> str:
        """Return nothing: records have no page in a file."""
        del seq
        return ""


class ServerLinks:
    """The addresses on the server, without its name. ``kept`` goes on to each page, such as the time that is shown."""

    def __init__(self, kept: dict[str, str], base: str = "") -> None:
        """``base`` is the folder of all pages, without a slash at its end."""
        self._kept = kept
        self._base = base

    def page(self, name: str, **asked: str | int | Sequence[str]) -> str:
        """Return the address of a page."""
        return self._address("/" if name == "overview" else f"/{name}", **asked)

    def entity(self, id_: str) -> str:
        """Return the address of an entity."""
        return self._address(entity_path(id_))

    def record(self, seq: int) -> str:
        """Return the address of a record."""
        return self._address(f"/record/{seq}")

    def _address(self, path: str, **asked: str | int | Sequence[str]) -> str:
        return address(f"{self._base}{path}", {**self._kept, **asked})


def entity_path(id_: str) -> str:
    """Return the path of the page of an entity on the server.

    Browsers take ``.`` and ``..`` out of a path, however they are escaped: the id has a slash before it there, and so
    has an id that begins with one.
    """
    return f"/entity/{quote('/' + id_ if id_ in {'.', '..'} or id_.startswith('/') else id_, safe='')}"


def id_in_path(key: str) -> str:
    """Return the id that the path of a page names after ``/entity/``, unescaped, as ``entity_path`` writes it."""
    return key.removeprefix("/")


def address(path: str, words: Mapping[str, str | int | Sequence[str]]) -> str:
    """Return a path with what is asked of it; what is "" is left out."""
    given = {name: value for name, value in words.items() if value != ""}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
