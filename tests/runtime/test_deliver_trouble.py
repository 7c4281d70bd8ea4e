"""Deliveries while a platform has trouble: nothing is lost, nothing holds up the others."""

from pathlib import Path

import pytest
from anyio import Event

from koboshi.domain import phrases
from koboshi.domain.ids import ChannelName, DeliveryId
from koboshi.domain.outbox import Delivery, DeliveryLimits, Later, SendOutcome, Sent, Unsure
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.ports.channel import Abilities
from koboshi.ports.wakeups import OUTBOX
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.platform import FINDING, NON_IDEMPOTENT, in_turn
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import says, script

LOST = Unsure(reason="reset"), False
"""It did not arrive, and we do not know."""
NOT_REACHED = Later(wait_ms=0, reason="not reached"), False
LONG = "\n\n".join(f"paragraph {number} " + "word " * 150 for number in range(3))


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


def comes_back(life: Life) -> None:
    life.channel.trouble = None
    life.gateway.wakeups.hint(OUTBOX)


# ── unknown outcomes ────────────────────────────────────────────────────────────────────────────


async def test_a_part_in_the_middle_is_not_lost_and_the_parts_stay_in_order(
    setting: Setting,
) -> None:
    """Issue 12, A1: of a long answer part 2 of 3 vanished after two unknown outcomes."""
    setting.platform.outcomes = in_turn(None, LOST, LOST)
    async with living(setting) as life:
        await life.says("room", script(says(LONG)))
        await life.until(lambda: len(setting.platform.shown) == 3, "all parts")
        await life.rests()

    seen = "".join(setting.platform.texts("room"))
    assert seen.replace(DUPLICATE_LABEL, "") == LONG
    assert seen.count(DUPLICATE_LABEL) == 1
    check_rows(setting.rows())


async def test_an_unknown_outcome_is_looked_for_before_every_repeat(setting: Setting) -> None:
    """Issue 12, A1: and any copy that is found is the delivery."""
    searches: list[int] = []

    def look(delivery: Delivery) -> SendOutcome | None:
        searches.append(delivery.attempts)
        return Sent(platform_id="found") if len(searches) == 3 else None

    setting.platform.abilities = FINDING
    setting.platform.found = look
    setting.platform.outcomes = in_turn(LOST, LOST, (Unsure(reason="reset"), True))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.rests()

    assert searches == [2, 3, 4]
    assert setting.platform.texts("room") == [f"{DUPLICATE_LABEL}hello"]
    assert setting.rows().one("outbox")["platform_id"] == "found"


async def test_what_is_certainly_absent_loses_its_label(setting: Setting) -> None:
    """Issue 12, A1: a label on the only copy would be untrue."""
    answers: list[SendOutcome | None] = [None, Later(wait_ms=0)]
    setting.platform.abilities = FINDING
    setting.platform.found = lambda _: answers.pop(0)
    setting.platform.outcomes = in_turn(LOST, LOST)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        await life.rests()

    assert setting.rows().one("outbox")["labelled"] == 0


async def test_an_unknown_outcome_is_not_repeated_while_the_channel_is_down(
    setting: Setting,
) -> None:
    """Issue 12, A1: each repeat would be one more copy, or nothing."""
    setting.platform.outcomes = in_turn(LOST)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.tried, "the first try")
        life.channel.trouble = "not connected"
        await life.passes(3_600)
        assert len(setting.platform.tried) == 1
        comes_back(life)
        await life.shows("room", f"{DUPLICATE_LABEL}hello")


