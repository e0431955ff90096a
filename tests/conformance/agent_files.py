"""Hold the skill, the plugins, the entry of the registry and the bundle against the programs of others.

``make conformance`` runs it: the reference validator of Agent Skills, the JSON Schema of the MCP registry, the program
of bundles, and the clients themselves, which install their plugin from a clone of the repository and run with it,
against a scripted model. Nothing passes
because of a program that is not there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jsonschema

from kbcli.clients.kinds import KINDS, entry_of, file_of
from kbcore.prime.agent_text import SKILL_DESCRIPTION
from tests.conformance import clients, npm
from tests.conformance.clients import CLIENTS as REAL_CLIENTS
from tests.conformance.clients import Client
from tests.conformance.tools import set_up
from tests.support.docs import agent_files
from tests.support.docs.agent_files import BUNDLE, CLIENTS, PLUGINS, ROOT
from tests.support.repository.repos import commit_files, make_repository, use_empty_home

FOLDER: Final = Path(sys.prefix) / "conformance" / "agent-files"
WANTED: Final = ("skills-ref==0.1.1", "skillsaw==0.22.0")
"""The second one has the schemas of the registry."""
FORMS: Final = "@gleanwork/mcp-config-schema@5.2.0"
"""The files in which clients keep their servers, and schemas of what is in them, as their makers document them."""
_FORM_OF: Final = {"claude": "claude-desktop"}
_VALIDATE: Final = """
import { createRequire } from "node:module";
const { validateGeneratedConfig } = createRequire(import.meta.url)(%s);
const asked = JSON.parse(process.argv[1]);
console.log(JSON.stringify(asked.map(([, id, config]) => validateGeneratedConfig(config, id).success)));
"""
BUNDLER: Final = "@anthropic-ai/mcpb@2.1.2"
WAIT_S: Final = 120.0


class Broken(Exception):
    """A program refused what KB ships."""


def main() -> int:
    """Run everything, and return the status: 1 where something is refused, 3 where something could not be run."""
    use_empty_home()
    status = 0
    for name, check in CHECKS.items():
        try:
            said = check()
        except (npm.Missing, OSError) as error:
            print(f"conformance of files for agents: NOT RUN, {name}: {error}", file=sys.stderr)
            status = status or 3
        except Broken as error:
            print(f"conformance of files for agents: {name}: {error}", file=sys.stderr)
            status = 1
        else:
            print(f"conformance of files for agents: {name}: {said}")
    return status


def skill() -> str:
    """Validate the skill of each plugin."""
    program = _python_programs() / "agentskills"
    for client in CLIENTS:
        _run(program, "validate", ROOT / PLUGINS / client / "skills/kb")
    return f"valid for {WANTED[0]}"


def registry() -> str:
    """Validate the entry of the registry by the schema that it names."""
    folder = next((_python_programs().parent / "lib").glob("python3*/site-packages/skillsaw/schemas/mcp_registry"))
    schemas = [json.loads(path.read_text()) for path in folder.glob("*/server.schema.json")]
    [schema] = [one for one in schemas if one["$id"] == agent_files.REGISTRY_SCHEMA]
    try:
        jsonschema.validate(json.loads((ROOT / "server.json").read_text()), schema)
    except jsonschema.ValidationError as error:
        raise Broken(error.message) from error
    return f"valid for {schema['$id']}"


def bundle() -> str:
    """Validate the manifest of the bundle, pack it, and have it unpacked."""
    folder = npm.client(BUNDLER)
    program = ["node", folder / "node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"]
    _run(*program, "validate", ROOT / BUNDLE / "manifest.json")
    with tempfile.TemporaryDirectory(prefix="kb-bundle-") as made:
        packed, unpacked = Path(made) / "kb.mcpb", Path(made) / "unpacked"
        agent_files.pack(packed)
        _run(*program, "unpack", packed, unpacked)
        for path in unpacked.rglob("*"):
            name = f"{BUNDLE}/{path.relative_to(unpacked).as_posix()}"
            if path.is_file() and path.read_text() != agent_files.files().get(name):
                raise Broken(f"{name} is another one after it was unpacked")
    return f"valid for {BUNDLER}, packed and unpacked"


def claude_code() -> str:
    """Validate the plugin and the marketplace, install it from a clone, and run the client with it."""
    client = REAL_CLIENTS["claude-code"]
    folder = npm.client(client.package)
    [program] = client.program(folder)
    with tempfile.TemporaryDirectory(prefix="kb-plugin-") as made:
        clone, env = _clone(Path(made))
        _run(program, "plugin", "validate", clone / PLUGINS / "claude-code", env=env)
        _run(program, "plugin", "validate", clone, env=env)
        _run(program, "plugin", "marketplace", "add", clone, env=env)
        _run(program, "plugin", "install", "kb@kb", env=env)
        _expect("kb@kb", _run(program, "plugin", "list", env=env))
    more = ["--plugin-dir", str(ROOT / PLUGINS / "claude-code")]
    _reaches("claude-code", replace(client, words=(*client.words, *more)), folder)
    return f"plugin valid for and installed by {client.package}; all of it reaches the model"


def codex() -> str:
    """Install the plugin from a clone, and run the client with it; Codex has no validator."""
    client = REAL_CLIENTS["codex"]
    folder = npm.client(client.package)
    program = client.program(folder)

    def set_up(root: Path, home: Path, url: str) -> Mapping[str, str]:
        settings = client.set_up(root, home, url)
        clone = home.parent / "clone"
        if not clone.exists():
            env = {**os.environ, "HOME": str(home)}
            _fill(clone)
            _run(*program, "plugin", "marketplace", "add", clone, env=env)
            _run(*program, "plugin", "add", "kb@kb", env=env)
            _expect('"enabled": true', _run(*program, "plugin", "list", "--json", env=env))
        return settings

    _reaches("codex", replace(client, set_up=set_up), folder)
    return f"plugin installed by {client.package}; all of it reaches the model"


def entries() -> str:
    """Compare the entry of the server for each client, and the user's file, with the forms that others publish."""
    package = npm.client(FORMS) / "node_modules" / FORMS.rpartition("@")[0]
    asked: list[tuple[str, str, dict[str, Any], bool]] = []
    unknown = list[str]()
    for name, kind in KINDS.items():
        theirs = package / "configs" / f"{_FORM_OF.get(name, name)}.json"
        if not theirs.exists():
            unknown.append(name)
            continue
        form = json.loads(theirs.read_text(encoding="utf-8"))
        for system, path in form["configPath"].items():
            own = file_of(kind, "user", system).as_posix()
            if own != _below_home(path):
                raise Broken(f"{name}: the file of the user on {system} is {path}, not {own}")
        if form["configStructure"]["serversPropertyName"] != kind.table:
            raise Broken(f"{name}: the servers are not in {kind.table}")
        for scope in kind.places:
            entry = entry_of(kind, scope, ["kb-mcp"], Path("/repository"))
            asked.append((name, theirs.stem, {kind.table: {"kb": entry}}, True))
        asked.append((name, theirs.stem, {kind.table: {"kb": {"program": "kb-mcp"}}}, False))
    verdicts = json.loads(
        _run(_node(), "--input-type=module", "-e", _VALIDATE % json.dumps(str(package)), json.dumps(asked))
    )
    for (name, _, config, is_right), is_taken in zip(asked, verdicts, strict=True):
        if is_taken is not is_right:
            raise Broken(f"{name}: {json.dumps(config)} is {'taken' if is_taken else 'refused'} by {FORMS}")
    checked = len({name for name, *_ in asked})
    return f"{checked} clients as in {FORMS}; it does not know {', '.join(unknown)}"


