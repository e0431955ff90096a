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
from kbmcp.resources import logic_prompts, prompt_facts, prompt_guidance, resource_list
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE, TOOLSET
from kbmcp.resources.prompt_facts import Asked
from kbmcp.resources.static_pages import ResourcePage
from kbmcp.tools.answers import DATA_NOTE, Payload, length_of, text_of
from kbmcp.tools.call import Call, Client
from kbmcp.tools.refusals import allowed_names
from kbmcp.tools.run_call import ClientRequest, run_call
from kbmcp.tools.service import Service

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
    choices: tuple[str, ...] = ()
    """The only values, the first for an argument that is not given; none for any value."""


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
    guide: ResourcePage | None = None
    """The text in place of ``guidance``, in the toolset kip."""
    modes: Mapping[str, str] = {}
    """The texts in place of ``guidance`` by the argument ``mode``."""
    toolset: str = "core"
    """It calls only tools of this one."""


def _logic_prompt(
    name: str, title: str, description: str, guidance: str = "", *, modes: Mapping[str, str] | None = None
) -> Prompt:
    """Return a prompt of the toolset logic; one with modes has the argument ``mode``."""
    choices = tuple(modes or ())
    mode = Argument("mode", f"{' or '.join(choices)}; {choices[0]} if not given", choices=choices) if modes else None
    facts, toolset = prompt_facts.of_workspace, logic_prompts.TOOLSET
    arguments = (mode,) if mode else ()
    return Prompt(name, title, description, arguments, guidance, facts, modes=modes or {}, toolset=toolset)


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
            Argument(
                "since", "only records after this seq, time or revision of git; the latest ten if not given", "seqs"
            ),
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
        Prompt(name, one.title, one.description, (), "", prompt_facts.of_memory, guide=one, toolset=TOOLSET)
        for name, one in MEMORY_GUIDES.items()
    ),
    _logic_prompt("expert", "Prolog expert", "Help with Prolog in this workspace.", modes=logic_prompts.EXPERT),
    _logic_prompt(
        "knowledge",
        "Prolog knowledge base",
        "Design a knowledge base in Prolog, or examine the one of this workspace.",
        modes=logic_prompts.KNOWLEDGE,
    ),
    _logic_prompt("optimize", "Optimize a query", "Make a Prolog query fast.", logic_prompts.OPTIMIZE),
    _logic_prompt("puzzle", "Solve a puzzle", "Solve a logic puzzle with constraints.", logic_prompts.PUZZLE),
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
    is_wanted = prompt.toolset in service.options.toolsets
    return is_wanted and not (prompt.writes and service.options.is_read_only)


def find(service: Service, name: str) -> Prompt:
    """Return the prompt with this name. Raises: ``InvalidQuery``."""
    found = next((one for one in PROMPTS if one.name == name), None)
    if found is None:
        offered = [one.name for one in PROMPTS if is_offered(service, one)]
        raise InvalidQuery(f"There is no prompt {in_quotes(name[:100])}.", hint=did_you_mean(name, offered))
    if found.toolset not in service.options.toolsets:
        wanted = ",".join(dict.fromkeys(("core", *service.options.toolsets, found.toolset)))
        message = f"{name} is in the toolset {found.toolset}, which this server does not offer."
        raise InvalidQuery(message, hint=f"Have the server started with --toolsets {wanted}.")
    if not is_offered(service, found):
        raise InvalidQuery(f"{name} is not offered: this server runs with --read-only.", hint="Ask for another prompt.")
    return found


async def get(service: Service, client: Client, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt when this request is admitted.

    Raises: ``MCPError``, which holds the JSON of the error as its data.
    """

    def read() -> ClientRequest:
        prompt = find(service, name)
        asked = _read(prompt, arguments)
        return ClientRequest(_AskedPrompt(prompt, asked, MOST_CHARS - len(_guidance(service, prompt, asked))))

    outcome = await run_call(service, client, "kb.query", read, _blocks)
    if outcome.error is not None:
        raise refusal(outcome.error, outcome.payload)
    prompt, blocks = find(service, name), outcome.payload
    parts: list[types.ContentBlock] = [types.TextContent(type="text", text=_guidance(service, prompt, arguments))]
    if prompt.guide:
        text = REFERENCE.read()
        page = types.TextResourceContents(uri=REFERENCE.uri, mime_type=REFERENCE.mime_type, text=text)
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


def _guidance(service: Service, prompt: Prompt, asked: Mapping[str, str]) -> str:
    """Return what a prompt asks for, in the words of this server."""
    options = service.options
    text = prompt.guide.read() if prompt.guide else prompt.guidance
    if prompt.modes:
        text = prompt.modes[asked.get("mode", "").strip() or next(iter(prompt.modes))]
    return prompt_guidance.in_words_for(text, is_dotted=options.is_dotted, is_read_only=options.is_read_only)


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
            hint = f"{_near(name, names)}{allowed_names(names)}"
            problems.append(Problem(f"$.{name}", "unknown_argument", f"There is no argument {in_quotes(name)}.", hint))
        elif len(given[name]) > MAX_ARGUMENT_CHARS:
            message = f"`{name}` is longer than {MAX_ARGUMENT_CHARS} characters."
            problems.append(Problem(f"$.{name}", "too_long", message, "Name an id, or a few words."))
    asked = {name: given[name].strip() for name in names if given.get(name, "").strip()}
    for one in prompt.arguments:
        if one.choices and one.name in asked and asked[one.name] not in one.choices:
            message = f"`{one.name}` is {' or '.join(one.choices)}, not {in_quotes(asked[one.name])}."
            hint = did_you_mean(asked[one.name], one.choices)
            problems.append(Problem(f"$.{one.name}", "bad_value", message, hint, values=one.choices))
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
    room -= _AROUND_CHARS + (length_of(subject) if subject else 0) + (len(REFERENCE.read()) if prompt.guide else 0)
    return {"id": key, "subject": subject, "facts": prompt.facts(call, asked, seq, room)}
