"""Commands about files: what is in one, and what a change of it affects."""

from __future__ import annotations

import json

import pytest

CODE = '''"""Shop."""


# kb: implements REQ-1
def pay(amount):
    fee = amount * 3 // 100
    return amount + fee


class Cart:
    # kb: implements REQ-2
    def total(self):
        return 0
'''


@pytest.fixture
def shop(grown):
    """Two requirements, and three symbols that implement them."""
    return grown(make_shop, "ready")


def make_shop(root, kb):
    kb("config", "set", "extractors.code.paths", '["src/**/*.py"]')
    for number in (1, 2):
        path = root / "docs" / "requirements" / f"REQ-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: REQ-{number}\ntitle: Requirement {number}\nstatus: open\n---\n")
    for name, text in (("shop.py", CODE), ("deep/other.py", "def other(): pass\n")):
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    kb("sync")
    kb("query")


def ids(said: str) -> list[str]:
    return [one["id"] for one in json.loads(said)["entities"]]


def test_a_file_is_shown_by_what_is_in_it(kb, shop):
    symbols = ["src/shop.py#Cart", "src/shop.py#Cart.total", "src/shop.py#pay"]
    assert ids(kb("show", "src/shop.py", "--json").out) == symbols
    said = kb("show", "src/shop.py").out
    assert "src/shop.py (3 entities)\n" in said
    assert all(one in said for one in symbols)


@pytest.mark.parametrize(("line", "name"), [(4, "pay"), (6, "pay"), (10, "Cart"), (13, "Cart.total")])
def test_a_line_is_that_of_the_innermost_symbol_as_the_file_is_now(kb, shop, line, name):
    (shop / "src" / "shop.py").write_text("\n\n\n" + CODE)
    kb("sync")
    found = json.loads(kb("show", f"src/shop.py:{line + 3}", "--json").out)
    if name == "pay" and line == 4:  # the comment above it is not a part of it
        assert len(found["entities"]) == 3
    else:
        assert found["entity"]["id"] == f"src/shop.py#{name}"


def test_the_lines_of_a_symbol_are_those_of_its_file_as_it_is_now(kb, shop):
    assert json.loads(kb("show", "src/shop.py#pay", "--json").out)["lines"] == {"first": 5, "last": 7}
    (shop / "src" / "shop.py").write_text("\n\n\n" + CODE)
    assert "lines 8 to 10" in kb("show", "src/shop.py#pay").out
    assert "lines" not in json.loads(kb("show", "REQ-1", "--json").out)


def test_the_impact_of_a_file_is_that_of_all_that_is_in_it(kb, shop):
    found = json.loads(kb("impact", "src/shop.py", "--json").out)
    assert found["path"] == "src/shop.py"
    assert [one["id"] for one in found["direct"]] == ["REQ-1", "REQ-2"]
    assert "entity" not in found
    said = kb("impact", "src/shop.py", "--format", "markdown").out
    assert "src/shop.py (3 entities)\n" in said


def test_the_impact_of_a_line_is_that_of_its_symbol(kb, shop):
    found = json.loads(kb("impact", "src/shop.py:7", "--json").out)
    assert (found["entity"]["id"], [one["id"] for one in found["direct"]]) == ("src/shop.py#pay", ["REQ-1"])


def test_a_path_of_which_nothing_is_known_is_answered_with_the_nearest(kb, shop):
    for command in ("impact", "show"):
        status, _, said = kb(command, "lib/shop.py")
        assert status != 0
        assert "Nothing is known of 'lib/shop.py'" in said
        assert "src/shop.py" in said


def test_a_query_is_limited_to_files(kb, shop):
    every = ["src/deep/other.py#other", "src/shop.py#Cart", "src/shop.py#Cart.total", "src/shop.py#pay"]
    assert ids(kb("query", "--path", "src", "--json").out) == every
    assert ids(kb("query", "--path", "src/*.py", "--json").out) == every[1:]
    assert ids(kb("query", "--path", "src/deep/**", "--path", "docs/**/REQ-1.md", "--json").out) == ["REQ-1", every[0]]
    assert ids(kb("query", "symbol", "--where", "path=src/**/other.py", "--json").out) == every[:1]
    edges = json.loads(kb("query", "edge", "--path", "src/shop.py", "--json").out)["edges"]
    assert [one["to"] for one in edges] == ["REQ-2", "REQ-1"]
    assert ids(kb("query", "--path", "nowhere/**", "--json").out) == []
    status, _, said = kb("query", "--path", "{a,b}/*")
    assert status == 2
    assert "braces" in said


