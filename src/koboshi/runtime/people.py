"""Who may use the gateway, as the owner of the home is asked about it from the console."""

from collections.abc import Mapping
from dataclasses import asdict

import structlog

from koboshi.domain.ids import ChannelName
from koboshi.ports.store import Store

log = structlog.get_logger()

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
    if person is None:
        return None
    log.info("person_paired", channel=person.channel, person=person.person)
    return {"ok": True, **asdict(person)}


async def deny(store: Store, code: str) -> Mapping[str, object] | None:
    stranger = await store.people.deny(code)
    if stranger is None:
        return None
    log.info("person_denied", channel=stranger.channel, person=stranger.person)
    return {"ok": True, **asdict(stranger)}


async def revoke(store: Store, channel: str, person: str) -> Mapping[str, object]:
    revoked = await store.people.revoke(ChannelName(channel), person)
    if revoked.was_paired:
        log.info("person_revoked", channel=channel, person=person)
    return {"ok": True, "channel": channel, "person": person, **asdict(revoked)}
