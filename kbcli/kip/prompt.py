"""The prompt of ``kb kip``: reads commands line by line until they are complete, and runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.invocation import prompt
from kbcli.invocation.parameters import parameters_of
from kbcli.kip import answers
from kbcli.kip.answers import write_answer
from kbcli.kip.requests import is_whole, request_of
from kbcli.kip.run_request import carried_out, names
from kbcore.errors import KBError, KipRefused
from kbcore.kip.errors import envelope
from kbcore.kip.grammar import KEYWORDS

if TYPE_CHECKING:
    from kbcli.invocation.context import Session

_PARAMETER: Final = re.compile(r":(\w+)\s*=\s*(.*)")
HELP: Final = """\
A command on one line runs as soon as it is complete. One of several lines ends with an empty line, or with a `;`.
Tab completes keywords, types, predicates and variables; the arrow keys recall earlier input.

  :name = Alice                            from now on :name means Alice
  DESCRIBE PRIMER                          who you are, and what there is
  DESCRIBE CONCEPT TYPES                   the types; DESCRIBE CONCEPT TYPE "Person" shows one
  SEARCH CONCEPT "login"                   what mentions it
  FIND(?r.name, ?r.attributes.title) WHERE { ?r {type: "Requirement"} } LIMIT 5

Ctrl-C drops what is typed, Ctrl-D or `exit` leaves. docs/kip.md has the rest."""
BREAKS: Final = " \t\n(){}[],|:"
"""The characters at which words end. Quotation marks, ``?``, ``.`` and ``$`` are parts of them."""
_VARIABLE: Final = re.compile(r"\?[A-Za-z_][A-Za-z0-9_]*")
_OF_TYPE: Final = re.compile(r'(?:\btype\s*:\s*|\bTYPES?\s+)"?$')
_OF_PREDICATE: Final = re.compile(r'(?:\(\s*[^()]*,\s*|\(\s*|PROPOSITION\s+TYPE\s+|\|\s*)"?$')
_PARTS: Final = ("attributes.", "id", "metadata.", "name", "object", "predicate", "subject", "type")


def converse(session: Session, parameters: Mapping[str, Any], *, dry_run: bool) -> int:
    """Read and carry out commands until the user leaves; return the exit status."""
    _ = session.workspace  # where there is no KB, no prompt is of use
    commands = _Commands(session, parameters, dry_run=dry_run)
    return prompt.converse(session, commands, "KIP on your branch. `help` says how it works; Ctrl-D leaves.")


class _Commands:
    """The input of the prompt, and its execution."""

    first = "kip> "
    next = " ... "
    breaks = BREAKS
    history = "kip-history"
    leaving = prompt.LEAVING

    def __init__(self, session: Session, parameters: Mapping[str, Any], *, dry_run: bool) -> None:
        self._session = session
        self._parameters = dict(parameters)
        self._dry_run = dry_run
        self.typed: list[str] = []

    def interrupted(self) -> None:
        """Do nothing: a command that is interrupted leaves nothing."""

    def candidates(self, before: str, word: str) -> Sequence[str]:
        """Return what a word may become."""
        return candidates(before, word, KipNames(*names(self._session)))

    def take(self, line: str) -> None:
        """Take a line, and run the command that it completes."""
        if not self.typed and line.strip() in {"help", "\\h", ".help", "?"}:
            self._session.output.data(f"{HELP}\n")
            return
        given = _PARAMETER.fullmatch(line.strip())
        if not self.typed and given:
            self._parameters |= parameters_of([f"{given[1]}={given[2]}"])
            return
        has_end, is_end = line.rstrip().endswith(";"), not line.strip()
        self.typed.append(line.rstrip()[:-1] if has_end else line)
        text = "\n".join(self.typed)
        if not text.strip():
            self.typed.clear()
            return
        try:
            is_done = has_end or (is_whole(text) and (is_end or len(self.typed) == 1))
            if not is_done:
                return
            self.typed.clear()
            request = request_of(text, self._parameters, dry_run=self._dry_run)
        except KipRefused as error:
            self.typed.clear()
            answers.write_error(self._session.output, envelope(error)["error"])
            return
        try:
            answer, branch = carried_out(self._session, request)
        except KBError as error:
            self._session.show_error(error)
            return
        write_answer(self._session, request, answer, branch)


class KipNames(msgspec.Struct, frozen=True):
    """The concept types and the predicates of the branch."""

    types: Sequence[str] = ()
    predicates: Sequence[str] = ()


def candidates(before: str, word: str, names: KipNames) -> list[str]:
    """Return what a word may become; ``before`` is all that was typed in front of it."""
    if word.startswith("?"):
        return _variables(before, word)
    if word.startswith('"'):
        found = names.predicates if _is_predicate(before) else names.types if _OF_TYPE.search(before) else ()
        known = found or [*names.types, *names.predicates]
        return [f'"{name}"' for name in known if name.startswith(word[1:])]
    if before.endswith(":"):
        return []  # a placeholder, whose name is the client's
    keywords = sorted(one for one in KEYWORDS if one.startswith(word.upper()) and one.isupper())
    return keywords if word else []


def _is_predicate(before: str) -> bool:
    return bool(_OF_PREDICATE.search(before)) and not _OF_TYPE.search(before)


def _variables(before: str, word: str) -> list[str]:
    variable, dot, part = word.partition(".")
    if dot:
        return [f"{variable}.{one}" for one in _PARTS if one.startswith(part)]
    return sorted({one for one in _VARIABLE.findall(before) if one.startswith(word)})
