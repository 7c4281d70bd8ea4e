"""What the command line can ask, answered from the store's views."""

from collections.abc import Mapping
from dataclasses import asdict

from koboshi.domain.ids import DeliveryId, EntryId, SessionId, TurnId, parse_shown
from koboshi.ports.store import Store
from koboshi.ports.views import EntryView


async def answer(
    store: Store, request: Mapping[str, object], *, is_running: bool
) -> Mapping[str, object]:
    """The answer to one request, as JSON can hold it. `ok` says whether it could be given."""
    match request.get("ask"):
        case "status":
            status = asdict(await store.views.status())
            return {"ok": True, "is_running": is_running, "trouble": store.trouble, **status}
        case "explain":
            return await _explain(store, str(request.get("what", "")))
        case asked:
            return {"ok": False, "error": f"nobody here knows how to answer {asked!r}"}


async def _explain(store: Store, what: str) -> Mapping[str, object]:
    named = parse_shown(what)
    if named is None:
        entry = await store.views.entry_by_external_id(what)
        return _no(what) if entry is None else await _explain_entry(store, entry)
    kind, number = named
    match kind:
        case "turn":
            return await _explain_turn(store, what, TurnId(number))
        case "session":
            turns = await store.views.turns_of(SessionId(number), 1)
            return await _explain_turn(store, what, turns[0].turn_id) if turns else _no(what)
        case "message":
            found = await store.views.entry(EntryId(number))
            return _no(what) if found is None else await _explain_entry(store, found)
        case "delivery":
            delivery = await store.views.delivery(DeliveryId(number))
            if delivery is None:
                return _no(what)
            if delivery.turn_id is not None:
                return await _explain_turn(store, what, delivery.turn_id)
            return {"ok": True, "kind": "delivery", "delivery": asdict(delivery)}
        case _:
            return _no(what)


async def _explain_entry(store: Store, entry: EntryView) -> Mapping[str, object]:
    if entry.turn_id is not None:
        return await _explain_turn(store, f"m{entry.entry_id}", entry.turn_id)
    return {"ok": True, "kind": "message", "message": asdict(entry)}


async def _explain_turn(store: Store, what: str, turn_id: TurnId) -> Mapping[str, object]:
    explanation = await store.views.explain(turn_id)
    if explanation is None:
        return _no(what)
    return {"ok": True, "kind": "turn", **asdict(explanation)}


def _no(what: str) -> Mapping[str, object]:
    return {
        "ok": False,
        "error": f'there is nothing named "{what}"; turns are t1, sessions s1, messages m1, '
        "deliveries d1, and a platform's own message id works, too",
    }
