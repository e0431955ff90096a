"""Run the rules in force over a view: KB's own and the project's, at the levels that the configuration sets."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from kbcore.checks.branch_files import tree_of
from kbcore.config.settings import Config
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidConfig, NotFound, Problem
from kbcore.model.rule_settings import Suppression
from kbcore.model.schema import Schema
from kbcore.query.data_names import nearest_id
from kbcore.rules import NAMES, ON_DEMAND, CheckReport, Rule, RuleContext, check, check_names, load_rules, look, orphans
from kbcore.rules import RULES as OWN
from kbcore.rules.accepted import (
    ATTRIBUTE,
    AcceptedFaults,
    Baseline,
    Reasons,
    baseline_text,
    faults_of,
    key_of,
    of_rules,
    read_baseline,
    stated_reasons,
    with_present_ids,
    without_accepted,
)
from kbcore.rules.elsewhere import KnownReferences
from kbcore.rules.look_ups import Look
from kbcore.rules.project import ProjectRule
from kbcore.rules.rule import BranchFiles, Creations, PrologRules
from kbcore.storage import files
from kbcore.store.pool import Machine
from kbcore.store.settings_files import BASELINE, CONFIG, RULES
from kbcore.store.workspace import Workspace
from kbcore.sync.faults import About
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import matches
from kbcore.text.suggest import did_you_mean
from kbcore.view.neighborhood import neighborhood
from kbcore.view.sandbox import Sandbox, TimeLeft, Times
from kbcore.view.view import View
from kbcore.view.without_proposals import AcceptedTables, count_proposed, without_proposals

Renamed = Callable[[Collection[str]], Mapping[str, str]]
"""Returns the present id of each of some ids that an entity had before and none has now."""


class SettingsInForce(Protocol):
    """The settings by which a state is judged: those of a ``Workspace``, or of a repository that is elsewhere."""

    @property
    def machine(self) -> Machine:
        """The file system, clock and environment of this machine."""

    @property
    def user(self) -> UserSettings:
        """The settings of the user."""

    @property
    def config(self) -> Config:
        """The configuration, within the limits of the user."""

    @property
    def schema(self) -> Schema:
        """The schema of the project."""

    @property
    def settings_name(self) -> str:
        """The name of the folder of settings in messages."""

    @property
    def baseline_text(self) -> str | None:
        """The text of the baseline, None where there is none."""

    def texts_in(self, folder: str) -> dict[str, str]:
        """Return the files of a folder of settings, by the path that messages name."""


_KNOWN: Final = """
select a.id from unnest($1::varchar[]) as a(id)
where a.id in (select id from node union all select id from link union all select from_id from link
  union all select to_id from link union all select path from source)