def test_a_file_that_is_gone_is_not_named_as_the_nearest_to_itself(kb, shop):
    (shop / "src/shop.py").rename(shop / "src/basket.py")
    kb("sync")
    ran = kb("show", "src/shop.py")
    assert ran.status == 64
    assert "Did you mean 'src/shop.py'" not in ran.err


def test_a_file_is_shown_as_it_was_at_a_point(kb, shop):
    (shop / "src/shop.py").write_text(CODE + "\n\ndef later(): pass\n")
    kb("sync")
    assert "src/shop.py#later" in ids(kb("show", "src/shop.py", "--json").out)
    before = kb("show", "src/shop.py", "--at", "1", "--json").json
    assert [one["id"] for one in before["entities"]] == [
        "src/shop.py#Cart",
        "src/shop.py#Cart.total",
        "src/shop.py#pay",
    ]
    assert before["path"] == "src/shop.py"
    assert kb("show", "docs/requirements/REQ-1.md", "--at", "1", "--json").json["entity"]["id"] == "REQ-1"


def test_a_path_of_which_nothing_was_known_at_a_point_is_named_as_one(kb, shop):
    (shop / "src/later.py").write_text("def f(): pass\n")
    kb("sync")
    ran = kb("show", "src/later.py", "--at", "1")
    assert ran.status == 64
    assert "Nothing was known of 'src/later.py' at seq 1" in ran.err
    assert "`kb show src/later.py` shows what is in it now" in ran.err


def test_a_line_at_a_point_means_the_whole_file_and_says_so(kb, shop):
    for command in ("show", "impact"):
        ran = kb(command, "src/shop.py:6", "--at", "1")
        assert "all of src/shop.py is meant" in ran.err
    assert kb("show", "src/shop.py:6", "--at", "1", "--json").json["path"] == "src/shop.py"


@pytest.mark.parametrize("command", ["show", "impact"])
def test_a_line_beyond_the_end_of_a_file_is_refused(kb, shop, command):
    ran = kb(command, "src/shop.py:14")
    assert ran.status == 64
    assert "'src/shop.py' has 13 lines: there is no line 14." in ran.err
    assert "has 5 lines" in kb(command, "docs/requirements/REQ-1.md:6").err
    assert kb(command, "src/shop.py:13").status == 0


@pytest.mark.parametrize("command", ["show", "impact"])
@pytest.mark.parametrize("folder", ["src", "src/", "src/deep", "."])
def test_a_folder_is_answered_with_the_query_for_it(kb, shop, command, folder):
    ran = kb(command, folder)
    assert ran.status == 64
    assert f"'{folder}' is a folder." in ran.err
    assert "`kb query --path " in ran.err


def test_an_impact_that_only_relates_does_not_say_that_nothing_is_affected(kb, shop):
    path = shop / "docs/requirements/REQ-3.md"
    path.write_text("---\nid: REQ-3\ntitle: R\nstatus: open\nlinks: [{relates_to: src/shop.py#pay}]\n---\n")
    kb("sync")
    said = kb("impact", "REQ-3", "--format", "markdown").out
    assert "affects nothing else; no test to run; 1 related entity to be looked at." in said
    assert "affects nothing that KB knows" not in said
    nothing = kb("impact", "src/deep/other.py", "--format", "markdown")
    assert "affects nothing that KB knows" in nothing.out


def test_what_states_no_owner_is_shown_with_those_of_its_file(kb, shop):
    (shop / "CODEOWNERS").write_text("/src/ @shop @all\n")
    shown = kb("show", "src/shop.py#pay", "--json").json
    assert shown["code_owners"] == {"owners": ["@shop", "@all"], "given_by": ["CODEOWNERS:1"]}
    assert "@shop, @all (by CODEOWNERS:1)" in kb("show", "src/shop.py#pay").out
    assert "code_owners" not in kb("show", "REQ-1", "--json").json
    kb("config", "set", "codeowners", "false")
    assert "code_owners" not in kb("show", "src/shop.py#pay", "--json").json
