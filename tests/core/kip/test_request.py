from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.kip.request import CommandText, KipRequest, read


def test_one_command_with_its_parameters():
    given = {"command": "DESCRIBE PRIMER", "parameters": {"n": 1}, "dry_run": True}
    assert read(given) == KipRequest((CommandText("DESCRIBE PRIMER", {"n": 1}),), dry_run=True)


def test_own_parameters_override_shared_ones_key_by_key():
    given = {"commands": ["A", {"command": "B", "parameters": {"n": 2}}], "parameters": {"n": 1, "m": 0}}
    assert read(given) == KipRequest(
        (CommandText("A", {"n": 1, "m": 0}), CommandText("B", {"n": 2, "m": 0})), is_batch=True
    )


def test_a_null_is_an_absent_member():
    given = {"command": "A", "commands": None, "parameters": None, "dry_run": None}
    assert read(given) == KipRequest((CommandText("A"),))


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({}, "$", "neither"),
        ({"command": "A", "commands": ["B"]}, "$", "both"),
        ({"comand": "A"}, "$.comand", "'comand'"),
        ({"command": 1}, "$.command", "not a number"),
        ({"commands": "A"}, "$.commands", "not text"),
        ({"commands": []}, "$.commands", "an empty list"),
        ({"commands": ["A", 3]}, "$.commands[1]", "not a number"),
        ({"commands": [{"parameters": {}}]}, "$.commands[0]", "missing"),
        ({"commands": [{"command": "A", "dry_run": True}]}, "$.commands[0].dry_run", "'dry_run'"),
        ({"commands": [{"command": "A", "parameters": []}]}, "$.commands[0].parameters", "not a list"),
        ({"command": "A", "parameters": "x"}, "$.parameters", "not text"),
        ({"command": "A", "dry_run": "yes"}, "$.dry_run", "true or false"),
        ([], "$", "not a list"),
    ],
)
def test_what_is_no_request_is_refused_at_its_place(given, path, said):
    with pytest.raises(KipRefused, match=said) as caught:
        read(given)
    assert (caught.value.data["kip_code"], caught.value.data["path"]) == ("KIP_1001", path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"command": "A", "parameters": [1]}, '{"name": "Alice"}'),
        ({"commands": "A"}, '{"commands": ["DESCRIBE PRIMER", '),
        ({"command": "A", "dry_run": "yes"}, "Leave it out to write."),
        ({"command": 1}, '{"command": "DESCRIBE PRIMER"}'),
    ],
)
def test_the_remedy_is_for_the_member_that_is_wrong(given, remedy):
    with pytest.raises(KipRefused) as caught:
        read(given)
    assert remedy in caught.value.hint


def test_a_batch_has_a_limit():
    assert len(read({"commands": ["A"] * limits.MAX_KIP_COMMANDS}).commands) == limits.MAX_KIP_COMMANDS
    with pytest.raises(KipRefused, match="257 commands; the limit is 256") as caught:
        read({"commands": ["A"] * 257})
    assert caught.value.data["kip_code"] == "KIP_4002"


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("FIND(?x) WHERE {}", False),
        ("// UPSERT\n EXPORT ?x", False),
        (" // why\n\tUPSERT {", True),
        ("DELETE CONCEPT", True),
        ("UPDATE ?x", True),
        ("MERGE CONCEPT", True),
        ("", False),
    ],
)
def test_a_request_writes_if_one_of_its_commands_begins_so(text, writes):
    assert KipRequest((CommandText("DESCRIBE PRIMER"), CommandText(text))).writes is writes
