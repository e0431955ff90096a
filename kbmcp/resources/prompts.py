"""The prompts: what each is called, says of itself and takes; and how it becomes messages.

A prompt is the text of ``prompt_guidance``, then the facts as JSON in messages of their own: what is stored or typed
is in these and nowhere else. The entity is a JSON document; the other facts are plain text to a client, so they are
in a fence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from kbcore.errors import InvalidQuery, Misuse, Problem, Rejected
from kbcore.text.escaping import fenced, in_quotes
from kbcore.text.suggest import did_you_mean, nearest
from kbmcp.resources import prompt_facts, prompt_guidance, resource_list
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE, TOOLSET, MemoryGuide
from kbmcp.resources.prompt_facts import Asked
from kbmcp.tools.answers import DATA_NOTE, Payload, length_of, text_of
from kbmcp.tools.call import Call, Client, Service
from kbmcp.tools.run_call import ClientRequest, run_call

MAX_ARGUMENT_CHARS: Final = 1_000
MOST_CHARS: Final = 6_000
"""The most characters of all messages of a prompt: about 1,500 tokens."""
_AROUND_CHARS: Final = 300
"""The characters of the fence, and of the note on further events."""

Values = Literal["requirements", "entities", "tags", "actors", "seqs", ""]
"""The source of completions of an argument; none for free text."""


class Argument(msgspec.Struct, frozen=True):
    """An argument of a prompt. All arguments are text, as the protocol has it."""

    name: str
    description: str
    values: Values = ""
    is_required: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """A prompt. ``subject`` is the argument that names the entity which it is about, if it has one."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    guidance: str
    facts: Callable[[Call, Asked, int, int], Payload]
    """Returns the facts as of a seq, in so many characters."""
    subject: str = ""
    writes: bool = False
    """True where nothing is left of it for a server that only reads."""
    guide: MemoryGuide | None = None
    """The text in place of ``guidance``, in the toolset kip."""


PROMPTS: Final = (
    Prompt(
        "start_feature",
        "Start a feature",
        "Begin the work on a requirement, with what is known of it.",
        (Argument("requirement", "the id of the requirement", "requirements", is_required=True),),
        prompt_guidance.START_FEATURE,
        prompt_facts.of_requirement,
        subject="requirement",
    ),
    Prompt(
        "record_decision",
        "Record a decision",
        "Record an architecture decision, tied to what it concerns and to what it replaces.",
        (
            Argument("title", "the decision in a few words"),
            Argument("concerns", "the id of an entity that it concerns", "entities"),
        ),
        prompt_guidance.RECORD_DECISION,
        prompt_facts.of_decisions,
        subject="concerns",
        writes=True,
    ),
    Prompt(
        "review_changes",
        "Review changes",
        "Review what was changed here, by an agent or by anybody.",
        (
            Argument("actor", "only changes of this actor", "actors"),
            Argument("since", "only records after this seq; the latest ten if not given", "seqs"),
        ),
        prompt_guidance.REVIEW_CHANGES,
        prompt_facts.of_changes,
    ),
    Prompt(
        "find_gaps",
        "Find gaps",
        "Find requirements that nothing specifies, verifies or implements, and what else is missing.",
        (
            Argument("tag", "only what has this tag", "tags"),
            Argument("requirement", "only this requirement", "requirements"),
        ),
        prompt_guidance.FIND_GAPS,
        prompt_facts.of_gaps,
        subject="requirement",
    ),
    *(
        Prompt(name, one.title, one.description, (), "", prompt_facts.of_memory, guide=one)
        for name, one in MEMORY_GUIDES.items()
    ),
)


def listed(service: Service) -> list[types.Prompt]:
    """Return the prompts that this server offers, always in the same order."""
    return [
        types.Prompt(
            name=one.name,
            title=one.title,
            description=one.description,
            arguments=[
                types.PromptArgument(name=each.name, description=each.description, required=each.is_required)
                for each in one.arguments
            ],
        )
        for one in PROMPTS
        if is_offered(service, one)
    ]


def is_offered(service: Service, prompt: Prompt) -> bool:
    """Return whether this server offers a prompt: one that only reads has none for writing."""
    is_wanted = _toolset_of(prompt) in service.options.toolsets
    return is_wanted and not (prompt.writes and service.options.is_read_only)


def _toolset_of(prompt: Prompt) -> str:
    """Return the toolset that a prompt belongs to: it calls only tools of that one."""
    return TOOLSET if prompt.guide else "core"


