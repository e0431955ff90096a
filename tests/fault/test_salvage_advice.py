"""D2: the advice of a diagnosis is executed word by word, and leads to a working store."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.fault.damaged_stores import (
    KINDS,
    PROVEN_AFTERWARDS,
    Kind,
    done,
    forget_views,
    harmed,
    ids,
    kb,
    models,
    put,
)
from tests.fault.salvaging import lose_an_end

__all__ = ["harmed", "models"]


def commands_in(text: str) -> list[list[str]]:
    """Return the `kb` commands that a message names, as words, in their order."""
    return [shlex.split(command)[1:] for command in dict.fromkeys(re.findall(r"`(kb [^`]*)`", text))]


def remedies(root: Path) -> list[str]:
    """Return what `kb doctor` advises about damage, the gravest first."""
    found = kb(root, "doctor", "--json").json["findings"]
    return [one["remedy"] for one in found if one["severity"] == "error" and one["code"] not in {"", "no_head"}]


def follow(root: Path, advice: str, *, backup: Path | None) -> bool:
    """Execute the commands of an advice that repair something; return whether there was one."""
    has_repaired = False
    for words in commands_in(advice):
        if words[0] == "restore" and backup is not None:
            done(kb(root, *(str(backup) if word == "FILE" else word for word in words)))
            return True
        if words[0] == "doctor" and len(words) > 1 and backup is None:
            done(kb(root, *words))
            has_repaired = True
    return has_repaired


DAMAGED = [
    name for name, kind in KINDS.items() if kind.verify and name in PROVEN_AFTERWARDS and name != "emptied folder"
]


LEFT = {
    "corrupt before the head": "ABDE",
    "converted line ends": "ABCDE",
    "last newline": "ABCDE",
    "missing journal": "",
    "mixed files": "ABCDEW",
}
"""What the advice for a store without a backup leads to, where that is less than undoing the damage by hand."""


@pytest.mark.sliced(7)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("name", DAMAGED)
def test_the_advice_of_a_diagnosis_followed_word_by_word_leads_to_a_working_store(name: str, harmed, tally) -> None:
    kind = KINDS[name]
    root = harmed(kind)
    tally.tried()
    if kind.query[0]:
        said = kb(root, "query", "--json").error["hint"]
        assert any(words[0] == "doctor" for words in commands_in(said)), said
    for _ in range(3):
        advice = remedies(root)
        if not advice:
            break
        assert follow(root, advice[0], backup=None), advice
        forget_views(root)
    assert ids(root) == LEFT.get(name, kind.left)
    assert done(kb(root, "verify", "--json")).json["ok"]
    put(root, "Z")
    tally.done()


def consented(root: Path, words: list[str], before: tuple[list[str], ...] = ()) -> None:
    """Execute a repair, which a person confirms; where it is refused, follow the advice of the refusal."""
    assert words not in before, ("the advice leads in a circle", *before, words)
    ran = kb(root, *words, *(["--yes"] if "--new-epoch" in words else []), "--json")
    if ran.status:
        advised = [one for one in commands_in(ran.error["hint"]) if one[0] == "doctor" and len(one) > 1]
        assert advised, ran
        consented(root, advised[0], (*before, words))


@pytest.mark.sliced(5)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("first", [0, -1], ids=["gravest first", "gravest last"])
@pytest.mark.parametrize("name", DAMAGED)
def test_the_advice_for_a_damaged_store_that_also_went_back_leads_to_a_working_store(
    name: str, first: int, harmed, tally
) -> None:
    kind = KINDS[name]
    root = harmed(kind._replace(harm=ids))
    kind.harm(root)
    lose_an_end(root)
    forget_views(root)
    tally.tried()
    for _ in range(4):
        advice = remedies(root)
        if not advice:
            break
        for words in commands_in(advice[first]):
            if words[0] == "doctor" and len(words) > 1:
                consented(root, words)
        forget_views(root)
    assert ids(root) == LEFT.get(name, kind.left)
    assert done(kb(root, "verify", "--json")).json["ok"]
    put(root, "Z")
    tally.done()


@pytest.mark.sliced(4)
@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    "name", [name for name in DAMAGED if KINDS[name].query[0] in {"journal_corrupt", "journal_truncated"}]
)
def test_the_advice_to_restore_followed_word_by_word_brings_everything_back(name: str, harmed, tmp_path, tally) -> None:
    kind: Kind = KINDS[name]
    saved = tmp_path / "saved.backup"
    root = harmed(kind._replace(harm=lambda _: None))
    wanted = ids(root)
    done(kb(root, "backup", str(saved)))
    kind.harm(root)
    forget_views(root)
    tally.tried()
    if kind.row == "mixed files":
        said = remedies(root)[0]
        assert "Put head.json and the journal back" in said
    else:
        assert any(follow(root, one, backup=saved) for one in remedies(root))
        forget_views(root)
        assert ids(root) == wanted
        assert done(kb(root, "verify", "--json")).json["ok"]
    tally.done()
