"""The house rules that a machine can hold: who may import and open what."""

from __future__ import annotations

import ast
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kbcore", "kbcli", "kbmcp", "kbweb")

# The floors of each package, lowest first: a room imports rooms of lower floors and itself, nothing beside it or above.
# On the first floor of kbcore it imports those as well that are named before it. Its rooms but ``errors`` and
# ``process`` are single files, as are ``app``, ``server`` and ``serving``.
FLOORS = {
    "kbcore": """
        limits progress gc_pause ids secrets errors clock process
        text storage
        model git
        extract view
        query rules config
        store
        sync logic
        checks kip results share
        editing watch maintenance dml prime pages fleet
    """,
    "kbmcp": """
        protocol
        tools
        resources program_tools
        serving
        server
    """,
    "kbweb": """
        links rendering
        contents badge
        report server
    """,
    "kbcli": """
        terminal clients hooks forge
        messages
        invocation
        views
        input check fleet kip prolog demo
        dml prove
        commands
        app
    """,
}
# The modules of a front end that another one imports, and where: `kb mcp` is the same program as `kb-mcp`, and programs
# of DML call the tools of the server.
SHARED_FRONT_END = {
    ("kbmcp.server", "kbcli/commands/mcp.py"),
    ("kbweb.report", "kbcli/commands/report.py"),
    ("kbweb.badge", "kbcli/commands/report.py"),
    ("kbweb.server", "kbcli/commands/ui.py"),
    ("kbmcp.program_tools", "kbcli/dml/program_tools.py"),
}
FLOOR_OF = {
    f"{package}.{room}": (number, place if (package, number) == ("kbcore", 0) else 0)
    for package, floors in FLOORS.items()
    for number, rooms in enumerate(floors.strip().splitlines())
    for place, room in enumerate(rooms.split())
}

