"""The statements that the seed text of KIP prints, by the place where it prints them, and what KB does with each.

Longer descriptions inside of quotes are cut; they are data. What KB refuses has its reason, which the table of
differences in docs/kip-grammar.md shows.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Statement(NamedTuple):
    """One statement: ``refusal`` is the hint or message that a client reads where KB refuses it as it is printed."""

    place: str
    text: str
    refusal: str = ""
    reason: str = ""
    instead: tuple[str, ...] = ()
    """The text to send in its place."""


_SLEEP_TASK = """
UPSERT {
  CONCEPT ?sleep_task_type {
    {type: "$ConceptType", name: "SleepTask"}
    SET ATTRIBUTES {
      description: "A maintenance task. Using dedicated nodes (rather than arrays) avoids complexity.",
      attributes_schema: {
        "target_type": { "type": "string", "description": "Type of the target concept (e.g., 'Event')" },
        "requested_action": { "type": "string", "enum": ["consolidate_to_semantic", "archive", "review"] },
        "status": { "type": "string", "enum": ["pending", "completed"], "default": "pending" },
        "priority": { "type": "number", "description": "Higher = more urgent", "default": 1 }
      }
    }
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "CoreSchema"}) }
  }
}
WITH METADATA { source: "SystemBootstrap", author: "$system", confidence: 1.0 }
"""
_COMPLETED = """
// Option A: keep it
UPSERT {
  CONCEPT ?task {
    {type: "SleepTask", name: :task_name}
    SET ATTRIBUTES { status: "completed", completed_at: :timestamp, result: "success" }
  }
}
WITH METADATA { source: "SleepCycle", author: "$system" }
"""
_DELETED = """
// Option B: delete it
DELETE CONCEPT ?task DETACH
WHERE {
  ?task {type: "SleepTask", name: :task_name}
}
"""
_RECLASSIFIED = """
UPSERT {
  CONCEPT ?target_domain {
    {type: "Domain", name: :domain_name}
    SET ATTRIBUTES { description: :domain_desc }
  }

  CONCEPT ?item {
    {type: :item_type, name: :item_name}
    SET PROPOSITIONS { ("belongs_to_domain", ?target_domain) }
  }
}
WITH METADATA { source: "SleepReclassification", author: "$system", confidence: 0.85 }
"""
_UNLINKED = """
DELETE PROPOSITIONS ?link
WHERE {
  ?link ({type: :item_type, name: :item_name}, "belongs_to_domain", {type: "Domain", name: "Unsorted"})
}
"""
_ARCHIVED = """
UPSERT {
  CONCEPT ?item {
    {type: :type, name: :name}
    SET ATTRIBUTES { status: "archived", archived_at: :timestamp, archived_by: "$system" }
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Archived"}) }
  }
}
WITH METADATA { source: "SleepArchive", author: "$system" }
"""
_REMOVED = """
DELETE PROPOSITIONS ?link
WHERE {
  ?link ({type: :type, name: :name}, "belongs_to_domain", ?d)
  FILTER(?d.name != "Archived")
}
"""
_CYCLE = (
    "DESCRIBE PRIMER\n",
    'FIND(COUNT(?n)) WHERE { (?n, "belongs_to_domain", {type: "Domain", name: "Unsorted"}) }\n// Result: 15 items\n',
    'FIND(?n.type, ?n.name) WHERE {\n  ?n {type: :type}\n  NOT { (?n, "belongs_to_domain", ?d) }\n} LIMIT 50\n',
    """
UPSERT {
  CONCEPT ?system {
    {type: "Person", name: "$system"}
    SET ATTRIBUTES {
      last_sleep_cycle: "2025-01-15T03:45:00Z",
      maintenance_log: [
        {
          "timestamp": "2025-01-15T03:45:00Z",
          "actions_taken": "Reclassified 15 items, resolved 3 orphans",
          "items_processed": 46,
          "issues_found": ["Domain 'TempProject' has only 1 member - flagged for review"]
        }
      ]
    }
  }
}
WITH METADATA { source: "SleepCycle", author: "$system" }

