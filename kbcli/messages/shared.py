"""Sharing in words: the files that were written, and what stays in this clone and why. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kbcli.messages.lines import outcome_line
from kbcore.extract.changes import is_pack_file, place_of_secret
from kbcore.model.redaction.target import commands
from kbcore.secrets import masked
from kbcore.text.escaping import escape_controls, in_quotes
from kbcore.text.wording import is_or_are, it_or_them, pluralize, some_of

if TYPE_CHECKING:
    from kbcore.share.backup_ref import Fetched, Pushed, RedactedThere
    from kbcore.share.merging import Merged
    from kbcore.share.packing import Packed
    from kbcore.share.sharing import Shared
    from kbcore.share.unshared import Unshared

_ACTORS: Final = 3
_MODES: Final = {
    "off": "Sharing is off: what people and agents add stays in this clone. Change files that are there still hold.",
    "ask": "Sharing: `kb share` writes what people and agents add into files below .kb/changes, to be committed.",
    "auto": "Sharing: each `git commit` takes along what people and agents add, in files below .kb/changes.",
}
_REASONS: Final = {
    "private_actor": "whose actor is not in `share.actors`",
    "private_type": "with an entity whose type is not in `share.types`",
    "private_when_written": "written at a commit whose settings may not share {them}: `kb share --actor NAME` does",
    "private_restored": "with a value put back that private changes alone stated",
    "private_origin": "with a name that private changes alone stated",
}
_STATES: Final = {
    "private_actor": "private: actor",
    "private_type": "private: type",
    "private_when_written": "private: when written",
    "private_restored": "private: put back",
    "private_origin": "private: name",
    "secret": "refused: secret",
    "unsafe_text": "refused: characters",
    "too_large": "refused: size",
}
_WHEN_WRITTEN: Final = "private_when_written"
_NOTED: Final = "no entity and no edge changed"
"""Said of a record of changes that all hold already, or are decided."""
_ORIGINS: Final = {
    "private_restored": "it puts {place} back as private changes alone stated it",
    "private_origin": "it names {place}, which private changes alone stated",
}
_FAULTS: Final = {
    "secret": "{place} looks like a secret",
    "unsafe_text": "{place} has characters that are not seen, or that change the direction of text",
    "too_large": "it is larger than a change file may be",
}
_REMEDIES: Final = {
    "secret": "Take the secret out of use, and take it out of the record with `kb redact {seq}`: then it is shared.",
    "unsafe_text": "Undo the record with `kb revert {seq}`, and write the value without them.",
    "too_large": "Undo the record with `kb revert {seq}`, and write the same in several changesets.",
}
_OF_NAMES: Final = {
    "field": "Take the secret out of use, and remove the fields with it in their names with `kb redact - --names`,"
    " which reads the secret from standard input: then the rest is shared.",
    "id": "Take the secret out of use. It is in a name or an id, which no redaction takes out: this record stays in"
    " this clone. Write what else it says again, without the secret.",
}


def mode_line(mode: str) -> str:
    """Return what a value of `share.mode` means."""
    return _MODES[mode]


def written_lines(found: Shared, *, dry_run: bool) -> Iterator[str]:
    """Yield what was written, or would be, and what is private."""
    did = "Would write" if dry_run else "Wrote and staged"
    for path, changes in found.files.items():
        actor = changes[0].change.actor
        yield escape_controls(f"{did} {path}: {pluralize(len(changes), 'change')} of {actor}.")
    if found.before:
        did = "Would stage" if dry_run else "Staged"
        yield f"{did} {pluralize(len(found.before), 'change')} in files that had been written before."
    elif not found.files:
        yield "No change is to be written into a file."
    yield from _private_lines(found.withheld)


def _private_lines(withheld: Iterable[Unshared]) -> Iterator[str]:
    private = Counter(one.withheld for one in withheld if one.withheld in _REASONS)
    for reason, number in sorted(private.items()):
        said = _REASONS[reason].format(them=it_or_them(number))
        yield f"Private: {pluralize(number, 'change')} {said}."


def packed_lines(packed: Packed, *, dry_run: bool, is_timed: bool) -> Iterator[str]:
    """Yield the packs that were written and how many files went, or would."""
    for path, number in packed.packs.items():
        yield f"{'Would write' if dry_run else 'Wrote'} {path}: {pluralize(number, 'change')}."
    if packed.removed:
        did = "Would remove" if dry_run else "Removed"
        yield f"{did} {pluralize(len(packed.removed), 'change file')} whose changes are in packs."
    else:
        yield f"No change file is to be packed.{'' if is_timed else ' `--before 90d` packs what is older than that.'}"
    if packed.left:
        yield f"Left as it is: {pluralize(len(packed.left), 'old change file')} that git would take for a renamed pack."


def pushed_lines(pushed: Pushed, branch: str, remote: str, *, dry_run: bool) -> Iterator[str]:
    """Yield how many changes a push added to a ref and redacted there, or would, how many it has, what is private."""
    if pushed.redacted:
        did = "Would redact" if dry_run else "Redacted"
        yield escape_controls(f"{did} {pluralize(len(pushed.redacted), 'change')} in {pushed.ref} of {remote}.")
    elif not pushed.total:
        yield escape_controls(
            f"Nothing to push: {branch} has no change that may be shared and is in no committed file."
        )
    elif not pushed.added:
        yield escape_controls(f"Nothing new: {_ref_has(pushed.ref, remote, pushed.total)}.")
    if pushed.added and dry_run:
        yield escape_controls(f"Would push {pluralize(len(pushed.added), 'change')} to {pushed.ref} of {remote}.")
    elif pushed.added:
        said = f"Pushed {pluralize(len(pushed.added), 'change')}: {_ref_has(pushed.ref, remote, pushed.total)} now."
        yield escape_controls(said)
    yield from _private_lines(pushed.withheld)


def history_line(pushed: Pushed, remote: str) -> str:
    """Return what a push that redacted could not take out of a ref."""
    return escape_controls(
        f"{remote} lets no commit of {pushed.ref} be replaced, so earlier ones hold what was redacted: ask who runs it"
        " to take the ref away, then push again."
    )


def redacted_line(one: RedactedThere) -> str:
    """Return that a change is redacted elsewhere and not here, and what redacts it."""
    given = [f"`{shlex.join(['kb', 'redact', *words])}`" for words in commands(one.change, one.fields)]
    does = ("shows", "takes") if len(given) == 1 else ("show", "take")
    return escape_controls(
        f"A change of {one.actor} is redacted in the ref and not here: {' and '.join(given)} {does[0]} where this clone"
        f" has it, and {does[1]} it out with --yes."
    )


def fetched_line(fetched: Fetched, remote: str) -> str:
    """Return how many changes of a ref were taken over, or would be, and what is contested."""
    merged = fetched.merged
    taken = "would be taken over" if merged.outcome.dry_run else "taken over"
    said = f"{pluralize(len(merged.changes), 'change')} {taken}: {_ref_has(fetched.ref, remote, fetched.total)}."
    if fetched.withdrawn:
        said += f" {pluralize(fetched.withdrawn, 'change')} of the ref {is_or_are(fetched.withdrawn)} withdrawn."
    return f"{outcome_line(merged.outcome, _NOTED)} {escape_controls(said)}{_contested_words(merged)}"


def _ref_has(ref: str, remote: str, number: int) -> str:
    return f"{ref} of {remote} has {pluralize(number, 'change')}"


def added_lines(found: Shared, *, is_merge: bool) -> Iterator[str]:
    """Yield what the commit that is being made takes along; nothing where that is nothing.

    git runs the hook also where it makes no commit, as the index had no change before. Its hook does not learn of
    ``--allow-empty`` and ``--amend``. A change in a pack that is redacted was shared before: the commit has the
    redaction alone.
    """
    added = [one for changes in found.files.values() for one in changes]
    added += [one for one in found.before if not (one.change.is_redacted and is_pack_file(one.file))]
    if not added:
        return
    number = pluralize(len(added), "change")
    actors = some_of(sorted({one.change.actor for one in added}), _ACTORS)
    if found.was_staged or is_merge:
        yield f"the commit takes along {number} of {actors}, in .kb/changes."
        return
    them = "it" if len(added) == 1 else "them"
    yield (
        f"{number} of {actors} {is_or_are(len(added))} in .kb/changes. With --allow-empty or --amend the commit takes"
        f" {them} along. Else git makes none, as nothing else is staged: run `kb share`, then `git commit`."
    )


def unshared_line(number: int) -> str:
    """Return how many changes are not shared, and what shares them."""
    return f"{pluralize(number, 'change')} {is_or_are(number)} not shared: `kb share` writes {it_or_them(number)}."


def left_line(store: str, number: int) -> str:
    """Return how many changes in the store of a commit that was left are not shared, and what brings them here."""
    them = it_or_them(number)
    return (
        f"{pluralize(number, 'change')} in the store {store} {is_or_are(number)} not shared: `kb merge {store}` brings"
        f" {them} to what is checked out, then `kb share` writes {them}."
    )


def row(one: Unshared) -> tuple[str, str, str, str, str]:
    """Return the row of a change that is not shared: its state says what keeps it, or where it is written."""
    state = _STATES.get(one.withheld) or ("written, not committed" if one.file else "not shared")
    return str(one.seq), one.change.at, masked(one.change.actor), state, masked(one.change.message)


def private_lines(found: Sequence[Unshared]) -> Iterator[str]:
    """Yield why changes are private that are not so by their actor and type now, each with what can be done."""
    for actor, number in sorted(Counter(one.change.actor for one in found if one.withheld == _WHEN_WRITTEN).items()):
        were, them = "was" if number == 1 else "were", it_or_them(number)
        command = f"`kb share --actor {shlex.quote(actor)}`"
        said = f"{pluralize(number, 'change')} of {actor} {were}, or may have been, private when written"
        yield escape_controls(masked(f"{said}: {command} shares {them}."))
    for one in found:
        if one.withheld in _ORIGINS:
            said = _ORIGINS[one.withheld].format(place=one.place)
            yield escape_controls(masked(f"Record {one.seq} {_of(one)} is private: {said}."))


def withdrawn_line(number: int) -> str:
    """Return how many changes were in a committed file that is gone, and how one is shared again."""
    were = "was" if number == 1 else "were"
    return f"{pluralize(number, 'change')} {were} taken back with the file; `kb share --again CHANGE` shares one again:"


def fault_lines(found: Iterable[Unshared]) -> Iterator[str]:
    """Yield the changes that no file may hold, each with what can be done."""
    for one in found:
        if one.withheld not in _FAULTS:
            continue
        said = _FAULTS[one.withheld].format(place=one.place or "it")
        place = place_of_secret(one.change) if one.withheld == "secret" else "value"
        remedy = _OF_NAMES.get(place) or _REMEDIES[one.withheld].format(seq=one.seq)
        yield escape_controls(masked(f"Record {one.seq} {_of(one)} is not shared: {said}. {remedy}"))


def _of(one: Unshared) -> str:
    return f"({in_quotes(one.change.message)})" if one.change.message else f"by {one.change.actor}"


def missing_line(branch: str, other: str, number: int) -> str:
    """Return how many changes of clients a branch has that another one has not, and what brings them."""
    said = f"{pluralize(number, 'change')} of clients on {branch} {is_or_are(number)} not on {other}"
    return escape_controls(f"{said}: `kb merge {shlex.quote(branch)}` brings {it_or_them(number)}.")


def merged_line(merged: Merged, branch: str) -> str:
    """Return what a merge of a branch has changed, and what is contested now."""
    did = "would be merged" if merged.outcome.dry_run else "merged"
    said = f"{pluralize(len(merged.changes), 'change')} of {branch} {did}."
    return f"{outcome_line(merged.outcome, _NOTED)} {escape_controls(said)}{_contested_words(merged)}"


def _contested_words(merged: Merged) -> str:
    """Return how many fields are contested now, or would be; "" for none."""
    if not merged.contested:
        return ""
    fields = pluralize(merged.contested, "field")
    if merged.outcome.dry_run:
        return f" {fields} would be contested."
    return f" {fields} {is_or_are(merged.contested)} contested: `kb resolve` lists what to decide."
