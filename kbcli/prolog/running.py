"""Runs goals and statements, for the options of ``kb prolog``, for standard input and for the prompt.

Answers are shown as a Prolog system shows them; stored text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kbcli.invocation import exits
from kbcli.prolog import statements
from kbcore.errors import PrologFailed
from kbcore.text.escaping import escape_controls, escape_lines

if TYPE_CHECKING:
    from kbcli.prolog.prolog_call import Asking
    from kbcli.terminal.output import Output
    from kbcore.logic.workspace import Mode

_HINTS: Final = {
    "query_lost": "Ask it again.",
    "(:-)/1": "A directive is a clause: `:assert :- dynamic name/1.`",
}
"""Remedies of errors, by their kind or by the predicate that they name."""
Wants = Callable[[], bool]
"""Asks a person whether to look for another solution."""


class InputRunner:
    """Runs inputs one after the other, and shows the answer to each."""

    def __init__(self, asking: Asking, mode: Mode, limit: int | None) -> None:
        self._asking = asking
        self._output = asking.session.output
        self._mode: Mode = mode
        self._limit = limit
        self.answers: list[dict[str, Any]] = []
        """The answers so far, for a document; kept only where one is wanted."""
        self.status = exits.DONE
        """1 once a goal had no solution."""

    def run(self, text: str, wants: Wants | None = None) -> None:
        """Run one goal or statement; ``wants`` is asked before each further solution, None shows all.

        Raises: ``KBError``; what was found before is shown.
        """
        statement = statements.parse(text)
        if statement is None:
            self._query(text, wants)
        else:
            self._keep({"statement": f":{statement.name}"} | statements.run(self._asking, statement))

    def _keep(self, answer: dict[str, Any]) -> dict[str, Any]:
        if self._output.is_json:
            self.answers.append(answer)
        return answer

    def _query(self, text: str, wants: Wants | None) -> None:
        answer = self._keep({"goal": text, "status": "not_run", "solutions": [], "is_complete": False})
        prolog, source = self._asking.prolog, self._asking.source()
        number = 0
        try:
            prolog.start_query(source, text, self._mode)
            answer["status"] = "error"  # unless it has an answer
            while True:
                reply = prolog.next_answer(self._asking.source() if wants and number else source)
                self._show_output(answer, reply, is_after=number > 0 and not wants)
                if reply["status"] == "done":
                    self._end(answer, number, reply, is_asked=wants is not None)
                    return
                number += 1
                self._show(answer, reply)
                if prolog.is_last:
                    answer["is_complete"] = True
                    self._write(".\n")
                    return
                if number == self._limit or not (wants is None or wants()):
                    self._stop(number, is_asked=wants is not None)
                    return
                if wants:
                    self._write(";\n")
        except PrologFailed as error:
            if number:
                answer["status"] = "error"
                if not wants:
                    self._write(" ;\n")
            self._write(_written_output(error.data))
            error.remedy = _HINTS.get(error.data["kind"]) or _HINTS.get(error.data.get("name", "")) or error.remedy
            raise

    def _stop(self, number: int, *, is_asked: bool) -> None:
        """Close the query before its end."""
        self._asking.prolog.close_query()
        self._write(".\n" if is_asked else " .\n")
        if number == self._limit:
            self._output.note(f"Stopped at solution {number} (--limit); there may be more.")

    def _show_output(self, answer: dict[str, Any], reply: dict[str, Any], *, is_after: bool) -> None:
        """Show what was printed on the way to an answer; ``is_after`` a solution that is not ended yet."""
        if is_after and (reply["status"] != "done" or reply.get("output")):
            self._write(" ;\n")
        self._write(_written_output(reply))
        if reply["status"] == "done" and reply.get("output"):
            answer["output"] = reply["output"]

    def _end(self, answer: dict[str, Any], number: int, reply: dict[str, Any], *, is_asked: bool) -> None:
        """Show that there is no further solution."""
        answer["is_complete"] = True
        if not number:
            answer["status"] = "failed"
            self.status = exits.VIOLATIONS
        if number and not is_asked and not reply.get("output"):
            self._write(".\n")
        else:
            self._write(f"{self._output.styled('false', 'bold')}.\n")

    def _show(self, answer: dict[str, Any], reply: dict[str, Any]) -> None:
        answer["status"] = "success"
        if self._output.is_json:
            answer["solutions"].append({name: value for name, value in reply.items() if name != "status"})
            return
        self._write(_solution(self._output, reply))
        _note_cut(self._output, reply)

    def _write(self, text: str) -> None:
        if not self._output.is_json:
            self._output.data(text)


def _written_output(reply: Mapping[str, Any]) -> str:
    """Return what a goal printed, with a line break at its end."""
    text = escape_lines(reply.get("output", ""))
    return text if not text or text.endswith("\n") else f"{text}\n"


def _solution(output: Output, reply: Mapping[str, Any]) -> str:
    """Return the lines of a solution: the bindings, and the constraints that are left; "true" where there is neither.

    What ends it, a ``;`` or a full stop, is not part of it.
    """
    lines = [f"{output.styled(name, 'bold')} = {escape_controls(value)}" for name, value in reply["bindings"].items()]
    lines += map(escape_controls, reply.get("residual", ()))
    return ",\n".join(lines) or output.styled("true", "bold")


def _note_cut(output: Output, reply: Mapping[str, Any]) -> None:
    """Note that a term of a solution was too long to be shown whole."""
    if reply.get("truncated"):
        output.note("note: A term of this solution is too long and was cut.")
