"""Every clone says the same of what is redacted, wherever it was redacted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbcore.errors import NotFound
from kbcore.errors.remedies import for_shell
from kbcore.maintenance import redaction_preview
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.findings import DoctorFinding
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.maintenance.share_diagnosis import sharing_findings
from kbcore.share.state import find_state
from tests.share.redaction.redacting import SECRET, commands_in, holds, redact
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at


def test_clones_show_the_same_for_a_redacted_value_wherever_it_was_redacted(
    ann: Clone, bob: Clone, clone: Callable[..., Clone]
) -> None:
    ann.fact("FACT-2", f"Use {SECRET} to log in", tags=["a", SECRET], attributes={"list": [1, SECRET], "n": 7})
    ann.add("FACT-1", title=f"By ann {SECRET}")
    bob.add("FACT-1", title=f"By bob {SECRET}")
    ann.commit()
    ann.push()
    bob.commit()
    bob.pull()
    hold(bob)
    assert bob.conflicts() == {("FACT-1", "title")}
    bob.push()
    ann.pull()
    hold(ann)
    ann.redact(SECRET)
    ann.commit("redact")
    ann.push()
    bob.pull()
    eve = clone("eve")
    hold(ann, bob, eve)
    assert ann.facts() == bob.facts() == eve.facts()
    shown = eve.state().nodes["FACT-2"].fields
    assert (shown["title"], shown["attributes.list"], shown["attributes.n"]) == ("[redacted]", "[redacted]", 7)
    assert sorted(shown["tags"]) == ["[redacted]", "a"]
    assert not eve.conflicts()
    eve.add("FACT-2", tags=["a"])
    hold(eve)
    assert eve.state().nodes["FACT-2"].fields["tags"] == ["a"]


def test_a_sync_that_reads_a_redacted_file_names_what_redacts_the_earlier_records(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    [warning] = bob.sync().outcome.warnings
    [change] = [one for changes in ann.committed().values() for one in changes if one.is_redacted]
    assert f'"redact",["{change.id}","--field=title"]' in warning
    assert bob.titles()["FACT-1"] == "[redacted]"
    assert holds(bob) != []
    state = find_state(bob.workspace(), "main", bob.view())
    assert state is not None
    assert state.as_json()["redactions"] == (
        {"change": change.id, "actor": "ann", "ids": ("FACT-1",), "fields": ("title",), "by": "Test"},
    )
    [said] = [one for one in state.sentences() if "redacted" in one]
    assert said.startswith("1 change of FACT-1 was redacted by Test, and records of this clone have the values: ")
    assert "a secret among them is to be revoked and replaced" in said
    redact(bob, Wanted("change", change.id))
    state = find_state(bob.workspace(), "main", bob.view())
    assert state is not None
    assert (state.redacted, state.redactions) == (0, ())
    assert holds(bob) == []
    assert not bob.sync().outcome.warnings
    hold(bob)
    assert not ann.sync().outcome.warnings


def packs_of(clone: Clone) -> dict[str, bytes]:
    return {path: (clone.root / path).read_bytes() for path in clone.changes() if "/pack-" in path}


@pytest.mark.parametrize("is_redacted", [True, False])
def test_a_change_that_two_packs_hold_is_warned_of_once(ann: Clone, bob: Clone, is_redacted: bool) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.pack()
    packs = packs_of(ann)
    ann.git("reset", "--quiet", "--hard")
    ann.fact("FACT-9")
    ann.commit()
    ann.pack()
    packs |= packs_of(ann)
    assert len(packs) == 2
    ann.write(dict(packs))
    ann.commit()
    ann.redact(SECRET)
    reading, files = (bob, packs_of(ann)) if is_redacted else (ann, packs)
    assert len(files) == 2
    ann.commit()
    [warning] = reading.sync(dict(files)).outcome.warnings
    if not is_redacted:
        assert warning.startswith(f"{', '.join(sorted(files))} have a change of ann whole")


def test_a_clone_takes_out_no_more_of_a_change_than_the_other_one_did(ann: Clone, bob: Clone) -> None:
    fields = {"title": "Kept", "attributes": {"title": "Kept too", "message": "And this", "k": "Gone"}}
    ann.apply(message=f"as {SECRET} says", entities=[{"id": "FACT-1", **fields}])
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    before = bob.facts()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    [warning] = bob.sync().outcome.warnings
    [[change, places]] = bob.workspace().changes("main").read(lambda index, _: index.redacted_since())
    assert places == ("message",)
    assert f'"redact",["{change.id}","--field=message"]' in warning
    redact(bob, Wanted("change", change.id, fields=places))
    assert holds(bob) == []
    assert bob.facts() == before
    redact(bob, Wanted("change", change.id, fields=("title",)))
    shown = bob.state().nodes["FACT-1"].fields
    assert (shown["title"], shown["attributes.title"]) == ("[redacted]", "Kept too")
    redact(bob, Wanted("change", change.id, fields=("k",)))
    assert bob.state().nodes["FACT-1"].fields["attributes.k"] == "[redacted]"


def test_the_name_of_a_field_goes_from_change_files_and_other_clones_name_what_takes_it_out(
    ann: Clone, bob: Clone
) -> None:
    ann.fact("FACT-1", attributes={SECRET: "gone", "k": "kept"})
    ann.link("FACT-1", "REQ-1", attributes={SECRET: "gone"})
    ann.add("FACT-1", attributes={SECRET: "gone too"})
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    before = {one.id for changes in ann.committed().values() for one in changes}
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit()
    assert holds(ann) == []
    assert {one.id for changes in ann.committed().values() for one in changes} == before
    ann.push()
    bob.pull()
    warnings = bob.sync().outcome.warnings
    assert len(warnings) == 3
    [[change, fields], *_] = bob.workspace().changes("main").read(lambda index, _: index.redacted_since())
    assert fields == ("[redacted]",)
    assert any(f'"redact",["{change.id}","--field=[redacted]"]' in one for one in warnings)
    assert SECRET not in " ".join(warnings)
    for clone in (ann, bob):
        fields = clone.state().nodes["FACT-1"].fields
        assert [name for name in fields if name.startswith("attributes.")] == ["attributes.k"]
        assert [name for one in clone.state().links.values() for name in one.fields if "." in name] == []
    wanted = redaction_preview.meant(
        bob.workspace(), "main", change.id, is_pattern=False, is_regex=False, fields=["[redacted]"]
    )
    redact(bob, wanted)
    assert holds(bob) == []
    assert not bob.sync().outcome.warnings
    with pytest.raises(NotFound, match="no field whose name"):
        redaction_preview.meant(
            bob.workspace(), "main", change.id, is_pattern=False, is_regex=False, fields=["[redacted]"]
        )
    assert diagnose(bob.workspace()).is_sound


@pytest.mark.parametrize("where", ["other clone", "whole copy"])
def test_a_name_and_other_fields_of_a_change_have_a_command_each_and_both_work(
    ann: Clone, bob: Clone, where: str
) -> None:
    ann.apply(message=f"about {SECRET}", entities=[{"id": "FACT-1", "attributes": {SECRET: "gone", "k": "kept"}}])
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.git("branch", "whole")
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit("redact")
    ann.push()
    if where == "other clone":
        clone, code = bob, "redacted_by_others"
        bob.pull()
    else:
        clone, code = ann, "redacted_in_store_alone"
        ann.git("rm", "--quiet", "-r", ".kb/changes")
        ann.git("checkout", "--quiet", "whole", "--", ".kb/changes")
    [warning] = [one for one in clone.sync().outcome.warnings if "redact" in one]
    [found] = [one for one in sharing_findings(clone.workspace(), "main") if one.code == code]
    given = commands_in(for_shell(found.remedy))
    assert [[one for one in words if one.startswith("--field")] for words in given] == [
        ["--field=[redacted]"],
        ["--field=message"],
    ]
    assert given == commands_in(for_shell(warning))
    clone.close()
    env = environment({"KB_ACTOR": clone.actor})
    together = [*given[0], *(word for word in given[1] if word.startswith("--field"))]
    refused = run_kb(clone.root, *together, env=env)
    assert refused.status != 0
    assert commands_in(refused.err) == [words[:3] for words in given]
    for words in given:
        ran = run_kb(clone.root, *words, *(() if "--yes" in words else ("--yes",)), env=env)
        assert ran.status == 0, ran.err
    assert holds(clone) == []
    assert [one for one in sharing_findings(clone.workspace(), "main") if one.code == code] == []


def test_a_merge_of_a_branch_does_not_bring_back_the_name_of_a_field(ann: Clone) -> None:
    ann.begin("feat")
    ann.fact("FACT-1", attributes={SECRET: "gone", "k": "kept"})
    ann.commit()
    ann.switch("main")
    ann.git("merge", "--quiet", "--no-edit", "--no-ff", "feat")
    ann.sync()
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit()
    ann.git("checkout", "--quiet", "feat", "--", ".kb/changes")
    ann.sync()
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))
    assert "attributes.k" in ann.state().nodes["FACT-1"].fields


def test_the_message_of_a_record_is_redacted_by_its_name_alone(ann: Clone) -> None:
    ann.apply(message=SECRET, entities=[{"id": "FACT-1", "title": "Kept"}])
    ann.commit()
    redact(ann, Wanted("record", seq=ann.view().seq - 1, fields=("message",)))
    assert holds(ann) == []
    assert ann.titles()["FACT-1"] == "Kept"


def test_changes_that_others_redacted_are_counted_by_the_sync_and_all_named_by_the_doctor(
    ann: Clone, bob: Clone
) -> None:
    for number in range(12):
        ann.fact(f"FACT-{number + 10}", f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    warnings = bob.sync().outcome.warnings
    assert len(warnings) == 11
    assert "2 more changes" in warnings[-1]

    def listed() -> list[DoctorFinding]:
        return [one for one in sharing_findings(bob.workspace(), "main") if one.code == "redacted_by_others"]

    assert not bob.sync().outcome.warnings
    assert len(listed()) == 12
    assert all("--field=title" in one.remedy for one in listed())
    redact(bob)
    assert listed() == []
    assert holds(bob) == []


def test_a_conflict_keeps_its_form_where_an_entity_or_a_record_is_redacted(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title="By ann")
    bob.add("FACT-1", title="By bob")
    ann.commit()
    ann.push()
    bob.commit()
    bob.pull()
    hold(bob)
    redact(bob, Wanted("entity", "FACT-1", fields=("title",)))
    assert bob.state().nodes["FACT-1"].fields["contested.title"][0]["value"] == "[redacted]"
    bob.commit("redact")
    hold(bob)


@pytest.mark.parametrize("field", ["confidence", "created_at"])
def test_a_field_that_holds_no_text_is_not_redacted(ann: Clone, field: str) -> None:
    ann.link("FACT-1", "REQ-2", confidence=0.5)
    with pytest.raises(NotFound):
        redact(ann, Wanted("record", seq=ann.view().seq, fields=(field,)))
    hold(ann)


def test_a_number_among_texts_is_redacted_in_a_change_file_too(ann: Clone) -> None:
    ann.add("FACT-1", attributes={"pins": [48151623, "other"]})
    ann.commit()
    redact(ann, Wanted("pattern", "48151623"))
    assert not files_with('"now":[48151623', ann.root / ".kb")
