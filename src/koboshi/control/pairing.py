"""Who may use the gateway, as the owner of the home is asked about it from the console."""

from collections.abc import Mapping
from dataclasses import asdict

from koboshi.domain.ids import ChannelName
from koboshi.ports.store import Store

LISTED_MAX = 1_000


async def listed(store: Store) -> Mapping[str, object]:
    strangers = await store.people.strangers(LISTED_MAX)
    people = await store.people.paired(LISTED_MAX)
    return {
        "ok": True,
        "strangers": [asdict(stranger) for stranger in strangers],
        "people": [asdict(person) for person in people],
    }


async def approve(store: Store, code: str) -> Mapping[str, object] | None:
    person = await store.people.approve(code)
    return None if person is None else {"ok": True, **asdict(person)}


async def deny(store: Store, code: str) -> Mapping[str, object] | None:
    stranger = await store.people.deny(code)
    return None if stranger is None else {"ok": True, **asdict(stranger)}


async def revoke(store: Store, channel: str, person: str) -> Mapping[str, object]:
    revoked = await store.people.revoke(ChannelName(channel), person)
    return {"ok": True, "channel": channel, "person": person, **asdict(revoked)}
