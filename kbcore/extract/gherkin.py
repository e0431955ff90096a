"""The extractor for Gherkin feature files: each scenario is an entity, known by its path and its place in the file.

The parser is Cucumber's own, an optional package. Nothing is read unless the configuration names paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract import settings
from kbcore.extract.facts import Facts, PathRule, SourceFile, StatedEntity, StatedLink, unreadable
from kbcore.text import conflict_markers
from kbcore.text.decoding import decode
from kbcore.text.problems import FileProblem, at_most

NAME: Final = "gherkin"
PACKAGE: Final = "gherkin-official"
DEFAULT_TYPE: Final = "scenario"
MAX_LINES: Final = 50_000
"""More would keep the parser busy for many seconds."""

_HINT: Final = "Correct the line."


class Scenario(msgspec.Struct, frozen=True):
    """A scenario of a parsed file with its context. Tags are without ``@``, in the order of the file."""

    name: str
    line: int
    keyword: str
    rule: str
    tags: tuple[str, ...]


class GherkinExtractor:
    """Reads the scenarios of feature files at the configured paths."""

    name = NAME
    version = 1

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of the feature files."""
        globs = settings.globs_of(settings_.get(settings.PATHS, ()))
        return [PathRule(glob, DEFAULT_TYPE) for glob in globs]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:  # noqa: ARG002 - the protocol's
        """Return the scenarios that a feature file states; one fault of syntax, and nothing of it is taken in."""
        decoded = decode(source.data)
        if decoded.text is None:
            return unreadable(decoded.problems)
        _, torn = conflict_markers.without_conflicts(decoded.text)
        if torn:
            return Facts(problems=at_most((*decoded.problems, *torn)), is_complete=False)
        length = decoded.text.count("\n")
        if length > MAX_LINES:
            message, hint = f"the file has {length} lines; the limit is {MAX_LINES}", "Split the file."
            return Facts(
                problems=at_most((*decoded.problems, FileProblem(1, "too_long", message, hint))), is_complete=False
            )
        parsed, problems = _parse(decoded.text)
        problems = (*decoded.problems, *problems)
        if parsed is None:
            return Facts(problems=at_most(problems), is_complete=False)
        feature = parsed.get("feature") or {"name": "", "tags": (), "children": ()}
        scenarios = list(_scenarios(feature))
        if not scenarios:
            message, hint = "the file holds no scenario", "Write one below `Feature: …`, or remove the file."
            return Facts(problems=(*problems, FileProblem(0, "passed_over", message, hint, "note")))
        entities, links = [], []
        for ordinal, scenario in enumerate(scenarios, 1):
            entity, found = _stated(source, feature["name"], scenario, ordinal)
            entities.append(entity)
            links.extend(found)
        return Facts(tuple(entities), tuple(links), at_most(problems))


def is_installed() -> bool:
    """Tell whether the package of the parser is installed."""
    try:
        import gherkin.parser  # noqa: F401, PLC0415 - optional, and only feature files need it
    except ImportError:
        return False
    return True


def _parse(text: str) -> tuple[dict[str, Any] | None, tuple[FileProblem, ...]]:
    """Return the syntax tree of a file, or what is wrong with it, line by line."""
    import gherkin.parser  # noqa: PLC0415 - as in is_installed
    from gherkin.errors import CompositeParserException, ParserError  # noqa: PLC0415

    try:
        return dict(gherkin.parser.Parser().parse(text)), ()
    except CompositeParserException as errors:
        return None, tuple(_problem(error) for error in errors.errors)
    except ParserError as error:
        return None, (_problem(error),)


def _problem(error: Any) -> FileProblem:
    words = str(error).partition(": ")[2] or str(error)
    message = f"not valid Gherkin: {words}"
    return FileProblem(
        error.location["line"], "invalid_gherkin", message, _HINT, column=error.location.get("column", 0)
    )


def _scenarios(feature: Mapping[str, Any]) -> Iterator[Scenario]:
    """Yield the scenarios of a feature in the order of the file, those inside rules as well."""
    own = _tags(feature)
    for child in feature["children"]:
        if "scenario" in child:
            yield _scenario(child["scenario"], "", own)
        for inner in child.get("rule", {}).get("children", ()):
            if "scenario" in inner:
                yield _scenario(inner["scenario"], child["rule"]["name"], (*own, *_tags(child["rule"])))


def _scenario(found: Mapping[str, Any], rule: str, outer: tuple[str, ...]) -> Scenario:
    tags = tuple(dict.fromkeys((*outer, *_tags(found))))
    return Scenario(found["name"], found["location"]["line"], found["keyword"], rule, tags)


def _tags(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(tag["name"].removeprefix("@") for tag in part["tags"])


def _stated(
    source: SourceFile, feature: str, scenario: Scenario, ordinal: int
) -> tuple[StatedEntity, list[StatedLink]]:
    """Return a scenario as an entity: the tag ``@id:X`` names it, ``@links:X`` links it, the rest are its tags."""
    named = [tag.removeprefix("id:") for tag in scenario.tags if tag.startswith("id:")]
    targets = [tag.removeprefix("links:") for tag in scenario.tags if tag.startswith("links:")]
    tags = [tag for tag in scenario.tags if not tag.startswith(("id:", "links:"))]
    key = named[-1] if named else f"{source.path}#{ordinal}"
    fields: dict[str, Any] = {
        "title": scenario.name or f"{feature or source.path} ({ordinal})",
        "text_ref": source.path,
        "attributes.feature": feature,
        "attributes.keyword": scenario.keyword,
    }
    if tags:
        fields["tags"] = tags
    if scenario.rule:
        fields["attributes.rule"] = scenario.rule
    entity = StatedEntity(key, source.type or DEFAULT_TYPE, fields, scenario.line)
    return entity, [StatedLink(key, target, line=scenario.line) for target in targets]


EXTRACTOR: Final = GherkinExtractor()
