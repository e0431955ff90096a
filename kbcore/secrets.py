"""Recognition of keys and tokens in text: formats that issuers document, and random values in fields for secrets.

Invariant: linear in the length of the text, whatever it holds, and never more of a value is shown than its first
characters. Errors, problems of files and violations mask what they say with ``masked`` when they are made. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec


class Secret(msgspec.Struct, frozen=True):
    """One value that looks like a secret.

    ``place`` is where it is below the value that was looked at, such as ``.deploy.note`` or ``[2]``, "" for the
    value itself; ``kind`` what it looks like, with its article; ``shown`` its first characters and its length.
    """

    place: str
    kind: str
    shown: str

    @property
    def looks(self) -> str:
        """Return the end of a sentence that says what this looks like."""
        return f"looks like {self.kind} ({self.shown})."


class Format(msgspec.Struct, frozen=True):
    """A documented format. No text without one of the ``marks`` has it; ``pattern`` matches the secret itself.

    It is compiled when a mark is met for the first time: few processes ever meet one.
    A pattern begins only where nothing of its own characters comes before it, or is of bounded length, and gives back
    nothing that it took: so no text makes it look twice at the same characters.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: str
    is_header: bool = False
    """The pattern matches the header of a secret, and what follows in the text belongs to it."""


def _format(kind: str, marks: str, pattern: str, *, is_header: bool = False) -> Format:
    return Format(kind, tuple(marks.split()), pattern, is_header)


