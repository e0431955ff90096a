"""Rule ``unreadable-source``: every file that KB reads could be read, the last time it was.

What a file holds and KB leaves out, while all else of it is read, is a warning, as it is in the answer of a sync.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.model.graph import NOTES_OF_RULES, NoteOnFile
from kbcore.remedies import kb, shell
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
            name = in_quotes(mark.rpartition("/")[0])
            hint = f"{kb('sync', lead='Run')} to see whether the extractor {name} can be used here. {_STALE}"
            found.append(Finding(path, "The file could not be read completely.", hint, path, names_id=False))
    return found


def _finding(path: str, note: NoteOnFile, hint: str) -> Finding:
    about = (note.id,) if note.id else ()
    return Finding(path, note.message, hint, path, code=note.code, values=about, line=note.line, names_id=False)


RULE: Final = Rule(
    "unreadable-source",
    "error",
    "Every file that states facts could be read completely. Here `id` is the path of the file. What is left out of a"
    " file that is otherwise read, such as a second block of front matter, is a warning.",
    _run,
    example="the list that begins here is not closed.",
    remedy=f"Correct the file and {shell('sync', lead='run')}; until then, what was last known from it stays as it is.",
)
