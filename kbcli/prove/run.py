"""Running jobs, each in new copies of the repositories, with real servers and commands, and counting their tokens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from kbcli.prove.job import AGENT, Job, Result, System, Verdict, find_fault
from kbcli.prove.scene import Scene
from kbcli.prove.situation import Situation, compact_json, texts_of
from kbcore.text.tokens import tokens_of

MEMORY_PROGRAM: Final = "mcp-server-memory"
_NO_MEMORY: Final = f"{MEMORY_PROGRAM} is not installed."


class ProveRunner:
    """Runs jobs in copies of a scene. ``memory`` is the program of the memory server, None where there is none."""

    def __init__(self, scene: Scene, memory: Path | None) -> None:
        self._scene = scene
        self._memory = memory

    def run(self, job: Job, system: System) -> Result:
        """Do a job with a system, and judge it.

        Raises: what a server raises that does not start.
        """
        script = job.scripts[system]
        if script.impossible:
            return Result(job.name, system, "impossible", why=script.impossible)
        if system == "memory" and self._memory is None:
            return Result(job.name, system, "not run", why=_NO_MEMORY)
        with Situation(self._scene, system, self._memory) as situation:
            situation.take_all(script.before)
            counted = [asked for step in script.calls if (asked := situation.take(step)) and step.client == AGENT]
            left = situation.take_all(script.afterwards)
        expected = [step.is_refused for step in script.calls if step.client == AGENT]
        refused = [asked for asked, one in zip(counted, expected, strict=True) if asked.is_error != one]
        why = (
            f"{refused[0].tool} answered: {refused[0].text[:500]}"
            if refused
            else find_fault(job, texts_of(counted), texts_of(left), is_read=script.is_read)
        )
        done: Verdict = "by reading" if script.is_read else "done"
        return Result(
            job.name,
            system,
            "wrong" if why else done,
            len(counted),
            sum(one.tokens_in for one in counted),
            sum(one.tokens_out for one in counted),
            why,
        )

    def listing_tokens(self, system: System) -> int:
        """Return the tokens of the list of tools that a system puts before each session; none for a shell."""
        if system == "markdown" or (system == "memory" and self._memory is None):
            return 0
        with Situation(self._scene, system, self._memory) as situation:
            listed = situation.connection(AGENT).tools()
        shown = [{"name": one.name, "description": one.description, "inputSchema": one.input_schema} for one in listed]
        return tokens_of(compact_json(shown))


def find_memory(path: str | None) -> Path | None:
    """Return the program of the memory server, None where it is not installed."""
    found = shutil.which(MEMORY_PROGRAM, path=path)
    return Path(found) if found else None


def version_of(program: Path) -> str:
    """Return the version of the memory server as its package says, "unknown" where it says none."""
    package = program.resolve().parent.parent / "package.json"
    try:
        return str(msgspec.json.decode(package.read_bytes())["version"])
    except (OSError, msgspec.DecodeError, KeyError):
        return "unknown"