# Every foreign package, and every module of Python's own that reaches beyond the process, with the places that may
# import it; an empty place is everywhere.
CONFINED: dict[str, tuple[str, ...]] = {
    "msgspec": ("",),
    "duckdb": ("kbcore/view/",),
    "sqlite3": ("kbcore/view/text_index.py", "kbcore/view/claim_database.py"),
    "yaml": ("kbcore/text/", "kbcli/input/changeset_yaml.py"),
    "gherkin": ("kbcore/extract/gherkin.py",),
    "graphlay": ("kbcore/query/svg_drawing.py",),
    **dict.fromkeys(("jinja2", "markupsafe"), ("kbweb/",)),
    **dict.fromkeys(("starlette", "uvicorn", "webbrowser"), ("kbweb/server/",)),
    "python_calamine": ("kbcore/extract/sources/tables.py",),
    "tree_sitter": ("kbcore/extract/code/",),
    **dict.fromkeys(
        ("numpy", "safetensors", "tokenizers"), ("kbcore/text/embedding.py", "kbcore/view/entity_vectors.py")
    ),
    "watchfiles": ("kbcore/watch/notices.py",),
    "pydantic": ("kbmcp/tools/argument_models.py", "kbmcp/serving.py", "kbcore/dml/tools.py"),
    **dict.fromkeys(("pydantic_ai", "httpx2"), ("kbcore/dml/openai_client.py",)),
    "mcp": ("kbmcp/", "kbcli/demo/client.py"),
    "mcp_types": ("kbmcp/", "kbcli/demo/client.py"),
    "anyio": ("kbmcp/", "kbcli/demo/client.py"),
    "fsspec": ("kbcore/fleet/place.py",),
    "ray": ("kbcore/fleet/ray_engine.py",),
    "typer": ("kbcli/",),
    "rich": ("kbcli/terminal/cells.py",),
    "subprocess": (
        "kbcore/git/commands.py",
        "kbcore/logic/engine/",
        "kbcore/view/sandbox.py",
        "kbcore/sync/workers.py",
        "kbcli/demo/project.py",
        "kbcli/terminal/pager.py",
        "kbcli/terminal/editor.py",
        "kbcli/clients/trial.py",
        "kbcli/prove/client_run.py",
    ),
    "importlib": (
        "kbcore/logic/engine/installation.py",
        "kbmcp/resources/static_pages.py",
        "kbcli/invocation/command_tree.py",
        "kbcli/demo/project.py",
        "kbcli/dml/program_tools.py",
        "kbcore/text/embedding.py",
        "kbcore/extract/registry.py",
        "kbcore/extract/entry_points.py",
        "kbcore/extract/code/languages.py",
        "kbweb/rendering.py",
    ),
    "urllib": (
        "kbcore/dml/openai_model.py",
        "kbcore/extract/links.py",
        "kbcore/fleet/head.py",
        "kbcli/views/reports/sarif.py",
        "kbweb/links.py",
        "kbweb/server/request_values.py",
        "kbweb/server/writing.py",
    ),
    "time": ("kbcore/clock.py",),
    "fcntl": ("kbcore/storage/fs.py",),
    "shutil": ("kbcore/git/commands.py", "kbcore/storage/scratch.py", "kbcore/logic/engine/", "kbcli/"),
    "tempfile": (
        "kbcore/logic/engine/",
        "kbcore/storage/scratch.py",
        "kbcore/view/database.py",
        "kbcli/clients/trial.py",
        "kbcore/storage/bug_reports.py",
        "kbcli/commands/demo.py",
        "kbcli/commands/prove.py",
        "kbcli/views/listing.py",
    ),
    "xml": (
        "kbcore/results/xml_stream.py",
        "kbcli/views/reports/junit.py",
        "kbcore/extract/sources/reqif.py",
        "kbcore/query/exchange/reqif.py",
    ),
    "xlsxwriter": ("kbcore/query/exchange/tables.py",),
    "ctypes": ("kbcore/watch/inotify.py", "kbcore/process/system_limits.py"),
    "socket": ("kbweb/server/serve.py",),
    **dict.fromkeys(("pty", "multiprocessing", "http", "ftplib", "smtplib"), ()),
}
# What starts another program, past `subprocess`.
STARTING = re.compile(r"os\.(?:popen|system|startfile|fork\w*|spawn\w+|exec\w+|posix_spawn\w*)")
STARTERS = {
    "kbcli/invocation/hook_note.py": "git, before anything that runs it is imported",
}
# What opens, lists or changes files. Whatever a store holds is reached through an `Fs`, whose names are the receivers.
_TOUCHING = """
open fdopen read_text read_bytes write_text write_bytes unlink remove mkdir makedirs rmdir removedirs rename renames
touch truncate iterdir glob rglob walk fwalk scandir listdir symlink_to hardlink_to symlink link chmod
"""
TOUCHING = frozenset(_TOUCHING.split())
FS_NAMES = frozenset({"fs", "_fs", "files"})
OPENERS = {
    "kbcore/storage/fs.py": "it is the file system layer",
    "kbcore/git/": "git's own files",
    "kbcore/sync/": "the documents of the worktree",
    "kbcore/dml/files.py": "the files of a program's own folder",
    "kbcore/store/settings_files.py": "the settings of the project",
    "kbcore/maintenance/disk.py": "the mount table of the machine",
    "kbcore/extract/entry_points.py": "what packages on Python's import path say of themselves",
    "kbcore/watch/settings.py": "the settings of the project",
    "kbcore/watch/inotify_coverage.py": "which folders to listen to, and what the system says of its own process",
    "kbcore/watch/inotify.py": "the names in folders that come while they are listened to",
    "kbcore/watch/polling.py": "what the folders hold that the system does not tell of",
    "kbcore/logic/engine/": "the programs of an engine, its saved state and its package, in folders of the user",
    "kbcore/logic/source_files.py": "files of Prolog that a user imports",
    "kbcli/hooks/files.py": "git's hooks, and the configuration of programs that write them",
    "kbcore/storage/replacing.py": "files that are not KB's own, and are changed when a command is asked to",
    "kbcli/clients/installing.py": "the configuration files of MCP clients",
    "kbcli/clients/receipts.py": "the notes on what was written into these files",
    "kbcore/storage/user_cache.py": "what is kept in the cache folder of the user",
    "kbcore/storage/scratch.py": "folders of the user and of the process, outside of every store",
    "kbcore/view/sandbox_worker.py": "the size of its own process",
    "kbcore/process/system_limits.py": "the size of its own process",
    "kbcli/input/changeset_file.py": "the file that a command is asked to read",
    "kbcore/results/reading.py": "the reports of test runs that a command names",
    "kbcore/storage/bug_reports.py": "reports of bugs",
    "kbcli/views/diagnosis.py": "reports of bugs",
    "kbcli/app.py": "the null device",
    "kbcli/invocation/git_hook.py": "the settings of the project, before anything that knows them is imported",
    "kbcli/invocation/hook_note.py": "the note of the last hook, and git's files, before anything is imported",
    "kbcli/invocation/prime_note.py": "kept answers and what they depend on, before anything is imported",
    "kbcli/invocation/signals.py": "the null device",
    "kbmcp/server.py": "the null device",
    "kbmcp/resources/static_pages.py": "the license of the installed package",
    "kbcli/demo/project.py": "the example project",
    "kbcli/commands/demo.py": "the folder of the example project",
    "kbcli/prove/scene.py": "scratch repositories",
    "kbcli/prove/report.py": "the stored run of the documentation",
    "kbcli/prove/run.py": "the version of an installed program",
    "kbcli/prove/client_run.py": "the programs of a job in its scratch folder, and what passed them",
    "kbweb/server/opening.py": "the file that leads the user's browser to the explorer",
    "kbweb/rendering.py": "styles and scripts of the installed package",
    "kbcli/invocation/prompt.py": "what was typed at a prompt",
    "kbcli/commands/export.py": "what else is in the folder that it writes",
    "kbcli/commands/report.py": "whether what it is asked to write is a folder",
    "kbcli/forge/github_workflow.py": "the workflow of the project",
    "kbcli/invocation/output_files.py": "the files that a command is asked to write",
    "kbcli/terminal/editor.py": "the text that the user edits",
    "kbcli/check/report.py": "the file that GitHub names for a job's summary",
}
# Receivers whose methods have such a name and touch no file.
OTHER_RECEIVERS = frozenset({"self._cache", "service", "pipes", "session", "scan", "self._system"})
# What runs the rules that a project has in Prolog. The front ends have the pools of workspaces.
USING_PROLOG = ("kbcore/checks/__init__.py", "kbcore/dml/")
# `run_dml` is called by programs of others, which pass no environment; a task of Ray runs in a process of its own.
BOUNDARIES = ("kbcore/clock.py", "kbcore/dml/run.py", "kbcore/fleet/ray_engine.py")
READING_SURROUNDINGS = ("os.environ", "os.getenv", "sys.argv", "datetime.now", "datetime.utcnow", "date.today")