async def test_a_poisoned_message_is_given_up_and_told_while_others_arrive(
    setting: Setting,
) -> None:
    """Issue 12, A1: one message that breaks the connection each time must not block its chat."""
    setting.platform.outcomes = lambda delivery: LOST if delivery.text == "poison" else None
    async with living(setting) as life:
        await life.says("room", "echo poison")
        await life.says("room", "echo behind it")
        for number in range(60):
            await life.says("other", f"echo {number}")
            await life.passes(10)
            if "behind it" in setting.platform.texts("room"):
                break
        await life.rests()

    behind, notice = setting.platform.texts("room")
    rows = setting.rows()
    check_rows(rows)
    poison = rows.one("outbox", state="abandoned")
    assert behind == "behind it"
    assert notice == phrases.undelivered([DeliveryId(poison["delivery_id"])])
    assert (poison["state"], poison["strikes"]) == ("abandoned", 5)


async def test_a_message_is_not_poisoned_while_nothing_else_arrives(setting: Setting) -> None:
    """Issue 12, A1: then it is the platform that has trouble."""
    setting.platform.outcomes = in_turn(*([LOST] * 7))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.shown, "it arrives after all")
        await life.rests()

    row = setting.rows().one("outbox")
    assert (row["state"], row["unsure"], row["strikes"]) == ("delivered", 7, 0)


async def test_a_reply_to_a_command_overtakes_a_postponed_row_and_nothing_else_does(
    setting: Setting,
) -> None:
    """Issue 12, A1."""
    setting.platform.outcomes = in_turn(LOST)
    async with living(setting) as life:
        await life.says("room", "echo one")
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.says("room", "echo two")
        await life.passes(0.5)
        began = life.clock.monotonic()
        await life.says("room", "/help")
        await life.until(lambda: setting.platform.shown, "the reply")
        assert life.clock.monotonic() - began < 1
        await life.until(lambda: len(setting.platform.shown) == 3, "all three")

    helped, one, two = setting.platform.texts("room")
    assert "/stop" in helped
    assert (one, two) == (f"{DUPLICATE_LABEL}one", "two")
    check_rows(setting.rows())


async def test_lost_deliveries_of_a_chat_are_told_once_when_the_channel_is_back(
    setting: Setting,
) -> None:
    """Issue 12, A1: one counted notice for each chat, and none about notices."""
    setting.bounds = Bounds(deliveries=DeliveryLimits(age_ms_max=300_000))
    is_away = True
    setting.platform.outcomes = lambda _: NOT_REACHED if is_away else None
    async with living(setting) as life:
        life.channel.trouble = "not connected"
        await life.says("room", "echo one", thread="a")
        await life.says("room", "echo two", thread="b")
        await life.says("other", "echo three")
        await life.passes(900)
        is_away = False
        comes_back(life)
        await life.rests()

    told = setting.platform.texts("room", "a") + setting.platform.texts("room", "b")
    assert len(told) == 1
    assert told[0].startswith("2 messages of mine could not be delivered: ")
    assert len(setting.platform.texts("other")) == 1
    rows = setting.rows()
    check_rows(rows)
    assert [row["state"] for row in rows.outbox] == ["abandoned"] * 3 + ["delivered"] * 2


# ── reconnects ──────────────────────────────────────────────────────────────────────────────────


async def test_what_is_owed_is_sent_at_once_when_the_channel_is_back(setting: Setting) -> None:
    """Issue 12, B14: not when its pause is over."""
    is_away = True
    setting.platform.outcomes = lambda _: NOT_REACHED if is_away else None
    async with living(setting) as life:
        life.channel.trouble = "not connected"
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.tried) == 10, "it has long pauses")
        is_away = False
        began = life.clock.monotonic()
        comes_back(life)
        await life.shows("room", "hello")
        assert life.clock.monotonic() - began < 1


@pytest.mark.parametrize(
    "outcome, wait_s", [((Later(wait_ms=300_000), False), 300), (LOST, 5)], ids=["quiet", "unknown"]
)
async def test_a_reconnect_does_not_hurry_what_was_asked_to_wait(
    setting: Setting, outcome: tuple[SendOutcome, bool], wait_s: int
) -> None:
    """Issue 12, B14: a platform that wants quiet, and a send of unknown outcome."""
    setting.platform.outcomes = in_turn(outcome)
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.tried, "the first try")
        life.channel.trouble = "not connected"
        await life.passes(1)
        comes_back(life)
        await life.until(lambda: setting.platform.shown, "it arrives")
        assert life.clock.monotonic() - began >= wait_s


