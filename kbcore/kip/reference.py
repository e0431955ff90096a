"""The syntax reference for agents: a short text with examples. Plain data.

`DESCRIBE SYNTAX`, a resource and the prompts show it whole; a refusal shows the example that is nearest to its place.
The examples, in their order, can be carried out in an empty store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

_COMMANDS: Final = ("FIND", "UPSERT", "DELETE", "UPDATE", "MERGE", "DESCRIBE", "SEARCH", "EXPORT")


class Example(msgspec.Struct, frozen=True):
    """One command with its comment. ``shows`` are the keywords inside it for which it is the nearest example.

    ``short`` replaces a long command in a hint.
    """

    text: str
    comment: str = ""
    shows: tuple[str, ...] = ()
    parameters: dict[str, Any] = {}
    short: str = ""

    @property
    def command(self) -> str:
        """Return the keyword that the command begins with."""
        return self.text.split("(")[0].split()[0]

    @property
    def line(self) -> str:
        """Return the command, or what is short for it, on one line."""
        return self.short or " ".join(self.text.split())


LOOK: Final = (
    Example("DESCRIBE PRIMER", "who you are, and what is known"),
    Example("DESCRIBE CONCEPT TYPES", "or PROPOSITION TYPES"),
    Example('DESCRIBE CONCEPT TYPE "Person"', "or PROPOSITION TYPE", ("TYPE",)),
    Example('SEARCH CONCEPT "pay" LIMIT 5', "by words"),
)
DEFINE: Final = Example(
    """\
UPSERT {
  CONCEPT { {type: "$ConceptType", name: "Service"} SET ATTRIBUTES { description: "A program." } }
  CONCEPT { {type: "$PropositionType", name: "owns"} SET ATTRIBUTES { description: "Answers for it." } }
}"""
)
WRITE: Final = Example(
    """\
UPSERT {
  CONCEPT ?b { {type: "Service", name: "pay"} SET ATTRIBUTES { tier: 1 } }
  CONCEPT { {type: "Service", name: "web"}
    SET ATTRIBUTES { tier: 2 }
    SET PROPOSITIONS { ("depends_on", ?b) } }
  CONCEPT { {type: "Person", name: :who}
    SET PROPOSITIONS { ("owns", ?b) WITH METADATA { confidence: 0.9 } } }
} WITH METADATA { source: "chat-12", author: "$self", confidence: 0.7 }""",
    "makes or updates; ?b is for later blocks",
    ("UPSERT", "CONCEPT", "ATTRIBUTES", "PROPOSITIONS", "METADATA"),
    {"who": "Ann"},
    'UPSERT { CONCEPT { {type: "Service", name: "web"} SET ATTRIBUTES { tier: 2 } '
    'SET PROPOSITIONS { ("depends_on", {type: "Service", name: "pay"}) } } } WITH METADATA { source: "chat-12" }',
)
REPLACE: Final = Example(
    """\
