"""DML: programs in Prolog whose steps are tasks for a language model.

Owns: loading and running a program, the conversation of its tasks, its tools, files and budgets. Offers ``run_dml``,
``Toolset``, ``Policy`` and ``Budget``. Never: talks to a model but through the protocol ``Model``, or runs what a
program says outside of an engine of Prolog.
"""

from __future__ import annotations

from kbcore.dml.budget import Budget
from kbcore.dml.events import Event
from kbcore.dml.model import Message, Model, ModelFailed, ToolCall, ToolSpec, Turn, Usage
from kbcore.dml.openai_model import OpenAIModel, Retries
from kbcore.dml.run import Run, run_dml
from kbcore.dml.tools import Policy, Tool, Toolset

__all__ = [
    "Budget",
    "Event",
    "Message",
    "Model",
    "ModelFailed",
    "OpenAIModel",
    "Policy",
    "Retries",
    "Run",
    "Tool",
    "ToolCall",
    "ToolSpec",
    "Toolset",
    "Turn",
    "Usage",
    "run_dml",
]