# ── no chat waits for others ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("outcome", [LOST, NOT_REACHED], ids=["unknown", "later"])
async def test_a_failing_topic_does_not_hold_up_its_chat(
    setting: Setting, outcome: tuple[SendOutcome, bool]
) -> None:
    """Issue 12, B12: a postponed row holds only its own session."""
    failing = ("room", "one")
    setting.platform.outcomes = lambda delivery: (
        outcome if (delivery.route.chat, delivery.route.thread) == failing else None
    )
    async with living(setting) as life:
        await life.says("room", "echo first", thread="one")
        await life.until(lambda: len(setting.platform.tried) == 3, "it fails again and again")
        began = life.clock.monotonic()
        await life.says("room", "echo second", thread="two")
        await life.until(lambda: setting.platform.texts("room", "two"), "the second thread")
        assert life.clock.monotonic() - began < 1
        assert setting.platform.sending_at_once["room"] == 1


async def test_two_unknown_outcomes_in_a_chat_are_both_labelled(setting: Setting) -> None:
    """Issue 12, B12: neither can be found by looking, since it might be the other one."""
    seen_alone: list[bool] = []

    def look(delivery: Delivery) -> SendOutcome | None:
        near = life.channel.near_of[delivery.delivery_id]
        seen_alone.append(near.is_alone)
        return Sent(platform_id="wrong") if near.is_alone else None

    setting.platform.abilities = FINDING
    setting.platform.found = look
    setting.platform.outcomes = in_turn(LOST, LOST)
    async with living(setting) as life:
        await life.says("room", "echo first", thread="one")
        await life.says("room", "echo second", thread="two")
        await life.rests()

    assert setting.platform.texts("room", "one") == [f"{DUPLICATE_LABEL}first"]
    assert setting.platform.texts("room", "two") == [f"{DUPLICATE_LABEL}second"]
    assert seen_alone == [False, False]


async def test_waiting_rows_cost_nothing_until_they_are_due(setting: Setting) -> None:
    """Issue 12, B12: no busy loop, and nothing that is done for every session that waits."""
    setting.platform.outcomes = lambda _: (Later(wait_ms=3_600_000), False)
    verbs: list[str] = []
    async with living(setting) as life:
        for number in range(20):
            await life.says(f"room {number}", "echo hello")
        await life.until(lambda: len(setting.platform.tried) == 20, "all have to wait")
        await life.passes(5)
        life.tracked.on_verb = verbs.append
        await life.passes(1_800)

    assert verbs.count("outbox.claim") == 0
    assert verbs.count("outbox.due") <= 200


async def test_a_waiting_row_is_sent_at_its_time_and_not_at_the_next_look(
    setting: Setting,
) -> None:
    """Issue 12, B12: it wakes up at the nearest time."""
    setting.platform.outcomes = in_turn((Later(wait_ms=33_333), False))
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        assert life.clock.monotonic() - began == pytest.approx(33.333, abs=0.2)


OTHER = ChannelName("fake:other")


@pytest.mark.parametrize("abilities", [NON_IDEMPOTENT, FINDING])
async def test_a_platform_that_hangs_delays_no_other_channel(
    home: Path, abilities: Abilities
) -> None:
    """Issue 12, B9: each channel has a limit of its own for sends under way."""
    setting = Setting(home=home, bounds=Bounds(in_flight_max=4))
    setting.platform.abilities = abilities
    other = setting.add_platform(OTHER)
    rooms = [f"room {number}" for number in range(8)]
    setting.platform.gates = {room: Event() for room in rooms}
    async with living(setting) as life:
        for room in rooms:
            await life.says(room, "echo hello")
        await life.until(lambda: len(setting.platform.tried) == 4, "all places are taken")
        began = life.clock.monotonic()
        await life.others[OTHER].bring("web", "echo quick", "w1")
        await life.until(lambda: other.shown, "the other channel answers")
        assert life.clock.monotonic() - began < 1


