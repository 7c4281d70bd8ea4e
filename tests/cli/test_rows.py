"""Rows as the operator lists, shows and changes them, and the way of a message."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest

from koboshi.cli.trace import render_trace
from koboshi.control.handle import answer
from koboshi.domain.action import BY_GATEWAY
from koboshi.domain.command import CommandName
from koboshi.domain.outbox import DeliveryState, Postpone, Settle
from koboshi.domain.process import ProcessState
from koboshi.domain.transcript import Effect, Reply
from koboshi.ports.views import Page, Trace
from tests.cli.process import gateway, koboshi
from tests.harness.asked_owner import jobs
from tests.harness.backends import SqliteBackend
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import Home, a_call


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(backend=SqliteBackend(tmp_path))
    await one.boot()
    yield one
    await one.store.close()


async def ask(home: Home, asked: str, **request: object) -> Any:
    """The answer, as it comes out of the socket."""
    return json.loads(json.dumps(await answer(jobs(home), {"ask": asked, **request})))


async def error(home: Home, asked: str, **request: object) -> str:
    said = await ask(home, asked, **request)
    assert said["ok"] is False
    return f"{said['error']['type']}: {said['error']['message']}"


async def rejected(home: Home) -> str:
    """The id of a delivery that the platform refused."""
    claim = await home.work_on("one")
    await home.answer(claim, "the answer")
    delivery = await home.take_delivery()
    change = Settle(state=DeliveryState.REJECTED, reason="too long")
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)
    return f"d{delivery.delivery_id}"


@pytest.mark.parametrize(
    "kind, name, prefix",
    [("turn", "turns", "t"), ("message", "messages", "m"), ("delivery", "deliveries", "d")],
)
async def test_a_list_is_read_page_by_page_newest_first(
    home: Home, kind: str, name: str, prefix: str
) -> None:
    for text in ("one", "two", "three"):
        await home.answer(await home.work_on(text))
    field = {"turn": "turn_id", "message": "entry_id", "delivery": "delivery_id"}[kind]
    first = await ask(home, "list", kind=kind, limit=2)
    rest = await ask(home, "list", kind=kind, limit=2, before=first["next"])

    assert [row[field] for row in first[name]] == [3, 2]
    assert first["next"] == f"{prefix}2"
    assert [row[field] for row in rest[name]] == [1]
    assert rest["next"] is None


async def test_only_what_is_open_can_be_listed(home: Home) -> None:
    await home.answer(await home.work_on("one"))
    await home.deliver()
    await home.work_on("two")
    await home.say("three")

    turns = await ask(home, "list", kind="turn", open=True)
    messages = await ask(home, "list", kind="message", open=True)
    deliveries = await ask(home, "list", kind="delivery", open=True)
    assert [turn["request"] for turn in turns["turns"]] == ["two"]
    assert [message["text"] for message in messages["messages"]] == ["three"]
    assert deliveries["deliveries"] == []


async def test_sessions_are_listed_and_shown(home: Home) -> None:
    await home.work_on("one")
    await home.say("two")
    await home.say("hello", chat="bob")

    listed = await ask(home, "list", kind="session")
    shown = await ask(home, "show", kind="session", what="s1")
    assert [row["route"]["chat"] for row in listed["sessions"]] == ["bob", "ann"]
    assert (shown["session"]["waiting"], shown["session"]["open_turn"]["state"]) == (1, "running")
    assert [turn["request"] for turn in shown["turns"]] == ["one"]


async def test_a_turn_is_shown_with_what_belongs_to_it(home: Home) -> None:
    claim = await home.work_on("one")
    await home.step(claim)
    await home.answer(claim)

    shown = await ask(home, "show", kind="turn", what="t1")
    assert [row["text"] for row in shown["messages"]] == ["one"]
    assert [(row["tool"], row["outcome"]) for row in shown["calls"]] == [("fetch", "ok")]
    assert [row["state"] for row in shown["deliveries"]] == ["owed"]


@pytest.mark.parametrize(
    "asked, kind, what",
    [
        ("show", "turn", "t9"),
        ("show", "turn", "m1"),
        ("show", "session", "s9"),
        ("show", "message", "m9"),
        ("show", "delivery", "nonsense"),
        ("turn-resume", "turn", "t9"),
        ("turn-drop", "turn", "x"),
        ("inbox-retry", "message", "m9"),
        ("inbox-drop", "message", "t1"),
        ("inbox-drop", "message", "m9"),
        ("outbox-retry", "delivery", "d9"),
        ("outbox-drop", "delivery", "d9"),
        ("trace", "", "nobody-sent-this"),
    ],
)
async def test_what_is_not_there_is_named(home: Home, asked: str, kind: str, what: str) -> None:
    await home.say()
    words = await error(home, asked, kind=kind, what=what)
    assert words.startswith("not-found: ")
    assert f'"{what}"' in words


async def test_a_page_before_nothing_is_refused(home: Home) -> None:
    assert (await error(home, "list", kind="turn", before="d1")).startswith("bad-request: ")


async def test_the_operator_resumes_and_drops_what_no_worker_holds(home: Home) -> None:
    claim = await home.work_on("one")
    assert "is working on it" in await error(home, "turn-resume", kind="turn", what="t1")
    home.clock.move(2 * HOUR_MS)
    assert (await home.die_and_recover(claim.turn_id)).rule == "stale"
    resumed = await ask(home, "turn-resume", kind="turn", what="t1")
    assert resumed["turn"]["state"] == "queued"
    claim = await home.claim()
    await home.reopen(crash=True)

    dropped = await ask(home, "turn-drop", kind="turn", what="t1")
    assert (dropped["turn"]["state"], dropped["turn"]["event"]) == ("stopped", "dropped")
    assert "it has ended" in await error(home, "turn-drop", kind="turn", what="t1")


async def test_what_was_refused_is_owed_again_as_a_new_row_once(home: Home) -> None:
    """Settled rows never change; the new one names the old one in its cause."""
    old = await rejected(home)
    before = await ask(home, "show", kind="delivery", what=old)
    first = await ask(home, "outbox-retry", kind="delivery", what=old)
    again = await ask(home, "outbox-retry", kind="delivery", what=old)

    assert first == again
    assert first["delivery"]["cause"] == f"retry:{old[1:]}"
    assert [each.text for each in await home.deliver()] == ["the answer"]
    assert await ask(home, "show", kind="delivery", what=old) == before
    assert "was delivered" in await error(home, "outbox-retry", kind="delivery", what=old)
    new = f"d{first['delivery']['delivery_id']}"
    assert "it was delivered" in await error(home, "outbox-retry", kind="delivery", what=new)
    assert "it was delivered" in await error(home, "outbox-drop", kind="delivery", what=new)


async def test_what_waits_for_its_time_is_due_now(home: Home) -> None:
    await home.answer(await home.work_on("one"))
    delivery = await home.take_delivery()
    later = Postpone(wait_ms=HOUR_MS, is_ambiguous=False, reason="429")
    await home.store.outbox.settle(delivery, home.worker.worker_id, later)
    await ask(home, "outbox-retry", kind="delivery", what="d1")

    assert [each.text for each in await home.deliver()] == ["done"]


async def test_what_is_owed_is_dropped_and_its_turn_is_done(home: Home) -> None:
    claim = await home.work_on("one")
    await home.answer(claim)
    dropped = await ask(home, "outbox-drop", kind="delivery", what="d1")

    assert dropped["delivery"]["state"] == "abandoned"
    assert dropped["delivery"]["reason"] == "dropped by the operator"
    assert (await home.view(claim.turn_id)).state == "done"
    assert await home.deliver() == []


async def test_what_is_being_sent_is_left_alone_until_its_sender_is_dead(home: Home) -> None:
    await home.answer(await home.work_on("one"))
    await home.take_delivery()
    assert "being sent" in await error(home, "outbox-drop", kind="delivery", what="d1")
    assert "being sent" in await error(home, "outbox-retry", kind="delivery", what="d1")
    await home.reopen(crash=True)
    assert (await ask(home, "outbox-drop", kind="delivery", what="d1"))["ok"] is True


async def test_what_waits_is_dropped_and_asked_again_as_a_new_message_once(home: Home) -> None:
    claim = await home.work_on("one")
    await home.say("two")
    dropped = await ask(home, "inbox-drop", kind="message", what="m2")
    assert (dropped["message"]["state"], dropped["message"]["reason"]) == ("dropped", "by-hand")
    again = await error(home, "inbox-drop", kind="message", what="m2")
    assert again == "refused: m2 is not dropped: it was dropped before (by-hand)"
    in_turn = await error(home, "inbox-drop", kind="message", what="m1")
    assert in_turn.startswith("refused: m1 is not dropped: it is in t1")

    first = await ask(home, "inbox-retry", kind="message", what="m2")
    assert first == await ask(home, "inbox-retry", kind="message", what="m2")
    assert (first["message"]["text"], first["message"]["state"]) == ("two", "waiting")
    assert "its turn comes" in await error(home, "inbox-retry", kind="message", what="m3")
    await home.answer(claim)
    await home.answer(await home.claim())
    over = await error(home, "inbox-retry", kind="message", what="m2")
    assert over.startswith("refused: m2 was asked again as m3, which is in t2: that is answered")
    assert "it was answered" in await error(home, "inbox-retry", kind="message", what="m3")


async def test_what_was_asked_again_and_dropped_names_the_newer_one(home: Home) -> None:
    await home.work_on("one")
    await home.say("two")
    for what in ("m2", "m3"):
        assert (await ask(home, "inbox-drop", kind="message", what=what))["ok"]
        said = await ask(home, "inbox-retry", kind="message", what=what)
        assert said["ok"], said

    words = await error(home, "inbox-retry", kind="message", what="m2")
    assert words.startswith("refused: m2 was asked again as m3, which was dropped; ")


async def test_the_way_of_a_message_leads_to_the_ids_of_the_platform(home: Home) -> None:
    """Inbound, turn, calls, deliveries, platform ids."""
    claim = await home.work_on("one", key="tg-4711")
    await home.step(claim)
    await home.answer(claim, "a", "b")
    await home.deliver()

    said = await ask(home, "trace", what="tg-4711")
    assert said == await ask(home, "trace", what="m1")
    assert said["message"]["external_id"] == "tg-4711"
    assert said["turn"]["turn_id"] == 1
    assert [call["tool"] for call in said["calls"]] == ["fetch"]
    assert [each["platform_id"] for each in said["deliveries"]] == ["p1", "p2"]
    lines = list(render_trace(msgspec.convert(said, Trace), home.clock.now_ms(), UTC))
    assert lines[0] == "arrived   over web:main as tg-4711"
    assert any("delivered as p2" in line for line in lines)


async def test_the_way_of_a_command_without_a_model_is_told_with_its_code(home: Home) -> None:
    """The gateway itself runs the command of a schedule."""
    claim = await home.work_on("one", key="tg-1")
    own = Reply(text="", model=BY_GATEWAY)
    proposed = (a_call("terminal", effect=Effect.RESUMABLE),)
    (step,) = await home.store.turns.append(claim, own, proposed)
    assert isinstance(step.body, Reply)
    call_id = step.body.calls[0].call_id
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command="false", workdir=".", is_foreground=True
    )
    await home.store.processes.ended(
        process.process_id,
        ProcessState.EXITED,
        exit_code=3,
        reason="it ended by itself",
        ended_ms=home.clock.now_ms(),
    )
    await home.finish(claim, call_id)

    said = await ask(home, "trace", what="tg-1")
    lines = list(render_trace(msgspec.convert(said, Trace), home.clock.now_ms(), UTC))
    assert f"  terminal ({call_id}) ended: exit code 3" in lines
    told = "\n".join(lines)
    assert "the gateway runs the command itself; no model is asked" in told
    assert "the model replied" not in told


async def test_the_way_of_a_command_is_its_reply(home: Home) -> None:
    await home.command(CommandName.STATUS, key="c1")
    await home.deliver()

    said = await ask(home, "trace", what="c1")
    assert said["turn"] is None
    assert [each["platform_id"] for each in said["deliveries"]] == ["p1"]


async def test_a_page_of_views_is_bounded(home: Home) -> None:
    for number in range(4):
        await home.say(chat=f"c{number}")
    page = Page(limit=2, before=1 << 62)
    views = home.store.views
    assert len(await views.sessions(page)) == len(await views.turns(page)) == 2
    assert len(await views.entries(replace(page, limit=3))) == 3


def test_the_commands_answer_with_and_without_a_gateway(tmp_path: Path) -> None:
    """The same words from a gateway and from the owner of the home for a moment."""
    home = tmp_path / "home"
    with gateway(home) as one:
        message = one.say("room", "echo hello", key="key-1")
        one.wait_state(message, "done")
        asked = {
            words: koboshi(*words.split(), "--json", home=home)
            for words in (
                "sessions list",
                "sessions show s1",
                "turns list --limit 1",
                "turns show t1",
                "inbox list --open",
                "outbox list",
                "trace room/key-1",
                "trace m1",
            )
        }
        plain = koboshi("turns", "show", "t1", home=home)
        one.kill()

    assert {told.code for told in asked.values()} == {0}
    assert asked["turns list --limit 1"].document["next"] == "t1"
    assert "«echo hello»" in plain.out
    for words in ("turns show t1", "trace m1"):
        alone = koboshi(*words.split(), "--json", home=home)
        assert asked[words].document == alone.document, words
    missing = koboshi("outbox", "drop", "d99", "--json", home=home)
    assert (missing.code, missing.document["error"]["type"]) == (1, "not-found")
    assert koboshi("turns", "list", "--limit", "0", home=home).code == 2


def test_a_message_is_dropped_with_a_gateway_and_asked_again_without_one(tmp_path: Path) -> None:
    """And the other way round; the next gateway answers what was asked again, once."""
    home = tmp_path / "home"
    with gateway(home) as one:
        one.wait_state(one.say("room", "ask me which drink: tea or coffee", key="1"), "waiting")
        one.say("room", "/queue echo second", key="2")
        one.say("room", "/queue echo third", key="3")
        dropped = koboshi("inbox", "drop", "m2", "--json", home=home)
        plain = koboshi("inbox", "drop", "m2", home=home)
        one.kill()
    alone = koboshi("inbox", "drop", "m3", home=home)
    asked = [koboshi("inbox", "retry", "m2", "--json", home=home) for _ in range(2)]
    with gateway(home) as two:
        late = koboshi("inbox", "retry", "m3", "--json", home=home)
        two.say("room", "tea", key="4")
        two.wait_state("m5", "done")
        over = koboshi("inbox", "retry", "m2", home=home)
        turns = koboshi("turns", "list", "--json", home=home).document["turns"]

    assert dropped.document["message"]["reason"] == "by-hand"
    assert (plain.code, "it was dropped before (by-hand)" in plain.err) == (1, True)
    assert "the operator dropped it while it waited" in alone.out
    assert [each.document["message"]["entry_id"] for each in asked] == [4, 4]
    assert late.document["message"]["entry_id"] == 5
    assert [turn["request"] for turn in turns[:2]] == ["echo third", "echo second"]
    assert [turn["state"] for turn in turns] == ["done"] * 3
    assert (over.code, "asked again as m4, which is in t2: that is done" in over.err) == (1, True)
