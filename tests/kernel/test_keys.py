"""The keys of chats: which session has which, and that no verb forgets one."""

from dataclasses import replace

import pytest

from koboshi.domain.ids import SessionId
from koboshi.domain.session import Settings
from koboshi.kernel.keys import chat_key, lock_session, of_sessions
from koboshi.kernel.sessions import set_session
from koboshi.kernel.transaction import NO_KEYS, Keys, Transaction
from koboshi.ports.store import Arrival
from koboshi.stores.sqlite.store import SqliteStore
from tests.harness.homes import WEB, Home
from tests.harness.named_keys import KeyNotNamed


def keys_in(home: Home) -> dict[tuple[str, str], int]:
    """The key of each session, by chat and thread."""
    return {(row["chat"], row["thread"]): row["lock_key"] for row in home.rows().sessions}


async def test_all_threads_of_a_chat_have_its_key(home: Home) -> None:
    """Issue 14, 2: 64 bits from channel and chat, the same on every machine."""
    await home.say(chat="ann", thread="1")
    await home.say(chat="ann", thread="2")
    await home.say(chat="bob")

    ann, bob = chat_key(WEB, "ann"), chat_key(WEB, "bob")
    assert keys_in(home) == {("ann", "1"): ann, ("ann", "2"): ann, ("bob", ""): bob}
    assert ann == -2883042575947553482
    assert -(2**63) <= bob < 2**63


async def test_a_move_changes_no_key_and_a_new_thread_takes_the_one_that_is_there(
    home: Home,
) -> None:
    """Issue 14, 2: the one who waits for the chat under its key must not wait for another one."""
    await home.say(chat="ann", thread="1")
    moved = replace(home.inbound("", thread="1"), moved_to="ann-2")
    await home.accept(Arrival(inbound=moved, ignored="moved"))
    await home.say(chat="ann-2", thread="2")

    ann = chat_key(WEB, "ann")
    assert keys_in(home) == {("ann-2", "1"): ann, ("ann-2", "2"): ann}


def forgets(tx: Transaction) -> None:
    set_session(tx, SessionId(1), Settings())


def locks(tx: Transaction) -> None:
    lock_session(tx, SessionId(1))
    forgets(tx)


async def test_a_verb_that_forgets_a_key_is_found(home: Home) -> None:
    """Issue 14, 2: the check that all tests of the store run under does refuse."""
    await home.say(chat="ann")
    await home.say(chat="bob")
    assert isinstance(home.store, SqliteStore)
    write = home.store._writer.write

    await write("named", forgets, of_sessions(SessionId(1)))
    await write("named", forgets, Keys(chats=(chat_key(WEB, "ann"),)))
    await write("locked", locks)
    for keys in (NO_KEYS, of_sessions(SessionId(2))):
        with pytest.raises(KeyNotNamed, match=r"forgotten: .* a row of sessions is not named"):
            await write("forgotten", forgets, keys)
