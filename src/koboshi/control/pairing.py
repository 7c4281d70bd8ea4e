"""Who may use the gateway, as the owner of the home is asked about it from the console."""

from dataclasses import asdict

from koboshi.control.context import ControlContext
from koboshi.control.people_replies import (
    PairingList,
    PersonDenied,
    PersonErased,
    PersonLetIn,
    PersonRevoked,
    RoleSet,
)
from koboshi.control.replies import (
    Refusal,
    refusal,
)
from koboshi.domain.approval import OPERATOR
from koboshi.domain.ids import ChannelName
from koboshi.domain.role import Role
from koboshi.ports.store import Store

LISTED_MAX = 1_000


async def listed(store: Store) -> PairingList:
    return PairingList(
        strangers=await store.people.strangers(LISTED_MAX),
        people=await store.people.paired(LISTED_MAX),
        without_owner=tuple(map(str, await store.people.without_owner())),
    )


async def approve(store: Store, code: str, role: str = "") -> PersonLetIn | Refusal | None:
    if role and role not in list(Role):
        return _no_such_role(role)
    person = await store.people.approve(code, Role(role or Role.MEMBER))
    return None if person is None else PersonLetIn(**asdict(person))


async def deny(store: Store, code: str) -> PersonDenied | None:
    stranger = await store.people.deny(code)
    return None if stranger is None else PersonDenied(**asdict(stranger))


async def revoke(store: Store, channel: str, person: str) -> PersonRevoked:
    revoked = await store.people.revoke(ChannelName(channel), person)
    return PersonRevoked(channel=channel, person=person, **asdict(revoked))


async def set_role(store: Store, channel: str, person: str, role: str) -> RoleSet | Refusal:
    if role not in list(Role):
        return _no_such_role(role)
    given = await store.people.set_role(ChannelName(channel), person, Role(role))
    return RoleSet(channel=channel, person=person, role=role, **asdict(given))


async def erase(jobs: ControlContext, channel: str, person: str) -> PersonErased:
    messages = await jobs.store.erasures.erase(ChannelName(channel), person, OPERATOR)
    return PersonErased(
        channel=channel,
        person=person,
        messages=messages,
        is_finished=await jobs.finish_erasures(),
        backups=jobs.backups(),
    )


def _no_such_role(role: str) -> Refusal:
    return refusal("refused", f'"{role}" is not a role; use {" or ".join(Role)}')
