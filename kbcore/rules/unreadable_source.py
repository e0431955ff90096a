"""Rule ``unreadable-source``: every file that KB reads could be read, the last time it was.

What a file holds and KB leaves out, while all else of it is read, is a warning, as it is in the answer of a sync.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.model.graph import NOTES_OF_RULES, NoteOnFile
from kbcore.remedies import kb, typed
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.escaping import in_quotes

_notes = msgspec.json.Decoder(tuple[NoteOnFile, ...])
_SQL: Final = "select path, problems, extractor, is_ok from source where not is_ok or problems::varchar <> '[]'"
_STALE: Final = "Until then, what was last known from the file stays as it is."


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for path, problems, mark, is_ok in context.near(_SQL, []):
        notes = [note for note in _notes.decode(problems) if note.code not in NOTES_OF_RULES]
        errors = [note for note in notes if note.severity == "error" and not is_ok]
        for note in errors:
            # What says itself what becomes of it does not keep what was known.
            hint = note.hint if "until then" in note.hint.lower() else f"{note.hint} {_STALE}".lstrip()
            found.append(Finding(path, note.message, hint, path, code=note.code, line=note.line))
        for note in notes:
            if note.severity == "warning":
                left_out = Finding(path, note.message, note.hint, path, code=note.code, line=note.line, is_minor=True)
                found.append(left_out)
        if not errors and not is_ok:
            name = in_quotes(mark.rpartition("/")[0])
            hint = f"{kb('sync', lead='Run')} to see whether the extractor {name} can be used here. {_STALE}"
            found.append(Finding(path, "The file could not be read completely.", hint, path))
    return found


RULE: Final = Rule(
    "unreadable-source",
    "error",
    "Every file that states facts could be read completely. Here `id` is the path of the file. What is left out of a"
    " file that is otherwise read, such as a second block of front matter, is a warning.",
    _run,
    example="the list that begins here is not closed.",
    remedy=f"Mend the file and {typed('sync', lead='run')}; until then, what was last known from it stays as it is.",
)
