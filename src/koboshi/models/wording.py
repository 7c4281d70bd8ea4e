"""What is said of a provider that did not give a reply, and how its own words are made fit."""

from koboshi.domain.phrases import excerpt
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
        case _:
            return ""


def declined(refusal: str) -> str:
    return f"the model declined to answer: {excerpt(refusal, 200)}"


def rejected(status: int | None, body: object, endpoint: Endpoint) -> str:
    code = "" if status is None else f" (status {status})"
    said = without_secrets(words_in(body), endpoint)
    return f"the provider rejected the request{code}{': ' if said else ''}{said}"


def unauthorised(status: int | None, endpoint: Endpoint) -> str:
    if status == 403:
        return f"the provider does not allow this key to use {endpoint.name}"
    return "the key was refused by the provider"


def unknown_model(endpoint: Endpoint) -> str:
    where = ", or base_url is wrong" if endpoint.base_url else ""
    return f'the provider knows no model "{endpoint.model}"{where}'


def without_secrets(text: str, endpoint: Endpoint) -> str:
    """The beginning of the text, without the key."""
    secret = endpoint.api_key
    return excerpt(text.replace(secret, "***") if secret else text, 200)


def clean(text: str) -> str:
    """The text without halves of characters, which can not be stored."""
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
