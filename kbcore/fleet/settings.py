"""The settings of a repository as they are exported: the texts of its configuration, schema, rules and baseline."""

from __future__ import annotations

import msgspec

from kbcore.errors import StorageError
from kbcore.fleet.head import AGAIN
from kbcore.store.settings_files import RULES, SCHEMA
from kbcore.store.workspace import Workspace


class SettingsTexts(msgspec.Struct, frozen=True):
    """The texts of settings files, those of folders by the path that messages name; None where there is no file."""

    config: str | None
    baseline: str | None
    schema: dict[str, str]
    rules: dict[str, str]

    def encoded(self) -> bytes:
        """Return the content of the file that holds them."""
        return msgspec.json.encode(self, order="deterministic")


def exported_settings(workspace: Workspace) -> SettingsTexts:
    """Return the settings that are in force in a repository. Raises: ``InvalidConfig``."""
    return SettingsTexts(
        workspace.config_text(), workspace.baseline_text, workspace.texts_in(SCHEMA), workspace.texts_in(RULES)
    )


def decode(data: bytes, name: str) -> SettingsTexts:
    """Return the settings that a file holds. Raises: ``StorageError``."""
    try:
        return msgspec.json.decode(data, type=SettingsTexts)
    except msgspec.DecodeError as error:
        raise StorageError(f"{name} holds no settings: {error}.", hint=AGAIN) from error