def _below_home(path: str) -> str:
    """Return a path of the published forms from the user's home."""
    path = path.replace("\\", "/").replace("%APPDATA%", "%USERPROFILE%/AppData/Roaming")
    return path.removeprefix("%USERPROFILE%/").removeprefix("$HOME/")


def _node() -> str:
    found = shutil.which("node")
    if found is None:
        raise npm.Missing("node is not on the PATH")
    return found


CHECKS: Final[dict[str, Callable[[], str]]] = {
    "entries of clients": entries,
    "skill": skill,
    "server.json": registry,
    "bundle": bundle,
    "plugin of Claude Code": claude_code,
    "plugin of Codex": codex,
}


def _python_programs() -> Path:
    try:
        return set_up(FOLDER, WANTED)
    except subprocess.CalledProcessError as error:
        raise npm.Missing(f"the programs cannot be installed: {error}") from error


def _clone(folder: Path) -> tuple[Path, dict[str, str]]:
    """Make a repository that has the files as a clone would, and return it with the environment of a new user."""
    clone, home = folder / "clone", folder / "home"
    home.mkdir()
    _fill(clone)
    env = {**os.environ, "HOME": str(home), "NO_COLOR": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return clone, env


def _fill(clone: Path) -> None:
    make_repository(clone)
    commit_files(clone, {name: text for name, text in agent_files.files().items() if not name.startswith(BUNDLE)})
    shutil.copy(ROOT / "README.md", clone)


def _reaches(name: str, client: Client, folder: Path) -> None:
    """Run a client on a repository with KB, and see what its model is told by the plugin. Raises: ``Broken``."""
    with tempfile.TemporaryDirectory(prefix="kb-plugin-") as made:
        root, home, env = clients.repository(Path(made))
        said = clients.run(client, folder, root, home, env)
        if faults := [*clients.untold(name, client, root, said, SKILL_DESCRIPTION[:60])]:
            raise Broken("; ".join(faults))


def _run(*words: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Broken(f"{words[-1]}: status {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    return done.stdout


def _expect(text: str, said: str) -> None:
    if text not in said:
        raise Broken(f"{text!r} is not in {said[-1500:]!r}")


if __name__ == "__main__":
    sys.exit(main())