def find(service: Service, name: str) -> Prompt:
    """Return the prompt with this name. Raises: ``InvalidQuery``."""
    found = next((one for one in PROMPTS if one.name == name), None)
    if found is None:
        offered = [one.name for one in PROMPTS if is_offered(service, one)]
        raise InvalidQuery(f"There is no prompt {in_quotes(name[:100])}.", hint=did_you_mean(name, offered))
    if _toolset_of(found) not in service.options.toolsets:
        message = f"{name} is in the toolset {_toolset_of(found)}, which this server does not offer."
        raise InvalidQuery(message, hint=f"Have the server started with --toolsets core,{TOOLSET}.")
    if not is_offered(service, found):
        raise InvalidQuery(f"{name} is not offered: this server runs with --read-only.", hint="Ask for another prompt.")
    return found


async def get(service: Service, client: Client, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt when this request is admitted.

    Raises: ``MCPError``, which holds the JSON of the error as its data.
    """

    def read() -> ClientRequest:
        prompt = find(service, name)
        return ClientRequest(
            _AskedPrompt(prompt, _read(prompt, arguments), MOST_CHARS - len(_guidance(service, prompt)))
        )

    outcome = await run_call(service, client, "kb.query", read, _blocks)
    if outcome.error is not None:
        raise refusal(outcome.error, outcome.payload)
    prompt, blocks = find(service, name), outcome.payload
    parts: list[types.ContentBlock] = [types.TextContent(type="text", text=_guidance(service, prompt))]
    if prompt.guide:
        page = types.TextResourceContents(uri=REFERENCE.uri, mime_type=resource_list.MARKDOWN, text=REFERENCE.text)
        parts.append(types.EmbeddedResource(type="resource", resource=page))
    if blocks["subject"]:
        uri, document = resource_list.uri_of(blocks["id"]), text_of(DATA_NOTE | blocks["subject"])
        held = types.TextResourceContents(uri=uri, mime_type="application/json", text=document)
        parts.append(types.EmbeddedResource(type="resource", resource=held))
    known = blocks["facts"]
    note = " ".join(one["note"] for one in (blocks, known) if "note" in one)
    facts = text_of(known | ({"note": note} if note else {}))
    parts.append(types.TextContent(type="text", text=fenced(facts)))
    messages = [types.PromptMessage(role="user", content=part) for part in parts]
    return types.GetPromptResult(description=prompt.description, messages=messages)


def _guidance(service: Service, prompt: Prompt) -> str:
    """Return what a prompt asks for, in the words of this server."""
    options = service.options
    text = prompt.guide.text if prompt.guide else prompt.guidance
    return prompt_guidance.spoken(text, is_dotted=options.is_dotted, is_read_only=options.is_read_only)


def refusal(error: Exception, payload: Payload) -> MCPError:
    """Return the protocol's error for one that ``payload`` explains; its message says the remedy as well."""
    code = types.INVALID_PARAMS if isinstance(error, Misuse | Rejected) else types.INTERNAL_ERROR
    body = payload["error"]
    return MCPError(code=code, message=f"{body['message']} {body['hint']}".strip(), data=payload)


def _read(prompt: Prompt, given: Mapping[str, str]) -> dict[str, str]:
    """Return what was given of a prompt's arguments, those that hold nothing left out. Raises: ``InvalidQuery``."""
    names = [one.name for one in prompt.arguments]
    problems = []
    for name in given:
        if name not in names:
            hint = f"{_near(name, names)}Allowed: {', '.join(names)}."
            problems.append(Problem(f"$.{name}", "unknown_argument", f"There is no argument {in_quotes(name)}.", hint))
        elif len(given[name]) > MAX_ARGUMENT_CHARS:
            message = f"`{name}` is longer than {MAX_ARGUMENT_CHARS} characters."
            problems.append(Problem(f"$.{name}", "too_long", message, "Name an id, or a few words."))
    asked = {name: given[name].strip() for name in names if given.get(name, "").strip()}
    for one in prompt.arguments:
        if one.is_required and one.name not in asked:
            message = f"The prompt {prompt.name} needs `{one.name}`: {one.description}."
            problems.append(Problem(f"$.{one.name}", "missing_argument", message, "Ask for the prompt again with it."))
    if problems:
        raise InvalidQuery(
            " ".join(one.message for one in problems), hint=problems[0].remedy, details=problems, says_first=True
        )
    return asked


def _near(name: str, names: list[str]) -> str:
    near = nearest(name, names)
    return f"Did you mean {in_quotes(near)}? " if near else ""


class _AskedPrompt(NamedTuple):
    prompt: Prompt
    arguments: Asked
    room: int
    """Characters that are left besides the guidance."""


def _blocks(call: Call, asked_prompt: _AskedPrompt, _: Sequence[Problem]) -> Payload:
    prompt, asked, room = asked_prompt
    seq, key = call.store.head().seq, asked.get(prompt.subject, "")
    subject = prompt_facts.entity(call, key) if key else None
    room -= _AROUND_CHARS + (length_of(subject) if subject else 0) + (len(REFERENCE.text) if prompt.guide else 0)
    return {"id": key, "subject": subject, "facts": prompt.facts(call, asked, seq, room)}
