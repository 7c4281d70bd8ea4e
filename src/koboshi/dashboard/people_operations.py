"""Who may use the gateway: what the page does about it. A part of the table in `operations.py`.

A person is let in by the code that they tell, never by a name; so the page has no button beside a
stranger that would let them in.
"""

from koboshi.control.people_replies import (
    PersonDenied,
    PersonErased,
    PersonLetIn,
    PersonRevoked,
    RoleSet,
)
from koboshi.control.replies import (
    Done,
)
from koboshi.control.requests import (
    ApprovePairing,
    ControlRequest,
    DenyPairing,
    ErasePerson,
    RevokePairing,
    SetRole,
)
from koboshi.dashboard.operation import BASE, Make, Operation, PageCall

OWNERS_ONLY: tuple[type[ControlRequest], ...] = (
    ApprovePairing,
    DenyPairing,
    ErasePerson,
    RevokePairing,
    SetRole,
)


def _approving(call: PageCall) -> ApprovePairing:
    return ApprovePairing(what=_asked(call, "code"), role=_asked(call, "role"))


def _denying(call: PageCall) -> DenyPairing:
    return DenyPairing(what=_asked(call, "code"))


def _giving_role(call: PageCall) -> SetRole:
    channel, person = _asked(call, "channel"), _asked(call, "person")
    return SetRole(what=channel, person=person, role=_asked(call, "role"))


def _revoking(call: PageCall) -> RevokePairing:
    return RevokePairing(what=_asked(call, "channel"), person=_asked(call, "person"))


def _erasing(call: PageCall) -> ErasePerson:
    return ErasePerson(what=_asked(call, "channel"), person=_asked(call, "person"))


def _asked(call: PageCall, name: str) -> str:
    return call.query.get(name, "").strip()


def _done(
    word: str, name: str, summary: str, reply: type[Done], make: Make, *queries: str
) -> Operation:
    return Operation(
        path=f"{BASE}/people/{word}",
        name=name,
        summary=f"{summary}; a browser only",
        replies=(reply,),
        make=make,
        queries=queries,
        how="do",
    )


PEOPLE_OPERATIONS: tuple[Operation, ...] = (
    _done(
        "approve",
        "approvePerson",
        "Give access to the person who was given this code, as a member or an owner",
        PersonLetIn,
        _approving,
        "code",
        "role",
    ),
    _done("deny", "denyPerson", "Forget this code", PersonDenied, _denying, "code"),
    _done(
        "role",
        "setRole",
        "Make a person an owner or a member",
        RoleSet,
        _giving_role,
        "channel",
        "person",
        "role",
    ),
    _done(
        "revoke",
        "revokePerson",
        "Take access away from a person",
        PersonRevoked,
        _revoking,
        "channel",
        "person",
    ),
    _done(
        "erase",
        "erasePerson",
        "Erase everything that a person said, with the answers and their files",
        PersonErased,
        _erasing,
        "channel",
        "person",
    ),
)
