"""Rule ``unreadable-source``: every file that KB reads could be read, the last time it was."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.model import NoteOnFile
from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.visible import in_quotes

_notes = msgspec.json.Decoder(tuple[NoteOnFile, ...])
_STALE: Final = "Until then, what was last known from the file stays as it is."


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for path, problems, mark in context.near("select path, problems, extractor from source where not is_ok", []):
        notes = [note for note in _notes.decode(problems) if note.severity == "error"]
        for note in notes:
            # What says itself what becomes of it does not keep what was known.
            hint = note.hint if "until then" in note.hint.lower() else f"{note.hint} {_STALE}".lstrip()
            found.append(Finding(path, note.message, hint, path, code=note.code, line=note.line))
        if not notes:
            name = in_quotes(mark.rpartition("/")[0])
            hint = f"Run `kb sync` to see whether the extractor {name} can be used here. {_STALE}"
            found.append(Finding(path, "The file could not be read completely.", hint, path))
    return found


RULE: Final = Rule(
    "unreadable-source",
    "error",
    "Every file that states facts could be read completely. Here `id` is the path of the file.",
    _run,
    example="the list that begins here is not closed.",
    remedy="Mend the file and run `kb sync`; until then, what was last known from it stays as it is.",
)
