"""Slack with the real gateway and real kills: nothing lost, nothing twice, in its thread."""

from pathlib import Path

import pytest

from tests.fakes.slack.happenings import Fate
from tests.fakes.slack.world import BOT_USER
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.rows import glance
from tests.harness.slack import SlackApp, a_slack_app
from tests.harness.telegram_words import LABEL, LONG, script

MENTION = f"<@{BOT_USER}>"


async def met(app: SlackApp) -> None:
    """A first life of the gateway: it is connected, and has answered once."""
    await app.connected()
    app.say("echo hello")
    await app.hears("hello")
    await app.comes_to_rest()
    await app.killed()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_around_the_commit_that_holds_an_event(home: Path, moment: str) -> None:
    """S1, S97: Slack has no acknowledgement in either case, and gives up before we are back."""
    async with a_slack_app(home) as app:
        await met(app)
        await app.connected(crash_at=f"inbox.accept:{moment}")
        event = app.world.event_of(app.say("echo once"))
        await app.dies()
        assert event.fate is not Fate.ACKNOWLEDGED
        app.world.happenings.give_up_all()
        app.start()
        await app.hears("once")
        await app.comes_to_rest()

        assert app.said() == ["hello", "once"]


KNOWN = ("turns.answer:before", "turns.answer:after", "outbox.claim:before", "outbox.settle:after")


@pytest.mark.parametrize("point", KNOWN)
async def test_killed_where_it_is_known_whether_it_was_sent(home: Path, point: str) -> None:
    """S145, S146: it was certainly not sent, and is sent as it is, or it was, and is not again."""
    async with a_slack_app(home) as app:
        await app.connected(crash_at=point)
        app.say("echo once")
        await app.dies()
        app.start()
        await app.hears("once")
        await app.comes_to_rest()

        assert app.said() == ["once"]


@pytest.mark.parametrize("point", ["outbox.settle:before", "outbox.claim:after"])
async def test_killed_around_a_send_whose_outcome_is_unknown(home: Path, point: str) -> None:
    """S146: it is looked for by its key. What is there is not said again; what is not, is."""
    async with a_slack_app(home) as app:
        await app.connected(crash_at=point)
        app.say("echo once")
        await app.dies()
        was_there = bool(app.said())
        assert was_there is point.startswith("outbox.settle")
        app.start()
        await app.hears("once")
        await app.comes_to_rest()

        assert app.said() == ["once"], "once, and without a label: it is known"
        posts = app.fake.history.of("chat.postMessage")
        assert len(posts) == 1


async def test_without_the_scope_a_repeat_says_that_it_may_be_one(home: Path) -> None:
    """S146: a key that cannot be read must not be taken for absent."""
    async with a_slack_app(home) as app:
        app.world.scopes.discard("metadata.message:read")
        await app.connected(crash_at="outbox.claim:after")
        app.say("echo once")
        await app.dies()
        app.start()
        await app.hears("once")
        await app.comes_to_rest()

        (said,) = app.said()
        assert LABEL in said


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_send_whose_answer_is_lost_is_not_said_twice(home: Path, recorded: bool) -> None:
    async with a_slack_app(home) as app:
        app.fake.faults.add("drop", "chat.postMessage", moment="after" if recorded else "before")
        await app.connected()
        app.say("echo once")
        await app.hears("once")
        await app.comes_to_rest()

        assert app.said() == ["once"]


async def test_killed_in_the_middle_of_catching_up(home: Path) -> None:
    """The next start reads from the stored watermark, and takes nothing twice."""
    async with a_slack_app(home) as app:
        await met(app)
        for number in range(3):
            app.say(f"echo {number}.", thread="")
        app.world.happenings.give_up_all()
        for moment in ("before", "after"):
            app.start(crash_at=f"inbox.accept:{moment}")
            await app.dies()
        app.start()
        await app.hears("2.")
        rows = await app.comes_to_rest()

        assert app.said() == ["hello", "0.\n\n1.\n\n2."]
        assert sum(row["kind"] == "message" for row in rows.inbox) == 4
        check_rows(rows)


async def test_killed_between_two_parts_of_a_long_answer_in_a_thread(home: Path) -> None:
    """S145, S150: each part once, in order, in the thread below the words."""
    async with a_slack_app(home) as app:
        room = app.world.channel()
        await app.connected(crash_at="outbox.claim:before:3")
        asked = app.say(f"{MENTION} {script({'text': LONG})}", room)
        await app.dies()
        assert len(app.said(room)) == 2
        app.start()
        rows = await app.comes_to_rest()

        said = app.said(room)
        assert " ".join(said).split() == LONG.split()
        assert len(said) == len(rows.outbox) >= 3
        assert all(post.thread_ts == asked.ts for post in app.world.said(room))


async def test_a_button_counts_once_and_a_late_one_is_told(home: Path) -> None:
    """S140: a press while it is down fails visibly, and is pressed again."""
    async with a_slack_app(home) as app:
        await app.connected()
        app.say("ask me which drink: tea, coffee or water")
        question = await app.hears("drink")
        assert question.labels == ["tea", "coffee", "water"]
        await app.killed()
        lost = app.world.press(question, "coffee", app.ann)
        await until(lambda: lost.fate is Fate.LOST, "the person sees that it failed")
        await app.connected()
        pressed = [app.world.press(question, "coffee", app.ann) for _ in range(2)]
        await until(lambda: all(each.is_over for each in pressed), "both are acknowledged")
        await app.hears("coffee")
        await app.comes_to_rest()
        before = app.said()
        app.world.press(question, "tea", app.ann)
        await app.hears("too late")
        await app.comes_to_rest()

        assert [each.fate for each in pressed] == [Fate.ACKNOWLEDGED] * 2
        assert len(app.said()) == len(before) + 1


async def test_fifty_chats_and_five_in_one_are_answered_once_after_a_long_time(home: Path) -> None:
    """Down for longer than Slack tries: what it gave up on is in the history."""
    async with a_slack_app(home, env={"KOBOSHI__CHANNELS__SLACK__MAIN__ALLOW": '["*"]'}) as app:
        await met(app)
        people = [app.world.user(f"Person{number}") for number in range(50)]
        for number, person in enumerate(people):
            app.world.say(app.world.im(person), person, f"echo chat{number}.")
        for number in range(5):
            app.say(f"echo mine{number}.")
        assert app.world.happenings.give_up_all() >= 55
        app.fake.tiers.is_on, app.fake.tiers.minute_s = True, 5
        app.start()
        words = [f"chat{number}." for number in range(50)] + [f"mine{n}." for n in range(5)]
        await until(
            lambda: all(app.world.copies(word) for word in words),
            "all are answered",
            otherwise=lambda: f"{app.said()}\n{app.gateway.log[-3000:]}",
        )
        rows = await app.comes_to_rest()

        assert [len(app.world.copies(word)) for word in words] == [1] * len(words)
        assert LABEL not in "".join(app.said())
        check_rows(rows)


async def test_quiet_is_kept_also_after_a_kill(home: Path) -> None:
    """S148: the wait is stored."""
    async with a_slack_app(home) as app:
        await app.connected()
        app.fake.faults.add("too_many", "chat.postMessage", seconds=3)
        app.say("echo once")
        await until(
            lambda: any(row["not_before_ms"] for row in glance(home).outbox), "the wait is stored"
        )
        await app.killed()
        app.start()
        await app.hears("once")

        refused, sent = app.fake.history.of("chat.postMessage")
        assert sent.at - refused.at >= 3
        assert app.said() == ["once"]
