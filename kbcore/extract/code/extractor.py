"""The extractor for source code: the files that it reads, and their symbols as entities.

Lines are no facts: they are where the symbols are when the file is read, so that an edit further up changes nothing
that is recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcore import limits
from kbcore.extract import settings
from kbcore.extract.facts import Facts, PathRule, SourceFile, StatedEntity, StatedLink, unreadable
from kbcore.text import conflict_markers
from kbcore.text.decoding import decode
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import matches
from kbcore.text.problems import FileProblem, at_most
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import shortened

if TYPE_CHECKING:
    from kbcore.extract.code.links import MarkedSymbol
    from kbcore.extract.code.marks import WrongMark
    from kbcore.extract.code.symbols import Module, Symbol

NAME: Final = "code"
SYMBOL: Final = "symbol"
TEST: Final = "test"
TESTS: Final = "tests"
IGNORE: Final = "ignore"
ACTIVE: Final = "active"
RELATES_TO: Final = "relates_to"
VERIFIES: Final = "verifies"
"""The kind of the edge from a class or file of which a mark says that it verifies something."""

_CONFLICT: Final = b"<<<<<<< "
_ID_DIGITS: Final = 12
_SHOWN_CHARS: Final = 60
_VERIFYING: Final = frozenset({"verifies", "tests", "validates", "checks"})
"""Words for an edge that ends at a test; the mark is at the test."""
_OF_TESTS: Final = "^verified_by"


class CodeExtractor:
    """Reads source files at the configured paths; none unless the project names some."""

    name = NAME
    version = 1

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of the source files, those with tests among them."""
        globs = (*_globs(settings_, settings.PATHS), *_globs(settings_, TESTS))
        return [PathRule(glob) for glob in dict.fromkeys(globs)]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
        """Return the symbols and tests of a source file, with what its comments link to."""
        from kbcore.extract.code.languages import is_generated, language_of  # noqa: PLC0415 - most commands read no code
        from kbcore.extract.code.symbols import TooNestedError  # noqa: PLC0415 - as above

        if matches(source.path, _globs(settings_, IGNORE)):
            return Facts()
        language = language_of(source.path)
        if language is None:
            message = "no grammar is known for this language"
            return _passed_over("unsupported_language", message, "Name its symbols in a manifest, or ignore the file.")
        if is_generated(source.path, source.data):
            return _passed_over("generated_file", "the file is generated", "Nothing is to be done.")
        faults = _faults(source)
        if faults:
            return unreadable(faults)
        try:
            module = module_of(source, settings_)
        except TooNestedError as error:
            hint = "Simplify the code, or name the file under `extractors.code.ignore`."
            return unreadable((FileProblem(error.line, "too_nested", str(error), hint),))
        return facts_of(source, module, settings_.get(settings.EDGE_NAMES, ()))


def missing_packages() -> list[str]:
    """Return the packages of the extra that are not installed."""
    from kbcore.extract.code.languages import missing_modules  # noqa: PLC0415 - as above

    return [name.replace("_", "-") for name in missing_modules()]


def module_of(source: SourceFile, settings_: Mapping[str, Any]) -> Module:
    """Return what the parser finds in a file.

    Raises: ``ValueError`` for a file of no known language, and for one that is no text; ``TooNestedError``.
    """
    from kbcore.extract.code.languages import language_of  # noqa: PLC0415 - as above
    from kbcore.extract.code.symbols import read_module  # noqa: PLC0415

    language, text = language_of(source.path), decode(source.data).text
    if language is None or text is None:
        raise ValueError(source.path)
    has_tests = matches(source.path, _globs(settings_, TESTS))
    return read_module(language, text.encode(), source.path, has_tests=has_tests)


def facts_of(source: SourceFile, module: Module, edges: Collection[str]) -> Facts:
    """Return what a file states; ``edges`` are the names of the edges that its comments may name."""
    from kbcore.extract.code.links import marked, wrongly_marked  # noqa: PLC0415 - as above

    said = marked(module, module.data, edges)
    symbols = [*module.symbols, *([module.whole] if any(one.symbol is module.whole for one in said) else [])]
    entities = [_entity(source.path, one) for one in symbols]
    links = [_link(source.path, one) for one in said]
    problems = [_wrong_mark(one, edges) for one in wrongly_marked(module, edges)]
    if module.fault_line:
        message = "the parser does not understand all of this file, so that its symbols are known in part"
        hint = "Correct the syntax; until then what was known of the rest is kept."
        problems.append(FileProblem(module.fault_line, "partly_parsed", message, hint, "warning"))
    return Facts(tuple(entities), tuple(links), at_most(problems), is_complete=not module.fault_line)