"""
"""Subjects of a violation: what exists, what a link names, and a file."""

_MOST_SUPPRESSING: Final = 1000
"""The most entities whose suppressions are checked for effect."""
_SUPPRESS: Final = f"""
select id from node
where id in (select unnest($1::varchar[])) and json_extract(attributes, '$.{ATTRIBUTE}') is not null
"""  # noqa: S608 - no text from outside
_SUPPRESSING: Final = f"""
select id from node where json_extract(attributes, '$.{ATTRIBUTE}') is not null order by id limit {_MOST_SUPPRESSING}
"""  # noqa: S608 - no text from outside
IDLE_ID: Final = "idle_suppression"
FILES: Final = "select path from source union select path from node where path <> ''"
MAX_GUESSED: Final = 5
"""For so many ids that do not exist it is looked for one that may be meant: all entities are looked at for each."""


def run_checks(
    workspace: Workspace,
    view: View,
    *,
    branch: str,
    only: Sequence[str] = (),
    ids: Sequence[str] = (),
    is_own: bool = False,
    may_be_unknown: bool = False,
    idle: Callable[[str], str] = lambda _: "",
) -> CheckReport:
    """Return what the rules found in a branch, whose view this is.

    ``only`` names the rules to run, ``ids`` the entities to look at; with ``is_own`` only KB's own rules are run, which
    take no time of their own choosing. With ``may_be_unknown`` nothing need be known of the ids. What is suppressed or
    in the baseline is counted alone. ``idle`` is that of ``kbcore.rules.check``.

    Raises: ``NotFound`` for unknown ids or an unknown rule; ``InvalidConfig`` for settings or rules files that cannot
    be used; what ``idle`` raises.
    """
    present = view.renamed(ids)
    ids = [present.get(one, one) for one in ids]
    if not may_be_unknown:
        check_ids(view, ids)
    tree = tree_of(workspace, branch)
    idle, made = idle_in(view, idle), creation_lookup(workspace, branch)
    return judge(workspace, view, tree, only=only, ids=ids, is_own=is_own, idle=idle, creations=made)


def creation_lookup(workspace: Workspace, branch: str) -> Creations:
    """Return what looks up the creations of ids of a branch in the changes of its store."""
    return lambda of: workspace.changes(branch).read(lambda index, seq: index.creations(of, seq))


def idle_in(view: View, idle: Callable[[str], str] = lambda _: "") -> Callable[[str], str]:
    """Return what does as ``idle``, and says too which rules have nothing to look at in the state of a view."""
    return lambda name: idle(name) or (orphans.why_it_waits(view.rows) if name == orphans.RULE.id else "")


def judge(  # noqa: PLR0913 - each is another part of what is judged, and how
    workspace: SettingsInForce,
    view: View,
    tree: BranchFiles | None,
    *,
    only: Sequence[str] = (),
    ids: Sequence[str] = (),
    extra: Sequence[Rule] = (),
    is_own: bool = False,
    idle: Callable[[str], str] = lambda _: "",
    creations: Creations = lambda _: {},
    elsewhere: KnownReferences | None = None,
) -> CheckReport:
    """Do as ``run_checks`` over the files of ``tree``, for ids that need not be there, and with further rules.

    ``tree`` is None where there are no files that could be looked at. ``elsewhere`` is what is known of other
    repositories, None where it is not looked for.

    ``idle`` is that of ``kbcore.rules.check``; for a state that is not only compared with, it comes from ``idle_in``.

    Raises: ``NotFound`` for an unknown rule; ``InvalidConfig``.
    """
    project = [] if is_own else project_rules(workspace)
    times = rule_times(workspace)
    left = TimeLeft(times.total_s)
    schema = view.schema(workspace.schema)
    proposed = count_proposed(view)
    with contextlib.ExitStack() as stack:
        tables = stack.enter_context(without_proposals(view)) if proposed else view
        sandbox = stack.enter_context(Sandbox(tables.copy_relation, times, left))
        prolog = stack.enter_context(place_for_prolog(workspace, tables, schema, project, left))
        nearby = stack.enter_context(neighborhood(tables, ids)) if ids else None
        now_s = workspace.machine.clock.monotonic_s
        asked = frozenset(ids) or None
        context = RuleContext(tables.rows, schema, asked, sandbox, tree, nearby, prolog, now_s, creations)
        context = msgspec.structs.replace(context, elsewhere=elsewhere or elsewhere_of(workspace))
        if proposed:
            seen = msgspec.structs.replace(context, rows=view.rows, around=None)
            context = msgspec.structs.replace(context, with_proposals=seen)
        found = check(context, workspace.config.rules, only=only, project=[*project, *extra], idle=idle)
    found = msgspec.structs.replace(found, proposed=0 if ids else proposed)
    suppressions, baseline = accepted(workspace, view.renamed)
    if not found.violations:
        return found
    names = [*NAMES, *(rule.id for rule in project)]
    return without_accepted(found, suppressions, lambda of: _reasons(view, of), baseline, names)


def elsewhere_of(settings: SettingsInForce) -> KnownReferences | None:
    """Return what one repository knows of others: that there are such, where it belongs to a fleet. ADR-0061.

    `kb fleet check` is what says whether a reference to one of them leads anywhere.
    """
    fleet = settings.config.fleet
    return None if fleet.place is None else KnownReferences(own=fleet.repo or "")


def place_for_prolog(
    workspace: SettingsInForce,
    view: View | AcceptedTables,
    schema: Schema,
    project: Sequence[ProjectRule],
    left: TimeLeft,
) -> contextlib.AbstractContextManager[PrologRules | None]:
    """Return what runs the project's rules in Prolog over a view, None where there are none."""
    if not any(rule.prolog for rule in project):
        return contextlib.nullcontext()
    from kbcore.logic.graph_facts import all_facts  # noqa: PLC0415 - only a project with such rules pays for it
    from kbcore.logic.rules import RulesEngine  # noqa: PLC0415 - as above

    def facts() -> list[str]:
        return sorted(all_facts(view))  # the order of facts is that of answers

    return RulesEngine(workspace.machine.env, facts, schema.edges, rule_times(workspace), left)


