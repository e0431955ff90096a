"""Whatever is stored, a drawing holds the nodes and edges of its section and nothing else, as a strict reader finds."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.query.diagram import dot, mermaid, name_of
from kbcore.query.section import Arrow, Section
from kbcore.query.subject import Subject

HOSTILE = [
    *('"]; click n_A "javascript:alert(1)"', '%%{init: {"theme":"dark"}}%%', "end", "`md`", "<script>x</script>"),
    *("&lt;", "#quot;", "a\\", 'a"\\"b', "\\N\\l", "}}", "1. list", "- x", "---", "graph TD;", "-->", "|x|", "[["),
    *("line\nbreak", "\x1b[31m", "\u202eabc", "\u2028", "😀 שלום", "ﬂ°°60¶ß", "x:::y", "*/", "//", "@{ shape: x }"),
]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=12)
TYPES = st.sampled_from(
    ["req", "scenario", "test", "adr", "flag", "event", "symbol", "component", "doc", "task", "Odd", "default"]
)
SUBJECTS = st.lists(
    st.builds(Subject, TEXTS.filter(bool), TYPES, TEXTS, TEXTS | st.just("superseded"), TEXTS),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one.id,
)

NAME = r"n_(?:[A-Za-z0-9]|_[0-9a-f]+_)*"
SAFE = r"(?:[\w ,.()/-]|#\d+;)*"
MERMAID = [
    r"flowchart LR",
    r"  %% [\w ,.()/-]*",
    rf'  (?P<node>{NAME})[\[({{>/]{{1,2}}"(?P<label>{SAFE}(?:<br/>{SAFE})*)"[\])}}/]{{1,2}}:::kb_\w+',
    rf'  (?P<from>{NAME}) -->\|"(?P<words>{SAFE})"\| (?P<to>{NAME})',
    r"  classDef kb_\w+ fill:#\w{6},stroke:#\w{6},color:#\w{6}",
    rf"  style {NAME} (?:stroke-dasharray:5 5|stroke-width:4px)",
]
QUOTED = r'"(?:[^"\\]|\\\\|\\"|\\n)*"'
DOT = [
    r"digraph kb \{",
    r"  // [\w ,.()/-]*",
    r"  rankdir=LR;",
    rf"  (?:node|edge) \[(?:style=filled, )?fontname={QUOTED}\];",
    rf"  (?P<node>{NAME}) \[label=(?P<label>{QUOTED}), shape=\w+, fillcolor={QUOTED}(?:, \w+=(?:{QUOTED}|3))+\];",
    rf"  (?P<from>{NAME}) -> (?P<to>{NAME}) \[label=(?P<words>{QUOTED})\];",
    r"\}",
]


def read(text, grammar):
    """Return nodes and edges of a drawing; every line must be of the grammar, whole."""
    found = {"node": [], "from": []}
    for line in text.removesuffix("\n").split("\n"):
        [match] = [one for rule in grammar if (one := re.fullmatch(rule, line))] or [None]
        assert match, line
        groups = match.groupdict()
        if "node" in groups:
            found["node"].append(groups["node"])
        elif "from" in groups:
            found["from"].append((groups["from"], groups["to"]))
    return found["node"], found["from"]


@st.composite
def sections(draw):
    nodes = draw(SUBJECTS)
    ends = st.sampled_from([one.id for one in nodes])
    arrows = draw(st.lists(st.builds(Arrow, st.just("relates_to"), TEXTS, ends, ends), max_size=6))
    return Section(nodes, arrows, len(nodes), len(arrows))


@given(sections(), TEXTS)
def test_nothing_stored_breaks_out_of_a_label(section, note):
    wanted = (
        [name_of(one.id) for one in section.nodes],
        [(name_of(one.from_id), name_of(one.to_id)) for one in section.arrows],
    )
    start = section.nodes[0].id
    assert read(mermaid(section, start, [note]), MERMAID) == wanted
    assert read(dot(section, start, [note]), DOT) == wanted


@given(st.lists(TEXTS, unique=True))
def test_no_two_ids_have_the_same_name(ids):
    assert len({name_of(id_) for id_ in ids}) == len(ids)


def test_a_drawing_shows_id_title_type_status_and_what_edges_mean():
    one, two = Subject("REQ-1", "req", "Log in, safely", "open", ""), Subject("Q", "odd", "", "rejected", "")
    section = Section([one, two], [Arrow("relates_to", "like", "Q", "REQ-1")], 2, 1)
    assert mermaid(section, "REQ-1", ["main at seq 2"]).splitlines() == [
        "flowchart LR",
        "  %% main at seq 2",
        '  n_REQ_2d_1["REQ-1<br/>Log in, safely<br/>req, open"]:::kb_req',
        '  n_Q("Q<br/>odd, rejected"):::kb_other',
        '  n_Q -->|"relates_to#58; like"| n_REQ_2d_1',
        "  classDef kb_other fill:#ffffff,stroke:#6b7280,color:#111827",
        "  classDef kb_req fill:#dbeafe,stroke:#1d4ed8,color:#111827",
        "  style n_Q stroke-dasharray:5 5",
        "  style n_REQ_2d_1 stroke-width:4px",
    ]
    assert (
        'n_Q [label="Q\\nodd, rejected", shape=box, fillcolor="#ffffff", color="#6b7280", style="filled,dashed"];'
        in (dot(section))
    )
    assert '  n_Q -> n_REQ_2d_1 [label="relates_to: like"];' in dot(section)


@pytest.mark.skipif(
    shutil.which("dot") is None, reason="Graphviz is not installed; the strict reader has read the same"
)
def test_graphviz_reads_the_same_nodes_and_edges():
    nodes = [Subject(text, "req", text, text, "") for text in HOSTILE]
    section = Section(nodes, [Arrow("relates_to", text, text, HOSTILE[0]) for text in HOSTILE], 1, 1)
    done = subprocess.run(["dot", "-Tplain"], input=dot(section), capture_output=True, text=True, check=True)
    kinds = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert (kinds.count("node"), kinds.count("edge")) == (len(HOSTILE), len(HOSTILE))
