"""KIP commands carried out in a real repository, and the errors that an agent gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbcore.config.settings import KipLimits
from kbcore.errors import KipRefused
from kbcore.kip import find, kml
from kbcore.kip import syntax as s
from kbcore.kip.binding import read
from kbcore.kip.elements import element_json
from kbcore.kip.errors import envelope, placing
from kbcore.kip.kml.export import export
from kbcore.kip.names import type_names
from kbcore.model.schema import Schema
from kbcore.store import branches
from tests.support.oracles.kip_model import Key
from tests.support.repository.project import AUTHOR, Project

NOW = "2026-07-01T12:00:00Z"
"""The time that NOW() means in what is asked here."""


class Kip:
    """A project that is written to in KIP."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.project = Project(root)
        self.written: kml.KmlAnswer | None = None

    def __call__(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Carry a command out and return its result; one that reads is answered too."""
        with placing(text):
            command = read(text, parameters)
            if isinstance(command, s.FindCommand):
                return find.find(self.project.view(), self.schema(), command, now=NOW).result
            if isinstance(command, s.ExportCommand):
                return export(self.project.view(), self.schema(), command, KipLimits()).result
            workspace = self.project.workspace()
            _, choice, _ = branches.open_branch(workspace, None)
            wanted = kml.KmlOptions(**options)
            follows_head = choice.follows_head
            self.written = kml.execute(workspace, choice.branch, AUTHOR, command, wanted, follows_head=follows_head)
            return self.written.result

    def refusal(self, text: str, parameters: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Return the error that an agent gets of a command that is refused, after which nothing is written."""
        before = self.seq()
        try:
            answer = self(text, parameters, **options)
        except KipRefused as error:
            assert self.seq() == before
            reported: dict[str, Any] = envelope(error)["error"]
            return reported
        raise AssertionError(f"not refused: {answer}")

    def refusal_text(self, text: str, parameters: Mapping[str, Any] | None = None) -> str:
        """Return the code, the message and the hint of a refusal, as one text."""
        error = self.refusal(text, parameters)
        return f"{error['code']}: {error['message']} {error['hint']}"

    def seq(self) -> int:
        return self.project.seq()

    def schema(self) -> Schema:
        return self.project.view().schema(self.project.workspace().schema)

    def element(self, key: str) -> dict[str, Any]:
        """Return an element as KIP shows it."""
        view = self.project.view()
        [found] = view.links([key]) if key.startswith("link:") else view.nodes([key])
        return element_json(found, type_names(self.schema()))

    def attributes(self, key: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.element(key)["attributes"]
        return shown

    def shown(self) -> dict[str, dict[str, Any]]:
        """Return all that is stored, as KIP shows it, by its id and in the order of ids."""
        view, types = self.project.view(), type_names(self.schema())
        ids = [row[0] for row in view.rows("select id from node union all select id from link where is_resolved")]
        found = [*view.nodes(ids), *view.links(ids)]
        return {one.id: element_json(one, types) for one in sorted(found, key=lambda one: one.id)}

    def shown_by_key(self) -> list[tuple[Key, dict[str, Any]]]:
        """Return all that is stored, as KIP shows it, each with the key by which the model knows it."""
        shown = self.shown()

        def key_of(one: dict[str, Any]) -> Key:
            if "predicate" not in one:
                return ("node", one["type"], one["name"])
            return ("link", key_of(shown[one["subject"]]), one["predicate"], key_of(shown[one["object"]]))

        return [(key_of(one), one) for one in shown.values()]

    def elements(self) -> list[dict[str, Any]]:
        """Return all that is stored, as KIP shows it, without what a write stamps by itself."""
        shown = [*self.shown().values()]
        stamps = {"_version", "_created_at", "updated_at"}
        for one in shown:
            one["metadata"] = {k: v for k, v in one["metadata"].items() if k not in stamps}
        return shown