def accepted(workspace: SettingsInForce, renamed: Renamed) -> tuple[tuple[Suppression, ...], Baseline]:
    """Return what the settings and the baseline accept, with the present ids of what was renamed since.

    Raises: ``InvalidConfig``.
    """
    baseline, suppressions = baseline_of(workspace), workspace.config.suppressions
    named = {text for entry in baseline for text in (entry.id, *entry.values)} | {one.id for one in suppressions}
    present = renamed(named) if named else {}
    kept = tuple(msgspec.structs.replace(one, id=present.get(one.id, one.id)) for one in suppressions)
    return kept, with_present_ids(baseline, present)


def look_at(workspace: Workspace, at: Look, only: Collection[str], renamed: Renamed) -> CheckReport:
    """Return what KB's own rules that are named find by look-ups, without what is suppressed or in the baseline.

    ``renamed`` returns the present id of each of some ids that an entity had before.

    Raises: ``InvalidConfig``.
    """
    at = msgspec.structs.replace(at, elsewhere=elsewhere_of(workspace))
    found = look(at, workspace.config.rules, only)
    if not found.violations:
        return found

    def reasons(ids: list[str]) -> Reasons:
        return {id_: said for id_, node in at.side.nodes(ids).items() if (said := stated_reasons(node))}

    suppressions, baseline = accepted(workspace, renamed)
    names = [*NAMES, *(rule.id for rule in project_rules(workspace))]
    return without_accepted(found, suppressions, reasons, baseline, names)


def baseline_of(workspace: SettingsInForce) -> Baseline:
    """Return the baseline in force. Raises: ``InvalidConfig``."""
    return read_baseline(workspace.baseline_text, f"{workspace.settings_name}/{BASELINE}")


def write_baseline(workspace: Workspace, report: CheckReport) -> int:
    """Publish what a report holds as the baseline, and return how many violations that are.

    What the baseline that is there holds of rules that could not run is kept.

    Raises: ``InvalidConfig`` where it is needed for that, and cannot be read; ``StorageError``.
    """
    found = Counter(map(key_of, report.violations))
    if not_run := {run.id for run in report.rules if run.status == "not_run"}:
        found += of_rules(baseline_of(workspace.renewed()), not_run)
    files.publish_file(workspace.machine.fs, workspace.settings_dir / BASELINE, baseline_text(found).encode())
    return found.total()


def known_to(workspace: Workspace, branch: str, about: About) -> tuple[AcceptedFaults, str]:
    """Return what a project accepts of the faults that a sync of a branch reports, ``about`` which they are.

    And why its baseline cannot be read, "" if it can. The sync is done by then, so a broken baseline is no reason to
    fail: without it more is reported.
    """
    if not workspace.folders.has_store(branch):
        return known_in(workspace, None, about)
    return workspace.store(branch).read(lambda view: known_in(workspace, view, about))


def known_in(workspace: Workspace, view: View | None, about: About) -> tuple[AcceptedFaults, str]:
    """Do as ``known_to`` for the branch of a view."""
    suppressions, baseline, broken = workspace.config.suppressions, Baseline(), ""
    try:
        suppressions, baseline = accepted(workspace, view.renamed if view else lambda _: {})
    except InvalidConfig as error:
        broken = f"{error.message} {error.remedy}".rstrip()
    if view is None:
        return AcceptedFaults(suppressions, baseline, elsewhere=elsewhere_of(workspace)), broken
    statuses = {node.id: node.fields.get("status", "") for node in view.nodes(sorted(about.statuses))}
    reasons = _reasons(view, sorted({*about.ids, *statuses}))
    return AcceptedFaults(suppressions, baseline, reasons, statuses, elsewhere_of(workspace)), broken


