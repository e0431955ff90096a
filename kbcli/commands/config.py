"""``kb config``: show the settings of the repository, set one, and unset one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of, run_by_default
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcore.config.template import Setting
    from kbcore.store.workspace import Workspace

app = group_of("Show the settings of the repository, set or unset one; without a command, list them.")


class WithNumbers(HelpfulCommand):
    """A command whose arguments may be numbers below zero: they are no options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the words when the options are taken off."""
        numbers = [] if "--" in args else [word for word in args if word[:1] == "-" and word[1:2].isdigit()]
        rest = [word for word in args if word not in numbers]
        return super().parse_args(ctx, [*rest, "--", *numbers] if numbers else args)


_NAME = typer.Argument(metavar="SETTING", help="Its name, such as `kip.rowLimit`.")


@app.command("list", cls=HelpfulCommand)
def list_(ctx: typer.Context) -> None:
    """List every setting with its value, and whether the file states it."""
    session = session_of(ctx)
    workspace = session.workspace
    found = _settings(workspace)
    output = session.output
    if output.is_json:
        output.document({"path": _path(workspace), "settings": [_json(one) for one in found]})
        return
    rows = [(one.name, _shown(one.value), _path(workspace) if one.is_stated else "default") for one in found]
    output.stream(f"{line}\n" for line in output.list_lines(("SETTING", "VALUE", "FROM"), rows))


run_by_default(app, list_)


@app.command("get", cls=HelpfulCommand)
def get(ctx: typer.Context, name: Annotated[str, _NAME]) -> None:
    """Show the value of one setting, or of several whose names begin so."""
    from kbcore.text.escaping import in_quotes

    session = session_of(ctx)
    found = _settings(session.workspace)
    default = _level_of_rule(session.workspace, name)
    exact = [one for one in found if one.name == name]
    if default and not exact:
        exact = [_setting(name, default)]
    inside = [one for one in found if one.name.startswith(f"{name}.")]
    if not exact and not inside and not _is_group(name):
        raise _unknown(name, found)
    value = exact[0].value if exact else {one.name.removeprefix(f"{name}."): one.value for one in inside}
    if session.output.is_json:
        is_stated = any(one.is_stated for one in exact or inside)
        of_rule = {"default": default} if default else {}
        session.output.document({"name": name, "value": value, "is_stated": is_stated} | of_rule)
    elif exact:
        session.output.data(f"{_shown(value)}\n")
        if default:
            session.output.note(f"The default of the rule is {default}.")
    else:
        session.output.data("".join(f"{one.name} {_shown(one.value)}\n" for one in inside))
        if not inside:
            session.output.note(f"Nothing is set in {in_quotes(name)}.")


@app.command("set", cls=WithNumbers)
def set_(
    ctx: typer.Context,
    name: Annotated[str, _NAME],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, or plain text.")],
) -> None:
    """Set one setting in .kb/config.json; all else in the file stays as it is.

    A value that the setting does not take is refused, and nothing is written.
    """
    from kbcore.store.settings_edit import folders_in, set_setting
    from kbcore.text.escaping import escape_controls, in_quotes
    from kbcore.text.suggest import is_it, near_ones

    session = session_of(ctx)
    workspace = session.workspace_as_it_is()  # its settings may be what is wrong
    wanted = _value(value)
    is_changed = set_setting(workspace, name, wanted)
    for glob in folders_in(workspace, name, wanted):
        example = f"{glob.rstrip('/')}/**/*.md"
        session.output.warn(
            f"{in_quotes(glob)} is a folder; files in it are read by a glob such as {in_quotes(example)}."
        )
    if name == "defaultBranch" and isinstance(wanted, str) and wanted not in (known := _branches(workspace)):
        session.output.warn(
            escape_controls(f"git has no branch {in_quotes(wanted)}. {is_it(near_ones(wanted, sorted(known)))}")
        )
    if session.output.is_json:
        session.output.document({"path": _path(workspace), "name": name, "value": wanted, "changed": is_changed})
    else:
        session.output.say(f"{name} is {_shown(wanted)} in {_path(workspace)}.")


@app.command("unset", cls=HelpfulCommand)
def unset(ctx: typer.Context, name: Annotated[str, _NAME]) -> None:
    """Remove one setting from .kb/config.json, or all whose names begin so: the defaults apply again."""
    from kbcore.store.settings_edit import unset_setting

    session = session_of(ctx)
    workspace = session.workspace_as_it_is()
    is_changed = unset_setting(workspace, name)
    if not is_changed:
        found = _settings(workspace)
        is_known = any(one.name == name or one.name.startswith(f"{name}.") for one in found)
        if not (is_known or _is_group(name) or _level_of_rule(workspace, name)):
            raise _unknown(name, found)
    if session.output.is_json:
        session.output.document({"path": _path(workspace), "name": name, "changed": is_changed})
    else:
        said = "was removed from" if is_changed else "was not set in"
        session.output.say(f"{name} {said} {_path(workspace)}.")


@app.command("schema", cls=HelpfulCommand)
def schema(ctx: typer.Context) -> None:
    """Print the JSON Schema of .kb/config.json, for editors and other programs."""
    from kbcore.config.json_schema import schema_text

    session_of(ctx).output.data(schema_text())


def _settings(workspace: Workspace) -> list[Setting]:
    """Return the settings of a valid file. Raises: ``InvalidConfig`` with all problems."""
    from kbcore.config.template import settings_in

    text = workspace.config_text()
    if text is not None:
        workspace.config_in(text)
    return settings_in(text)


def _branches(workspace: Workspace) -> set[str]:
    """Return the branches of git; one that is checked out and has no commit yet is one of them."""
    from kbcore import git

    return git.local_branches(workspace.repo, workspace.machine.env) | {workspace.head().branch}


def _level_of_rule(workspace: Workspace, name: str) -> str:
    """Return the level that a rule has where no setting says another one; "" for a setting of another kind.

    Raises: ``NotFound`` where there is no such rule; ``InvalidConfig`` for rules of the project that cannot be read.
    """
    from kbcore.checks import rule_named

    group, _, rule = name.partition(".")
    return rule_named(workspace, rule).severity if group == "rules" and rule else ""


def _setting(name: str, value: Any) -> Setting:
    """Return a setting that the file does not state."""
    from kbcore.config.template import Setting

    return Setting(name, value, is_stated=False)


def _is_group(name: str) -> bool:
    """Return whether settings with names of their own are kept under a name, even where none is set."""
    from kbcore.config.template import groups

    return name in groups()


def _unknown(name: str, found: list[Setting]) -> Exception:
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import is_it, near_ones

    names = [one.name for one in found]
    hint = is_it(near_ones(name, names)) or "`kb config` lists those that are set or have a default."
    return InvalidQuery(f"No setting {in_quotes(name)} is set.", hint=hint)


def _path(workspace: Workspace) -> str:
    from kbcore.store.settings_files import CONFIG

    return f"{workspace.settings_name}/{CONFIG}"


def _json(setting: Setting) -> dict[str, Any]:
    return {"name": setting.name, "value": setting.value, "is_stated": setting.is_stated}


def _shown(value: Any) -> str:
    from kbcore.text.escaping import escape_controls, json_text

    return escape_controls(value) if isinstance(value, str) else json_text(value)


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
