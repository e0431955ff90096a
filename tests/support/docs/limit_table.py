"""The table of limits in docs/configuration.md: every maximum of ``kbcore/limits.py`` in words, or said to be none.

A new constant that is in neither list makes the table, and with it the page's test, fail.
"""

from __future__ import annotations

from typing import Final

from kbcore import limits

_WORDS: Final = {
    "MAX_CHANGESET_ITEMS": "entities and edges that one changeset names",
    "MAX_CHANGESET_BYTES": "one changeset of a client, as written to the journal",
    "MAX_RECORD_BYTES": "one sync, as written to the journal",
    "MAX_CHANGE_FILE_BYTES": "a file of changes that travels with the code",
    "MAX_REVERTED": "records that one `kb revert --actor` or `--session` undoes",
    "MAX_DELETE_IDS": "entities and edges that one `kb delete` names",
    "MAX_PROBLEMS": "problems that one answer lists; the rest is counted",
    "MAX_PAGE_ROWS": "rows of one page (`--limit`); `--cursor` continues from there",
    "MAX_QUERY_IDS": "ids that one query names",
    "MAX_QUERY_CONDITIONS": "conditions in one query",
    "MAX_QUERIES": "`queries` of one call of `kb_query`",
    "MAX_QUERY_WORDS": "different words of one `--text`",
    "MAX_SEARCHED_CHARS": "characters of a document that a search finds words in",
    "MAX_KEPT_BODIES_BYTES": "text of documents that search keeps in the cache, of all branches together",
    "MAX_MEANINGS": "entities of a branch that are searched by meaning; of more only the words are searched",
    "MAX_TRAVERSAL_DEPTH": "steps along edges (`--depth`)",
    "MAX_MATRIX_STEPS": "edges of the path of a `kb matrix`",
    "MAX_MATRIX_CELLS": "entities that one row of it names; the others are counted",
    "MAX_AFFECTED": "entities that one `kb impact` looks at; what it shows is marked when there are more",
    "MAX_CONTEXT_FACTS": "facts that one `kb prime` or `context` looks at in each of two steps; more are mentioned",
    "MAX_CONTEXT_PATHS": "paths and ids that one of them names, and files of a diff that it looks at",
    "MAX_CONTEXT_TEXTS": "documents whose first sentences it reads",
    "MAX_CONTEXT_TOKENS": "tokens of its budget",
    "HOOK_TOKENS": "tokens that `kb prime --hook` says",
    "MAX_DRAWN_EDGES": "edges that one `kb graph` draws",
    "MAX_FLEET_SHARD": "branches that `kb fleet --shard` has one worker ask at once",
    "MAX_FLEET_WORKERS": "workers of `kb fleet --workers`",
    "MAX_ID_CHARS": "an id",
    "MAX_NAME_CHARS": "the name of a type, an edge, a kind, an attribute or a rule",
    "MAX_CHANGESET_ID_CHARS": "a `changeset_id`",
    "MAX_TEXT_BYTES": "one text of a field or an attribute, the SQL of a rule",
    "MAX_VALUE_BYTES": "one list or object, as JSON",
    "MAX_TAGS": "entries of one list of a field",
    "MAX_MENTIONS": "documents and ids that the text of one document links to",
    "MAX_DEPTH": "lists and objects inside of each other",
    "MAX_SOURCE_FILE_BYTES": "a document, a manifest, a feature file",
    "MAX_CODE_BYTES": "a file of source code",
    "MAX_INDEX_BYTES": "a SCIP index, `*.scip`",
    "MAX_INDEX_SYMBOLS": "symbols, parameters and fields that a SCIP index defines",
    "MAX_INDEX_EDGES": "edges between symbols that a SCIP index states",
    "MAX_CODE_OWNERS_BYTES": "the file `CODEOWNERS`",
    "MAX_REPORT_BYTES": "a report that `kb results` reads",
    "MAX_REPORTS": "reports of one `kb results`",
    "MAX_REPORTED_TESTS": "tests in the reports of one `kb results`",
    "MAX_REPORTED_TEXT_CHARS": "characters of the text of one failure that `kb results` looks at",
    "MAX_REPORTED_FILES": "source files in the reports of coverage of one `kb results`",
    "MAX_FRONT_MATTER_BYTES": "the front matter of a document",
    "MAX_YAML_NODES": "values of one YAML or JSON file",
    "MAX_ALIASED_NODES": "values of a YAML file with aliases, each counted as often as it is used",
    "MAX_CONFIG_BYTES": "a file of settings, schema or rules",
    "MAX_GLOBS": "globs of one list of the settings, and of all extractors together",
    "MAX_GLOB_CHARS": "characters of one glob",
    "MAX_GLOB_PARTS": "parts between the slashes of all these globs",
    "MAX_RULE_FINDINGS": "rows that the SQL of one rule gives",
    "MAX_RULE_MESSAGE_CHARS": "a message of a rule; a longer one is cut",
    "MAX_RULE_MEMORY_BYTES": "memory of the SQL of one rule, and as much again on disk",
    "MAX_RULE_PARAMS": "parameters of one rule",
    "MAX_RULE_TESTS": "tests of one rule",
    "MAX_RULE_TEST_ITEMS": "entities, edges or ids of one test of a rule",
    "MAX_HEAD_BYTES": "`head.json`, which grows with every `kb compact`; `--prune-before` makes room",
    "MAX_BACKUP_FILES": "files of one backup, of all branches together",
    "MAX_MANIFEST_BYTES": "the list of files in a backup",
    "MAX_KIP_BYTES": "the text of one KIP command",
    "MAX_KIP_DEPTH": "braces, brackets and parentheses inside of each other in a KIP command",
    "MAX_KIP_DELETED": "elements that one KIP command may name for deletion; edges on them are deleted too",
    "MAX_KIP_HOPS": "hops of a path in a KIP command",
    "MAX_KIP_COMMANDS": "commands of one KIP batch",
    "MAX_KIP_HITS": "elements that one SEARCH of KIP finds",
    "MAX_KIP_CLAUSES": "patterns, filters and groups in the WHERE of a KIP command, those inside of each other too",
    "MAX_KIP_CONDITIONS": "comparisons and tests in the filters of a KIP command",
    "MAX_KIP_VALUES": "values in the lists of IN of a KIP command, together",
    "MAX_KIP_NEIGHBOURHOOD_CHARS": "characters of the answer of one DESCRIBE NEIGHBOURHOOD",
    "MAX_KIP_EXPRESSIONS": "expressions of FIND and keys of ORDER BY in a KIP command",
    "MAX_KIP_APPLIED": "blocks and links in the UPSERTs of one KIP command, counted again for each row of WHERE",
    "MAX_SLEEP_ITEMS": "elements that one phase of `kb sleep` names; the rest is done in the next cycle",
    "MAX_SLEEP_LOG": "entries of the maintenance log that `kb sleep` keeps",
    "MAX_SLEEP_PAGE": "items of one page of `kb_sleep`",
    "GIT_DATES_S": "the pass of git over the history for the dates of documents",
    "STATEMENT_S": "one statement of KB's own to the database",
    "MAINTENANCE_STATEMENT_S": "one such statement of verify, doctor, compact or restore, or that makes a view",
    "MAX_SLEEP_PAIRS": "pairs that one `kb sleep` takes for duplicates, the surest first",
    "FILES_S": "comparing the files with the records, for one answer; then it is of the records alone",
    "FILES_CHECK_S": "the same for a check, which is refused then",
    "VIEW_MEMORY_BYTES": "memory of one database of KB, each view of a branch is one; your own settings may differ",
    "MAX_CLAUSE_CHARS": "a query of the Prolog workspace, and one of its clauses",
    "MAX_CLAUSE_NESTING": "brackets inside of each other in a clause of the Prolog workspace",
    "MAX_ARITY": "arguments of a predicate of the Prolog workspace",
    "MAX_GOAL_INFERENCES": "inferences of one goal of Prolog",
    "MAX_GOAL_STACK_BYTES": "the stacks of one goal of Prolog",
    "MAX_GOAL_CHARS": "characters that one step of a goal of Prolog prints, and of the text of a term",
    "MAX_ENGINE_BYTES": "memory of one Prolog engine",
    "MAX_MODEL_ANSWER_BYTES": "one answer of a server of language models",
    "MAX_PROGRAM_CHARS": "characters of a program of DML",
    "MAX_PROGRAM_FINDINGS": "findings that `kb dml check` keeps of one program",
    "MAX_PROGRAM_FILE_BYTES": "a file that a program of DML reads or writes",
    "MAX_PROGRAM_VALUE_CHARS": "characters of a param of a program of DML, and of the result of a tool that it calls",
    "MAX_TOOL_RESULT_CHARS": "characters of the result of a tool that is sent to a model; a longer one is cut",
    "MAX_RUN_NUMBER": "steps, turns and tokens that the options of `kb dml run` name",
    "MAX_RUN_S": "the time that `--timeout` of `kb dml run` names",
    "MAX_RUN_COST_USD": "US dollars that `--cost` of `kb dml run` names",
    "MAX_PROGRAM_WRITTEN_BYTES": "all that one run of DML writes into files",
    "MAX_CONVERSATION_CHARS": "characters of the messages of one run of DML, those included that its program undid",
    "MIN_ADDRESS_BYTES": "address space that a process needs, at least, where that is limited (`ulimit -v`)",
    "DATABASE_ROOM_BYTES": "of that limit, what must be left where a database is opened",
    "MAX_READERS": "calls that read one branch at a time in a process; those that read for long are not counted",
    "MAX_VIEWS": "the same, with those that read for long",
    "SLOW_READ_S": "what is not counted as reading for long",
    "VIEW_SPILL_BYTES": "what one database of KB puts on disk for lack of memory",
    "MAX_BASE_ROWS_PER_BYTE": "rows of a cached file for each byte of it",
}
_NO_LIMITS: Final = {
    "MIN_PARALLEL_FILES": "the size from which on work is done in another way, with the same result",
    "RULES_TIME_S": "the default of `limits.rulesTimeSeconds`",
    "USER_LOCK_WAIT_S": "the default of `limits.lockWaitSeconds`",
    "MAX_LOCK_WAIT_S": "the most that `lockWaitSeconds` takes",
    "KIP_TIME_S": "the default of `kip.timeLimitSeconds`",
    "MAX_KIP_TIME_S": "the most that `kip.timeLimitSeconds` takes",
    "KIP_ROWS": "the default of `kip.rowLimit`",
    "MAX_KIP_ROWS": "the most that `kip.rowLimit` takes",
    "LOGIC_TIME_S": "the default of `logic.timeLimitSeconds`",
    "MAX_LOGIC_TIME_S": "the most that `logic.timeLimitSeconds` takes",
    "LOGIC_CLAUSES": "the default of `logic.maxClauses`",
    "MAX_LOGIC_CLAUSES": "the most that `logic.maxClauses` takes",
    "MIN_CONTEXT_TOKENS": "the least that the `budget` of a `context` takes",
    "MIN_PRIME_TOKENS": "the least that `kb prime --budget` takes",
    "MIN_QUERY_TOKENS": "the least for each of several queries that share a budget",
    "FILE_CONTEXT_TOKENS": "the default budget of the context of one file",
    "CONTEXT_TOKENS": "the default budget of another context",
    "PRIME_TOKENS": "the default of `kb prime --budget`",
    "KIB": "a unit",
    "MIB": "a unit",
    "RULE_TIME_S": "the default of `ruleTimeLimitSeconds`",
    "MIN_RULE_TIME_S": "the least that `ruleTimeLimitSeconds` takes",
    "MAX_RULE_TIME_S": "the most that `ruleTimeLimitSeconds` takes",
    "DEFAULT_PAGE_ROWS": "rows of a page when nobody says how many",
    "DEFAULT_SECTION_ROWS": "entities of a section when nobody says how many",
    "FLEET_SHARD": "the default of `--shard`",
    "LOCK_WAIT_S": "the default of `lockWaitSeconds`",
}


def limit_table() -> str:
    """Return the table of all limits.

    Raises: ``ValueError`` when a constant has no words, or words have no constant.
    """
    there = {name for name in vars(limits) if name.isupper()}
    unknown = there ^ {*_WORDS, *_NO_LIMITS}
    if unknown:
        raise ValueError(
            f"kbcore/limits.py and tests/support/docs/limit_table.py differ in {', '.join(sorted(unknown))}"
        )
    rows = [f"| {words} | {_measured(name, getattr(limits, name))} |" for name, words in _WORDS.items()]
    return "\n".join(["| what | at most |", "|---|---|", *rows])


def _measured(name: str, most: int) -> str:
    if name.endswith("_BYTES"):
        unit, size = ("MiB", limits.MIB) if most >= limits.MIB else ("KiB", limits.KIB)
        return f"{most // size} {unit}"
    if name.endswith("_S"):
        return f"{most:g} s"
    return f"{most} characters" if name.endswith("_CHARS") else str(most)
