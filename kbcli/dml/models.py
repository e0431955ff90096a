"""The model of a run: the one that the options or the environment name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbcore.dml.model import Message, Model, ModelFailed, ToolSpec, Turn
from kbcore.dml.openai_model import MODEL_VARIABLE, OpenAIModel


class NoModel:
    """The place of a model where none is named: a program without tasks needs none."""

    async def complete(self, _: Sequence[Message], __: Sequence[ToolSpec]) -> Turn:
        """Raise ``ModelFailed``, which says how to name one."""
        hint = f"Name one with `--model NAME`, or set {MODEL_VARIABLE}."
        raise ModelFailed("no model is named", hint=hint)


def model_of(name: str, base_url: str, env: Mapping[str, str]) -> tuple[Model, str]:
    """Return the model that is named, and its name; the key is read from the environment when it is asked.

    Raises: ``KBError`` where what it needs is not installed.
    """
    chosen = name or env.get(MODEL_VARIABLE, "")
    if not chosen:
        return NoModel(), ""
    return OpenAIModel(chosen, env=env, base_url=base_url), chosen
