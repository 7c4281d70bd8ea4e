"""Who may use the gateway, as the owner of the home is asked about it from the console."""

from dataclasses import asdict

from koboshi.control.replies import PairingList, PersonDenied, PersonLetIn, PersonRevoked
from koboshi.domain.ids import ChannelName
from koboshi.ports.store import Store

LISTED_MAX = 1_000


async def listed(store: Store) -> PairingList:
    return PairingList(
        strangers=await store.people.strangers(LISTED_MAX),
        people=await store.people.paired(LISTED_MAX),
    )


async def approve(store: Store, code: str) -> PersonLetIn | None:
    person = await store.people.approve(code)
    return None if person is None else PersonLetIn(**asdict(person))


async def deny(store: Store, code: str) -> PersonDenied | None:
    stranger = await store.people.deny(code)
    return None if stranger is None else PersonDenied(**asdict(stranger))


async def revoke(store: Store, channel: str, person: str) -> PersonRevoked:
    revoked = await store.people.revoke(ChannelName(channel), person)
    return PersonRevoked(channel=channel, person=person, **asdict(revoked))
