"""``kb config``: show the settings of the repository, and set one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of
from kbcli.tree import WITHOUT_COMMAND, Command, group_of

if TYPE_CHECKING:
    from kbcore.config_text import Setting
    from kbcore.workspace import Workspace

app = group_of("Show the settings of the repository, or set one; without a command, list them.")

_NAME = typer.Argument(metavar="SETTING", help="Its name, such as `kip.rowLimit`.")


@app.callback(**WITHOUT_COMMAND)
def default(ctx: typer.Context) -> None:
    """List the settings, where no command says otherwise."""
    if not ctx.invoked_subcommand:
        list_(ctx)


@app.command("list", cls=Command)
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


@app.command("get", cls=Command)
def get(ctx: typer.Context, name: Annotated[str, _NAME]) -> None:
    """Show the value of one setting, or of several whose names begin so."""
    session = session_of(ctx)
    found = _settings(session.workspace)
    exact = [one for one in found if one.name == name]
    inside = [one for one in found if one.name.startswith(f"{name}.")]
    if not exact and not inside:
        raise _unknown(name, found)
    value = exact[0].value if exact else {one.name.removeprefix(f"{name}."): one.value for one in inside}
    if session.output.is_json:
        is_stated = any(one.is_stated for one in exact or inside)
        session.output.document({"name": name, "value": value, "is_stated": is_stated})
    elif exact:
        session.output.data(f"{_shown(value)}\n")
    else:
        session.output.data("".join(f"{one.name} {_shown(one.value)}\n" for one in inside))


@app.command("set", cls=Command)
def set_(
    ctx: typer.Context,
    name: Annotated[str, _NAME],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, or plain text.")],
) -> None:
    """Set one setting in .kb/config.json; all else in the file stays as it is.

    A value that the setting does not take is refused, and nothing is written.
    """
    import os
    import stat
    from pathlib import Path

    from kbcli.clients.jsontext import NotJson, with_member
    from kbcore.errors import InvalidConfig, NotInitialised, StorageError
    from kbcore.replacing import replace_file
    from kbcore.workspace import CONFIG

    session = session_of(ctx)
    workspace = session.workspace_as_it_is()  # its settings may be what is wrong
    if not workspace.settings_dir.is_dir():
        raise NotInitialised(f"There is no {_path(workspace)}.")
    text = workspace.config_text()
    wanted = _value(value)
    try:
        changed = with_member(text or "{}\n", name.split("."), wanted)
    except NotJson as error:
        message = f"{_path(workspace)}:{error.line}: {error}."
        raise InvalidConfig(message, hint="Correct the file by hand first.") from error
    workspace.config_in(changed)
    # Through a link: a settings file may be one, to a file of the same folder.
    path = Path(os.path.realpath(workspace.settings_dir / CONFIG))
    if changed != text:
        mode = stat.S_IMODE(path.stat().st_mode) if text is not None else 0o644
        try:
            replace_file(path, changed.encode(), mode)
        except OSError as error:
            raise StorageError(f"{_path(workspace)} cannot be written: {error.strerror}.") from error
    if session.output.is_json:
        session.output.document({"path": _path(workspace), "name": name, "value": wanted, "changed": changed != text})
    else:
        session.output.say(f"{name} is {_shown(wanted)} in {_path(workspace)}.")


def _settings(workspace: Workspace) -> list[Setting]:
    """Return the settings of a valid file. Raises: ``InvalidConfig`` with all problems."""
    from kbcore.config_text import settings_in

    text = workspace.config_text()
    if text is not None:
        workspace.config_in(text)
    return settings_in(text)


def _unknown(name: str, found: list[Setting]) -> Exception:
    from kbcore.errors import InvalidQuery
    from kbcore.suggest import is_it, near_ones
    from kbcore.visible import in_quotes

    names = [one.name for one in found]
    hint = is_it(near_ones(name, names)) or "`kb config` lists those that are set or have a default."
    return InvalidQuery(f"No setting {in_quotes(name)} is set.", hint=hint)


def _path(workspace: Workspace) -> str:
    from kbcore.workspace import CONFIG

    return f"{workspace.settings_name}/{CONFIG}"


def _json(setting: Setting) -> dict[str, Any]:
    return {"name": setting.name, "value": setting.value, "is_stated": setting.is_stated}


def _shown(value: Any) -> str:
    from kbcore.visible import json_text, visible

    return visible(value) if isinstance(value, str) else json_text(value)


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text