_WORD: Final = r"(?<![A-Za-z0-9_])"
FORMATS: Final = (
    # AWS IAM User Guide, "IAM identifiers", unique ID prefixes: AKIA access key, ASIA temporary access key
    _format("an AWS access key id", "AKIA ASIA", r"(?<![A-Za-z0-9])A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    # GitHub Docs, "About authentication to GitHub", token formats; changelog of 2021-03-31: up to 255 characters
    _format("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _WORD + r"gh[pousr]_[A-Za-z0-9]{36,251}+"),
    _format("a GitHub token", "github_pat_", _WORD + r"github_pat_[A-Za-z0-9_]{22,244}+"),
    # GitLab Docs, "Security / Token overview", token prefixes
    _format("a GitLab token", "glpat-", _WORD + r"glpat-[A-Za-z0-9_-]{20,300}+"),
    # Slack API docs, "Token types"; xoxe: "Token rotation"; xapp: "App-level tokens"
    _format("a Slack token", "xox xapp-", _WORD + r"(?:xox[abceprs]|xapp)-[A-Za-z0-9-]{10,300}+"),
    # Stripe Docs, "API keys": secret and restricted keys of live mode
    _format("a Stripe key", "k_live_", _WORD + r"[rs]k_live_[A-Za-z0-9]{16,300}+"),
    # Google Cloud docs, "Manage API keys": a key is 39 characters and begins with AIza
    _format("a Google API key", "AIza", _WORD + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    # Claude API docs, "Authentication"; OpenAI API reference, "Authentication", project keys
    _format("an Anthropic key", "sk-ant-", _WORD + r"sk-ant-[a-z]{2,10}[0-9]{2}-[A-Za-z0-9_-]{20,300}+"),
    _format("an OpenAI key", "sk-proj-", _WORD + r"sk-proj-[A-Za-z0-9_-]{20,300}+"),
    # RFC 7468 section 10 and 11, RFC 4880 section 6.2, OpenSSH PROTOCOL.key; headers of keys that are not public
    _format(
        "a private key",
        "-----BEGIN",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        is_header=True,
    ),
    # PuTTY manual, appendix C, "PPK file format"
    _format("a private key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-[0-9]:", is_header=True),
    # age-encryption.org/v1, "The X25519 recipient type": Bech32 with the prefix AGE-SECRET-KEY-
    _format("an age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    # RFC 7519 section 3, in the compact form of RFC 7515 section 7.1: both JSON objects begin with eyJ
    _format(
        "a JSON Web Token",
        "eyJ",
        r"(?<![A-Za-z0-9_.-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{20,}+",
    ),
    # npm Docs, "About access tokens"; GitHub changelog of 2021-09-23, "npm has a new access token format"
    _format("an npm token", "npm_", _WORD + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    # PyPI help, "API tokens": pypi- and a macaroon, whose version 2 begins with these bytes
    _format("a PyPI token", "pypi-Ag", _WORD + r"pypi-Ag[A-Za-z0-9_-]{40,500}+"),
    # RFC 3986 section 3.2.1: userinfo with a password; what is only a place for one does not count
    _format("a URL with a password", "://", r"(?<=://)[^\s/?#@:\"'`<>]{0,200}+:[^\s/?#@,;\"'`<>{}$*\[\]()]{3,300}+@"),
)
"""Every documented format that is looked for."""

_BY_MARK: Final = tuple((mark, one) for one in FORMATS for mark in one.marks)

RANDOM_IN_FIELD: Final = "a random value in a field for secrets"
"""The kind of what only its field's name and its randomness give away."""

_NAME: Final = r"passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
_NAMED: Final = re.compile(_NAME, re.IGNORECASE)
_NAMES_NONE: Final = re.compile(
    r"(?:id|ids|hash|digest|sha\d*|checksum|fingerprint|name|url|uri|path|file|type|ref|arn|version|count)$",
    re.IGNORECASE,
)
"""The end of a name that says what belongs to a secret, and is none."""
_WORDS: Final = (
    r"(?:(?:[A-Z]?[a-z]++|[A-Z]++)\d{0,4}+|\d{1,4}+)(?:[-_./:,]{1,2}(?:(?:[A-Z]?[a-z]++|[A-Z]++)\d{0,4}+|\d{1,4}+))*+"
)
_HEX: Final = r"[0-9a-fA-F]+"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TEMPLATE: Final = r"[\s<>{}$*\[\]()]|://|^[/~.]|(.)\1{3}"
_MIN_CHARS: Final = 12
_MAX_CHARS: Final = 1024
_MIN_HEX_CHARS: Final = 32
_MIN_BITS: Final = 3.5
"""Shannon entropy per character, in bits; what gitleaks asks of values with such a name."""
_MIN_HEX_BITS: Final = 3.0
_SHOWN_CHARS: Final = 4

_IN_URLS: Final = "://"
MARKS: Final = "|".join(
    [
        *(re.escape(mark) for mark, _ in _BY_MARK if mark != _IN_URLS),
        r"://[^\s/@]*:[^\s/@]+@",
        rf'(?i:{_NAME})[^"]*":',
    ]
)
"""A pattern of every text with a secret, objects as compact JSON: for a database to ask first, in the words of RE2."""


def has_mark(text: str) -> bool:
    """Tell whether a text may hold a secret of a documented format, also in JSON: no mark has a character to escape."""
    return any(mark in text for mark, _ in _BY_MARK)


def secret_in(text: str, name: str = "") -> Secret | None:
    """Return the first secret in a text of the field ``name``, None when nothing looks like one."""
    for mark, known in _BY_MARK:
        found = re.search(known.pattern, text) if mark in text else None
        if found:
            return _secret(known.kind, found[0])
    if name and _is_named(name) and _is_random(text):
        return _secret(RANDOM_IN_FIELD, text)
    return None


def secrets_in(value: Any, name: str = "", place: str = "") -> Iterator[Secret]:
    """Yield the secrets in a JSON value and in the names of its members, at most one for each text.

    ``name`` is that of the field which holds the value; the entries of a list are in the same field.
    """
    if isinstance(value, str):
        found = secret_in(value, name)
        if found:
            yield msgspec.structs.replace(found, place=place)
    elif isinstance(value, Mapping):
        for key, member in value.items():
            found = secret_in(key)
            inner = f"{place}.{_beginning(key) if found else key}"
            if found:
                yield msgspec.structs.replace(found, place=inner)
            yield from secrets_in(member, key, inner)
    elif isinstance(value, list | tuple):
        for at, member in enumerate(value):
            yield from secrets_in(member, name, f"{place}[{at}]")


def masked(text: str, name: str = "") -> str:
    """Return a text of the field ``name`` in which only the first characters of each secret are left."""
    for mark, known in _BY_MARK:
        if mark in text:
            rest = r"[\s\S]*" if known.is_header else ""
            text = re.sub(known.pattern + rest, lambda found: _beginning(found[0]), text)
    return _beginning(text) if name and _is_named(name) and _is_random(text) else text


def masked_in(value: Any, name: str = "") -> Any:
    """Return a JSON value of the field ``name`` with ``masked`` texts; the names of members stay."""
    if isinstance(value, str):
        return masked(value, name)
    if isinstance(value, dict):
        return {key: masked_in(member, key) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(masked_in(member, name) for member in value)
    return value


def mask_fields(struct: msgspec.Struct, *names: str) -> None:
    """Mask these fields of a new struct, texts or lists of texts; one without a secret stays as it is."""
    for name in names:
        value = getattr(struct, name)
        if value and (other := masked_in(value)) != value:
            msgspec.structs.force_setattr(struct, name, other)


def _secret(kind: str, text: str) -> Secret:
    return Secret("", kind, f"{_beginning(text)}, {len(text)} characters")


def _beginning(text: str) -> str:
    """Return the first characters, of a short text fewer."""
    return f"{text[: min(_SHOWN_CHARS, len(text) // 4)]}…"


def may_name_secrets(text: str) -> bool:
    """Tell whether a text holds, or is, a name of fields that are for secrets."""
    return _NAMED.search(text) is not None


def _is_named(name: str) -> bool:
    return bool(_NAMED.search(name)) and not _NAMES_NONE.search(name)


def _is_random(text: str) -> bool:
    """Tell whether a text is like what a generator of keys makes, not like words, a version, a date or an id."""
    if not _MIN_CHARS <= len(text) <= _MAX_CHARS or re.search(_TEMPLATE, text) or re.fullmatch(_UUID, text):
        return False
    if re.fullmatch(_HEX, text):
        return len(text) >= _MIN_HEX_CHARS and _entropy(text) >= _MIN_HEX_BITS
    has_both = sum(map(str.isdecimal, text)) > 1 and any(map(str.isalpha, text))
    return has_both and not re.fullmatch(_WORDS, text) and _entropy(text) >= _MIN_BITS


def _entropy(text: str) -> float:
    """Return the bits per character (Shannon, "A Mathematical Theory of Communication", section 6)."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values())
