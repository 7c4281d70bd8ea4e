"""Requests as objects of JSON on the control socket.

What comes over the socket is read leniently: a field of a wrong type counts as absent or as its
words, an unknown field is not read. So a client of another version is answered as far as it is
understood.
"""

from collections.abc import Callable, Mapping

import msgspec

from koboshi.control.requests import ControlRequest


def encoded(request: ControlRequest) -> dict[str, object]:
    """The request as an object of JSON."""
    built: dict[str, object] = msgspec.to_builtins(request)
    return built


def readable(value: object) -> object:
    """Half a character is legal in JSON; no row holds one, and no answer can repeat it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if isinstance(value, bool | int | float | None) else str(readable(repr(value)))


def cleaned(request: ControlRequest) -> ControlRequest:
    """The request with nothing in it that cannot be stored, as one that came over the socket."""
    return request_of(encoded(request)) or request


def request_of(asked: Mapping[str, object]) -> ControlRequest | None:
    """The request that an object of JSON is; None if there is none of this name."""
    name = asked.get("ask")
    kind = REQUESTS.get(name) if isinstance(name, str) else None
    if kind is None:
        return None
    given = (each for each in kind.__struct_fields__ if each in asked)
    found: ControlRequest = msgspec.convert(
        {each: _READ[each](readable(asked[each])) for each in given} | {"ask": name}, kind
    )
    return found


def _text_or_nothing(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number_or_none(value: object) -> int | None:
    """True and false are whole numbers to Python, and words of their own to JSON."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_READ: Mapping[str, Callable[[object], object]] = {
    "what": str,
    "kind": str,
    "person": str,
    "role": str,
    "channel": str,
    "before": _text_or_nothing,
    "session": _text_or_nothing,
    "chat": _text_or_nothing,
    "thread": _text_or_nothing,
    "message": _text_or_nothing,
    "text": _text_or_nothing,
    "choice": lambda value: value if isinstance(value, str) else None,
    "question": _number_or_none,
    "limit": _number_or_none,
    "chars": _number_or_none,
    "keep": _number_or_none,
    "since": _number_or_none,
    "since_ms": lambda value: _number_or_none(value) or 0,
    "until": _number_or_none,
    "state": _text_or_nothing,
    "open": lambda value: value is True,
    "anew": lambda value: value is True,
}
"""How each field is read, whichever request it is of."""


def _named(kind: type[ControlRequest]) -> dict[str, type[ControlRequest]]:
    """The request of this type and of those derived from it, by their names."""
    tag = kind.__struct_config__.tag
    own = {tag: kind} if isinstance(tag, str) and kind.__subclasses__() == [] else {}
    return own | {
        name: each for below in kind.__subclasses__() for name, each in _named(below).items()
    }


REQUESTS: Mapping[str, type[ControlRequest]] = _named(ControlRequest)
