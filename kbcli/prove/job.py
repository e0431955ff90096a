"""The shape of a job: a request, the facts that its answer must have, and how each system does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

System = Literal["kb", "memory", "markdown", "client"]
SYSTEMS: Final[tuple[System, ...]] = ("kb", "memory", "markdown")
"""The systems that scripts are for. ``client`` is a client of agents with KB, whose model decides on the calls."""
Verdict = Literal["done", "by reading", "wrong", "impossible", "not run"]
"""``by reading``: all facts are in what was read, and the model has to work the answer out of them."""

AGENT: Final = "agent"
"""The client whose calls are counted."""
SHELL: Final = "bash"
"""The tool of an agent that runs a command line."""


class JobStep(msgspec.Struct, frozen=True):
    """One call of a tool by a client.

    A text ``{name}`` in the arguments is replaced by what an earlier step has taken under that name. ``takes`` has, by
    name, the place of a value in the answer, as in ``entities.0.version``.
    """

    tool: str
    arguments: Mapping[str, Any]
    takes: Mapping[str, str] = {}
    client: str = AGENT
    is_refused: bool = False


def bash(line: str, client: str = AGENT) -> JobStep:
    """Return the call that runs a command line."""
    return JobStep(SHELL, {"command": line}, client=client)


class Script(msgspec.Struct, frozen=True):
    """The way in which one system does a job.

    ``before`` makes the situation of the job and ``afterwards`` shows its result: neither is counted, nor is a call of
    a client other than the agent. ``impossible`` says why the job cannot be done. With ``is_read``, the model has to
    work the answer out.
    """

    calls: tuple[JobStep, ...] = ()
    before: tuple[JobStep, ...] = ()
    afterwards: tuple[JobStep, ...] = ()
    impossible: str = ""
    is_read: bool = False


class Job(msgspec.Struct, frozen=True):
    """A job: what the user asks for, and what shows that it is done.

    The answers of the counted calls must have each of ``facts`` and none of ``not_facts``, and the result each of
    ``holds`` and none of ``not_holds``. ``not_facts`` do not count where the model works the answer out.
    """

    name: str
    request: str
    scripts: Mapping[System, Script]
    facts: tuple[str, ...] = ()
    not_facts: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    not_holds: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The cost and the verdict of a job with a system; ``why`` says what is wrong or impossible."""

    job: str
    system: System
    verdict: Verdict
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    why: str = ""

    @property
    def tokens(self) -> int:
        """Return the tokens of the calls and of their answers."""
        return self.tokens_in + self.tokens_out


def find_fault(job: Job, answers: str, left: str, *, is_read: bool) -> str:
    """Return the first sign that a job was not done, "" where there is none.

    ``answers`` is what the user or the model got, ``left`` what shows the result. With ``is_read``, the model has to
    work the answer out, and other facts may be among the answers.
    """
    for text, needed, where in ((answers, job.facts, "the answers"), (left, job.holds, "the result")):
        for one in needed:
            if one not in text:
                return f"{one!r} is missing in {where}."
    unwanted = (answers, () if is_read else job.not_facts, "the answers"), (left, job.not_holds, "the result")
    for text, refused, where in unwanted:
        for one in refused:
            if one in text:
                return f"{one!r} is in {where}."
    return ""
