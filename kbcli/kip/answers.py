"""Answers of KIP for people: rows as tables, receipts as a line, errors with the line and a mark below the place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcli.terminal.output import Output
from kbcli.terminal.tables import pairs
from kbcore.kip import syntax as s
from kbcore.kip.parsing import parse
from kbcore.text.escaping import escape_controls, escape_lines, escaped_sentence, json_text
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.kip.request import KipRequest
    from kbcore.kip.run import KipAnswer

Json = Mapping[str, Any]
_OPEN: Final = "-"
"""The text for null."""
_KEYS: Final = ("key_concept_types", "key_proposition_types")


def write_answer(session: Session, request: KipRequest, answer: KipAnswer, branch: str) -> None:
    """Write the answer to each command of a request, and the reason if one was refused."""
    output = session.output
    responses: list[dict[str, Any]] = answer.response["result"] if request.is_batch else [answer.response]
    has_written = False
    for at, (command, response) in enumerate(zip(request.commands, responses, strict=False)):
        if at and not output.is_quiet:
            output.data("\n")
        if "error" in response:
            write_error(output, response["error"])
            continue
        tree = parse(command.text, lead=command.lead)
        write_result(output, tree, response)
        has_written = has_written or isinstance(tree, s.Upserts | s.Delete | s.Update | s.Merge)
    if has_written:
        message = (
            "Nothing was written: this was a dry run" if request.dry_run else f"Branch {branch} is at seq {answer.seq}"
        )
        output.note(f"{escape_controls(message)}.")
    if answer.files is not None:
        session.show_files(branch, answer.files)
    for warning in answer.warnings:
        output.warn(escaped_sentence(warning))


def write_result(output: Output, tree: s.Command, response: Json) -> None:
    """Write the answer of one command that succeeded."""
    result = response["result"]
    for kind, write in _WRITERS:
        if isinstance(tree, kind):
            output.data("".join(f"{line}\n" for line in write(output, tree, result)))
            break
    if response.get("next_cursor"):
        output.note(f'There is more: add CURSOR "{escape_controls(response["next_cursor"])}" to the same command.')


def write_error(output: Output, error: Json) -> None:
    """Write the reason why a command was refused, with the place in its text."""
    output.flush()
    output.error(f"{error['code']} {error.get('name', '')}: {escape_lines(error['message'])}")
    data = error.get("data", {})
    for line in str(data.get("excerpt", "")).splitlines():
        output.error_detail(f"  {escape_controls(line)}")
    for problem in data.get("problems", ()):
        if "message" in problem:
            place = problem.get("element") or problem.get("path") or "-"
            output.error_detail(escape_controls(f"  {place}: {problem['message']}"))
    if error.get("hint"):
        output.error_detail(f"hint: {escape_lines(error['hint'])}")


def _found(output: Output, tree: s.FindCommand, result: Any) -> Iterable[str]:
    heads = [head_of(one) for one in tree.find]
    if all(isinstance(one, s.Aggregate) for one in tree.find):
        values = [result] if len(heads) == 1 else result
        return output.list_lines(heads, [[cell(one) for one in values]])
    if len(heads) > 1:
        columns: Sequence[Sequence[Any]] = result
        return _counted(
            output, output.list_lines(heads, [[cell(one) for one in row] for row in zip(*columns, strict=True)])
        )
    is_whole = isinstance(tree.find[0], s.Path) and not tree.find[0].parts
    if is_whole and result and all(isinstance(one, dict) for one in result):
        return _elements(output, result)
    return _counted(output, output.list_lines(heads, [[cell(one)] for one in result]))


def _counted(output: Output, lines: list[str]) -> list[str]:
    if len(lines) > 1:
        return lines
    output.note("Nothing was found.")
    return []


def _elements(output: Output, elements: Sequence[Json]) -> list[str]:
    """Return whole concepts and propositions as a table each, with their attributes in one column."""
    concepts = [one for one in elements if "subject" not in one]
    links = [one for one in elements if "subject" in one]
    lines: list[str] = []
    if concepts:
        has_score = "_score" in concepts[0]["metadata"]
        head = ["TYPE", "NAME", "ATTRIBUTES"]
        rows = [[one["type"], one["name"], _members(one["attributes"])] for one in concepts]
        lines += output.list_lines(*_with_score(head, rows, concepts, has_score=has_score))
    if links:
        has_score = "_score" in links[0]["metadata"]
        head = ["SUBJECT", "PREDICATE", "OBJECT", "ATTRIBUTES"]
        rows = [[one["subject"], one["predicate"], one["object"], _members(one["attributes"])] for one in links]
        lines += ([""] if concepts else []) + output.list_lines(*_with_score(head, rows, links, has_score=has_score))
    return lines


def _with_score(
    head: list[str], rows: list[list[str]], elements: Sequence[Json], *, has_score: bool
) -> tuple[list[str], list[list[str]]]:
    if not has_score:
        return head, rows
    scores = [f"{one['metadata']['_score']:.2f}" for one in elements]
    return ["SCORE", *head], [[score, *row] for score, row in zip(scores, rows, strict=True)]


def _searched(output: Output, tree: s.SearchCommand, result: Sequence[Json]) -> Iterable[str]:
    if not result:
        output.note("Nothing was found.")
        return []
    if any(one.get("partial") for one in result):
        output.note("No concept has all of the words; these are the best partial matches.")
    if tree.is_whole:
        return _elements(output, result)
    keys = ("type", "name") if tree.of == "CONCEPT" else ("subject", "predicate", "object")
    has_snippets = any(one.get("snippet") for one in result)
    head = ["SCORE", *map(str.upper, keys), *(["SNIPPET"] if has_snippets else [])]
    rows = [
        [f"{one['score']:.2f}", *(one[key] for key in keys), *([one.get("snippet", "")] if has_snippets else [])]
        for one in result
    ]
    return output.list_lines(head, rows)


def _listed(_: Output, __: s.DescribeTypes, result: Sequence[str]) -> Iterable[str]:
    return [escape_controls(name) for name in result]


def _domains(output: Output, _: s.DescribeDomains, result: Sequence[Json]) -> Iterable[str]:
    rows = [[one["name"], str(one["members"]), cell(one["description"])] for one in result]
    return output.list_lines(["DOMAIN", "MEMBERS", "DESCRIPTION"], rows)


def _primer(output: Output, _: s.DescribePrimer, result: Json) -> Iterable[str]:
    identity = result["identity"]
    yield output.styled(escape_controls(f"{identity['type']} {identity['name']}"), "bold")
    yield from pairs(((key, cell(one)) for key, one in identity["attributes"].items()), output.width)
    yield ""
    head = ["DOMAIN", "MEMBERS", "TYPES", "PREDICATES", "DESCRIPTION"]
    rows = [
        [one["name"], str(one["members"]), *(", ".join(one[key]) for key in _KEYS), cell(one["description"])]
        for one in result["domain_map"]
    ]
    yield from output.table(head, rows)
    outside = result["outside_domains"]
    if outside:
        yield ""
        counts = ", ".join(f"{name} {count}" for name, count in outside.items())
        yield from output.wrapped(escape_controls(f"In no domain: {counts}"))


def _syntax(_: Output, __: s.DescribeSyntax, result: str) -> Iterable[str]:
    return result.splitlines()


def _definition(output: Output, _: s.DescribeType, result: Json) -> Iterable[str]:
    attributes = dict(result["attributes"])
    members = attributes.pop("instance_schema", None)
    yield output.styled(escape_controls(f"{result['type']} {result['name']}"), "bold")
    yield from pairs(((key, cell(one)) for key, one in attributes.items()), output.width)
    for side, names in result.get("relationships", {}).items():
        if names:
            yield from pairs([(side, ", ".join(names))], output.width)
    if isinstance(members, dict) and members:
        yield ""
        head = ["ATTRIBUTE", "KIND", "NEEDED", "DESCRIPTION"]
        yield from output.table(head, [_member_row(name, one) for name, one in members.items()])


def _neighbourhood(output: Output, _: s.DescribeNeighbourhood, result: Json) -> Iterable[str]:
    concept = result["concept"]
    yield output.styled(escape_controls(f"{concept['type']} {concept['name']}"), "bold")
    yield from pairs(((key, cell(one)) for key, one in concept["attributes"].items()), output.width)
    if result["neighbours"]:
        yield ""
        head = ["DIRECTION", "PREDICATE", "NEIGHBOUR", "CONFIDENCE", "SUMMARY"]
        yield from output.table(head, [_neighbour_row(one) for one in result["neighbours"]])
    if result["left_out"]:
        output.note(f"{pluralize(result['left_out'], 'link')} more; LIMIT and BUDGET say how much is shown.")


def _neighbour_row(one: Json) -> list[str]:
    end = one["neighbour"]
    said = cell(end) if len(end) > 1 else end["id"]
    return [one["direction"], one["predicate"], said, cell(one.get("confidence")), end.get("summary", "")]


def _member_row(name: str, one: Any) -> list[str]:
    member: Json = one if isinstance(one, dict) else {"description": cell(one)}
    values = member.get("enum")
    what = f" ({', '.join(map(str, values))})" if isinstance(values, list) else ""
    kind, description = cell(member.get("type", "")), f"{member.get('description', '')}{what}".strip()
    return [name, kind, "yes" if member.get("required") is True else "", description]


def _written(output: Output, _: Any, result: Json) -> Iterable[str]:
    rows = [
        (name.replace("_", " "), ", ".join(map(str, one)) if isinstance(one, list) else cell(one))
        for name, one in result.items()
    ]
    return pairs([(name, text or _OPEN) for name, text in rows], output.width, indent="")


def _merged(output: Output, tree: s.Merge, result: Json) -> Iterable[str]:
    yield from _written(output, tree, {name: one for name, one in result.items() if name != "conflicts"})
    rows = [[f"{one['id']} {one['key']}", _side(one["kept"]), _side(one["other"])] for one in result["conflicts"]]
    if rows:
        yield ""
        yield from output.table(["CONFLICT", "KEPT", "OTHER"], rows)


def _side(side: Json) -> str:
    """Return a value of a conflict with where it comes from."""
    said = ", ".join(cell(one) for name, one in side.items() if name != "value")
    return cell(side["value"]) + (f" ({said})" if said else "")


def _exported(output: Output, _: s.ExportCommand, result: Json) -> Iterable[str]:
    counts = f"{pluralize(result['concepts'], 'concept')}, {pluralize(result['propositions'], 'proposition')}"
    output.note(f"{counts} in the capsule.")
    return escape_lines(result["capsule"]).splitlines()


_WRITERS: Final[Sequence[tuple[type, Callable[[Output, Any, Any], Iterable[str]]]]] = (
    (s.FindCommand, _found),
    (s.SearchCommand, _searched),
    (s.DescribeTypes, _listed),
    (s.DescribeDomains, _domains),
    (s.DescribePrimer, _primer),
    (s.DescribeSyntax, _syntax),
    (s.DescribeType, _definition),
    (s.DescribeNeighbourhood, _neighbourhood),
    (s.ExportCommand, _exported),
    (s.Merge, _merged),
    (object, _written),
)


def head_of(expression: s.Expression) -> str:
    """Return an expression of FIND as it is written."""
    if isinstance(expression, s.Path):
        return "?" + ".".join([expression.variable, *expression.parts])
    return f"{expression.function}({'DISTINCT ' if expression.distinct else ''}{head_of(expression.path)})"


def cell(value: Any) -> str:
    """Return a value for one line: a whole element by what it is known by, a list of texts without brackets."""
    if value is None:
        return _OPEN
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and {"type", "name"} <= value.keys():
        return f"{value['type']} {value['name']}"
    if isinstance(value, dict) and {"subject", "predicate", "object"} <= value.keys():
        return f"({value['subject']}, {value['predicate']}, {value['object']})"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return (" " if value and all(one.endswith(".") for one in value) else ", ").join(value)
    return json_text(value)


def _members(attributes: Json) -> str:
    return ", ".join(f"{key}: {cell(one)}" for key, one in attributes.items())