UPSERT {
  PROPOSITION ?old { ({type: "Person", name: "Ann"}, "owns", {type: "Service", name: "pay"}) }
    WITH METADATA { confidence: 0.2 }
  PROPOSITION ?new { ({type: "Person", name: "Ann"}, "owns", {type: "Service", name: "web"}) }
  PROPOSITION { (?new, "supersedes", ?old) }
} WITH METADATA { source: "chat-15", author: "$self", confidence: 0.9 }""",
    "a belief that replaces a belief",
    ("PROPOSITION",),
    short='UPSERT { PROPOSITION ?l { ({type: "Person", name: "Ann"}, "owns", {type: "Service", name: "web"}) '
    "SET ATTRIBUTES { since: 2024 } } WITH METADATA { confidence: 0.9 } }",
)
ASK: Final = (
    Example(
        'FIND(?s.name, ?s.attributes.tier) WHERE { ?s {type: "Service"} '
        'FILTER(?s.attributes.tier <= 2 && CONTAINS(?s.name, "p")) } ORDER BY ?s.name DESC LIMIT 20',
        shows=("FILTER", "ORDER", "LIMIT"),
    ),
    Example(
        "FIND(?p.name, ?l.metadata.confidence) "
        'WHERE { ?l (?p, "owns", {type: "Service", name: "pay"}) FILTER(IS_NOT_NULL(?l.metadata.source)) }',
        "a link bound to ?l",
        ("IS_NULL", "IS_NOT_NULL", "METADATA"),
    ),
    Example(
        'FIND(?s.name, COUNT(?p)) WHERE { ?s {type: "Service"} OPTIONAL { (?p, "owns", ?s) } }',
        "one row for each ?s.name",
        ("COUNT", "SUM", "AVG", "MIN", "MAX", "OPTIONAL"),
    ),
    Example(
        'FIND(?d.name) WHERE { ({type: "Service", name: "web"}, "depends_on"{1,3}, ?d) '
        'NOT { (?d, "depends_on", ?x) } }',
        'one to three links; "a"|"b" is either',
        ("NOT",),
    ),
    Example(
        'FIND(?n.name) WHERE { ?n {type: "Person"} UNION { ?n {type: "Service"} FILTER(IN(?n.name, ["web"])) } }',
        shows=("UNION", "IN"),
    ),
)
NEAR: Final = Example(
    'DESCRIBE NEIGHBOURHOOD {type: "Service", name: "web"} BUDGET 2000',
    "all about one, in both directions",
    ("NEIGHBOURHOOD",),
)
CHANGE: Final = (
    Example(
        "UPDATE ?s SET ATTRIBUTES { seen: ADD(COALESCE(?s.attributes.seen, 0), 1) } SET METADATA { confidence: 0.8 } "
        'WHERE { ?s {type: "Service"} }'
    ),
    Example(
        'MERGE CONCEPT ?gone INTO ?kept WHERE { ?gone {type: "Service", name: "web"} '
        '?kept {type: "Service", name: "pay"} }'
    ),
    Example('DELETE ATTRIBUTES {"seen"} FROM ?s WHERE { ?s {type: "Service"} }', "or METADATA", ("ATTRIBUTES",)),
    Example('DELETE PROPOSITIONS ?l WHERE { ?l (?p, "owns", ?s) }', shows=("PROPOSITIONS",)),
    Example('DELETE CONCEPT ?s DETACH WHERE { ?s {type: "Service", name: "pay"} }', "with its links", ("CONCEPT",)),
    Example('EXPORT ?p WHERE { ?p {type: "Person", name: "Ann"} }', "as UPSERTs"),
)
EXAMPLES: Final = (*LOOK, DEFINE, WRITE, REPLACE, *ASK, NEAR, *CHANGE)
"""All of them, in the order in which they can be carried out."""

SIMPLE_FIND: Final = Example('FIND(?p.name, ?p.attributes.handle) WHERE { ?p {type: "Person"} } LIMIT 10')
SIMPLE_UPSERT: Final = Example(
    'UPSERT { CONCEPT { {type: "Person", name: :who} SET ATTRIBUTES { handle: "@ann" } } } '
    'WITH METADATA { source: "chat-12" }',
    parameters={"who": "Ann"},
)
"""Two that need no definition, for the descriptions of the tools."""

_RULES: Final = """\
# KIP syntax
One command a text; a batch is a list of `commands`. KEYWORDS in capitals, texts in "double quotes", `//` comments.
Types are UpperCamelCase, predicates snake_case, both exact and defined before use. `:who` is replaced by a value of \
`parameters`, never inside quotes.
Concept: {type: "T", name: "N"} or {id: "…"}. Link: (subject, "predicate", object); an end may be a link.
Paths: ?x.name .type .id .attributes.KEY .metadata.KEY; of a link .subject .predicate .object.
"""


def _shown(examples: Sequence[Example]) -> str:
    lines = (f"{one.text}{f'  // {one.comment}' if one.comment else ''}" for one in examples)
    return "".join(f"{line}\n" for line in lines)


SYNTAX: Final = f"""\
{_RULES}
## Look
{_shown(LOOK)}
## Write
Define what is missing first:
{_shown([DEFINE])}\
{_shown([WRITE])}\
Each key of SET ATTRIBUTES is replaced whole (null is a value), SET PROPOSITIONS adds. Metadata: statement, then \
block, then link. `EXPECT VERSION n` directly after {{type: …, name: …}} refuses the command at another `_version`.
{_shown([REPLACE])}
## Ask
Clauses narrow what is found, in their order. A missing key is null.
{_shown([*ASK, NEAR])}\
Also: IS_NULL, STARTS_WITH, ENDS_WITH, REGEX (on texts); == != < > <= >=, && || !(…); DISTINCT in aggregates; \
CURSOR "…" from `next_cursor`; NOW("-7d"); AT 12 after WHERE: as of a seq or time.

## Change
Calculations: ADD, MUL, COALESCE (two), CLAMP (value, least, most), with paths on the target; ADD of a missing value \
leaves the key as it is.
{_shown(CHANGE)}""".rstrip()
"""The reference, as Markdown."""


def nearest_form(before: Sequence[str]) -> str:
    """Return a hint with the example that is nearest to a place; ``before`` are the kinds of the tokens before it."""
    command = next((kind for kind in before if kind in _COMMANDS), "")
    own = [one for one in EXAMPLES if one.command == command]
    if not own:
        return f"A command begins with one of these words, such as {ASK[0].line}. DESCRIBE SYNTAX shows all forms."
    inside = next((kind for kind in reversed(before) if any(kind in one.shows for one in own)), "")
    near = next((one for one in own if inside in one.shows), own[0])
    return f"The nearest form: {near.line}. DESCRIBE SYNTAX shows all forms."
