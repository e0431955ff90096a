"""A change of code makes the edges suspect that say what the code is for, and no others."""

from __future__ import annotations

import pytest

from kbcore.checks import run_checks
from kbcore.checks.introduced.staged import check_staged
from kbcore.editing.confirming import confirm
from kbcore.editing.documents import WriteTarget
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

RULE = "suspect-edge"
CONFIG = '{"extractors": {"code": {"paths": ["src/*.py"], "tests": ["tests/*.py"]}}}'
CODE = '''def pay(amount, card):
    """Pay."""
    fee = amount * 3 // 100
    return card.charge(amount + fee)


def refund(payment):
    return payment.total - payment.fee
'''
TEST = "def test_pay(card):\n    assert pay(100, card).total == 103\n"
PAY, REFUND, TESTED = "src/pay.py#pay", "src/pay.py#refund", "tests/test_pay.py#test_pay"


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path)
    found.sync({".kb/config.json": CONFIG, "src/pay.py": CODE, "tests/test_pay.py": TEST})
    found.apply(
        entities=[
            {"id": "R", "type": "req", "title": "Pay", "status": "open"},
            {"id": "D", "type": "adr", "title": "Fees", "status": "accepted"},
            {"id": "F", "type": "flag", "title": "New fees", "status": "active"},
        ],
        edges=[
            {"type": "implements", "from": PAY, "to": "R"},
            {"type": "implements", "from": REFUND, "to": "R"},
            {"type": "covered_by", "from": PAY, "to": TESTED},
            {"type": "constrained_by", "from": PAY, "to": "D"},
            {"type": "affects", "from": "D", "to": PAY},
            {"type": "guards", "from": "F", "to": PAY},
            {"type": "verified_by", "from": "R", "to": TESTED},
        ],
    )
    return found


def violations(project):
    return run_checks(project.workspace(), project.view(), branch="main", only=[RULE]).violations


def suspects(project):
    return sorted((one.id, *one.values) for one in violations(project))


OF_PAY = [(PAY, "covered_by", TESTED), (PAY, "implements", "R")]


@pytest.mark.parametrize(
    "changed",
    [
        CODE.replace("* 3", "* 4"),
        CODE.replace("amount, card", "amount, card, tip=0"),
        "import os\n\n\n" + CODE.replace("* 3", "* 4"),
    ],
)
def test_a_changed_body_or_signature_makes_exactly_its_own_edges_suspect(project, changed):
    assert suspects(project) == []
    project.sync({"src/pay.py": changed})
    assert suspects(project) == OF_PAY
    [covered, implemented] = violations(project)
    assert implemented.message == (
        f"{PAY} implements R, but the code of {PAY} has changed at seq 3; the edge was last confirmed at seq 2."
    )
    assert "`git log -p -- src/pay.py`" in implemented.hint
    assert covered.message.startswith(f"{PAY} covered_by {TESTED}, but the code of {PAY} has changed")


@pytest.mark.parametrize(
    "changed",
    [
        CODE.replace('"""Pay."""', '"""Take money."""\n    # with a fee'),
        CODE.replace("amount * 3 // 100", "amount  *  3//100").replace("\n\n\n", "\n\n\n\n"),
        "# moved down\n" * 9 + CODE,
        CODE.replace("def pay", "def charge"),
    ],
)
def test_comments_white_space_moves_and_names_make_none_suspect(project, changed):
    project.sync({"src/pay.py": changed})
    assert suspects(project) == []


def test_a_move_to_another_file_makes_none_suspect_and_a_change_afterwards_does(project):
    project.sync({"src/pay.py": None, "src/money.py": CODE})
    assert suspects(project) == []
    project.sync({"src/money.py": CODE.replace("* 3", "* 4")})
    assert suspects(project) == [(one.replace("pay.py", "money.py"), *rest) for one, *rest in OF_PAY]


def test_a_rename_with_a_change_is_a_change(project):
    project.sync({"src/pay.py": CODE.replace("def pay", "def charge").replace("* 3", "* 4")})
    charge = "src/pay.py#charge"
    assert suspects(project) == [(charge, "covered_by", TESTED), (charge, "implements", "R")]


def test_code_that_is_changed_back_is_as_it_was_confirmed(project):
    project.sync({"src/pay.py": CODE.replace("* 3", "* 4")})
    project.sync({"src/pay.py": CODE})
    assert suspects(project) == []


def test_a_confirmation_counts_and_the_next_change_is_another_one(project):
    project.sync({"src/pay.py": CODE.replace("* 3", "* 4")})
    workspace = project.workspace()
    read = workspace.store("main").read
    confirm(WriteTarget(workspace, "main", AUTHOR, read, follows_head=True), PAY)
    assert suspects(project) == []
    project.sync({"src/pay.py": CODE.replace("* 3", "* 5")})
    assert suspects(project) == OF_PAY


def test_a_change_of_code_confirms_no_edge_whose_target_changed(project):
    project.apply(entities=[{"id": "R", "title": "Pay by card"}])
    project.sync({"src/pay.py": CODE.replace("payment.fee", "payment.fees")})
    assert suspects(project) == [(PAY, "implements", "R"), (REFUND, "implements", "R")]
    assert all("but R has changed" in one.message for one in violations(project))


def test_a_changed_test_makes_the_edges_to_it_suspect(project):
    project.sync({"tests/test_pay.py": TEST.replace("103", "104")})
    assert suspects(project) == [("R", "verified_by", TESTED), (PAY, "covered_by", TESTED)]
    project.sync({"tests/test_pay.py": "import pytest\n\n\n" + TEST})
    assert suspects(project) == []


def test_an_edge_that_a_comment_states_is_suspect_although_its_file_changed(tmp_path):
    project = Project(tmp_path)
    one = "# kb: implements R\ndef pay(amount):\n    return amount * 3\n"
    project.apply(entities=[{"id": "R", "type": "req", "title": "Pay", "status": "open"}])
    project.sync({".kb/config.json": CONFIG, "src/pay.py": one})
    project.sync({"src/pay.py": one.replace("* 3", "* 4")})
    assert suspects(project) == [(PAY, "implements", "R")]


def test_the_check_of_what_is_staged_shows_the_code_that_changed(project):
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one")
    project.write({"src/pay.py": CODE.replace("* 3", "* 4")})
    git(project.root, "add", "-A")
    found = check_staged(project.workspace(), project.view(), only=[RULE]).found.report.violations
    assert sorted((one.id, *one.values) for one in found) == OF_PAY
    assert "`git log -p -- src/pay.py`" in found[0].hint