def _wrong_mark(mark: WrongMark, edges: Collection[str]) -> FileProblem:
    """Return the problem of a comment that is meant as a mark and states no link."""
    word = in_quotes(shortened(mark.edge, _SHOWN_CHARS))
    if mark.is_known:
        message, hint = f"the mark {word} names no id", f"Name one, as in `kb: {mark.edge} REQ-1`."
    else:
        message = f"the mark names {word}, which is no edge"
        meant = f"Did you mean '{_OF_TESTS}'?" if mark.edge.lower() in _VERIFYING else did_you_mean(mark.edge, edges)
        hint = f"{meant} A comment that is no mark must not begin with `kb:`."
    return FileProblem(mark.line, "wrong_mark", message, hint, "warning", values=(mark.edge, mark.target))


def lines_of_symbols(path: str, data: bytes, settings_: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the first and the last line of each symbol of a file by its id, an outer one before those in it."""
    try:
        module = module_of(SourceFile(path, data), settings_)
    except (ValueError, ImportError):  # no code, or nothing to read it with
        return {}
    return {_id(path, one): (one.start_line, one.end_line) for one in module.symbols}


def _link(path: str, said: MarkedSymbol) -> StatedLink:
    """Return a mark as a link: the place of one that says that something is verified decides its edge."""
    key, mark = _id(path, said.symbol), said.mark
    if mark.edge is None and not said.symbol.is_test:
        return StatedLink(key, mark.target, RELATES_TO, kind=VERIFIES, line=said.line)
    return StatedLink(key, mark.target, mark.edge, kind=mark.kind, line=said.line, reverse=mark.reverse)


def _id(path: str, symbol: Symbol) -> str:
    return path if symbol.name == path else symbol_id(path, symbol.name)


def symbol_id(path: str, name: str) -> str:
    """Return the id of a symbol; one that would be too long ends in a digest of its rest."""
    key = f"{path}#{name}"
    if len(key) <= limits.MAX_ID_CHARS:
        return key
    rest = hashlib.blake2b(key.encode(), digest_size=_ID_DIGITS // 2).hexdigest()
    return f"{key[: limits.MAX_ID_CHARS - _ID_DIGITS - 1]}~{rest}"


def _entity(path: str, symbol: Symbol) -> StatedEntity:
    fields: dict[str, Any] = {"title": symbol.name, "status": ACTIVE, "attributes.file": path}
    if not symbol.is_test:
        fields["attributes.kind"] = symbol.kind
    if symbol.signature:
        fields["attributes.signature"] = symbol.signature
    if not symbol.is_broken:
        fields["attributes.signature_hash"] = symbol.signature_hash
        fields["attributes.body_hash"] = symbol.body_hash
        if symbol.body_sketch:
            fields["attributes.body_sketch"] = symbol.body_sketch
    return StatedEntity(_id(path, symbol), TEST if symbol.is_test else SYMBOL, fields, symbol.line)


def _globs(settings_: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return settings.globs_of(settings_.get(key, ()))


def _passed_over(code: str, message: str, hint: str) -> Facts:
    return Facts(problems=(FileProblem(0, code, message, hint, "note"),))


def _faults(source: SourceFile) -> tuple[FileProblem, ...]:
    """Return why nothing of a file can be read."""
    if len(source.data) > limits.MAX_CODE_BYTES:
        message = f"the file has {len(source.data)} bytes; the limit is {limits.MAX_CODE_BYTES}"
        return (FileProblem(0, "too_long", message, "Split the file, or name it under `extractors.code.ignore`."),)
    decoded = decode(source.data)
    if decoded.text is None:
        return decoded.problems
    if _CONFLICT in source.data:
        _, torn = conflict_markers.without_conflicts(decoded.text)
        return torn
    return ()


EXTRACTOR: Final = CodeExtractor()
