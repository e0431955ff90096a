"""``kb export --parquet`` and the commands that ask a fleet."""

from __future__ import annotations

import pytest

from kbcli.invocation import exits


def test_an_export_says_what_it_wrote(kb, synced):
    first = kb("export", "--parquet", "place", "--repo", "acme/pay", "--json").json
    assert (first["repo"], first["branch"], first["history"]) == ("acme/pay", "main", True)
    assert first["written"] == first["bytes"] > 0
    again = kb("export", "--parquet", "place", "--repo", "acme/pay", "--json").json
    assert again == first | {"written": 0}
    assert "all is in place." in kb("export", "--parquet", "place", "--repo", "acme/pay").out


def test_ci_names_the_branch(kb, synced):
    found = kb("export", "--parquet", "place", "--as", "release/1", "--no-history", "--json").json
    assert (found["repo"], found["branch"], found["history"]) == (synced.name, "release/1", False)


@pytest.mark.parametrize(
    "words",
    [
        ("--repo", "x"),
        ("--as", "x"),
        ("--no-history",),
        ("file.json", "--parquet", "place"),
        ("--parquet", "place", "--at", "1"),
        ("--parquet", "place", "--format", "json"),
    ],
)
def test_options_that_do_not_go_together_are_refused(kb, synced, words):
    ran = kb("export", *words)
    assert ran.status == exits.USAGE
    assert "--parquet" in ran.err


def test_a_place_in_a_folder_that_is_not_there_is_refused(kb, synced):
    ran = kb("export", "--parquet", "no/where")
    assert ran.status != 0
    assert "is no folder" in ran.err
    assert not (synced / "no").exists()
