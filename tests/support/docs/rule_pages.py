"""The generated parts of docs/rules.md: KB's rules, and the relations that the SQL of a project's rules reads."""

from __future__ import annotations

import textwrap

from kbcore.rules import ON_DEMAND, RULES
from kbcore.view.relations import RELATIONS


def rule_sections() -> str:
    """Return a section for each rule, in the words of ``kb check --explain``."""
    parts = []
    for rule in (*RULES, *ON_DEMAND):
        parts += [f"### {rule.id}", "", _wrapped(f"*{rule.severity.capitalize()}.* {rule.description}"), ""]
        parts += [_wrapped(f"For example: {rule.example}"), "", _wrapped(f"Remedy: {rule.remedy}"), ""]
    return "\n".join(parts)


def relation_tables() -> str:
    """Return a table of columns for each relation."""
    parts = []
    for relation in RELATIONS.values():
        current = RELATIONS.get(relation.name.removesuffix("_history"))
        known = {one.name for one in current.columns} if current and current is not relation else set()
        also = f", with the columns of `{current.name}` and" if current and known else ""
        parts += [
            _wrapped(f"**`{relation.name}`**: {relation.meaning}{also}"),
            "",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        columns = [one for one in relation.columns if one.name not in known]
        parts += [f"| `{one.name}` | {one.type} | {one.meaning} |" for one in columns]
        parts.append("")
    return "\n".join(parts)


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)
