"""Records of a run in the store: who writes for it, and the event that remembers it.

Invariant: all that a run writes is in a session of its own, the id of the run, so that one command takes it back.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import __version__
from kbcore.dml.events import Outcome
from kbcore.dml.model import Message
from kbcore.errors import ProgramFailed
from kbcore.model.record import DML
from kbcore.secrets import masked_in
from kbcore.store.write_request import Author
from kbcore.text.escaping import escape_and_cut

if TYPE_CHECKING:
    from kbcore.dml.run import Run
    from kbcore.kip.run import KipContext

_MAX_PROGRAM_CHARS: Final = 60
_ID_BYTES: Final = 6
_MAX_TEXT_CHARS: Final = 2_000
"""Of a value of a param that is recorded."""
_RUNNING: Final = "running"
"""The outcome of a run that has not ended, or was killed."""
_FIELDS: Final = (
    *("event_class", "program", "program_sha256", "params", "model", "start_time", "end_time", "duration_s"),
    *("outcome", "error", "rounds", "input_tokens", "output_tokens", "cost_usd", "inferences"),
    *("memory_messages", "memory_chars", "content_summary"),
    *("status", "archived_at", "archived_by"),
)


class RunName(msgspec.Struct, frozen=True):
    """A run: the name of its program, and an id of its own, which is the session of all that it writes."""

    program: str
    id: str


def new_run(program: str) -> RunName:
    """Return the name of a run of a program that begins now."""
    return RunName(escape_and_cut(program, _MAX_PROGRAM_CHARS), f"dml-{secrets.token_hex(_ID_BYTES)}")


def author_of(run: RunName, task: int = 0) -> Author:
    """Return who writes for a run, in or after the task that has this number; 0 is before the first one."""
    inside = f"/task-{task}" if task else ""
    return Author(f"dml/{run.program}", f"{DML}{run.program}/{run.id}{inside}", f"kb/{__version__}", run.id)


def begun(run: RunName, code: str, params: Mapping[str, Any], model: str, at: str) -> dict[str, Any]:
    """Return the attributes of the event of a run that begins; ``at`` is the time of now. Secrets are masked.

    The event is archived from the beginning: it is kept, and a sleep cycle need not see to it.
    """
    return {
        "event_class": "DmlRun",
        "program": run.program,
        "program_sha256": hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest(),
        "params": {key: _shortened(masked_in(value, key)) for key, value in params.items()},
        "model": model,
        "start_time": at,
        "outcome": _RUNNING,
        "content_summary": f"A run of the program {run.program}.",
        "status": "archived",
        "archived_at": at,
        "archived_by": "$system",
    }


def ended(run: Run, outcome: Outcome, at: str, duration_s: float) -> dict[str, Any]:
    """Return the further attributes of the event of a run that has ended."""
    spent = run.spent.as_json()
    found: dict[str, Any] = {
        "end_time": at,
        "duration_s": round(duration_s, 3),
        "outcome": outcome,
        **spent,
        "memory_messages": len(run.memory),
        "memory_chars": _chars(run.memory),
    }
    return found | ({"error": masked_in(run.error.message)} if run.error else {})


def record(around: KipContext, run: RunName, attributes: Mapping[str, Any]) -> None:
    """Write attributes of the event of a run, which is made where it is not there yet, as one changeset.

    Raises: ``ProgramFailed`` for what KIP refuses; as ``kip.run.run``.
    """
    from kbcore.kip.request import CommandText, KipRequest  # noqa: PLC0415 - a run without a record needs no KIP
    from kbcore.kip.run import run as run_kip  # noqa: PLC0415

    given = {name: value for name, value in attributes.items() if name in _FIELDS}
    texts = ", ".join(f"{name}: :{name}" for name in given)
    command = (
        f'UPSERT {{ CONCEPT {{ {{type: "Event", name: :run}} SET ATTRIBUTES {{ {texts} }} '
        'SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Archived"}) } } } '
        "WITH METADATA { source: :source, author: :author, confidence: 1.0 }"
    )
    author = around.author
    whole = {**given, "run": run.id, "source": author.source, "author": author.actor}
    answer = run_kip(around, KipRequest((CommandText(command, whole),)))
    if answer.is_error:
        error = answer.response["error"]
        raise ProgramFailed(f"The run could not be recorded: {error['message']}", hint=error.get("hint", ""))


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT_CHARS else f"{value[:_MAX_TEXT_CHARS]}…"
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return value if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}…"


def _chars(memory: Sequence[Message]) -> int:
    return sum(len(message.text) for message in memory)