// === SLEEP CYCLE END ===
""",
)
_STRUCTURE = """
FIND( ?var1, ?var2.attributes.name, COUNT(?var3) )
WHERE {
  /* patterns */
}
ORDER BY ?var1 ASC
LIMIT 10
CURSOR "<token>"
"""
_ONE_COMMAND = "A command holds one statement, or UPSERTs in a row; the block prints several. Send them as a batch."
_PATTERN = "It is printed as a pattern: `{}` is a placeholder and is no KIP."

STATEMENTS: Final = (
    Statement("SleepTask", _SLEEP_TASK),
    Statement(
        "1.1",
        """FIND(?task.name, ?task.attributes.target_type, ?task.attributes.target_name,
     ?task.attributes.requested_action, ?task.attributes.priority)
WHERE {
  ?task {type: "SleepTask"}
  (?task, "assigned_to", {type: "Person", name: "$system"})
  FILTER(?task.attributes.status == "pending")
}
ORDER BY ?task.attributes.priority DESC
LIMIT 50""",
    ),
    Statement(
        "1.2", '// count\nFIND(COUNT(?n))\nWHERE {\n (?n, "belongs_to_domain", {type: "Domain", name: "Unsorted"})\n}'
    ),
    Statement(
        "1.3",
        "FIND(?n.type, ?n.name, ?n.metadata.created_at) WHERE { ?n {type: :type}"
        ' NOT { (?n, "belongs_to_domain", ?d) } } LIMIT 100',
    ),
    Statement(
        "1.4",
        """FIND(?e.name, ?e.attributes.start_time, ?e.attributes.content_summary)
