"""Rule ``unreadable-source``: every file that KB reads could be read, the last time it was.

What a file holds and KB leaves out, while all else of it is read, is a warning, as it is in the answer of a sync.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.errors import Problem
from kbcore.errors.remedies import kb, shell
from kbcore.extract import changes
from kbcore.model.graph import NOTES_OF_RULES, NoteOnFile
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.escaping import in_quotes

_notes = msgspec.json.Decoder(tuple[NoteOnFile, ...])
_SQL: Final = "select path, problems, extractor, is_ok from source where not is_ok or problems::varchar <> '[]'"
_STALE: Final = "Until then, what was last known from the file stays as it is."
"""Of a problem with one entity the file does not keep what is known of the others."""


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for path, problems, mark, is_ok in context.near(_SQL, []):
        notes = [note for note in _notes.decode(problems) if note.code not in NOTES_OF_RULES]
        errors = [note for note in notes if note.severity == "error" and not is_ok]
        found += [_finding(path, note, note.hint if note.id else f"{note.hint} {_STALE}".lstrip()) for note in errors]
        minor = [_finding(path, note, note.hint) for note in notes if note.severity == "warning"]
        found += [msgspec.structs.replace(one, is_minor=True) for one in minor]
        if not errors and not is_ok:
            found.append(_not_read(path, mark.rpartition("/")[0]))
    return found


def _not_read(path: str, extractor: str) -> Finding:
    """Return that a file was not read: a warning with the remedy where its package is missing, as a sync says it."""
    fault = _missing(extractor) if extractor else None
    if fault is None:
        hint = (
            f"{kb('sync', lead='Run')} to see whether the extractor {in_quotes(extractor)} can be used here. {_STALE}"
        )
        return Finding(path, "The file could not be read completely.", hint, path, names_id=False)
    hint = f"{fault.remedy} {_STALE}"
    about = Finding(path, fault.message, hint, path, code=fault.code, values=(extractor,), names_id=False)
    return msgspec.structs.replace(about, is_minor=True)


def _missing(extractor: str) -> Problem | None:
    """Return that the package of an extractor is not installed, if that is so."""
    from kbcore.extract import registry  # noqa: PLC0415 - extractors are loaded only where a file was not read

    if extractor == changes.NAME:  # KB's own, and no setting is about it
        return Problem(extractor, "not_checked_out", changes.NOT_CHECKED_OUT.message, changes.NOT_CHECKED_OUT.hint)
    loaded = registry.load(())
    known = loaded.usable.get(extractor)
    if known is not None:
        return registry.missing_package(known)
    is_broken = any(one.path == f"extractors.{extractor}" for one in loaded.problems)
    return None if is_broken else registry.not_installed(extractor)


def _finding(path: str, note: NoteOnFile, hint: str) -> Finding:
    about = note.values or ((note.id,) if note.id else ())
    return Finding(path, note.message, hint, path, code=note.code, values=about, line=note.line, names_id=False)


RULE: Final = Rule(
    "unreadable-source",
    "error",
    "Every file that states facts could be read completely. Here `id` is the path of the file. What is left out of a"
    " file that is otherwise read, such as a second block of front matter, is a warning, and so is a file whose"
    " extractor is in a package that is not installed.",
    _run,
    example="the list that begins here is not closed.",
    remedy=f"Correct the file and {shell('sync', lead='run')}; until then, what was last known from it stays as it is.",
)
