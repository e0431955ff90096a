"""The facts of a Markdown document: one entity, by its front matter, its first lines and its links.

No file is skipped in silence: each gives an entity, a problem or a note. No id is guessed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.extract import frontmatter, mentions, prose, settings
from kbcore.extract.facts import Facts, SourceFile, StatedLink, unreadable
from kbcore.extract.fields import CORE_EDGES, Sheet, fold_keys
from kbcore.ids import check_id
from kbcore.text import conflict_markers, globs
from kbcore.text.decoding import decode
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem, at_most
from kbcore.text.tree import TextTree, mapping
from kbcore.text.wording import shortened

_SKIPPED: Final = re.compile(r"(?:readme|_?index|_?(?:(?:adr|0+)[-_])?template)\.(?:md|markdown)", re.IGNORECASE)
_ECHOES: Final = frozenset({"missing_id", "missing_type", "missing_title", "unclosed_front_matter"})
_SUPERSEDING: Final = ("upersede", "upercede")
_STATUS_HEADINGS: Final = ("# Status", "# status", "\nStatus\n", "\nstatus\n")
_LINKS_HEADINGS: Final = ("# Links", "# links", "\nLinks\n", "\nlinks\n")
"""Signs of a body with such a section; only a body from which a section is needed is read to its end."""


class _Draft(msgspec.Struct):
    """One document on its way to facts."""

    source: SourceFile
    settings: Mapping[str, Any]
    document: frontmatter.Document
    tree: TextTree
    problems: list[FileProblem]

    def stated(self, key: str) -> tuple[Any, int]:
        """Return the value and line of a key of the front matter; (None, 0) without it."""
        root = self.tree.root
        value = root.get(key)
        return (value, self.tree.line(root, key)) if value is not None else (None, 0)

    def fault(self, line: int, code: str, message: str, hint: str) -> None:
        self.problems.append(FileProblem(line, code, message, hint))


def read(source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
    """Return the entity that a document states, with its links; a file that states none says why."""
    ignored = settings.globs_of(settings_.get("ignore", ()))
    if ignored and globs.matches(source.path, ignored):
        return _passed_over("the settings ignore it", "It matches `ignore` of the markdown extractor.")
    decoded = decode(source.data)
    if decoded.text is None:
        return unreadable(decoded.problems)
    text, torn = conflict_markers.without_conflicts(decoded.text)
    document = frontmatter.split(text)
    front = document.front
    tree = mapping({}, {}) if front is None else frontmatter.read_front(front)
    fold_keys(tree, tree.root)
    if settings_.get("keys"):
        _rename(tree, settings_["keys"])
    if torn:
        above = document.body.split("\n")[: max(0, torn[0].line - document.body_line)]
        document = msgspec.structs.replace(document, body="\n".join(above), is_whole=False)
    problems = [*decoded.problems, *torn, *document.problems, *tree.problems]
    if front is not None and frontmatter.may_have_second(document.body):
        second = frontmatter.second_block(prose.prose_lines(document.body, document.body_line))
        problems += [second] if second else []
    facts = _facts(_Draft(source, settings_, document, tree, problems))
    return _without_echoes(facts) if torn else facts


def _without_echoes(facts: Facts) -> Facts:
    """Return facts without the problems that a conflict brings with it: what is missing may be in its sides."""
    problems = tuple(problem for problem in facts.problems if problem.code not in _ECHOES)
    return msgspec.structs.replace(facts, problems=problems, is_complete=False)


def _facts(draft: _Draft) -> Facts:
    is_whole = draft.document.is_whole and draft.tree.is_complete
    has_id = draft.stated("id")[1] > 0
    if not has_id and is_whole and _SKIPPED.fullmatch(posixpath.basename(draft.source.path)):
        hint = "Give it an `id` to have it read as an entity."
        return _passed_over("an index, a template or a readme without an id", hint, draft.problems)
    outline = _outline(draft)
    if draft.document.front is None and outline:
        _adopt(draft, outline, ("id", "type"))
    entity_id, line = _identity(draft)
    entity_type = _entity_type(draft)
    if not entity_id or not entity_type:
        return Facts(problems=tuple(draft.problems), is_complete=False)
    edge_names = frozenset(draft.settings.get(settings.EDGE_NAMES, CORE_EDGES))
    sheet = Sheet(draft.source.path, entity_id, draft.tree, edge_names)
    sheet.read(draft.tree.root)
    if outline:
        _read_outline(draft, outline, sheet)
    if "title" not in sheet.lines and (hidden := _hidden(draft, "title")):
        sheet.lines["title"] = hidden
    if "title" not in sheet.lines:
        hint = "Add a line `title: …` to the front matter, or a first heading `# …`."
        draft.fault(line, "missing_title", "the document has no title", hint)
    if type_line := draft.stated("type")[1]:
        sheet.lines["type"] = type_line
    sheet.fields.setdefault("text_ref", draft.source.path)
    sheet.lines.setdefault("text_ref", line)
    mentioned = _mentions(draft, entity_id)
    problems = at_most([*draft.problems, *sheet.all_problems()])
    return Facts(
        (sheet.entity(entity_id, entity_type, line),),
        (*sheet.links.links.values(), *mentioned),
        problems,
        is_complete=is_whole and not any(problem.severity == "error" for problem in problems),
    )


def _rename(tree: TextTree, names: Mapping[str, str]) -> None:
    """Give keys of the front matter the names that the settings have for them."""
    root = tree.root
    lines = tree.places[id(root)]
    for old, new in names.items():
        if old in root and root.get(new) is None:
            root[new], lines[new] = root.pop(old), lines.pop(old)


def _identity(draft: _Draft) -> tuple[str, int]:
    """Return the id and the line that states it; an empty id when there is none, with the problem noted."""
    value, line = draft.stated("id")
    if isinstance(value, str) and value:
        fault = check_id(value)
        if fault:
            draft.fault(
                line,
                "bad_id",
                f"the id {in_quotes(shortened(value, 60))} cannot be used: {fault}",
                "Choose another id.",
            )
        return ("" if fault else value), line
    if value:
        draft.fault(line, "wrong_shape", "`id` must be text", "Write one id: `id: REQ-1`.")
        return "", line
    is_hidden = _hidden(draft, "id") > 0
    stem = posixpath.basename(draft.source.path).rpartition(".")[0]
    if draft.settings.get("idFromFilename", False) and draft.document.is_whole and not is_hidden:
        fault = check_id(stem)
        if fault is None:
            hint = "Add a line `id: …` to the front matter to keep the id when the file is renamed."
            draft.problems.append(
                FileProblem(0, "id_from_file_name", f"the id {in_quotes(stem)} is the file name", hint, "note")
            )
            return stem, 1
    is_left_out = draft.document.front is None and not draft.document.is_whole  # it is too long to be read
    if is_hidden or is_left_out:
        return "", 1
    where = "its front matter" if draft.document.front is not None else "front matter at its beginning"
    hint = (
        f"Add a line `id: …` to {where}, or set `extractors.markdown.idFromFilename` to true in"
        f" .kb/config.json (the id would be {in_quotes(shortened(stem, 60))})."
    )
    draft.fault(1, "missing_id", "the document states no id", hint)
    return "", 1


def _hidden(draft: _Draft, key: str) -> int:
    """Return the line that may state a key and could not be read, or 0: that is reported of it, not that it lacks."""
    if draft.tree.is_complete:
        return 0
    front = draft.document.front or ""
    names = [key, *(old for old, new in draft.settings.get("keys", {}).items() if new == key)]
    written = rf"^[\"']?(?:{'|'.join(map(re.escape, names))})(?![\w-])"
    found = re.search(written, front, re.MULTILINE | re.IGNORECASE)
    return frontmatter.FIRST_LINE + front.count("\n", 0, found.start()) if found else 0


def _entity_type(draft: _Draft) -> str:
    value, line = draft.stated("type")
    if value is None:
        if not draft.source.type and not _hidden(draft, "type"):
            hint = "Add a line `type: …` to the front matter, or give the folder a type in .kb/config.json."
            draft.fault(1, "missing_type", "neither the document nor its folder has a type", hint)
        return draft.source.type or ""
    if not isinstance(value, str) or not value.strip() or len(value) > limits.MAX_NAME_CHARS:
        draft.fault(line, "wrong_shape", "`type` must be the name of one type", "For example `type: req`.")
        return ""
    return value.strip()


def _outline(draft: _Draft) -> prose.BodyOutline | None:
    """Return what the body states, as far as it is needed."""
    has_title = isinstance(draft.stated("title")[0], str)
    has_status = draft.stated("status")[1] > 0
    body = draft.document.body
    has = body.__contains__
    is_superseding = has("uper") and any(map(has, _SUPERSEDING))
    needs_sections = ((is_superseding or not has_status) and any(map(has, _STATUS_HEADINGS))) or (
        is_superseding and any(map(has, _LINKS_HEADINGS))
    )
    if has_title and has_status and not needs_sections:
        return None
    return prose.outline(body, draft.document.body_line, needs_title=not has_title, needs_sections=needs_sections)


def _adopt(draft: _Draft, outline: prose.BodyOutline, keys: Sequence[str]) -> None:
    """Take ``id`` and ``type`` from the bullets of a document without front matter."""
    root = draft.tree.root
    for key in keys:
        bullet = outline.bullets.get(key)
        if bullet and bullet.text:
            root[key] = bullet.text
            draft.tree.places[id(root)][key] = bullet.number


def _read_outline(draft: _Draft, outline: prose.BodyOutline, sheet: Sheet) -> None:
    """Take in what the body states and the front matter does not."""
    root = draft.tree.root
    draft.tree.is_small = False
    if draft.document.front is None or "status" not in sheet.fields:
        bullets = {key: line for key, line in outline.bullets.items() if key not in root and line.text}
        values = {key: line.text for key, line in bullets.items()}
        draft.tree.places[id(values)] = {key: line.number for key, line in bullets.items()}
        sheet.read(values)
    if outline.title and "title" not in sheet.fields and draft.settings.get("titleFromHeading", True):
        sheet.text("title", outline.title, outline.title_line)
    status, superseding = prose.statements_of_status(outline.sections.get("status", ()))
    if status and "status" not in sheet.fields:
        sheet.status("status", status.text, status.number)
    for line in (*superseding, *prose.superseding(outline.sections.get("links", ()))):
        sheet.superseding(line.text, line.number)


def _mentions(draft: _Draft, entity_id: str) -> list[StatedLink]:
    """Return the links of the text, if the settings want them of this document."""
    wanted = draft.settings.get("mentions", True)
    path = draft.source.path
    if not wanted or (wanted is not True and not globs.matches(path, settings.globs_of(wanted))):
        return []
    document, beginnings = draft.document, settings.globs_of(draft.settings.get("mentionIds", ()))
    found, problems = mentions.mentions(document.body, document.body_line, path, entity_id, beginnings)
    draft.problems += problems
    return found


def _passed_over(reason: str, hint: str, problems: Sequence[FileProblem] = ()) -> Facts:
    note = FileProblem(0, "passed_over", f"the file states no entity: {reason}", hint, "note")
    return Facts(problems=(*problems, note))
