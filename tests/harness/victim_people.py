"""The part of the victim's story that is about people: who is let in, and what they allow."""

from collections.abc import AsyncIterator

from koboshi.domain.chat import ChatMark
from koboshi.domain.command import Ruling
from koboshi.domain.ids import Seq
from koboshi.domain.incoming import Incoming, IncomingMemory, Newcomer, StagedFile
from koboshi.domain.memory import Scope, ScopeKind, Shelf
from koboshi.domain.role import Role
from koboshi.domain.transcript import ApprovalSeal, Effect, Need
from tests.harness.backends import nth_code
from tests.harness.homes import FRONT, WEB, Home, a_call

MOVED = Incoming(
    digest="d1",
    source="hermes",
    people=(Newcomer(channel=FRONT, person="newcomer"),),
    files=(StagedFile(staged="a", target="b"),),
    memory=IncomingMemory(
        texts=((Shelf.USER, "likes tea"),),
        scopes=(Scope(channel=WEB, kind=ScopeKind.PERSON, name=""),),
    ),
)


async def with_strangers(home: Home) -> AsyncIterator[str]:
    """Two ask to be let in; one is, and is not any more."""
    people = home.store.people
    await home.knock("eve")
    yield "inbox.accept"
    await home.knock("mallory")
    yield "inbox.accept"
    assert await people.approve(nth_code(1))
    yield "people.approve"
    assert await people.deny(nth_code(2))
    yield "people.deny"
    home.sql(  # as an upgrade leaves them
        "INSERT INTO people (channel, person, name, entry_id, paired_ms) "
        f"VALUES ('{FRONT}', 'old', 'Old', 1, 1)"
    )
    await home.knock("eve")
    yield "inbox.accept"
    assert (await people.set_role(FRONT, "eve", Role.OWNER)).was_paired
    yield "people.set_role"
    assert await people.tell_of_roles()
    yield "people.tell_of_roles"
    assert await home.store.erasures.erase(FRONT, "mallory", "operator")
    yield "erasures.erase"
    (erasure,) = await home.store.erasures.unfinished()
    await home.store.erasures.files_gone(erasure.erasure_id)
    yield "erasures.files_gone"
    await home.store.erasures.finished(erasure.erasure_id)
    yield "erasures.finished"
    revoked = await people.revoke(FRONT, "eve")
    assert revoked.turns_set_aside == 1
    yield "people.revoke"
    async for verb in _with_browsers(home):
        yield verb


async def _with_browsers(home: Home) -> AsyncIterator[str]:
    """Two browsers are let in; one is used, and both are logged out."""
    browsers = home.store.browsers
    desk = await browsers.make(cookie_hash="c1", proof_hash="p1", label="desk")
    yield "browsers.make"
    await browsers.make(cookie_hash="c2", proof_hash="p2", label="phone")
    yield "browsers.make"
    home.clock.move(1_000)
    await browsers.use(desk.browser_id)
    yield "browsers.use"
    assert await browsers.revoke(desk.browser_id)
    yield "browsers.revoke"
    assert await browsers.revoke_all() == 1
    yield "browsers.revoke_all"
    async for verb in _with_chats(home):
        yield verb


async def _with_chats(home: Home) -> AsyncIterator[str]:
    """A chat is named, pinned, found and deleted, and the minute is noted."""
    await home.say("keep me", chat="kept")
    yield "inbox.accept"
    assert await home.store.chats.name(WEB, "kept", "The garden")
    yield "chats.name"
    assert await home.store.chats.mark(WEB, "kept", ChatMark.PIN)
    yield "chats.mark"
    assert await home.store.search.index(10_000)
    yield "search.index"
    await home.store.minutes.note(tokens={}, memory_bytes=1, store_bytes=1)
    yield "minutes.note"
    assert (await home.store.imports.commit(MOVED)).is_new
    yield "imports.commit"
    await home.store.imports.finish(MOVED.digest)
    yield "imports.finish"
    assert await home.store.chats.delete(WEB, "kept", "operator") == 1
    yield "chats.delete"
    await home.store.search.clear()
    yield "search.clear"


async def with_approvals(home: Home) -> AsyncIterator[str]:
    """The owner allows a call for good on the page, and takes the rule back."""
    await home.say("clean up", chat="dan")
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    (call_id,) = await home.propose(claim, a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL))
    yield "turns.append"
    sealed = ApprovalSeal(seal="s", rule_key="k", begin=0, end=2)
    await home.store.turns.ask(claim, call_id, "ls", (), 86_400_000, sealed=sealed)
    yield "turns.ask"
    (question,) = [each for each in await home.store.views.questions(10) if each.text == "ls"]
    ruling = Ruling(is_yes=True, keeps=True)
    assert await home.store.approvals.rule_on(Seq(question.question), ruling)
    yield "approvals.rule_on"
    (rule,) = await home.store.approvals.rules(10)
    assert await home.store.approvals.revoke(rule.rule_id)
    yield "approvals.revoke"
    await home.stop(chat="dan")
    yield "inbox.accept"
