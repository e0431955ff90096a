"""Every maximum that KB keeps, in one place. Sizes are in bytes unless the name says otherwise."""

from __future__ import annotations

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
MAX_CHANGESET_ID_CHARS: Final = 64
MAX_CHANGESET_ITEMS: Final = 10_000
"""Entities and edges that one client changeset may name."""
MAX_CHANGESET_BYTES: Final = 8 * MIB
"""One record of a client, as written."""
MAX_RECORD_BYTES: Final = 512 * MIB
"""Any record: a sync writes one changeset, however many files changed."""
MAX_DELETE_IDS: Final = 100
MAX_QUERY_IDS: Final = 1000
MAX_PAGE_ROWS: Final = 10_000
MAX_TRAVERSAL_DEPTH: Final = 50
MAX_SOURCE_FILE_BYTES: Final = 4 * MIB
MAX_FRONT_MATTER_BYTES: Final = 256 * KIB
MAX_YAML_NODES: Final = 2_000_000
"""Values of one YAML or JSON document."""
MAX_ALIASED_NODES: Final = 200_000
"""Values of one YAML document that uses aliases, each counted as often as it is used."""
MAX_CONFIG_BYTES: Final = 1 * MIB
MAX_HEAD_BYTES: Final = 4 * MIB
MAX_PROBLEMS: Final = 200
"""Problems reported in one answer; the rest is counted."""
MAX_RULE_FINDINGS: Final = 10_000
"""Rows that the SQL of one rule of the project's own may give."""
MAX_RULE_MESSAGE_CHARS: Final = 2000
MAX_RULE_MEMORY_BYTES: Final = 1024 * MIB
RULE_TIME_S: Final = 10.0
LOCK_WAIT_S: Final = 10.0
