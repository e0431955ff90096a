"""`kb init` and `kb sources` find documents, propose settings for them, and say what is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.processes.cli import write
from tests.support.processes.terminal import Terminal
from tests.support.sources.scip_indexes import index_of

DECISIONS = {
    f".decisions/{n:04}-use-x.md": f"# {n}. Use number {n}\n\n## Status\n\n{status}\n"
    for n, status in ((1, "Superseded by [2](0002-use-x.md)"), (2, "Accepted"), (3, "Proposed"))
}
ENTRY = {"profile": "adr-tools", "glob": ".decisions/{number:d}-{slug}.md"}


@pytest.fixture
def decisions(root) -> Path:
    write(root, DECISIONS)
    return root


def config(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / ".kb/config.json").read_text())
    return found


def test_init_without_a_terminal_shows_what_it_proposes_and_writes_none_of_it(kb, decisions):
    ran = kb("init", "--no-hooks")
    assert "adr-tools: 3 files, 3 entities" in ran.out
    assert ".decisions/0001-use-x.md -> ADR-0001 (adr) Use number 1" in ran.out
    assert "1 proposal, not taken: `kb init --yes` adds it to the settings." in ran.out
    assert ran.out.splitlines()[-1].startswith("Next: `kb sync` reads the documents")
    assert "sources" not in config(decisions)


def test_init_with_yes_takes_it_and_sync_gives_what_was_announced(kb, decisions):
    before = {path: (decisions / path).read_bytes() for path in DECISIONS}
    answer = kb("init", "--no-hooks", "--yes", "--json").json["documents"]
    assert config(decisions)["sources"] == [ENTRY]
    [proposal] = answer["proposals"]
    assert (answer["taken"], proposal["value"]) == (True, ENTRY)
    synced = kb("sync", "--json").json
    assert synced["created"] == proposal["entities"] == 3
    assert synced["edges"]["created"] == proposal["edges"]
    assert {path: (decisions / path).read_bytes() for path in DECISIONS} == before


def test_a_second_run_proposes_nothing_that_is_configured(kb, decisions):
    kb("init", "--no-hooks", "--yes")
    before = (decisions / ".kb/config.json").read_bytes()
    assert "Next:" not in kb("init", "--no-hooks", "--yes").out
    assert kb("init", "--no-hooks", "--yes", "--json").json["documents"]["proposals"] == []
    assert kb("sources", "detect", "--yes", "--format", "json").json["covered"] == 3
    assert (decisions / ".kb/config.json").read_bytes() == before


def test_what_is_taken_later_is_followed_by_the_next_commands_too(kb, decisions):
    kb("init", "--no-hooks")
    assert (
        kb("init", "--no-hooks", "--yes").out.splitlines()[-1].startswith("Next: `kb sync` reads the documents; `git")
    )


def test_init_with_dry_run_makes_nothing(kb, decisions):
    ran = kb("init", "--dry-run")
    assert "adr-tools: 3 files" in ran.out
    assert not (decisions / ".kb").exists()
    assert kb("init", "--dry-run", "--json").json["proposals"][0]["setting"] == "sources"


def test_the_settings_that_are_there_stay_as_they_are_written(kb, decisions):
    kb("init", "--no-hooks")
    own = '{\n    "lockWaitSeconds": 3,\n    "sources": [{"glob": "x/*.md", "type": "req",\n        "id": "{id}"}]\n}\n'
    (decisions / ".kb/config.json").write_text(own)
    assert kb("sources", "detect", "--yes").status == 0
    written = (decisions / ".kb/config.json").read_text()
    assert written.startswith(own[: own.index("}]") + 1])
    assert config(decisions)["sources"][1] == ENTRY


def test_documents_with_ids_are_added_to_the_defaults_of_the_markdown_extractor(kb, root):
    write(root, {f"spec/R-{n}.md": f"---\nid: R-{n}\ntitle: T\nstatus: open\n---\n" for n in (1, 2)})
    kb("init", "--no-hooks")
    (root / ".kb/config.json").write_text("{}\n")
    kb("sources", "detect", "--yes")
    paths = config(root)["extractors"]["markdown"]["paths"]
    assert paths["req"] == ["docs/requirements/**/*.md", "spec/*.md"]
    assert "adr" in paths
    assert kb("sync", "--json").json["created"] == 2


def test_a_repository_without_records_is_told_which_files_may_be_documents(kb, root):
    write(root, {f"guide/{name}.md": f"# {name}\n" for name in ("one", "two")})
    ran = kb("init", "--no-hooks")
    assert "Not read, and may be documents: 2 .md files in guide." in ran.out


def test_files_in_the_root_folder_are_named_by_it(kb, root):
    write(root, {f"{name}.md": f"# {name}\n" for name in ("one", "two")})
    assert "Not read, and may be documents: 2 .md files in the root folder.\n" in kb("init", "--no-hooks").out


def test_at_a_terminal_each_set_is_asked_for_and_may_be_changed(root, kb, tmp_path):
    write(root, DECISIONS)
    write(root, {f"spec/R-{n}.md": f"---\nid: R-{n}\ntitle: T\nstatus: open\n---\n" for n in (1, 2)})
    question = "[q]uit [y]: "
    terminal = Terminal(root, tmp_path / "state", question, "init", "--no-hooks")
    for answer in ("x\n", "nothing\n"):
        assert "none of the answers" in " ".join(terminal.type(answer, question).split())
    terminal.type("c\n", "type [adr]: ")
    terminal.type("nonsense\n", "id [ADR-{number}]: ")
    terminal.type("\n", "glob [.decisions/{number:d}-{slug}.md]: ")
    assert "'nonsense'" in terminal.type("\n", question)
    terminal.type("c\n", "type [adr]: ")
    terminal.type("\n", "id [ADR-{number}]: ")
    terminal.type("{file.stem\n", "glob [.decisions/{number:d}-{slug}.md]: ")
    assert "a brace is not closed" in " ".join(terminal.type("\n", question).split())
    terminal.type("c\n", "type [adr]: ")
    terminal.type("\n", "id [ADR-{number}]: ")
    terminal.type("D-{number}\n", "glob [.decisions/{number:d}-{slug}.md]: ")
    assert "D-0001 (adr)" in terminal.type("\n", question)
    assert "2 of 2: markdown" in terminal.type("y\n", question)
    terminal.type("n\n", "[y]es, [n]o: ")
    assert terminal.leave("n\n") == 0
    assert not (root / ".kb/baseline.json").exists()
    assert config(root)["sources"] == [{**ENTRY, "id": "D-{number}"}]
    assert "spec/*.md" not in json.dumps(config(root))


def test_a_glob_with_a_blank_stays_one_where_another_part_of_the_proposal_is_changed(root, tmp_path):
    write(root, {f"my specs/R-{n}.md": f"---\nid: R-{n}\ntitle: T\nstatus: open\n---\n" for n in (1, 2)})
    question = "[q]uit [y]: "
    terminal = Terminal(root, tmp_path / "state", question, "init", "--no-hooks")
    terminal.type("change\n", "type [req]: ")
    terminal.type("adr\n", 'glob ["my specs/*.md"]: ')
    assert "R-1 (adr)" in terminal.type("\n", question)
    terminal.type("\n", "[y]es, [n]o: ")
    assert terminal.leave("n\n") == 0
    assert config(root)["extractors"]["markdown"]["paths"]["adr"][-1] == "my specs/*.md"


def test_at_a_terminal_what_the_rules_find_is_accepted_as_the_baseline(root, kb, tmp_path):
    write(root, {"docs/requirements/1.md": "---\nid: REQ-1\ntitle: T\nstatus: open\npriority: must\n---\n"})
    terminal = Terminal(root, tmp_path / "state", "[y]es, [n]o: ", "init", "--no-hooks")
    assert terminal.leave("y\n") == 0
    found = json.loads((root / ".kb/baseline.json").read_text())["violations"]
    assert [one["id"] for one in found] == ["REQ-1", "REQ-1"]
    assert kb("sync").status == 0
    assert "2 in the baseline" in kb("check").out
    write(root, DECISIONS)
    assert "--write-baseline" not in kb("init", "--no-hooks", "--yes").out


def test_without_a_terminal_the_command_that_writes_the_baseline_is_named(kb, root):
    assert "--write-baseline" not in kb("init", "--no-hooks").out
    write(root, DECISIONS)
    ran = kb("init", "--no-hooks", "--yes")
    assert "`kb check --write-baseline` accepts what the rules find now" in ran.out
    assert not (root / ".kb/baseline.json").exists()
    assert "--write-baseline" not in kb("init", "--no-hooks").out


CODE = {"src/a.py": "def f(): pass\n", "src/b.py": "def g(): pass\n", "tests/test_a.py": "def test_f(): pass\n"}


def test_init_proposes_source_code_and_its_tests_and_sync_gives_what_was_announced(kb, root):
    write(root, CODE)
    answer = kb("init", "--no-hooks", "--yes", "--json").json["documents"]
    shown = [(one["setting"], one["value"], one["entities"]) for one in answer["proposals"]]
    assert shown == [
        ("extractors.code.tests", ["tests/**/*.py"], 1),
        ("extractors.code.paths", ["src/**/*.py"], 2),
    ]
    assert kb("sync", "--json").json["created"] == 3
    assert kb("show", "tests/test_a.py#test_f", "--json").json["entity"]["type"] == "test"
    assert kb("sources", "detect", "--format", "json").json["proposals"] == []


def test_source_code_without_its_parsers_is_named_with_the_extra_to_install(kb, root, monkeypatch):
    absent = ModuleType("tree_sitter_go")
    absent.__spec__ = None
    monkeypatch.setitem(sys.modules, "tree_sitter_go", absent)
    write(root, CODE)
    ran = kb("init", "--no-hooks", "--yes")
    assert "3 files (python): no package that reads them is installed." in ran.out
    assert '`pip install "kb-memory[code]"`' in ran.out
    assert config(root)["extractors"]["code"]["paths"] == []
    found = kb("sources", "detect", "--format", "json").json["uninstalled"]
    assert found == [{"extra": "code", "kinds": ["python"], "files": 3}]


def test_source_code_beside_what_a_package_manager_wrote_is_read_alone(kb, root):
    write(root, {**CODE, "web/a.ts": "export const f = () => 1;\n", ".gitignore": "node_modules\n"})
    write(root, {"web/node_modules/x/a.ts": "export const x = () => 1;\n"})
    kb("init", "--no-hooks", "--yes")
    assert "web/**/*.ts" in config(root)["extractors"]["code"]["paths"]
    assert kb("sync", "--json").json["created"] == 4


def test_sources_lists_what_is_read_and_what_is_not(kb, decisions):
    kb("init", "--no-hooks", "--yes")
    write(decisions, {"notes/a.md": "# A\n"})
    unread = "Nothing is recorded of these files yet: `kb sync` reads them."
    assert unread in kb("sources").err
    kb("sync")
    ran = kb("sources")
    assert unread not in ran.err
    assert ran.out.splitlines()[1].split("\t")[:4] == ["adr-tools", "sources[0]", "3", "3"]
    assert "1 .md file in notes" in ran.err
    answer = kb("sources", "list", "--format", "json").json
    assert answer["uncovered"] == [{"folder": "notes", "ending": ".md", "count": 1}]
    assert [one["name"] for one in answer["sources"]] == ["adr-tools", "markdown", "manifest"]


def test_try_shows_facts_with_their_lines(kb, decisions):
    kb("init", "--no-hooks", "--yes")
    ran = kb("sources", "try", ".decisions/0001-use-x.md")
    assert "is read by adr-tools (sources[0])" in ran.out
    assert "  status: superseded (line 5)" in ran.out
    assert "supersedes this" in ran.out
    answer = kb("sources", "try", ".decisions/0002-use-x.md", "--format", "json").json
    [entity] = answer["entities"]
    assert entity["fields"]["title"] == {"value": "Use number 2", "line": 1}


def test_try_reads_by_a_profile_or_an_entry_that_is_not_configured(kb, decisions):
    path = ".decisions/0002-use-x.md"
    assert "ADR-0002 (adr)" in kb("sources", "try", path, "--profile", "adr-tools").out
    entry = json.dumps({"type": "req", "id": "R-{file.stem|upper}"})
    assert "R-0002-USE-X (req)" in kb("sources", "try", path, "--entry", entry).out
    assert kb("sources", "try", path, "--profile", "adr-tool").status != 0
    bad = kb("sources", "try", path, "--entry", '{"type": "req", "id": "{x"}')
    assert "cannot be used as a template" in bad.err


def test_try_says_so_where_no_source_reads_a_file(kb, decisions):
    kb("init", "--no-hooks")
    ran = kb("sources", "try", ".decisions/0002-use-x.md")
    assert "No source reads .decisions/0002-use-x.md." in ran.err
    assert "--profile NAME" in ran.err
    assert "no file nothing.md" in kb("sources", "try", "nothing.md").err


def test_profiles_are_listed_and_shown(kb, root):
    assert "\n".join(line.split("\t")[0] for line in kb("sources", "profiles").out.splitlines()).startswith(
        "NAME\nadr-"
    )
    assert kb("sources", "profiles", "eip", "--format", "json").json["source"]["id"] == "EIP-{eip}"
    assert "eip" in kb("sources", "profiles", "eips").err.partition("no profile eips")[2]


def test_untracked_files_count_and_ignored_ones_and_those_behind_links_do_not(kb, root, tmp_path):
    write(root, {**DECISIONS, ".gitignore": "/.decisions/\n"})
    outside = tmp_path / "outside"
    write(outside, {f"{n:04}-use-x.md": text for n, text in enumerate(DECISIONS.values(), 1)})
    (root / "linked").mkdir()
    for path in outside.iterdir():
        (root / "linked" / path.name).symlink_to(path)
    assert kb("init", "--dry-run", "--json").json["proposals"] == []
    (root / ".gitignore").write_text("")
    [proposal] = kb("init", "--dry-run", "--json").json["proposals"]
    assert proposal["value"] == ENTRY


def test_a_file_whose_name_acts_on_a_terminal_is_shown_escaped(kb, root):
    write(root, {f"reqs/a\x1b[31m{n}.md": f"---\nid: R-{n}\ntitle: T\x1b[0m\nstatus: open\n---\n" for n in (1, 2)})
    ran = kb("init", "--dry-run")
    assert "R-1" in ran.out
    assert "\x1b" not in ran.out
    assert "\x1b" not in kb("sources", "try", "reqs/a\x1b[31m1.md", "--entry", '{"type":"req","id":"{id}"}').out


def test_sync_that_finds_nothing_names_the_command_that_proposes(kb, ready):
    write(ready, DECISIONS)
    assert "`kb sources detect`" in kb("sync").err


def test_try_says_why_a_file_is_not_read(kb, ready, tmp_path):
    write(ready, {"docs/adr/large.md": "x" * (4 * 2**20 + 1), "docs/adr/a.md": "# A\n"})
    (tmp_path / "outside.md").write_text("# A\n")
    (ready / "docs/adr/link.md").symlink_to(tmp_path / "outside.md")
    for more in ((), ("--entry", '{"type": "req", "id": "{file.stem}"}')):
        ran = kb("sources", "try", "docs/adr/large.md", *more)
        assert ran.status != 0
        assert "docs/adr/large.md is not read. It has more bytes than the limit of 4194304." in ran.err
    assert "It is a link that leads out of the repository." in kb("sources", "try", "docs/adr/link.md").err
    assert "docs/adr is a folder." in kb("sources", "try", "docs/adr").err
    assert "There is no file docs/adr/b.md." in kb("sources", "try", "docs/adr/b.md").err


def test_try_refuses_an_entry_that_does_not_mean_the_file(kb, decisions):
    path = ".decisions/0002-use-x.md"
    entry = {"type": "req", "id": "R-{number}", "glob": "other/{number:d}-*.md"}
    ran = kb("sources", "try", path, "--entry", json.dumps(entry))
    assert ran.status != 0
    assert f"The entry does not mean {path}: its glob is 'other/{{number:d}}-*.md'." in ran.err
    entry["glob"] = ".decisions/{number:d}-*.md"
    assert "R-0002 (req)" in kb("sources", "try", path, "--entry", json.dumps(entry)).out
    both = kb("sources", "try", path, "--profile", "madr", "--entry", '{"profile": "eip"}')
    assert "The entry names the profile eip, not madr." in both.err


def test_try_names_no_number_of_an_entry_that_is_not_configured(kb, decisions):
    ran = kb("sources", "try", ".decisions/0002-use-x.md", "--entry", '{"type": "rqe", "id": "x"}')
    assert "The entry cannot be used: type: There is no entity type 'rqe'." in ran.err
    assert "sources[0]" not in ran.err


def test_a_trial_shows_which_default_gives_a_value_and_who_owns_the_file(kb, synced):
    kb(
        "config",
        "set",
        "defaults",
        '[{"paths": "docs/requirements/**", "priority": "must", "attributes": {"team": "x"}}]',
    )
    write(synced, {"CODEOWNERS": "* @all\n"})
    path = kb("query", "req", "--fields", "source", "--json").json["entities"][0]["source"]
    shown = kb("sources", "try", path).out
    assert "  priority: must (defaults[0])\n" in shown
    assert "  owner of file: @all (CODEOWNERS:1)\n" in shown
    answer = kb("sources", "try", path, "--json").json
    assert answer["entities"][0]["fields"]["attributes.team"] == {"value": "x", "line": None, "default": "defaults[0]"}
    assert answer["code_owners"] == {"owners": ["@all"], "given_by": ["CODEOWNERS:1"]}


def test_defaults_are_recorded_once_and_only_where_they_say_something_else(kb, synced):
    before = kb("query", "req", "--count", "--json").json["total"]
    kb("config", "set", "defaults", '[{"paths": "docs/requirements/**", "owner": "@pay"}]')
    assert f"{before} updated" in kb("sync").out
    assert kb("query", "--where", "owner=@pay", "--count", "--json").json["total"] == before
    assert "up to date" in kb("sync").out
    kb("config", "set", "defaults", "[]")
    assert f"{before} updated" in kb("sync").out
    assert kb("query", "--where", "owner=@pay", "--count", "--json").json["total"] == 0


def test_try_shows_the_edges_of_an_index_the_first_of_many(kb, root):
    kb("init", "--no-hooks")
    (root / "index.scip").write_bytes(index_of("typescript"))
    kb("config", "set", "extractors.scip.paths", '["index.scip"]')
    said = kb("sources", "try", "index.scip").out
    assert "src/cart.ts#Cart.add (symbol)\n" in said
    assert "src/cart.ts#Cart relates_to:implementation_of src/price.ts#Priced\n" in said
