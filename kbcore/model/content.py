"""The content of an entity: what it says, without what differs between clones or changes by itself. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore.model import verdict
from kbcore.model.claims.derived import SETS
from kbcore.model.graph import FILE, FORMER_IDS, STAMPS, Node, SyncedFile, is_contested_note, is_proposed_mark
from kbcore.model.record import Operation, PutNode

_encode = msgspec.json.Encoder(order="sorted").encode
PASSING: Final = frozenset(
    {"attributes.line", "attributes.consolidation_status", "attributes.consolidated_at", FORMER_IDS, *verdict.FIELDS}
)
STATED_OF_CODE: Final = frozenset({FILE, "attributes.kind", "attributes.signature", "attributes.body_sketch"})
"""Facts that a source file states of a symbol. Beside them it states digests of the code, which say all that counts."""
CODE: Final = frozenset({"attributes.signature_hash", "attributes.body_hash"})
"""The digests of the code of a symbol or test."""
_NOT_OF_SYMBOLS: Final = PASSING | STATED_OF_CODE | CODE | {"title"}
_NOT_OF_TESTS: Final = PASSING | STATED_OF_CODE | {"title"}
SYMBOL: Final = "symbol"
_MARKDOWN: Final = "markdown/"
"""The beginning of the names of what reads documents with a text of their own."""


def content_of(node: Node) -> bytes:
    """Return what an entity says, as the SQL of ``rules/edge_confirmation.py`` does: the same for the same content."""
    passing = PASSING
    if node.is_of_code:
        passing = _NOT_OF_SYMBOLS if node.type == SYMBOL else _NOT_OF_TESTS
    fields = {
        key: value
        for key, value in node.fields.items()
        if key not in passing and value is not None and not is_proposed_mark(key)
    }
    ref = fields.get("text_ref")
    if isinstance(ref, str) and (ref == node.path or ref.startswith(f"{node.path}#")):
        fields["text_ref"] = ref[len(node.path) + 1 :]
    return _encode(fields)


def code_digests(node: Node) -> tuple[object, ...] | None:
    """Return the digests of the code of a symbol that its source file states; None for anything else."""
    if not node.is_of_code or node.type != SYMBOL:
        return None
    return tuple(node.fields.get(name) for name in sorted(CODE))


def confirmed_content(node: Node, ops: Iterable[Operation], source: SyncedFile | None) -> str:
    """Return the SHA-256 of what an entity says after operations on it, and of its document: alike in all clones.

    ``source`` is the file of the entity after the operations. Only a Markdown document says more than the fields.
    """
    fields = dict(node.fields)
    for op in ops:
        if isinstance(op, PutNode) and op.id == node.id:
            fields = {key: value for key, value in {**fields, **op.set}.items() if key not in op.unset}
    said = {
        key: sorted(value) if key in SETS and isinstance(value, list) else value
        for key, value in fields.items()
        if key not in STAMPS and not is_contested_note(key) and not (key == "name" and value == node.id)
    }
    content = content_of(msgspec.structs.replace(node, fields=said))
    text_hash = source.hash if source and source.extractor.startswith(_MARKDOWN) else ""
    return hashlib.sha256(b"%b\n%b" % (text_hash.encode(), content)).hexdigest()
