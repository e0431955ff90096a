"""Writes the generated blocks of the documentation and the files for agents; it is run by ``make docs``.

A block is in its page between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``; what is around it is
written by hand. To add one, put the two comments into the page and a line into ``BLOCKS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kbcli.invocation.help_topics import TOPICS
from kbcli.prove import report as prove_report
from kbcore.config.template import default_config_text
from kbcore.errors import KBError
from kbcore.errors.remedies import for_shell
from kbcore.extract.sources import profiles
from kbcore.kip.errors import CODES
from kbcore.kip.grammar import GRAMMAR, TOKENS
from kbcore.kip.kb_errors import KIP_CODES
from kbcore.kip.reference import SYNTAX
from kbcore.model.schema import CORE
from kbcore.model.schema_text import core_schema_text
from tests.support.docs import agent_files
from tests.support.docs.help_pages import command_index, help_blocks, help_of
from tests.support.docs.limit_table import limit_table
from tests.support.docs.rule_pages import relation_tables, rule_sections
from tests.support.docs.schema_tables import edge_table, type_table
from tests.support.oracles.kip_seed import difference_table

DOCS = Path(__file__).resolve().parents[3] / "docs"
PROVED = DOCS.parent / "benchmarks" / "prove.json"
"""The whole answer of `kb prove --format json`."""
COMMAND = "python -m tests.support.docs.regenerate_docs"


class Block(NamedTuple):
    """A generated part of a page: the page's name below ``docs/``, the block's name, what writes its lines."""

    page: str
    name: str
    make: Callable[[], str]

    @property
    def path(self) -> Path:
        return DOCS / self.page

    def current(self) -> str:
        """Return the text in the page now."""
        start, end = self._bounds(self.path.read_text(encoding="utf-8"))
        return self.path.read_text(encoding="utf-8")[start:end]

    def expected(self) -> str:
        """Return what should stand there."""
        return "\n" + self.make().strip("\n") + "\n\n"

    def write(self) -> bool:
        """Bring the page up to date; tell whether that changed it."""
        text = self.path.read_text(encoding="utf-8")
        start, end = self._bounds(text)
        changed = text[:start] + self.expected() + text[end:]
        self.path.write_text(changed, encoding="utf-8")
        return changed != text

    def _bounds(self, text: str) -> tuple[int, int]:
        opening, closing = f"<!-- generated: {self.name} -->\n", f"<!-- end of {self.name} -->"
        if text.count(opening) != 1 or text.count(closing) != 1:
            raise ValueError(f"docs/{self.page} must hold {opening.strip()} and {closing}, once each")
        return text.index(opening) + len(opening), text.index(closing)


def error_classes() -> list[type[KBError]]:
    """Return every error that is raised (the groups of errors are not), by exit status."""

    def below(parent: type[KBError]) -> Iterator[type[KBError]]:
        for child in parent.__subclasses__():
            if child.__subclasses__():
                yield from below(child)
            elif child.__module__ == KBError.__module__:
                yield child

    return sorted(below(KBError), key=lambda error: (error.exit_status, error.code))


def error_table() -> str:
    """Return the table of all errors."""
    rows = ["| code | exit status | retryable | applied | meaning | what to do |", "|---|---|---|---|---|---|"]
    for error in error_classes():
        meaning = (error.__doc__ or "").partition("\n")[0]
        retryable = "yes" if error.retryable else "no"
        remedy = for_shell(error.default_hint)
        cells = (f"`{error.code}`", str(error.exit_status), retryable, error.applied, meaning, remedy)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def token_table() -> str:
    """Return the table of the names in capitals in the grammar of KIP."""
    rows = [f"| `{'`, `'.join(names.split(', '))}` | {words} |" for names, words in TOKENS]
    return "\n".join(["| name | means |", "|---|---|", *rows])


def kip_code_table() -> str:
    """Return the table of the error codes of KIP."""
    rows = [f"| `{code.code}` | {code.name} | {code.meaning} | {code.hint} |" for code in CODES]
    return "\n".join(["| code | name | meaning | what to do |", "|---|---|---|---|", *rows])


def failure_table() -> str:
    """Return the table of the errors of KB as KIP reports them."""
    rows = []
    for error in error_classes():
        reported = KIP_CODES.get(error.code)
        if reported:
            hint = for_shell(reported.hint or error.default_hint)
            rows.append(f"| `{error.code}` | `{reported.code.code}` {reported.code.name} | {error.applied} | {hint} |")
    return "\n".join(["| error of KB | in KIP | applied | what to do |", "|---|---|---|---|", *rows])


def kip_limit_table() -> str:
    """Return the rows of the table of limits that are about KIP."""
    lines = limit_table().splitlines()
    return "\n".join([*lines[:2], *(line for line in lines[2:] if "KIP" in line)])


def fenced(language: str, text: str) -> str:
    """Return a text as a code block."""
    return f"```{language}\n{text.rstrip()}\n```"


def help_block(command: str) -> str:
    """Return the help of a command as a code block."""
    return fenced("text", help_of(command))


def profile_table() -> str:
    """Return the table of the profiles of sources."""
    found = [(name, profiles.read(name)) for name in sorted(profiles.NAMES)]
    rows = [f"| [`{name}`]({one['documentation']}) | {one['description']} |" for name, one in found]
    return "\n".join(["| profile | documents |", "|---|---|", *rows])


def prove_table() -> str:
    """Return the table of the stored run of `kb prove`."""
    return prove_report.markdown(prove_report.read(PROVED))


BLOCKS = (
    Block("agents.md", "prove", prove_table),
    Block("sources.md", "profiles", profile_table),
    Block("schema.md", "entity types", lambda: type_table(CORE)),
    Block("schema.md", "edge types", lambda: edge_table(CORE)),
    Block("schema.md", "core.yaml", lambda: fenced("yaml", core_schema_text())),
    Block("configuration.md", "config.json", lambda: fenced("json", default_config_text())),
    Block("configuration.md", "limits", limit_table),
    Block("errors.md", "errors", error_table),
    Block("durability.md", "help topics", lambda: "\n\n".join(fenced("text", text) for text in TOPICS.values())),
    Block("rules.md", "rules", rule_sections),
    Block("rules.md", "relations", relation_tables),
    Block("kip.md", "failures", failure_table),
    Block("kip.md", "kip limits", kip_limit_table),
    Block("kip-grammar.md", "grammar", lambda: fenced("text", GRAMMAR)),
    Block("kip-grammar.md", "tokens", token_table),
    Block("kip-grammar.md", "syntax reference", lambda: fenced("text", SYNTAX)),
    Block("kip-grammar.md", "codes", kip_code_table),
    Block("kip-grammar.md", "differences", difference_table),
    Block("cli.md", "index", command_index),
    *(Block("cli.md", name, partial(help_block, command)) for name, command in help_blocks()),
)


def main() -> None:
    """Write every block and name the pages that changed."""
    changed = [*sorted({f"docs/{block.page}" for block in BLOCKS if block.write()}), *agent_files.write()]
    sys.stdout.write("".join(f"{name} was out of date\n" for name in changed) or "all up to date\n")


if __name__ == "__main__":
    main()