def idle_suppressions(workspace: Workspace, view: View) -> list[Problem]:
    """Return the suppressions without effect: of a rule, an id or paths that nothing has, or without a reason.

    ``path`` is the file that states one, or the id where a client wrote it. Raises: ``InvalidConfig``.
    """
    names = {rule.id for rule in (*OWN, *ON_DEMAND, *project_rules(workspace))}
    found = []
    for node in view.nodes([row[0] for row in view.rows(_SUPPRESSING, [])]):
        if said := stated_reasons(node):
            found += [
                Problem(said.file or node.id, code, f"`{ATTRIBUTE}` of {node.id} {fault}.", remedy)
                for _, code, fault, remedy in faults_of(said, names)
            ]
    ids = sorted({one.id for one in workspace.config.suppressions if one.id})
    present = view.renamed(ids)
    there = {row[0] for row in view.rows(_KNOWN, [[present.get(one, one) for one in ids]])} if ids else set()
    gone = [id_ for id_ in ids if present.get(id_, id_) not in there]
    for at, id_ in enumerate(gone):
        near = nearest_id(view.rows, id_) if at < MAX_GUESSED else ""
        hint = f"Did you mean {in_quotes(near)}?" if near else "Remove it if the entity was removed for good."
        message = f"A suppression names {in_quotes(id_)}, which does not exist."
        found.append(Problem(f"{workspace.settings_name}/{CONFIG}", IDLE_ID, message, hint))
    globs = [one.paths for one in workspace.config.suppressions if one.paths]
    files = [row[0] for row in view.rows(FILES, [])] if globs else []
    for paths in globs:
        if not any(matches(file, paths) for file in files):
            message = f"A suppression names {' and '.join(map(in_quotes, paths))}, and no file that is read is there."
            hint = "Correct the path, or remove the suppression."
            found.append(Problem(f"{workspace.settings_name}/{CONFIG}", IDLE_ID, message, hint))
    return found


def _reasons(view: View, ids: list[str]) -> Reasons:
    """Return what entities say in their attribute ``suppress``."""
    stating = [row[0] for row in view.rows(_SUPPRESS, [ids])]
    return {node.id: said for node in view.nodes(stating) if (said := stated_reasons(node))}


def rule_times(workspace: SettingsInForce) -> Times:
    """Return how long rules of the project's own may run: each, and all of one check."""
    most = workspace.user.limits
    usual_s = workspace.config.rule_time_s
    return Times(
        usual_s,
        most.rule_time_s,
        most.rules_time_s,
        most_by=most.name_of("rule_time_s"),
        total_by=most.name_of("rules_time_s"),
        now_s=workspace.machine.clock.monotonic_s,
    )


def descriptions(workspace: Workspace) -> dict[str, str]:
    """Return what each rule says, by its name. Raises: ``InvalidConfig``."""
    return {rule.id: rule.description for rule in (*OWN, *ON_DEMAND, *project_rules(workspace))}


def project_rules(workspace: SettingsInForce) -> list[ProjectRule]:
    """Return the rules of the project's own, with the values that the configuration gives to their parameters.

    Raises: ``InvalidConfig``.
    """
    return load_rules(workspace.texts_in(RULES), workspace.config.rule_params)


def rule_named(workspace: Workspace, name: str) -> Rule:
    """Return the rule of this name, KB's own or the project's. Raises: ``NotFound``, ``InvalidConfig``."""
    rules: dict[str, Rule] = {rule.id: rule for rule in (*OWN, *ON_DEMAND, *project_rules(workspace))}
    if name not in rules:
        raise NotFound(f"There is no rule {in_quotes(name)}.", hint=did_you_mean(name, rules))
    return rules[name]


def check_rules(workspace: Workspace, only: Sequence[str]) -> None:
    """Refuse rules that do not exist. Raises: ``NotFound`` with every one of them; ``InvalidConfig``."""
    check_names(only, [rule.id for rule in (*OWN, *ON_DEMAND, *project_rules(workspace))])


def check_ids(view: View, ids: Sequence[str]) -> None:
    """Refuse ids of which nothing is known: the answer to a mistyped one would read as if nothing were wrong."""
    known = {node.id for node in view.nodes(ids)}
    if rest := sorted({*ids} - known):
        known.update(row[0] for row in view.rows(_KNOWN, [rest]))
    problems: list[Problem] = []
    for at, key in enumerate(ids):
        if key not in known:
            near = nearest_id(view.rows, key) if len(problems) < MAX_GUESSED else ""
            hint = f"Did you mean {in_quotes(near)}?" if near else ""
            problems.append(Problem(f"$.ids[{at}]", "unknown_id", f"There is no {in_quotes(key)}.", hint))
    if problems:
        raise NotFound(
            problems[0].message, hint=problems[0].remedy, details=problems if len(problems) > 1 else (), says_first=True
        )