@dataclass(frozen=True)
class Module:
    """One module: its place below the root, its dotted name, its text, and its tree, made when a test asks for it."""

    place: str
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))


def _read(path: Path) -> Module:
    place = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    return Module(place, place.removesuffix(".py").replace("/", ".").removesuffix(".__init__"), text)


MODULES = [_read(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def imports_of(module: Module) -> list[tuple[int, str]]:
    """Return line and full name of every import, wherever it is."""
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}") for alias in node.names]
    return found


def room_of(name: str) -> str:
    """Return the room of a dotted name in one of the packages; the package itself for what lies beside the rooms."""
    return ".".join(name.split(".")[:2])


def calls_of(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that is called by name, such as ``path.open`` or ``print``."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.lineno, ast.unparse(node.func)


def foreign_imports(module: Module) -> Iterator[str]:
    for line, name in imports_of(module):
        package = name.split(".")[0]
        places = CONFINED.get(package)
        if name.startswith("."):
            yield f"{line} imports {name} without its full name"
        elif places is None and package not in {*PACKAGES, *sys.stdlib_module_names}:
            yield f"{line} imports {name}: give {package} its places in this file"
        elif places is not None and not module.place.startswith(places or ("nowhere",)):
            yield f"{line} imports {name}, which belongs to {', '.join(places) or 'no place'}"


def imports_upwards(module: Module) -> Iterator[str]:
    package, own = module.name.split(".")[0], room_of(module.name)
    forbidden = {
        "kbcore": ("kbcli", "kbmcp", "kbweb"),
        "kbmcp": ("kbcli", "kbweb"),
        "kbweb": ("kbcli", "kbmcp"),
        "kbcli": ("kbmcp", "kbweb"),
    }[package]
    if own not in FLOOR_OF and own != package:
        yield f"1 is in no room: give {own} a floor in this file"
    for line, name in imports_of(module):
        other = room_of(name)
        is_shared = (room_of(name), module.place) in SHARED_FRONT_END
        if name.split(".")[0] in forbidden and not is_shared:
            yield f"{line} imports {name} of a front end"
        if name.split(".")[0] != package or other in {own, f"{package}.__version__"}:
            continue
        if other not in FLOOR_OF:
            yield f"{line} imports {name}, which is in no room"
        elif own not in FLOOR_OF or FLOOR_OF[other] >= FLOOR_OF[own]:
            yield f"{line} imports {name}, which is not below it"


def starts_programs(module: Module) -> Iterator[str]:
    if module.place in STARTERS:
        return
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and STARTING.fullmatch(ast.unparse(node)):
            yield f"{node.lineno} uses {ast.unparse(node)}"
    for line, name in imports_of(module):
        if STARTING.fullmatch(name):
            yield f"{line} imports {name}"


def touches_files(module: Module) -> Iterator[str]:
    if module.place.startswith(tuple(OPENERS)):
        return
    for line, called in calls_of(module):
        receiver, _, method = called.rpartition(".")
        is_own = not receiver and method != "open"
        if method not in TOUCHING or is_own or receiver.split(".")[-1] in FS_NAMES or receiver in OTHER_RECEIVERS:
            continue
        yield f"{line} calls {called}: only {', '.join(OPENERS)} do that past `Fs`"


def swallows_bugs(module: Module) -> Iterator[str]:
    broad = {"", "Exception", "BaseException"}
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else ""
            is_idle = all(isinstance(one, ast.Pass | ast.Continue | ast.Break) for one in node.body)
            if caught in broad and is_idle:
                yield f"{node.lineno} swallows whatever is raised"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            suppressed = broad & {ast.unparse(one) for one in node.args}
            yield from (f"{node.lineno} suppresses {name}" for name in suppressed)


def lacks_words(module: Module) -> Iterator[str]:
    if not ast.get_docstring(module.tree):
        yield "1 has no docstring"
    for node in [module.tree, *(one for one in module.tree.body if isinstance(one, ast.ClassDef))]:
        for one in node.body:
            is_named = isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if is_named and not one.name.startswith("_") and not _is_private(node) and not ast.get_docstring(one):
                yield f"{one.lineno} {one.name} has no docstring"


def _is_private(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and node.name.startswith("_")


def speaks_for_itself(module: Module) -> Iterator[str]:
    if module.place.startswith("kbcore/"):
        yield from (f"{line} prints" for line, called in calls_of(module) if called == "print")


def reads_surroundings(module: Module) -> Iterator[str]:
    if not module.place.startswith("kbcore/") or module.place in BOUNDARIES:
        return
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith(READING_SURROUNDINGS):
            yield f"{node.lineno} reads {ast.unparse(node)}"


def is_misnamed(module: Module) -> Iterator[str]:
    if module.name.split(".")[-1] in {"utils", "helpers", "manager", "handler", "processor", "misc", "common"}:
        yield "1 says nothing by its name"


def asks_in_docstring(module: Module) -> Iterator[str]:
    """Yield docstrings, those of variables too, that begin with a question word: they name no subject."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            word = node.value.value.lstrip().partition(" ")[0]
            if word in {"What", "Which", "How", "Who", "Where", "When", "Whether", "Why"}:
                yield f"{node.lineno} begins with {word}"


def imports_prolog(module: Module) -> Iterator[str]:
    """Yield imports of the Prolog workspace by other parts of the core: all but two work without it."""
    if module.place.startswith("kbcore/") and not module.place.startswith(("kbcore/logic/", *USING_PROLOG)):
        yield from (
            f"{line} imports {name} of the Prolog workspace"
            for line, name in imports_of(module)
            if room_of(name) == "kbcore.logic"
        )


RULES: list[Callable[[Module], Iterator[str]]] = [
    imports_upwards, foreign_imports, starts_programs, touches_files, swallows_bugs, lacks_words,
    speaks_for_itself, reads_surroundings, is_misnamed, asks_in_docstring, imports_prolog,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_module_breaks_a_house_rule(rule: Callable[[Module], Iterator[str]]) -> None:
    assert [f"{module.place}:{fault}" for module in MODULES for fault in rule(module)] == []


BREACHES = {
    imports_prolog: [
        ("from kbcore.logic.engine import available", "kbcore/checks/x.py"), ("import kbcore.logic", "kbcore/kip/x.py"),
    ],
    imports_upwards: [
        ("import kbcli.app", "kbcore/store/x.py"), ("from kbcore import store", "kbcore/model/state.py"),
        ("from kbcore.view import view", "kbcore/extract/x.py"), ("", "kbcore/x.py"), ("", "kbmcp/x.py"),
        ("from kbcore import clock", "kbcore/errors/x.py"), ("from kbcore.process import x", "kbcore/clock.py"),
        ("from kbcli import app", "kbcli/views/x.py"), ("import kbmcp.server", "kbcli/views/x.py"),
        ("from kbmcp.tools import call", "kbcli/commands/mcp.py"), ("import kbcli.app", "kbmcp/x.py"),
        ("from kbmcp.tools import x", "kbmcp/protocol/x.py"),
    ],
    foreign_imports: [
        ("import requests", "kbcli/x.py"), ("import duckdb", "kbcore/store/branch_store.py"),
        ("import yaml", "kbcore/model/state.py"),
        ("from . import x", "kbcli/x.py"), ("import subprocess", "kbmcp/x.py"), ("import socket", "kbcore/git/x.py"),
    ],
    starts_programs: [
        ("os.popen('x')", "kbcli/x.py"), ("from os import system", "kbcli/x.py"), ("os.execv", "kbmcp/x.py"),
    ],
    touches_files: [
        ("open('x')", "kbcore/store/branch_store.py"), ("path.read_text()", "kbcore/view/x.py"),
        ("os.open('x', 0)", "kbmcp/x.py"),
        ("(folder / 'x').unlink()", "kbcli/x.py"), ("os.scandir('x')", "kbcore/storage/head.py"),
    ],
    swallows_bugs: [
        ("try: x\nexcept Exception: pass", "kbcli/x.py"), ("try: x\nexcept: pass", "kbcli/x.py"),
        ("with contextlib.suppress(Exception): x", "kbcli/x.py"),
    ],
    lacks_words: [("x = 1", "kbcore/x.py"), ("'''A.'''\ndef f(): ...", "kbcore/x.py")],
    speaks_for_itself: [("print('x')", "kbcore/x.py")],
    reads_surroundings: [("os.environ['X']", "kbcore/x.py"), ("datetime.datetime.now()", "kbcore/x.py")],
    is_misnamed: [("", "kbcore/utils.py")],
    asks_in_docstring: [("'''What a file holds.'''", "kbcore/x.py"), ("X = 1\n'''Whether it is.'''", "kbcli/x.py")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text", "place"),
    [(rule, *breach) for rule, breaches in BREACHES.items() for breach in breaches],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_breach_is_seen(rule: Callable[[Module], Iterator[str]], text: str, place: str) -> None:
    name = place.removesuffix(".py").replace("/", ".")
    assert list(rule(Module(place, name, text)))


def test_every_rule_is_shown_to_see_a_breach() -> None:
    assert set(BREACHES) == set(RULES)


def test_every_room_and_place_is_that_of_something() -> None:
    assert set(FLOOR_OF) == {room_of(module.name) for module in MODULES} - set(PACKAGES)
    places = {place for named in (*CONFINED.values(), OPENERS) for place in named}
    assert {place for place in places if not any(one.place.startswith(place) for one in MODULES)} == set()


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module.place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module.name for module in MODULES}
    below = {
        module.name: {
            next((one for one in (name, name.rpartition(".")[0]) if one in names), "") for _, name in imports_of(module)
        }
        - {module.name, ""}
        for module in MODULES
    }
    while leaves := {name for name, others in below.items() if not others & below.keys()}:
        below = {name: others for name, others in below.items() if name not in leaves}
    assert below == {}


def test_no_program_that_a_test_starts_sees_the_home_of_whoever_runs_the_tests() -> None:
    for env in (dict(os.environ), git_env()):
        assert Path(env["HOME"]) != Path(pwd.getpwuid(os.getuid()).pw_dir)
        assert not {name for name in env if name.startswith("XDG_") and name.endswith("_HOME")}


def tracked() -> list[Path]:
    """Return the files that git keeps here; those of the packages where this is no repository."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = done.stdout.split("\0") if done.returncode == 0 else [module.place for module in MODULES]
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_this_machine_or_a_package_index() -> None:
    here = "|".join(re.escape(str(path)) for path in {ROOT, Path(sys.prefix), Path.home()} if len(path.parts) > 2)
    machine = re.compile(rf"(?<![\w.])/(?:home|Users)/(?!you\b)\w|{here or '(?!)'}")
    index = re.compile(r"--(?:extra-)?index-url|\bindex[-_]url\b|://[\w.-]*(?:pypi|pythonhosted|artifactory|nexus)")
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {one[0]}" for one in (*machine.finditer(text), *index.finditer(text))]
    assert [one for one in found if not one.startswith("tests/test_architecture.py")] == []
