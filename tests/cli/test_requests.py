"""The requests that an owner of a home answers, as types and as objects of JSON."""

from collections.abc import Mapping

import msgspec
import pytest

from koboshi.control import replies, requests
from koboshi.control.request_wire import REQUESTS, cleaned, encoded, request_of
from koboshi.control.requests import (
    ControlRequest,
    CreateBackup,
    Explain,
    ListRows,
    ReadProcessLog,
    ResumeTurn,
    RevokePairing,
    ShowRow,
)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_each_request_is_read_as_it_was_sent(name: str) -> None:
    """Issue 14, point 4."""
    kind = REQUESTS[name]
    plain = kind()

    assert encoded(plain)["ask"] == name
    assert request_of(encoded(plain)) == plain
    assert request_of({"ask": name}) == plain


def test_every_request_of_the_module_has_a_name_of_its_own() -> None:
    """Issue 14, point 4: one that no client can send would be dead."""
    kinds = {
        each
        for each in vars(requests).values()
        if isinstance(each, type) and issubclass(each, ControlRequest) and not each.__subclasses__()
    }
    assert kinds == set(REQUESTS.values())
    assert not {name for name in REQUESTS if name != name.lower()}


LENIENT: list[tuple[Mapping[str, object], ControlRequest | None]] = [
    ({}, None),
    ({"ask": "everything"}, None),
    ({"ask": ["status"]}, None),
    ({"ask": "Request"}, None),
    ({"ask": "explain", "what": 5, "more": 1}, Explain(what="5")),
    ({"ask": "explain", "what": None}, Explain(what="None")),
    ({"ask": "explain", "what": "half \ud800"}, Explain(what="half ?")),
    ({"ask": "list", "limit": "many", "open": 1, "chat": 7}, ListRows()),
    ({"ask": "list", "limit": 10**40, "before": ["t1"]}, ListRows(limit=10**40, before="['t1']")),
    ({"ask": "show", "kind": ["turn"], "what": "t1"}, ShowRow(kind="['turn']", what="t1")),
    ({"ask": "process-log", "chars": -(10**40)}, ReadProcessLog(chars=-(10**40))),
    ({"ask": "turn-resume", "kind": "delivery", "what": "t1"}, ResumeTurn(what="t1")),
    (
        {"ask": "pairing-revoke", "what": "web", "person": 12},
        RevokePairing(what="web", person="12"),
    ),
    ({"ask": "backup-create", "keep": "all"}, CreateBackup()),
]


@pytest.mark.parametrize("asked, request_", LENIENT)
def test_a_malformed_field_counts_as_absent_or_as_its_words(
    asked: Mapping[str, object], request_: ControlRequest | None
) -> None:
    """Issue 14, point 4: a client of another version is answered as far as it is understood."""
    assert request_of(asked) == request_


def test_a_request_of_this_process_is_cleaned_as_one_that_was_sent() -> None:
    """Issue 14, point 4: an argument of a command may hold half a character."""
    assert cleaned(Explain(what="half \ud800")) == Explain(what="half ?")


def test_a_refusal_is_what_programs_and_people_read() -> None:
    """Issue 14, point 4."""
    said = replies.encoded(replies.refusal("not-found", "there is none"))

    assert said == {"ok": False, "error": {"type": "not-found", "message": "there is none"}}
    assert msgspec.convert(said, replies.Refusal).ok is False
