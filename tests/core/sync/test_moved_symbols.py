"""Symbols of source code that are moved or renamed stay what they were; others go and come."""

from __future__ import annotations

import pytest

from kbcore.extract.facts import Facts, StatedEntity
from kbcore.model.graph import Node
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.moved_symbols import moved_symbols
from tests.support.repository.project import Project

CONFIG = '{"extractors": {"code": {"paths": ["src/**/*.py", "src/**/*.go"], "tests": ["tests/**/*.py"]}}}'
PAY = """def pay(amount, card):
    if amount <= 0:
        raise ValueError(amount)
    fee = amount * 3 // 100
    return card.charge(amount + fee)
"""
REFUND = """def refund(payment):
    for part in payment.parts:
        part.reverse(reason="refund")
    return payment.total - payment.fee
"""
CART = """class Cart:
    LIMIT = 10

    def total(self):
        return sum(item.price * item.count for item in self.items)

    def clear(self):
        self.items = []
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    reqs = {f"docs/requirements/R-{n}.md": f"---\nid: R-{n}\ntitle: Requirement {n}\n---\n" for n in (1, 2)}
    project.sync({".kb/config.json": CONFIG, **reqs})
    return project


def implement(project: Project, symbol: str, req: str = "R-1") -> None:
    project.apply(edges=[{"type": "implements", "from": symbol, "to": req}])


def implementing(project: Project, req: str = "R-1") -> list[str]:
    return sorted(one for one, edge, _, _ in project.edges(req) if edge == "implements")


def former(project: Project, key: str) -> list[str]:
    return project.node(key).fields.get("attributes.former_ids", [])


def test_a_function_that_moves_to_another_file_keeps_its_edges(project):
    project.sync({"src/a.py": PAY + "\n\n" + REFUND, "src/b.py": "X = 1\n"})
    implement(project, "src/a.py#pay")
    project.apply(entities=[{"id": "src/a.py#pay", "owner": "ann"}])
    project.sync({"src/a.py": REFUND, "src/b.py": f"X = 1\n\n\n{PAY}"})
    assert implementing(project) == ["src/b.py#pay"]
    assert project.node("src/b.py#pay").fields["owner"] == "ann"
    assert (former(project, "src/b.py#pay"), project.node("src/a.py#pay")) == (["src/a.py#pay"], None)


def test_a_function_that_is_renamed_keeps_its_edges(project):
    project.sync({"src/a.py": PAY})
    implement(project, "src/a.py#pay")
    project.sync({"src/a.py": PAY.replace("def pay", "def charge")})
    assert implementing(project) == ["src/a.py#charge"]


def test_a_function_with_another_name_and_a_similar_body_is_the_same_one(project):
    project.sync({"src/a.py": PAY})
    implement(project, "src/a.py#pay")
    project.sync({"src/a.py": PAY.replace("def pay", "def charge").replace("* 3", "* 4")})
    assert implementing(project) == ["src/a.py#charge"]


def test_a_function_with_another_name_and_another_body_is_another_one(project):
    project.sync({"src/a.py": PAY})
    implement(project, "src/a.py#pay")
    project.sync({"src/a.py": REFUND})
    assert project.node("src/a.py#pay") is None
    assert former(project, "src/a.py#refund") == []
    assert project.edges("R-1") == {("src/a.py#pay", "implements", "R-1", False)}


def test_what_is_in_a_class_goes_with_it(project):
    project.sync({"src/a.py": CART})
    implement(project, "src/a.py#Cart.clear")
    implement(project, "src/a.py#Cart", "R-2")
    changed = CART.replace("class Cart", "class Basket").replace("self.items = []", "self.items.clear()")
    project.sync({"src/a.py": changed})
    assert implementing(project) == ["src/a.py#Basket.clear"]
    assert implementing(project, "R-2") == ["src/a.py#Basket"]


def test_a_file_that_is_moved_takes_its_symbols_along(project):
    project.sync({"src/a.py": f"{CART}\n\n{PAY}", "src/other.py": CART.replace("sum(", "max(")})
    implement(project, "src/a.py#Cart.clear")
    implement(project, "src/a.py#pay", "R-2")
    moved = f"{CART}\n\n{PAY}".replace("* 3 //", "* 5 //")
    project.sync({"src/a.py": None, "src/deep/b.py": moved})
    assert implementing(project) == ["src/deep/b.py#Cart.clear"]
    assert implementing(project, "R-2") == ["src/deep/b.py#pay"]


def test_methods_of_go_are_found_again_as_well(project):
    body = "{\n\tfor _, i := range c.items {\n\t\tsum += i\n\t}\n\treturn\n}\n"
    text = f"package a\n\ntype Cart struct{{ items []int }}\n\nfunc (c *Cart) Total() (sum int) {body}"
    project.sync({"src/a.go": text})
    implement(project, "src/a.go#Cart.Total")
    project.sync({"src/a.go": text.replace("Cart", "Basket")})
    assert implementing(project) == ["src/a.go#Basket.Total"]


def test_a_name_that_a_renamed_function_had_is_free_for_another_one(project):
    project.sync({"src/a.py": PAY})
    project.sync({"src/a.py": PAY.replace("def pay", "def charge")})
    answer = project.sync({"src/a.py": PAY.replace("def pay", "def charge") + "\n\ndef pay(): return REFUNDS[0] + 1\n"})
    assert [one.code for _, one in answer.problems if one.severity == "error"] == []
    assert project.node("src/a.py#pay")
    assert former(project, "src/a.py#charge") == []


def test_a_rename_that_is_undone_leaves_the_edges_where_they_were(project):
    project.sync({"src/a.py": PAY})
    implement(project, "src/a.py#pay")
    project.sync({"src/a.py": PAY.replace("def pay", "def charge")})
    project.sync({"src/a.py": PAY})
    assert implementing(project) == ["src/a.py#pay"]


def test_two_functions_with_short_bodies_are_not_taken_for_each_other_across_files(project):
    project.sync({"src/a.py": "def one(): return 1\n", "src/b.py": "def two(): return 2\n"})
    project.sync({"src/a.py": "def other(): return 2\n", "src/b.py": "def more(): return 1\n"})
    assert former(project, "src/a.py#other") == former(project, "src/b.py#more") == []


def test_an_edit_at_the_top_of_a_file_of_500_symbols_is_no_change_of_them(project):
    text = "\n\n".join(f"def f{n}(x):\n    return x + {n}\n" for n in range(500))
    project.sync({"src/a.py": text})
    seq = project.seq()
    project.sync({"src/a.py": f"import os\n\n\n{text}"})
    [(operations,)] = project.view().rows("select count(*) from node where version > ?", [seq])
    assert operations == 0
    project.sync({"src/a.py": f"import os\n\n\ndef first(): return 0\n\n\n{text}"})
    assert project.view().rows("select id from node where version > ?", [seq]) == [("src/a.py#first",)]


SAME = "def main():\n    return run(read(1), write(2), check(3))\n"


def test_the_same_code_in_several_files_follows_the_names_of_the_files(project):
    project.sync({"src/a/x.py": SAME, "src/a/y.py": SAME})
    implement(project, "src/a/x.py#main", "R-1")
    implement(project, "src/a/y.py#main", "R-2")
    project.sync({"src/a/x.py": None, "src/a/y.py": None, "src/b/y.py": SAME, "src/c/x.py": SAME})
    assert implementing(project, "R-1") == ["src/c/x.py#main"]
    assert implementing(project, "R-2") == ["src/b/y.py#main"]


def place(path: str, name: str, body: str, sketch: str) -> StatedEntity:
    fields = {"title": name, "attributes.file": path, "attributes.signature_hash": "s"}
    fields |= {"attributes.body_hash": body, "attributes.body_sketch": sketch}
    return StatedEntity(f"{path}#{name}", "symbol", fields, 1)


def moved(before: list[StatedEntity], after: list[StatedEntity]) -> dict[str, str]:
    """Return the later ids of symbols by their earlier ones."""
    known = [
        Node(one.id, {"type": one.type, **one.fields}, {"type": path}, "", "", path, 0, 0)
        for one in before
        if (path := str(one.fields["attributes.file"]))
    ]
    readings = [FileReading(path, "", "code", Facts()) for path in sorted({node.path for node in known})]
    readings += [FileReading(str(one.fields["attributes.file"]), "", "code", Facts((one,))) for one in after]
    renames = moved_symbols(readings, {node.path for node in known}, known, {node.id for node in known})
    return {one.old: one.new for one in renames}


@pytest.mark.parametrize("sketch", ["AAAA", ""])
def test_many_symbols_with_the_same_code_are_paired_in_time_in_proportion_to_their_number(sketch):
    number = 20_000
    before = [place(f"a/{one}.py", "main", "b", sketch) for one in range(number)]
    after = [place(f"b/{one}.py", "main", "b", sketch) for one in range(number)]
    expected = {f"a/{one}.py#main": f"b/{one}.py#main" for one in range(number)} if sketch else {}
    assert moved(before, after) == expected


def test_a_scope_with_more_new_symbols_than_are_compared_is_said_with_their_number(project):
    def body(name, at):
        return f"def {name}(a):\n    x = a.b{at} + a.c{at} * {at}\n    return [x, a.d{at}, a.e{at}, {at}]\n\n\n"

    few = "".join(body(f"old{at}", at) for at in range(3))
    project.sync({"src/a.py": few})
    answer = project.sync({"src/a.py": "".join(body(f"new{at:03}", at + 1000) for at in range(205))})
    [said] = answer.outcome.warnings
    assert said.startswith("src/a.py has 5 new symbols beyond the 200 that are compared with those that are gone: ")
    project.sync({"src/a.py": few})
    assert project.sync({"src/a.py": few.replace("old0", "older")}).outcome.warnings == ()
