"""Every maximum that KB keeps, in one place. Sizes are in bytes unless the name says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

MAX_ID_CHARS: Final = 200
MAX_NAME_CHARS: Final = 100
"""Type, edge, kind and attribute names."""
MAX_TEXT_BYTES: Final = 64 * KIB
"""One text value of a field or attribute."""
MAX_VALUE_BYTES: Final = 256 * KIB
"""One list or object value, as JSON."""
MAX_DEPTH: Final = 32
"""Nesting of a value."""
MAX_TAGS: Final = 1000
"""Entries of one list field."""
MAX_MENTIONS: Final = 1000
"""Documents and ids that the text of one document mentions."""
MAX_CHANGESET_ID_CHARS: Final = 64
MAX_CHANGESET_ITEMS: Final = 10_000
"""Entities and edges that one client changeset may name."""
MAX_CHANGESET_BYTES: Final = 8 * MIB
"""One record of a client, as written."""
MAX_RECORD_BYTES: Final = 512 * MIB
"""Any record: a sync writes one changeset, however many files changed."""
MAX_CHANGE_FILE_BYTES: Final = 16 * MIB
"""A file of changes that travels with the code; a change of a client is smaller."""
MAX_REVERTED: Final = 10_000
"""Records that one revert undoes."""
MAX_DELETE_IDS: Final = 100
MAX_QUERY_IDS: Final = 1000
MAX_QUERY_CONDITIONS: Final = 100
MAX_QUERIES: Final = 10
"""Queries of one call."""
MAX_QUERY_WORDS: Final = 32
"""Different words of one text search."""
MAX_PAGE_ROWS: Final = 10_000
DEFAULT_PAGE_ROWS: Final = 50
"""Rows of a page by default."""
DEFAULT_SECTION_ROWS: Final = 100
"""Entities of a section of the graph by default."""
MAX_SEARCHED_CHARS: Final = 1_000_000
"""Of one document, in a text search: text beyond it is not found."""
MAX_KEPT_BODIES_BYTES: Final = 1024 * MIB
"""Text of documents that search keeps in the cache, of all branches together."""
MAX_MEANINGS: Final = 250_000
"""Entities of a branch whose meaning is searched; of more only the words are."""
VIEW_MEMORY_BYTES: Final = 4096 * MIB
"""Memory of one database of KB's own, where that is less than its usual share of what the machine has."""
MAX_CLAUSE_CHARS: Final = 5_000
"""A query of the Prolog workspace, and one of its clauses."""
MAX_CLAUSE_NESTING: Final = 2_500
"""Brackets inside of each other in a clause: a clause of the length above cannot close more."""
MAX_ARITY: Final = 1024
"""Arguments of a predicate of the workspace: an engine keeps some bytes for each, also where there is no clause."""
MAX_GOAL_INFERENCES: Final = 1_000_000_000
MAX_GOAL_STACK_BYTES: Final = 256 * MIB
"""The stacks of Prolog that a goal takes."""
MAX_GOAL_CHARS: Final = 1024 * KIB
"""Printed by a step of a goal, and in the text of a term of its answer."""
MAX_ENGINE_BYTES: Final = 1024 * MIB
"""The process of a Prolog engine: its address space natively, its resident size otherwise."""
MAX_PROGRAM_CHARS: Final = 1024 * KIB
"""A program of DML."""
MAX_PROGRAM_FINDINGS: Final = 1_000
"""Findings of one program that its check keeps."""
MAX_PROGRAM_FILE_BYTES: Final = 16 * MIB
"""A file that a program reads or writes."""
MAX_PROGRAM_VALUE_CHARS: Final = 16 * MIB
"""A param of a program, or the result of a tool that it calls, as a term."""
MAX_MODEL_ANSWER_BYTES: Final = 16 * MIB
"""An answer of a server of language models."""
MAX_RUN_NUMBER: Final = 10**15
"""Steps, turns of models and tokens that the budget of a run may name."""
MAX_RUN_S: Final = 7 * 24 * 3600
"""The time of a run that a budget may name."""
MAX_RUN_COST_USD: Final = 1_000_000
MAX_PROGRAM_WRITTEN_BYTES: Final = 256 * MIB
"""All that a run writes into files, those that are written again included."""
MAX_CONVERSATION_CHARS: Final = 128 * MIB
"""All messages of a run, those that its program has undone included."""
MAX_TOOL_RESULT_CHARS: Final = 100_000
"""Of the result of a tool, what is sent to a model."""
MIN_ADDRESS_BYTES: Final = 768 * MIB
"""Address space that a process of KB needs, where that is limited (`ulimit -v`)."""
DATABASE_ROOM_BYTES: Final = 128 * MIB
"""Of this limit, what must be left where a database is opened."""
MAX_READERS: Final = 4
"""Threads of a process that read one branch at a time, each from a view of its own: those that read for long are not
counted. The next one waits."""
MAX_VIEWS: Final = 8
"""Views of one branch that a process lends to readers at a time, those that read for long included."""
SLOW_READ_S: Final = 0.25
"""After this time a reader reads for long."""
VIEW_SPILL_BYTES: Final = 16 * 1024 * MIB
"""Disk space of such a database that lacks memory."""
FILES_S: Final = 2.0
"""Comparing the files of a worktree with the records, for an answer; one of the records alone is given after that."""
FILES_CHECK_S: Final = 60.0
"""The same for a check."""
MAX_BASE_ROWS_PER_BYTE: Final = 8
"""Rows of all tables of a cached view for each byte of its file: more are a file that is made to take for ever."""
MAX_TRAVERSAL_DEPTH: Final = 50
MAX_MATRIX_STEPS: Final = 6
"""Edges from an entity of a row of a traceability matrix to one of its columns."""
MAX_MATRIX_CELLS: Final = 100
"""Entities at the end of one row of a traceability matrix that are named; the others are counted."""
MAX_AFFECTED: Final = 100_000
"""Entities that one ``kb impact`` looks at."""
MAX_CONTEXT_FACTS: Final = 2_000
"""Facts that are looked at for one context in each of two steps; what is beyond them is said to be there."""
MAX_CONTEXT_PATHS: Final = 500
"""Paths and ids that one context may name, and files of a diff that are looked at."""
MAX_CONTEXT_TEXTS: Final = 12
"""Documents that are read for the first sentences of one context."""
MIN_CONTEXT_TOKENS: Final = 100
MAX_CONTEXT_TOKENS: Final = 4_000
MIN_QUERY_TOKENS: Final = 200
"""Of a budget that several queries of one call share, what there must be for each."""
FILE_CONTEXT_TOKENS: Final = 400
"""The budget of the context of one file, where none is given."""
CONTEXT_TOKENS: Final = 800
"""The budget of any other context, where none is given."""
MIN_PRIME_TOKENS: Final = 300
PRIME_TOKENS: Final = 1_200
"""The budget of `kb prime`, where none is given."""
HOOK_TOKENS: Final = 150
"""The most that `kb prime --hook` says."""
MAX_DRAWN_EDGES: Final = 10_000
"""Edges of one drawing."""
MAX_SOURCE_FILE_BYTES: Final = 4 * MIB
MAX_CODE_BYTES: Final = 2 * MIB
"""One file of source code."""
MAX_INDEX_BYTES: Final = 256 * MIB
"""One SCIP index of source code."""
MAX_INDEX_SYMBOLS: Final = 1_000_000
"""Functions, types, parameters and fields that one index defines."""
MAX_INDEX_EDGES: Final = 200_000
"""Edges between symbols that one index states."""
MAX_CODE_OWNERS_BYTES: Final = 3 * MIB
"""The file ``CODEOWNERS``."""
MAX_REPORT_BYTES: Final = 1024 * MIB
"""One report of a test run, which is read as a stream."""
MAX_REPORTS: Final = 10_000
"""Reports that one command takes in."""
MAX_REPORTED_TESTS: Final = 2_000_000
"""Tests that the reports of one command have."""
MAX_REPORTED_TEXT_CHARS: Final = 64 * KIB
"""Of the text that a report has of one failure, what is looked at."""
MAX_REPORTED_FILES: Final = 100_000
"""Source files that the reports of coverage of one command have."""
MAX_FRONT_MATTER_BYTES: Final = 256 * KIB
MAX_YAML_NODES: Final = 2_000_000
"""Values of one YAML or JSON document."""
MAX_ALIASED_NODES: Final = 200_000
"""Values of one YAML document that uses aliases, each counted as often as it is used."""
MIN_PARALLEL_FILES: Final = 2_000
"""Files from which on a sync has them read by processes of its own: with fewer it takes as long to start these."""
MAX_CONFIG_BYTES: Final = 1 * MIB
MAX_GLOBS: Final = 1000
"""Globs of all extractors together, and of any one list."""
MAX_GLOB_CHARS: Final = 1000
MAX_GLOB_PARTS: Final = 5000
"""Parts between the slashes of all globs together: a file is compared with at most so many."""
MAX_HEAD_BYTES: Final = 4 * MIB
MAX_BACKUP_FILES: Final = 200_000
MAX_MANIFEST_BYTES: Final = 64 * MIB
MAX_PROBLEMS: Final = 200
"""Problems reported in one answer; the rest is counted."""
MAX_RULE_FINDINGS: Final = 10_000
"""Rows that the SQL of one rule of the project's own may give."""
MAX_RULE_MESSAGE_CHARS: Final = 2000
MAX_RULE_MEMORY_BYTES: Final = 1024 * MIB
MAX_RULE_PARAMS: Final = 50
MAX_RULE_TESTS: Final = 100
"""Tests of one rule."""
MAX_RULE_TEST_ITEMS: Final = 1000
"""Entities, edges or ids of one test."""
RULE_TIME_S: Final = 10.0
RULES_TIME_S: Final = 60.0
"""All rules of the project's own in one check."""
MIN_RULE_TIME_S: Final = 0.1
MAX_RULE_TIME_S: Final = 3600.0
FLEET_SHARD: Final = 200
"""Branches of a fleet that a worker of an engine asks at once."""
MAX_FLEET_SHARD: Final = 10_000
MAX_FLEET_WORKERS: Final = 10_000
LOCK_WAIT_S: Final = 10.0
GIT_DATES_S: Final = 10.0
"""The pass of git over the history for the dates of documents; without them they have those of the sync."""
STATEMENT_S: Final = 30.0
"""One statement of KB's own to the database."""
MAINTENANCE_STATEMENT_S: Final = 600.0
"""One statement that builds, copies, publishes or looks after what is stored."""
USER_LOCK_WAIT_S: Final = 60.0
"""The most that a repository's setting may be, unless the user says otherwise."""
MAX_LOCK_WAIT_S: Final = 3600.0
KIP_TIME_S: Final = 10.0
MAX_KIP_TIME_S: Final = 3600.0
KIP_ROWS: Final = 100_000
MAX_KIP_ROWS: Final = 1_000_000
MAX_KIP_BYTES: Final = 256 * KIB
"""The text of one KIP command."""
MAX_KIP_DEPTH: Final = 64
"""Braces, brackets and parentheses inside of each other in a KIP command."""
MAX_KIP_HOPS: Final = 10
MAX_KIP_DELETED: Final = 10_000
"""Elements that one KIP command may name for deletion; what hangs on them goes with them."""
MAX_KIP_COMMANDS: Final = 256
"""Commands of one batch."""
MAX_KIP_HITS: Final = 100
"""Elements that one SEARCH finds."""
MAX_KIP_CLAUSES: Final = 50
"""Patterns, filters and groups of a WHERE. Planning them takes the database more than their square, and no time limit
ends it: 50 take some seconds, 200 minutes."""
MAX_KIP_CONDITIONS: Final = 250
"""Comparisons and tests in the filters of a WHERE."""
MAX_KIP_VALUES: Final = 1000
"""Values in the lists of IN in a WHERE."""
MAX_KIP_EXPRESSIONS: Final = 50
"""Expressions of FIND and keys of ORDER BY."""
MAX_KIP_NEIGHBOURHOOD_CHARS: Final = 16_000
"""Characters that the answer of one DESCRIBE NEIGHBOURHOOD may take."""
MAX_KIP_APPLIED: Final = 100_000
"""Blocks and links that the UPSERTs of one KIP command write, counted again for each row of WHERE."""
LOGIC_TIME_S: Final = 30.0
MAX_LOGIC_TIME_S: Final = 600.0
LOGIC_CLAUSES: Final = 10_000
MAX_LOGIC_CLAUSES: Final = 1_000_000
MAX_SLEEP_ITEMS: Final = 20_000
"""Elements that one phase of a sleep cycle names while others who write wait; the rest is left to the next cycle."""
MAX_SLEEP_LOG: Final = 50
"""Entries of the maintenance log that are kept."""
MAX_SLEEP_PAGE: Final = 200
"""Items of one page of the work that a cycle leaves."""
MAX_SLEEP_PAIRS: Final = 1000
"""Pairs of concepts that one cycle takes for duplicates, the surest first."""


def readers_left(since_s: Iterable[float], now_s: float) -> int:
    """Return how many more may read a branch, zero or less for none, where others have read since these times.

    A slow reader keeps a quick one waiting only when there are many.
    """
    began_s = list(since_s)
    quick = sum(one_s > now_s - SLOW_READ_S for one_s in began_s)
    return min(MAX_READERS - quick, MAX_VIEWS - len(began_s))
