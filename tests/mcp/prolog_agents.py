"""A server of the toolset logic in a process of its own, and its client, for tests on each engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mcp.agents import Agent, spawned, text_of, without_note


class PrologAgent:
    """A client of the seven tools."""

    def __init__(self, agent: Agent, root: Path) -> None:
        self.agent = agent
        self.root = root

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that it succeeds, and return its answer."""
        return self.agent.call(name, **arguments)

    def failed(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that its result is an error, and return its document."""
        result = self.agent.result(name, arguments)
        assert result.is_error, text_of(result)
        return without_note(json.loads(text_of(result)))

    def error(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that it is refused, and return the error."""
        return self.failed(name, **arguments)["error"]

    def add(self, *clauses: Any) -> dict[str, Any]:
        """Assert clauses."""
        return self.call("clauses", operation="assert", clauses=[*clauses])

    def remove(self, *clauses: Any) -> dict[str, Any]:
        """Retract clauses."""
        return self.call("clauses", operation="retract", clauses=[*clauses])

    def snapshot(self) -> str:
        """Return the text of the workspace."""
        return self.call("workspace", operation="snapshot")["dump"]

    def symbols(self) -> list[str]:
        """Return the predicates of the workspace."""
        return self.call("workspace", operation="list_symbols")["predicates"]

    def reset(self) -> dict[str, Any]:
        """Remove everything."""
        return self.call("workspace", operation="reset")

    def import_(self, name: str, text: str) -> dict[str, Any]:
        """Write a file and import it."""
        self.write(name, text)
        return self.call("files", operation="import", filename=name)

    def write(self, name: str, text: str) -> str:
        """Write a file of the worktree, and return its absolute path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def files(self) -> list[dict[str, Any]]:
        """Return the imported files."""
        return self.call("files", operation="list")["files"]

    def first(self, query: str, *, use_engine: bool = True) -> dict[str, Any]:
        """Return the first answer of a query."""
        self.call("query_start", query=query, use_engine=use_engine)
        return self.call("query_next")

    def solutions(self, query: str, *, use_engine: bool = True) -> list[dict[str, str]]:
        """Return the bindings of all solutions of a query."""
        self.call("query_start", query=query, use_engine=use_engine)
        found = []
        while (answer := self.call("query_next"))["status"] == "success":
            found.append(answer["bindings"])
        return found

    def refusal(self, query: str) -> dict[str, Any]:
        """Return the error of a query, from its start or its first answer."""
        result = self.agent.result("query_start", {"query": query})
        if result.is_error:
            return json.loads(text_of(result))["error"]
        return self.error("query_next")

    def help(self, topic: str | None = None) -> str:
        """Return a text of help."""
        result = self.agent.result("help", {"topic": topic} if topic else {})
        assert (result.is_error, result.structured_content) == (False, None)
        return text_of(result)

    def resource(self, uri: str) -> str:
        """Return the text of a resource."""
        return self.agent._portal.call(self.agent._client.read_resource, uri).contents[0].text

    def prompt(self, name: str, **arguments: str) -> list[str]:
        """Return the texts of a prompt."""
        result = self.agent._portal.call(self.agent._client.get_prompt, name, arguments)
        return [message.content.text for message in result.messages]


@contextmanager
def prolog_agent(
    root: Path, engine: Mapping[str, str], *options: str, env: Mapping[str, str] | None = None, name: str = "tester"
) -> Iterator[PrologAgent]:
    """Start a server of the toolsets core and logic, on one engine."""
    with spawned(root, "--toolsets", "core,logic", *options, env={**engine, **(env or {})}, name=name) as agent:
        yield PrologAgent(agent, root)


def statuses(answer: Mapping[str, Any]) -> list[str]:
    """Return the status of each clause of an answer."""
    return [one["status"] for one in answer["outcomes"]]


def engine_pids(root: Path) -> list[int]:
    """Return the processes of the engines of the servers of a repository."""
    processes = {int(entry.name): _words(entry) for entry in Path("/proc").glob("[0-9]*")}
    servers = {pid for pid, words in processes.items() if "kbmcp.server" in words and str(root) in words}
    engines = [pid for pid, words in processes.items() if Path(words[0]).name in {"swipl", "node"}]
    return [pid for pid in engines if _parent(Path(f"/proc/{pid}")) in servers]


def _words(entry: Path) -> list[str]:
    try:
        return (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return [""]


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
