"""The extractor for SCIP indexes: the symbols of files that nothing else reads, and edges between symbols.

An index is one file about many files. Its edges are between entities that other files may state; they wait, as any
link does, for the ends that are not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kbcore import limits
from kbcore.extract import settings
from kbcore.extract.code.extractor import ACTIVE, IGNORE, RELATES_TO, SYMBOL, TESTS, symbol_id
from kbcore.extract.code.languages import language_of
from kbcore.extract.facts import Facts, PathRule, SourceFile, StatedEntity, StatedLink, unreadable
from kbcore.extract.scip import index
from kbcore.extract.scip.index import IndexedFile
from kbcore.extract.scip.naming import NamedSymbol, named
from kbcore.extract.scip.wire import BrokenIndexError
from kbcore.ids import check_id, is_misspelled
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import GlobSet, glob_set
from kbcore.text.problems import FileProblem
from kbcore.text.wording import shortened

NAME: Final = "scip"
ROOT: Final = "root"
OF_CODE: Final = "code"
"""The settings of the extractor of source code: not written by users, but added by the caller."""
USES: Final = "uses"
IMPLEMENTS: Final = "implementation_of"
_MAX_SIGNATURE_CHARS: Final = 300
_SHOWN_CHARS: Final = 80
_AGAIN: Final = "Run the indexer again."


class ScipExtractor:
    """Reads the indexes at the configured paths; none unless the project names some."""

    name = NAME
    version = 1

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of the indexes."""
        return [PathRule(glob) for glob in settings.globs_of(settings_.get(settings.PATHS, ()))]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
        """Return the symbols of an index that nothing else states, and its edges; nothing of a broken one."""
        try:
            return _Index(source.path, settings_).read(source.data)
        except BrokenIndexError as error:
            return unreadable((FileProblem(0, "invalid_scip", f"it is no SCIP index: {error}", _AGAIN),))
        except _TooLargeError as error:
            hint = "Name files that are left out in `extractors.scip.ignore`, or write an index for each part."
            return unreadable((FileProblem(0, "too_large_index", str(error), hint),))


class _TooLargeError(ValueError):
    """An index with more of something than the limit. The message says what."""