# ── /stop while an answer goes out ──────────────────────────────────────────────────────────────


async def test_a_stop_ends_an_answer_that_is_going_out(setting: Setting) -> None:
    """Issue 12, B15: the part that is being sent arrives, the reply is next, the rest is not
    said."""
    gate = setting.platform.gates["room"] = Event()
    async with living(setting) as life:
        await life.says("room", script(says(LONG)))
        await life.until(lambda: setting.platform.tried, "the first part is on its way")
        await life.says("room", "/stop")
        del setting.platform.gates["room"]
        gate.set()
        await life.rests()

    first, reply = setting.platform.texts("room")
    assert LONG.startswith(first)
    assert reply.startswith("Stopped: 2 parts of my answer are not sent any more.")
    assert "1 part may still arrive" in reply
    rows = setting.rows()
    check_rows(rows)
    assert rows.one("turns")["state"] == "done"
    assert [row["state"] for row in rows.outbox].count("abandoned") == 2


async def test_a_stop_does_not_end_what_may_have_arrived(setting: Setting) -> None:
    """Issue 12, B15: it is settled by what the platform says, behind the reply."""
    setting.platform.outcomes = in_turn(LOST)
    async with living(setting) as life:
        await life.says("room", script(says(LONG)))
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.passes(1)
        await life.says("room", "/stop")
        await life.rests()

    reply, first = setting.platform.texts("room")
    assert reply.startswith("Stopped: 2 parts")
    assert LONG.startswith(first.removeprefix(DUPLICATE_LABEL))


# ── answers that are very long ──────────────────────────────────────────────────────────────────

ENDLESS = "\n\n".join(f"paragraph {number} " + "word " * 150 for number in range(30))


async def test_a_very_long_answer_is_cut_with_a_way_to_ask_for_the_rest(setting: Setting) -> None:
    """Issue 12, B15: where a channel takes no files."""
    async with living(setting) as life:
        await life.says("room", script(says(ENDLESS)))
        await life.rests()

    texts = setting.platform.texts("room")
    assert len(texts) == 8
    assert ENDLESS.startswith("".join(texts[:-1]))
    assert "for the rest" in texts[-1]


async def test_a_very_long_answer_is_its_first_parts_and_a_file(setting: Setting) -> None:
    """Issue 12, B15: where a channel takes files, the whole text is in one."""
    setting.platform.abilities = Abilities(threads=True, takes_files=True, parts_max=4)
    async with living(setting) as life:
        await life.says("room", script(says(ENDLESS)))
        await life.rests()

    texts = setting.platform.texts("room")
    assert len(texts) == 4
    *shown, last = setting.platform.tried
    assert all(each.file is None for each in shown)
    assert last.file is not None
    assert (setting.home / last.file.path).read_text() == ENDLESS


async def test_a_kill_between_the_file_and_the_answer_sends_it_once(setting: Setting) -> None:
    """Issue 12, B15: the file is there before it is owed, and no second one is left."""
    setting.platform.abilities = Abilities(threads=True, takes_files=True)

    def lose_power(verb: str) -> None:
        life.tracked.is_dead |= verb == "turns.answer"

    async with living(setting) as life:
        life.tracked.on_verb = lose_power
        await life.says("room", script(says(ENDLESS)))
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    assert len(list((setting.home / "files").iterdir())) == 1
    async with living(setting) as life:
        await life.rests()

    assert len(setting.platform.texts("room")) == 8
    assert sum(each.file is not None for each in setting.platform.tried) == 1
    assert len(list((setting.home / "files").iterdir())) == 1
