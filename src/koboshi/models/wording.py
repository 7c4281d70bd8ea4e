"""What is said of a provider that did not give a reply, and how its own words are made fit."""

import json
import re
from urllib.parse import urlsplit

from koboshi.domain.marks import unmarked
from koboshi.domain.phrases import excerpt
from koboshi.domain.text import plain
from koboshi.models.endpoint import Endpoint

ENDED_EARLY = "the stream ended early"
MALFORMED = "the provider sent something that is no reply"
OVERFULL = "the conversation has grown too long for the model"
TOO_LONG = "the model's reply is too long to be kept"
CUT_AT_LENGTH = "the reply was longer than the model may write"
NO_CALL = "the provider announced a call and sent none"
NO_ARGUMENTS = "the arguments of a call are not a JSON object"
FILTERED = "the provider's content filter stopped the answer"
BROKE_OFF = "the model broke off with an error"
SPENT = "the account at the provider has no credit left"
OVERLOADED = "the provider is overloaded"
TOO_FAST = "the provider asks for fewer requests"
UNAVAILABLE = "the provider is not available at the moment"

QUOTED_CHARS_MAX = 200
"""Of a provider's own words."""
READ_CHARS_MAX = 10_000
"""Of what a provider says; the rest is not looked at."""

# Providers repeat the key that they refuse, whole or with stars in it.
_KEY_LIKE = re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf)[-_]|AIza)[-_*A-Za-z0-9]{8,}|\bBearer\s+\S+")
_STARRED = re.compile(r"\S*\*{3,}\S*")

_OVERFULL_WORDS = (
    "prompt is too long",  # anthropic, and what imitates it
    "prompt too long",  # ollama: "prompt too long; exceeded max context length by 3 tokens"
    "exceeds the maximum number of tokens",  # google
    "exceeds the available context size",  # llama.cpp
    "exceeded max context length",
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "context window",
    "request exceeds the maximum size",  # anthropic, of a whole request
)


def is_overfull(body: object) -> bool:
    """Whether these are words for a conversation that is too long; servers that imitate an
    interface have no code for it."""
    said = words_in(body).lower()
    return any(words in said for words in _OVERFULL_WORDS)


def words_in(body: object) -> str:
    """What the provider says about its error, wherever it puts it."""
    match body:
        case {"error": {"message": str() as words}} | {"message": str() as words}:
            return words
        case {"error": str() as words} | {"detail": str() as words}:
            return words
        case {"error": {"message": dict() | list() as inner}} | {"error": list() as inner}:
            return words_in(inner)
        case {"errors": [first, *_]} | {"detail": [first, *_]} | [first, *_]:
            return words_in(first)
        case {"msg": str() as words}:
            return words
        case str() as text:
            return _words_in_text(text)
        case _:
            return ""


def _words_in_text(text: str) -> str:
    """The words of an answer that was not read as JSON. A page of a proxy has none."""
    text = text[:READ_CHARS_MAX].strip()
    if text.startswith(("{", "[")):
        try:
            return words_in(json.loads(text))
        except (ValueError, RecursionError):
            return text
    return "" if text.startswith("<") else text


def quoted(body: object, endpoint: Endpoint) -> str:
    """The provider's own sentence, to stand behind ours; nothing if it has none."""
    said = without_secrets(words_in(body), endpoint)
    return f": {said}" if said else ""


def declined(refusal: str) -> str:
    return f"the model declined to answer: {excerpt(refusal, 200)}"


def rejected(status: int | None, body: object, endpoint: Endpoint) -> str:
    code = "" if status is None else f" (status {status})"
    return f"the provider rejected the request{code}{quoted(body, endpoint)}"


def unauthorised(status: int | None, endpoint: Endpoint) -> str:
    if status == 403:
        return f"the provider does not allow this key to use {endpoint.name}"
    return "the key was refused by the provider"


def unknown_model(endpoint: Endpoint) -> str:
    where = ", or base_url is wrong" if endpoint.base_url else ""
    return f'the provider knows no model "{endpoint.model}"{where}'


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """The beginning of a foreign text, on one line: without keys, without what is not
    printed, and without our mark, by which the model knows our words."""
    text = plain(clean(text[:READ_CHARS_MAX]))
    for secret in _secrets_of(endpoint):
        text = text.replace(secret, "***")
    text = _STARRED.sub("***", _KEY_LIKE.sub("***", text))
    return excerpt(unmarked(text), QUOTED_CHARS_MAX)


def _secrets_of(endpoint: Endpoint) -> tuple[str, ...]:
    try:
        password = urlsplit(endpoint.base_url).password or ""
    except ValueError:
        password = ""
    return tuple(secret for secret in (endpoint.api_key, password) if secret)


def clean(text: str) -> str:
    """The text without halves of characters, which cannot be stored."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def trace_of(error: BaseException) -> str:
    """The errors from the one that reached us to where it began, for the log.

    Only the operating system is quoted: what a provider says may hold a person's words.
    """
    names: list[str] = []
    current: BaseException | None = error
    while current is not None and len(names) < 10:
        words = f" ({excerpt(str(current), 200)})" if isinstance(current, OSError) else ""
        names.append(f"{type(current).__name__}{words}")
        current = current.__cause__ or current.__context__
    return " from ".join(names)
