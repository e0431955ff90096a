"""The house rules that a machine can hold: who may import what, and how large a module may grow."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kbcore", "kbcli", "kbmcp")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


CORE = [path for path in MODULES if place(path).startswith("kbcore/") and place(path) != "kbcore/clock.py"]
MAX_LINES = 300

# The tiers of kbcore, lowest first: a module imports its own tier and those before it.
_TIERS = """
errors ids limits clock collector suggest model values record schema changeset reader

state needs bare planning validate query cursor rules extract inverse canonical strictjson shape
view.tables view.fold view.tail

storage view viewcache replay git config schema_files schema_members schema_text

answers branchview checks store workspace branches writes sync history upkeep init watch locate
"""
TIERS = [names.split() for names in _TIERS.split("\n\n")]
# A module that only these may import, wherever in the tree.
CONFINED: dict[str, tuple[str, ...]] = {
    "duckdb": ("kbcore/view/",),
    "watchfiles": ("kbcore/watch.py",),
    "pydantic": ("kbmcp/wire.py",),
    "subprocess": ("kbcore/git/commands.py", "kbcli/commands/demo.py"),
    "time": ("kbcore/clock.py",),
    "mcp": ("kbmcp/",),
    "mcp_types": ("kbmcp/",),
    "typer": ("kbcli/",),
    "rich": ("kbcli/",),
}


def imports_of(path: Path) -> set[str]:
    """Return the full names of every module that a file imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def tier_of(name: str) -> int | None:
    """Return the tier of a dotted module name of kbcore; None for the package itself."""
    parts = name.split(".")[1:]
    for room in (".".join(parts[:2]), ".".join(parts[:1])):
        for number, names in enumerate(TIERS):
            if room in names:
                return number
    return None


def core_rooms() -> set[str]:
    return {
        path.stem if path.suffix == ".py" else path.name
        for path in (ROOT / "kbcore").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }


def test_every_room_of_the_core_has_a_tier() -> None:
    assert core_rooms() <= {name for names in TIERS for name in names}


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_imports_go_one_way(path: Path) -> None:
    name = place(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    if not name.startswith("kbcore."):
        return
    own = tier_of(name)
    assert own is not None, f"give {name} a tier in this file"
    for imported in imports_of(path):
        if not imported.startswith("kbcore."):
            continue
        other = tier_of(imported)
        assert other is None or other <= own, f"{name} (tier {own}) imports {imported} (tier {other})"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_the_core_knows_no_front_end(path: Path) -> None:
    forbidden = {"kbcore": ("kbcli", "kbmcp"), "kbmcp": ("kbcli",), "kbcli": ()}[place(path).split("/")[0]]
    assert not {name for name in imports_of(path) if name.split(".")[0] in forbidden}


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_confined_modules_stay_in_their_rooms(path: Path) -> None:
    for imported in imports_of(path):
        rooms = CONFINED.get(imported.split(".")[0])
        if rooms is not None:
            assert place(path).startswith(rooms), f"{place(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_names_say_what_they_hold(path: Path) -> None:
    assert path.stem not in {"utils", "helpers", "manager", "handler", "processor", "misc", "common"}


@pytest.mark.parametrize("path", CORE, ids=place)
def test_the_core_prints_nothing_and_reads_no_environment(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{place(path)}:{node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            assert name not in {"os.environ", "os.getenv", "sys.argv", "datetime.now", "date.today"}, (
                f"{place(path)}:{node.lineno} uses {name}"
            )