WHERE {
  ?e {type: "Event"}
  FILTER(?e.attributes.start_time < :cutoff_date)
  NOT { (?e, "consolidated_to", ?semantic) }
}
LIMIT 50""",
    ),
    Statement(
        "1.5",
        'FIND(?d.name, COUNT(?n)) WHERE { ?d {type: "Domain"} OPTIONAL { (?n, "belongs_to_domain", ?d) } }'
        " ORDER BY COUNT(?n) ASC LIMIT 20",
    ),
    Statement(
        "2, step 1",
        'UPSERT { CONCEPT ?task { {type: "SleepTask", name: :task_name} SET ATTRIBUTES { status: "in_progress",'
        ' started_at: :timestamp } } } WITH METADATA { source: "SleepCycle", author: "$system" }',
    ),
    Statement(
        "2, step 2",
        """UPSERT {
  CONCEPT ?preference {
    {type: "Preference", name: :preference_name}
    SET ATTRIBUTES {
      description: :extracted_preference,
      confidence: 0.8
    }
    SET PROPOSITIONS {
      ("belongs_to_domain", {type: "Domain", name: "UserPreferences"}),
      ("derived_from", {type: "Event", name: :event_name})
    }
  }
}
WITH METADATA { source: "SleepConsolidation", author: "$system", confidence: 0.8 }""",
    ),
    Statement(
        "2, step 3", _COMPLETED + _DELETED, "send the DELETE as another command", _ONE_COMMAND, (_COMPLETED, _DELETED)
    ),
    Statement(
        "3, list",
        "FIND(?n, ?n.type, ?n.name, ?n.attributes)\n"
        'WHERE { (?n, "belongs_to_domain", {type: "Domain", name: "Unsorted"}) }\nLIMIT 50',
    ),
    Statement(
        "3, move",
        _RECLASSIFIED + _UNLINKED,
        "send the DELETE as another command",
        _ONE_COMMAND,
        (_RECLASSIFIED, _UNLINKED),
    ),
    Statement(
        "4, option A",
        "UPSERT { CONCEPT ?orphan { {type: :type, name: :name} SET PROPOSITIONS {"
        ' ("belongs_to_domain", {type: "Domain", name: :target_domain}) } } }'
        ' WITH METADATA { source: "OrphanResolution", author: "$system", confidence: 0.7 }',
    ),
    Statement(
        "4, option B",
        "UPSERT { CONCEPT ?orphan { {type: :type, name: :name} SET PROPOSITIONS {"
        ' ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } } }'
        ' WITH METADATA { source: "OrphanResolution", author: "$system", confidence: 0.5 }',
    ),
    Statement(
        "5",
        """UPSERT {
  CONCEPT ?event {
    {type: "Event", name: :event_name}
    SET ATTRIBUTES {
      consolidation_status: "completed",
      consolidated_at: :timestamp
    }
    SET PROPOSITIONS { ("consolidated_to", {type: :semantic_type, name: :semantic_name}) }
  }
}
WITH METADATA { source: "SleepConsolidation", author: "$system" }""",
    ),
    Statement("6, find", "// similar names\nSEARCH CONCEPT :search_term WITH TYPE :type LIMIT 10"),
    Statement(
        "6, move",
        """UPSERT {
  PROPOSITION ?new_link {
    (?canonical, :predicate, ?object)
  }
}
WHERE {
  (?duplicate, :predicate, ?object)
}
WITH METADATA { source: "DuplicateMerge", author: "$system" }""",
    ),
    Statement(
        "7, find",
        "FIND(?link, ?link.metadata.confidence, ?link.metadata.created_at) WHERE { ?link (?s, ?p, ?o)"
        " FILTER(?link.metadata.created_at < :decay_threshold) FILTER(?link.metadata.confidence > 0.3) } LIMIT 100",
    ),
    Statement(
        "7, decay",
        "UPSERT { PROPOSITION ?link { ({type: :s_type, name: :s_name}, :predicate, {type: :o_type, name: :o_name}) } }"
        " WITH METADATA { confidence: :new_confidence, decay_applied_at: :timestamp }",
    ),
    Statement(
        "8",
        "// Option A: merge into the parent domain\n\n// Option B: keep it",
        "Write a command",
        "Comments alone are no command.",
    ),
    Statement(
        "9",
        """UPSERT {
  CONCEPT ?system {
    {type: "Person", name: "$system"}
    SET ATTRIBUTES {
      last_sleep_cycle: :current_timestamp,
      maintenance_log: [
        {
          "timestamp": :current_timestamp,
          "actions_taken": :summary_of_actions,
          "items_processed": :count,
          "issues_found": :issues_list
        }
      ]
    }
  }
}
WITH METADATA { source: "SleepCycle", author: "$system" }""",
    ),
    Statement(
        "Safety", _ARCHIVED + _REMOVED, "send the DELETE as another command", _ONE_COMMAND, (_ARCHIVED, _REMOVED)
    ),
    Statement("Complete cycle", "".join(_CYCLE), "send the FIND as another command", _ONE_COMMAND, _CYCLE),
    Statement("Cheat sheet: inspect", "DESCRIBE PRIMER"),
    Statement("Cheat sheet: types", 'FIND(?t.name) WHERE { ?t {type: "$ConceptType"} } ORDER BY ?t.name ASC LIMIT 50'),
    Statement(
        "Cheat sheet: predicates", 'FIND(?p.name) WHERE { ?p {type: "$PropositionType"} } ORDER BY ?p.name ASC LIMIT 50'
    ),
    Statement(
        "Cheat sheet: persons",
        'FIND(?p.name, ?p.attributes.person_class, ?p.attributes.handle) WHERE { ?p {type: "Person"} } LIMIT 20',
    ),
    Statement(
        "Cheat sheet: filter",
        'FIND(?p.name) WHERE { ?p {type: "Person"} FILTER(?p.attributes.person_class == "AI") } LIMIT 20',
    ),
    Statement(
        "Cheat sheet: event",
        'UPSERT { CONCEPT ?e { {type:"Event", name: :event_name} SET ATTRIBUTES { event_class:"Conversation",'
        " start_time: :t, content_summary: :s, participants: :ps } } }",
    ),
    Statement(
        "Cheat sheet: forget",
        "DELETE PROPOSITIONS ?link WHERE { ?link (?s, ?p, ?o) FILTER(?link.metadata.source == :source) }",
    ),
    Statement(
        "Cheat sheet: create a domain",
        'UPSERT { CONCEPT ?d { {type:"Domain", name: :domain} SET ATTRIBUTES { description: :desc } } }',
    ),
    Statement(
        "Cheat sheet: by domain",
        'FIND(?n.name) WHERE { (?n, "belongs_to_domain", {type:"Domain", name: :domain}) } LIMIT 50',
    ),
    Statement("Template A", "FIND(?n)\nWHERE {\n  ?n {type: :type, name: :name}\n}\nLIMIT 5"),
    Statement("Template A2", 'FIND(?t.name)\nWHERE { ?t {type: "$ConceptType"} }\nORDER BY ?t.name ASC\nLIMIT 100'),
    Statement(
        "Template B",
        "FIND(?s.name, ?o.name, ?link.metadata.source, ?link.metadata.confidence)\nWHERE {\n"
        "  ?link (?s, :predicate, ?o)\n  FILTER(?link.metadata.confidence >= 0.8)\n}\nLIMIT 20",
    ),
    Statement("Template B2", 'FIND(?n.name, ?d.name)\nWHERE {\n  (?n, "belongs_to_domain", ?d)\n}\nLIMIT 50'),
    Statement(
        "Template B3",
        """UPSERT {
  CONCEPT ?d {
    {type: "Domain", name: :domain}
    SET ATTRIBUTES { description: :domain_desc }
  }

  CONCEPT ?e {
    {type: "Event", name: :event_name}
    SET ATTRIBUTES {
      event_class: "Conversation",
      start_time: :start_time,
      content_summary: :content_summary,
      participants: :participants,
      outcome: :outcome,
      context: :context
    }
    SET PROPOSITIONS { ("belongs_to_domain", ?d) }
  }
}
WITH METADATA { source: :source, author: "$self", confidence: 0.8 }""",
    ),
    Statement(
        "KQL structure",
        _STRUCTURE,
        "only // comments",
        "KIP has only `//` comments, and a group holds at least one clause.",
        (_STRUCTURE.replace("/* patterns */", '?var1 {type: "T"} // patterns'),),
    ),
    Statement(
        "UPSERT syntax",
        """UPSERT {
  CONCEPT ?e {
    {type: "Event", name: :event_name}
    SET ATTRIBUTES {
      event_class: "Conversation",
      start_time: :start_time,
      content_summary: :content_summary,
      participants: :participants,
      outcome: :outcome
    }
  }
}
WITH METADATA { source: "Conversation:User_123", author: "$self" }""",
    ),
    Statement(
        "Schema evolution",
        """UPSERT {
  CONCEPT ?prefers_def {
    {type: "$PropositionType", name: "prefers"}
    SET ATTRIBUTES {
      description: "Subject indicates a stable preference for an object.",
      subject_types: ["Person"],
      object_types: ["*"]
    }
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "CoreSchema"}) }
  }
}
WITH METADATA { source: "SchemaEvolution", author: "$self", confidence: 0.9 }""",
    ),
    Statement("DELETE a concept", 'DELETE CONCEPT ?node DETACH WHERE { ?node {name: "BadData"} }'),
    Statement("DELETE links", 'DELETE PROPOSITIONS ?link WHERE { ?link (?s, "old_rel", ?o) }'),
    Statement(
        "DELETE attributes",
        'DELETE ATTRIBUTES {"temp_id"} FROM ?n WHERE { ... }',
        "Expected a variable",
        _PATTERN.format("..."),
        ('DELETE ATTRIBUTES {"temp_id"} FROM ?n WHERE { ?n {type: "T"} }',),
    ),
    Statement(
        "DELETE metadata",
        'DELETE METADATA {"old_source"} FROM ?n WHERE { ... }',
        "Expected a variable",
        _PATTERN.format("..."),
        ('DELETE METADATA {"old_source"} FROM ?n WHERE { ?n {type: "T"} }',),
    ),
    Statement("DESCRIBE domains", "DESCRIBE DOMAINS"),
    Statement("DESCRIBE a type", 'DESCRIBE CONCEPT TYPE "<Type>"'),
    Statement("DESCRIBE a predicate", 'DESCRIBE PROPOSITION TYPE "<predicate>"'),
    Statement(
        "SEARCH concepts",
        'SEARCH CONCEPT "<term>" [WITH TYPE "<Type>"] [LIMIT N]',
        "Expected `WITH`",
        _PATTERN.format("[ ]"),
        ('SEARCH CONCEPT "<term>" WITH TYPE "<Type>" LIMIT 5', 'SEARCH CONCEPT "<term>"'),
    ),
    Statement(
        "SEARCH predicates",
        'SEARCH PROPOSITION "<term>" [LIMIT N]',
        "Expected `WITH`",
        _PATTERN.format("[ ]"),
        ('SEARCH PROPOSITION "<term>" LIMIT 5',),
    ),
    Statement("execute_kip: command", 'FIND(?p.name) WHERE { ?p {type: "Person", name: :name} }'),
    Statement("execute_kip: batch, 1", 'FIND(?t.name) WHERE { ?t {type: "$ConceptType"} } LIMIT 50'),
    Statement("execute_kip: batch, 2", 'UPSERT { CONCEPT ?e { {type:"Event", name: :name} } }'),
)
CLAUSES: Final = (
    '?var {id: "<id>"}',
    '?var {type: "<Type>", name: "<Name>"}',
    '?var {type: "<Type>"}',
    '(?drug, "treats", {name: "Headache"})',
    '?link (id: "<id>")',
    '?link (?subject, "<predicate>", ?object)',
    '(?a, "<pred>"{1,2}, ?b)',
    '(?a, "follows"{1,3}, ?b)',
    '(?a, "<p1>"|"<p2>", ?b)',
    *(f"FILTER(?x.n {operator} 1)" for operator in ("==", "!=", "<", ">", "<=", ">=")),
    "FILTER(?x.n == 1 && ?x.m == 2)",
    "FILTER(?x.n == 1 || ?x.m == 2)",
    "FILTER(!(?x.n == 1))",
    'FILTER(CONTAINS(?str, "sub"))',
    'FILTER(STARTS_WITH(?str, "prefix"))',
    'FILTER(ENDS_WITH(?str, "suffix"))',
    'FILTER(REGEX(?str, "pattern"))',
    'NOT { ?x {type: "T"} }',
    'OPTIONAL { ?x {type: "T"} }',
    'UNION { ?x {type: "T"} }',
)
"""The pieces of WHERE that the text of the seed names."""
EXPRESSIONS: Final = (
    *("?node.id", "?node.type", "?link.subject", "?link.predicate", "?e.attributes.start_time"),
    *("?link.metadata.confidence", "COUNT(?var)", "COUNT(DISTINCT ?var)", "SUM(?var)", "AVG(?var)", "MIN(?var)"),
    "MAX(?var)",
)
"""The expressions of FIND that it names."""


def difference_table() -> str:
    """Return the statements that KB refuses as they are printed, as a Markdown table."""
    rows = [f"| {one.place} | {one.reason} |" for one in STATEMENTS if one.refusal]
    return "\n".join(["| statement of the seed | why it is refused as it is printed |", "|---|---|", *rows])