class _Index:
    """One index on its way to facts."""

    def __init__(self, path: str, settings_: Mapping[str, Any]) -> None:
        folder = settings_.get(ROOT)
        self.folder = path.rpartition("/")[0] if folder is None else folder.strip("/")
        self.ignored = glob_set(settings.globs_of(settings_.get(IGNORE, ())))
        of_code = settings_.get(OF_CODE, {})
        listed = (*settings.globs_of(of_code.get(settings.PATHS, ())), *settings.globs_of(of_code.get(TESTS, ())))
        self.read_as_code = glob_set(listed)
        self.not_code = glob_set(settings.globs_of(of_code.get(IGNORE, ())))
        self.ids: dict[str, str] = {}
        """The id of each symbol that the index defines, or of the one that it belongs to."""
        self.entities: list[StatedEntity] = []
        self.edges: dict[tuple[str, str, str], None] = {}
        self.outside: list[str] = []

    def read(self, data: bytes) -> Facts:
        """Return what the index states. Raises: ``BrokenIndexError``, ``_TooLargeError``."""
        known: dict[str, NamedSymbol] = {}
        taken: dict[str, int] = {}
        for number, file in enumerate(index.files(data)):
            path = self._place(file.path)
            if path and path not in taken and not _means(self.ignored, path):
                taken[path] = number
                known |= self._define(path, file)
        numbers = {*taken.values()}
        for number, file in enumerate(index.files(data)):
            if number in numbers:
                self._refer(file, known)
        links = [
            StatedLink(subject, target, RELATES_TO, kind=kind, is_of_others=True)
            for subject, target, kind in sorted(self.edges)
        ]
        return Facts(tuple(self.entities), tuple(links), tuple(self._problems(has_files=bool(taken))))

    def _place(self, path: str) -> str | None:
        """Return the path of a file from the top of the repository, None for one that cannot be there."""
        parts = path.split("/")
        if {"", ".", ".."} & {*parts} or check_id(path[: limits.MAX_ID_CHARS]) or is_misspelled(path):
            self.outside.append(path)
            return None
        return f"{self.folder}/{path}" if self.folder else path

    def _define(self, path: str, file: IndexedFile) -> dict[str, NamedSymbol]:
        """Take in the symbols of a file, and return those that no earlier file defines."""
        own, parts_of = named(file)
        of_this = {symbol: symbol_id(path, one.name) for symbol, one in own.items() if symbol not in self.ids}
        of_this = {symbol: id_ for symbol, id_ in of_this.items() if check_id(id_) is None}
        self.ids |= of_this
        for symbol, holder in parts_of.items():
            if holder in self.ids:
                self.ids.setdefault(symbol, self.ids[holder])
        if len(self.ids) > limits.MAX_INDEX_SYMBOLS:
            raise _TooLargeError(f"the index defines more than {limits.MAX_INDEX_SYMBOLS} symbols")
        if not self._is_read_as_code(path):
            for symbol, id_ in of_this.items():
                fields: dict[str, Any] = {"title": own[symbol].name, "status": ACTIVE}
                fields |= {"attributes.file": path, "attributes.kind": own[symbol].kind}
                signature = file.information[symbol].signature if symbol in file.information else ""
                if signature.strip():
                    fields["attributes.signature"] = shortened(" ".join(signature.split()), _MAX_SIGNATURE_CHARS)
                self.entities.append(StatedEntity(id_, SYMBOL, fields, 0))
        return {symbol: own[symbol] for symbol in of_this}

    def _is_read_as_code(self, path: str) -> bool:
        is_named = _means(self.read_as_code, path) and not _means(self.not_code, path)
        return is_named and language_of(path) is not None

    def _refer(self, file: IndexedFile, known: Mapping[str, NamedSymbol]) -> None:
        """Take in the edges that begin in a file."""
        for symbol, information in file.information.items():
            for target in information.implemented:
                if symbol in known and target in known:
                    self._add(self.ids[symbol], self.ids[target], IMPLEMENTS)
        spans = sorted(
            (one.around.start, -one.around.end, self.ids[symbol])
            for symbol in file.definitions
            if (one := known.get(symbol)) and one.around
        )
        begun = 0
        open_: list[tuple[int, str]] = []
        for reference in sorted(file.references, key=lambda one: one.at.start):
            at = reference.at.start
            while begun < len(spans) and spans[begun][0] <= at:
                start, negative_end, id_ = spans[begun]
                while open_ and open_[-1][0] <= start:
                    open_.pop()
                open_.append((-negative_end, id_))
                begun += 1
            while open_ and open_[-1][0] <= at:
                open_.pop()
            if open_ and reference.symbol in self.ids:
                self._add(open_[-1][1], self.ids[reference.symbol], USES)

    def _add(self, subject: str, target: str, kind: str) -> None:
        """Take in an edge, but for one of a symbol to itself, to what is in it, or to what it is in."""
        if subject == target or target.startswith(f"{subject}.") or subject.startswith(f"{target}."):
            return
        if kind == USES and (subject, target, IMPLEMENTS) in self.edges:
            return
        self.edges[subject, target, kind] = None
        if len(self.edges) > limits.MAX_INDEX_EDGES:
            raise _TooLargeError(f"the index has more than {limits.MAX_INDEX_EDGES} edges between symbols")

    def _problems(self, *, has_files: bool) -> Iterator[FileProblem]:
        if not has_files and not self.outside:
            message = "the index has no file that is read"
            yield FileProblem(0, "empty_index", message, f"{_AGAIN} Or name other files in its settings.", "warning")
        if self.outside:
            shown = in_quotes(shortened(self.outside[0], _SHOWN_CHARS))
            message = (
                f"{len(self.outside)} of its files have paths that no file of the repository can have, such as {shown}"
            )
            hint = "Run the indexer in the folder that `extractors.scip.root` names."
            yield FileProblem(0, "outside_path", message, hint, "warning")


def _means(globs: GlobSet, path: str) -> bool:
    return globs.first(path) is not None


EXTRACTOR: Final = ScipExtractor()
