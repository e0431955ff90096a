"""Asks a person at the terminal which proposed settings are taken, and changed how."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import typer

from kbcore.store.settings_files import CONFIG

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.extract.sources.detection import Detection
    from kbcore.extract.sources.proposal import SettingsProposal
    from kbcore.store.workspace import Workspace

_MOST_SHOWN: Final = 10
_QUESTION: Final = "Take it? [y]es, [c]hange, [n]o, [a]ll, [q]uit"
_ANSWERS: Final = {said: word[0] for word in ("yes", "change", "no", "all", "quit") for said in (word, word[0])}


class UnconfiguredFiles(NamedTuple):
    """The files of a worktree beyond those that are configured: documents, and reports of test runs by their paths."""

    documents: Detection
    reports: list[str]


def find(workspace: Workspace) -> UnconfiguredFiles:
    """Return what a worktree has beyond what is configured. Raises: ``GitUnusable``, ``InvalidConfig``."""
    from kbcore.results.report_files import find_reports
    from kbcore.sync import detecting

    paths = detecting.paths_of(workspace)
    return UnconfiguredFiles(detecting.detect(workspace, paths), find_reports(workspace, paths))


def offer(session: Session, workspace: Workspace, found: UnconfiguredFiles, *, yes: bool, command: str = "") -> bool:
    """Show what was found, or ask set by set at a terminal, and add what is taken to the settings.

    ``command`` is the one that takes the proposals; without one nothing is written. Return whether something was.

    Raises: as ``detecting.take``.
    """
    from kbcli.messages import proposed_settings
    from kbcore.sync import detecting

    output = session.output
    asks = bool(command) and not yes and output.is_interactive and not (output.is_json or output.is_quiet)
    if asks:
        taken = ask(session, found.documents.proposals, lambda *changed: detecting.changed(workspace, *changed))
    else:
        taken = list(found.documents.proposals) if yes and command else []
        for one in found.documents.proposals[:_MOST_SHOWN]:
            for line in proposed_settings.proposal_lines(one):
                output.say_as_it_is(line)
        if len(found.documents.proposals) > _MOST_SHOWN:
            output.say(proposed_settings.more_line(len(found.documents.proposals) - _MOST_SHOWN))
    is_changed = detecting.take(workspace, taken)
    if is_changed:
        output.say(proposed_settings.taken_line(len(taken), f"{workspace.settings_name}/{CONFIG}"))
    elif found.documents.proposals and command and not asks:
        output.say(proposed_settings.left_line(len(found.documents.proposals), command))
    for said in (
        proposed_settings.possible_line(found.documents.possible),
        proposed_settings.reports_line(found.reports),
    ):
        if said:
            output.say(said)
    for missing in found.documents.uninstalled:
        output.say(proposed_settings.uninstalled_line(missing))
    return is_changed


def as_json(found: UnconfiguredFiles, *, is_taken: bool) -> dict[str, Any]:
    """Return what was found as members of an answer."""
    return {
        "proposals": msgspec.to_builtins(found.documents.proposals),
        "taken": is_taken,
        "possible": msgspec.to_builtins(found.documents.possible),
        "covered": found.documents.covered,
        "uninstalled": msgspec.to_builtins(found.documents.uninstalled),
        "reports": list(found.reports),
    }


def ask(
    session: Session,
    proposals: Sequence[SettingsProposal],
    changed: Callable[[SettingsProposal, Any, str], SettingsProposal],
) -> list[SettingsProposal]:
    """Return the proposals that a person takes, one after the other; the end of the input takes no more.

    ``changed`` returns a proposal with another value and setting; it raises ``InvalidQuery`` for one that is of no use.
    """
    from kbcli.messages.proposed_settings import proposal_lines

    taken: list[SettingsProposal] = []
    output = session.output
    try:
        for number, proposal in enumerate(proposals, 1):
            shown = proposal
            while True:
                output.flush()
                output.note(f"{number} of {len(proposals)}: " + "\n".join(proposal_lines(shown)))
                said = typer.prompt(_QUESTION, default="y", err=True).strip().lower()
                answer = _ANSWERS.get(said, "")
                if answer == "c":
                    shown = _change(session, shown, changed)
                elif answer:
                    break
                else:
                    output.warn("That is none of the answers. Type one letter, or the word.")
            if answer == "a":
                return [*taken, shown, *proposals[number:]]
            if answer == "q":
                return taken
            if answer == "y":
                taken.append(shown)
    except typer.Abort:
        output.note("")
    return taken


def _change(
    session: Session, proposal: SettingsProposal, changed: Callable[[SettingsProposal, Any, str], SettingsProposal]
) -> SettingsProposal:
    """Ask for type, id and globs, and return the proposal with them; as it was where they are of no use."""
    from kbcore.errors import InvalidQuery
    from kbcore.extract.sources.check import resolved
    from kbcore.text.escaping import escaped_sentence

    try:
        if isinstance(proposal.value, list):
            head, _, type_ = proposal.setting.rpartition(".")
            if head == "extractors.markdown.paths":
                type_ = _asked("type", type_)
            globs = _split(_asked("glob", _joined(proposal.value)))
            return changed(proposal, globs, f"{head}.{type_}")
        whole = resolved(proposal.value)
        entry = dict(proposal.value)
        for key in ("type", "id", "glob"):
            before = whole.get(key, "")
            if isinstance(before, dict):
                before = before.get("default", "")
            listed = before if isinstance(before, list) else [str(before)]
            text = _joined(listed) if key == "glob" else " ".join(listed)
            said = _asked(key, text)
            if said != text:
                words = _split(said) if key == "glob" else [said]
                entry[key] = words[0] if len(words) == 1 else words
        return changed(proposal, entry, proposal.setting)
    except InvalidQuery as error:
        session.output.warn(escaped_sentence(f"{error.message} {error.hint or ''}".strip()))
        return proposal


def _asked(what: str, before: str) -> str:
    return str(typer.prompt(f"  {what}", default=before, err=True)).strip()


def _joined(globs: Sequence[str]) -> str:
    """Return globs in one line; one with a blank is in quotes."""
    return " ".join(f'"{one}"' if " " in one else one for one in globs)


def _split(text: str) -> list[str]:
    """Return the globs of a line, as ``_joined`` writes them."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', text)]
