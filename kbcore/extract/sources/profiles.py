"""The profiles: settings of a source by name, each a JSON file that KB ships.

A file has ``description``, ``documentation`` (an address), ``source`` (an entry of ``sources``, its ``glob`` the usual
place), and ``signs``, by which such documents are recognised: one ``Signs``, or a list of them, of which one must fit.
A profile of pages, which have no signs of their own, has ``site`` in their place.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from kbcore.extract.sources.source import Texts

NAMES: Final = (
    *("adr-tools", "madr", "log4brains", "eip", "pep", "rust-rfc", "kep"),
    *(
        "openspec",
        "openspec-changes",
        "openspec-archive",
        "openspec-deltas",
        "spec-kit",
        "kiro",
        "backlog",
        "backstage",
    ),
    *("doorstop", "strictdoc", "openfasttrace", "sphinx-needs", "reqif", "table"),
    *("jira-csv", "github-issues", "mkdocs", "sphinx"),
)
"""All profiles, by the files in the folder ``profiles``."""


def _says(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class Signs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signs of a file that belongs to a profile: everything that is stated here must hold.

    ``names``, ``paths``, ``endings`` and ``beside`` are about the path, and cost nothing. The others are about the
    content, which is read for a few files of each folder. Where the signs of two profiles fit a file, the ones with
    more conditions are taken, each member of ``keys`` and ``sections`` being one; of equal ones the first of ``NAMES``.
    """

    names: Annotated[Texts, _says("Globs of the file's name; one must fit.")] = []
    paths: Annotated[Texts, _says("Globs of the whole path from the root of the repository; one must fit.")] = []
    endings: Annotated[Texts, _says("Endings of the file's name, with the dot, in small letters.")] = []
    beside: Annotated[Texts, _says("Globs of names; one file of the same folder must fit.")] = []
    keys: Annotated[Texts, _says("Keys that an entry has, read as the source of the profile says; all of them.")] = []
    """Of a text the keys of its header, of a table its columns, of data those of the items that ``items`` means; of
    one of the first ten entries. Capitals, blanks, hyphens and underscores do not matter. Dots lead into objects."""
    heading: Annotated[Texts, _says("Patterns of the first heading, or of `title` of the header; one must fit.")] = []
    sections: Annotated[Texts, _says("Patterns of headings; each must fit one.")] = []
    lines: Annotated[
        Texts, _says("Patterns of lines without blanks at their ends and list markers; one must fit.")
    ] = []
    contains: Annotated[Texts, _says("Texts, capitals included; the first 64 KiB must have each of them.")] = []

    @property
    def weight(self) -> int:
        """The number of conditions."""
        many = sum(1 if isinstance(one, str) else len(one) for one in (self.keys, self.sections, self.contains) if one)
        once = (self.names, self.paths, self.endings, self.beside, self.heading, self.lines)
        return many + sum(bool(one) for one in once)

    @property
    def needs_content(self) -> bool:
        """The file must be read to tell."""
        return bool(self.keys or self.heading or self.sections or self.lines or self.contains)


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The signs that the texts below a folder are the pages of one site."""

    names: Annotated[Texts, _says("Names of the settings file of the site, in the folder of the site.")]
    endings: Annotated[Texts, _says("Endings of the names of pages, with the dot.")]
    beside: Annotated[Texts, _says("Globs of names; where stated, a page beside the settings file must fit one.")] = []
    folder: Annotated[str, _says("The folder of the pages in that of the site; the same one if not stated.")] = ""
    folder_key: Annotated[str, _says("The key of the settings file that names another folder for them.")] = ""


@cache
def read(name: str) -> dict[str, Any]:
    """Return the profile of one of the names."""
    data = pkgutil.get_data(__name__, f"profiles/{name}.json")
    assert data is not None  # noqa: S101 - the file is part of the package
    found: dict[str, Any] = json.loads(data)
    return found


@cache
def signs(name: str) -> tuple[Signs, ...]:
    """Return the signs of a profile, of which one must fit. Raises: ``msgspec.ValidationError``."""
    stated = read(name).get("signs", [])
    return tuple(msgspec.convert(stated if isinstance(stated, list) else [stated], list[Signs]))


@cache
def site(name: str) -> Site | None:
    """Return what tells the pages of a profile; None for a profile of other documents. Raises: as ``signs``."""
    stated = read(name).get("site")
    return None if stated is None else msgspec.convert(stated, Site)
